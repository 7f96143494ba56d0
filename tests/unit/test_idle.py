"""Echo requests over the idle path."""

from __future__ import annotations

import dataclasses
import struct
from pathlib import Path

from testbed.plan.plan import make_plan
from testbed.scenario.network import Shaping
from testbed.store.names import IDLE_RTTS
from testbed.trial.parts.idle_rtt import REQUESTS, IdleRtt
from testbed.trial.parts.part import PlannedTrial
from tests.obeyed import made_up
from tests.scenarios import access, router, with_network


def test_every_flow_asks_before_the_trial_and_a_lost_request_has_no_round_trip(
    tmp_path: Path,
) -> None:
    scenario = with_network(router(delay_ms=30), shaping=Shaping.HTB)
    plan = make_plan(scenario)
    part = IdleRtt(PlannedTrial(scenario, plan, tmp_path, virtual_time=True))
    part.watch()
    (flow,) = plan.flows
    ends = (flow.src_address, flow.dst_address)
    (line,) = part._programme.text.splitlines()
    words = ("echo", flow.flow.src, *ends, REQUESTS, 1_060_000_000)  # a second more than planned
    assert line == "\t".join(map(str, words))
    (tmp_path / "samples").mkdir()
    part.write(tmp_path, made_up({0: struct.pack("=2q", 60_000_100, -1)}))
    assert (tmp_path / IDLE_RTTS.file).read_text().splitlines()[1:] == [
        f"tcp,{','.join(ends)},60.000100,60,0,0",
        f"tcp,{','.join(ends)},,60,0,0",
    ]


def test_flows_between_the_same_hosts_ask_once_where_all_find_the_same(tmp_path: Path) -> None:
    steady, by_chance = router(delay_ms=30), access("netem-congested")
    for scenario, requests in ((steady, 1), (by_chance, 2)):
        first = scenario.flows[0]
        flows = (first, dataclasses.replace(first, name="another"))
        both = dataclasses.replace(scenario, flows=flows)
        part = IdleRtt(PlannedTrial(both, make_plan(both), tmp_path, virtual_time=True))
        part.watch()
        assert part._programme.length == requests
        (tmp_path / "samples").mkdir(exist_ok=True)
        part.write(tmp_path, made_up({0: struct.pack("=q", 1), requests - 1: struct.pack("=q", 2)}))
        rows = (tmp_path / IDLE_RTTS.file).read_text().splitlines()[1:]
        assert [row.split(",")[0] for row in rows] == [first.name, "another"]


def test_what_a_path_may_add_is_written_with_it(tmp_path: Path) -> None:
    """The time that its links take to send, jitter both ways, and whether packets get lost."""
    scenario = access("netem-congested")
    part = IdleRtt(PlannedTrial(scenario, make_plan(scenario), tmp_path, virtual_time=True))
    part.watch()
    (tmp_path / "samples").mkdir()
    part.write(tmp_path, made_up({0: struct.pack("=q", 45_000_000)}))
    _, row = (tmp_path / IDLE_RTTS.file).read_text().splitlines()
    sending_ms = 98 * 8e-3 * (2 / 100 + 1 / 1.89 + 1 / 0.01)
    assert row.endswith(f",45.000000,{44 + sending_ms:.9g},16,1")
