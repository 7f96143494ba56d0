"""What a trial notes of its sockets."""

from __future__ import annotations

import struct
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from testbed.plan.plan import make_plan
from testbed.store.records import FlowRecord, Record, Status
from testbed.trial.parts.flow_traffic import FlowTraffic
from testbed.trial.parts.part import PlannedTrial
from testbed.trial.parts.sampling import SampledSocket, Sampling
from tests.obeyed import made_up
from tests.scenarios import router


def recorded(tmp_path: Path, variant: str, sockets: list[SampledSocket]) -> FlowRecord:
    """The record of a flow whose sockets showed these."""
    scenario = router(variant=variant)
    trial = PlannedTrial(scenario, make_plan(scenario), tmp_path, virtual_time=True)
    flows, sampling = FlowTraffic(trial), Sampling(trial)
    running: Any = SimpleNamespace(
        plan=trial.plan.flows[0], seen=lambda: ("", ()), done_s=lambda _answers: None
    )
    flows._flows, sampling._sampled = [running], sockets
    flows._started["tcp"], flows._stopped["tcp"] = 1, 2
    answers = made_up({1: struct.pack("=q", 500_000_000), 2: struct.pack("=q", 4_000_000_000)})
    (record,) = sampling.describe(flows.describe(Record(Status.OK), answers), answers).flows
    assert (record.started_s, record.stopped_s) == (0.5, 4.0)
    return record


def seen(control: str, options: frozenset[str] | None) -> SampledSocket:
    return SampledSocket("tcp", control, options, cookie=1)


def test_what_was_asked_of_a_socket_stands_beside_what_it_ran(tmp_path: Path) -> None:
    record = recorded(tmp_path, "tahoe", [seen("cubic", frozenset({"sack"}))])
    assert (record.control, record.variant_seen) == ("tahoe", "cubic")
    assert (record.options, record.options_seen) == ((), ("sack",))


def test_an_option_counts_where_all_of_a_flows_sockets_have_it(tmp_path: Path) -> None:
    both = [seen("cubic", frozenset({"sack", "timestamps"})), seen("reno", frozenset({"sack"}))]
    record = recorded(tmp_path, "cubic", both)
    assert record.options_seen == ("sack",)
    assert record.variant_seen == "cubic+reno"


def test_a_socket_that_was_never_seen(tmp_path: Path) -> None:
    record = recorded(tmp_path, "cubic", [seen("", None)])
    assert (record.variant_seen, record.options_seen) == ("", ())
