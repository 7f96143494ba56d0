"""Sessions: closed loops of transfers, as drawn, planned, run by the two programs, and judged."""

from __future__ import annotations

import dataclasses
import json
import math
import socket
import statistics
import subprocess
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from analysis.transfers.sessions import load_of, session_rows
from analysis.verdict.checks import Grade
from analysis.verdict.transfers import MEMORY_PRESSURE_COUNTER, transfers
from testbed.errors import UsageError
from testbed.plan.check import validate
from testbed.plan.plan import make_plan
from testbed.scenario.model import CapturePoint, Scenario
from testbed.scenario.reading import field_faults
from testbed.scenario.transfers import (
    ENDLESS,
    PlannedTransfer,
    SessionTransfers,
    draw_sessions,
    planned_transfers,
)
from testbed.scenario.workload import (
    Arrivals,
    Connections,
    Process,
    Sessions,
    Sizes,
    Workload,
    workload_faults,
)
from testbed.store.records import FlowRecord, QueueRecord
from testbed.traffic.workload.workload_flow import BUILT_PROGRAM
from tests.lab import PATIENCE_S
from tests.scenarios import background, router, with_network, with_sessions
from tests.sealing import file_in

MANY = Sessions(256, long_share=0.25, rtt_min_ms=20, rtt_max_ms=460)


def drawn(scenario: Scenario) -> list[PlannedTransfer]:
    return list(planned_transfers(scenario, scenario.flows[-1]))


def test_kinds_are_exact_and_round_trips_uniform() -> None:
    sessions = draw_sessions(MANY, "1 background")
    assert sum(each.is_long for each in sessions) == 64
    assert sum(each.is_long for each in sessions[:64]) < 32  # not the first ones
    rtts = [each.rtt_ms for each in sessions if each.rtt_ms is not None]
    assert len(rtts) == 256 and 20 <= min(rtts) < 30 and 450 < max(rtts) <= 460
    assert statistics.mean(rtts) == pytest.approx(240, abs=3 * 440 / math.sqrt(12 * 256))
    assert all(0 <= each.start_ns <= 1e9 for each in sessions)
    assert len({each.start_ns for each in sessions}) == 256


def test_the_seed_alone_decides() -> None:
    one, same, other = (drawn(dataclasses.replace(background(), seed=seed)) for seed in (1, 1, 2))
    assert one == same and not {each.size for each in one} & {
        each.size for each in other if each.size != ENDLESS
    }


def test_a_session_draws_the_same_whatever_its_round_trip() -> None:
    """A shorter one comes to more transfers; those that both have are the same."""
    near, far = (
        [
            each
            for each in drawn(with_sessions(background(), rtt_max_ms=most))
            if each.session == web
        ]
        for most in (30, 460)
        for web in [next(each.session for each in drawn(background()) if each.size != ENDLESS)]
    )
    assert len(near) > len(far) > 3 and near[: len(far)] == far


def test_sizes_and_thoughts_have_their_means() -> None:
    """The median of a Pareto is known better than its mean, which a few files make."""
    scenario = background(256, 100)
    web = [each for each in drawn(scenario) if each.size != ENDLESS]
    sizes = [each.size for each in web]
    least = 48_000 * 0.2 / 1.2
    assert least <= min(sizes) < 1.001 * least
    assert statistics.median(sizes) == pytest.approx(least * 2 ** (1 / 1.2), rel=0.02)
    thoughts = [b.at_ns for a, b in pairwise(web) if a.session == b.session]
    assert statistics.mean(thoughts) == pytest.approx(0.5e9, rel=0.03)


def test_the_list_suffices_for_transfers_of_two_round_trips() -> None:
    loops = Sessions(20, think_ms=100, spread_s=0.5)
    workload = Workload(Arrivals(Process.SESSIONS, sessions=loops), Sizes())
    listed = list(SessionTransfers(workload, "1 web", path_rtt_s=0.05, seconds=10))
    for number in range(20):
        own = [each.at_ns / 1e9 for each in listed if each.session == number]
        begins = sum(own) + 0.1 * (len(own) - 1)
        assert 9 < begins < 10  # the last one; the next would be too late


def faults(workload: Workload) -> list[str]:
    return list(map(str, field_faults(workload)[1] or workload_faults(workload)))


@pytest.mark.parametrize(
    ("arrivals", "said"),
    [
        (Arrivals(Process.SESSIONS), "arrivals.sessions: missing for process sessions"),
        (Arrivals(load=0.5, sessions=MANY), "arrivals.sessions: of process sessions; this is"),
        (Arrivals(Process.SESSIONS, load=1, sessions=MANY), "have neither load, per_s nor"),
        *(
            (Arrivals(Process.SESSIONS, sessions=dataclasses.replace(MANY, **change)), said)
            for change, said in (
                ({"number": 0}, "sessions.number: 0 is not between 1 and 400"),
                ({"number": 401}, "sessions.number: 401 is not between 1 and 400"),
                ({"long_share": 1.5}, "sessions.long_share: 1.5 is not between 0 and 1"),
                ({"think_ms": 0}, "sessions.think_ms: 0 is not between 1 and"),
                ({"rtt_min_ms": None}, "sessions: rtt_min_ms and rtt_max_ms: both or neither"),
                ({"rtt_min_ms": 500}, "sessions: rtt_min_ms, rtt_max_ms: rising"),
                ({"rtt_max_ms": 5000}, "rtt_max_ms: 5000 is not between 0 and 4000"),
            )
        ),
    ],
)
def test_faults_name_their_field(arrivals: Arrivals, said: str) -> None:
    (found,) = faults(Workload(arrivals))
    assert said in found


def test_connections_and_count_are_not_of_sessions() -> None:
    arrivals = Arrivals(Process.SESSIONS, sessions=MANY)
    found = faults(Workload(arrivals, connections=Connections.KEPT, count=3))
    assert [each.partition(":")[0] for each in found] == ["connections", "count"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"spread_s": 10.0}, "sessions.spread_s: 10 is not within the flow's 10 s"),
        ({"rtt_min_ms": 10.0}, "sessions.rtt_min_ms: 10: its path has 14 ms"),
        ({"think_ms": 1.0, "rtt_min_ms": 14.0}, "may come to more than 30000 transfers"),
        ({"think_ms": 20.0, "number": 400}, "may come to more than 500000 transfers"),
    ],
)
def test_faults_of_the_whole_flow(change: dict[str, Any], said: str) -> None:
    seconds = 900 if "think_ms" in change else 10
    scenario = background(duration_s=seconds, sample_interval_ms=0)
    scenario = with_sessions(scenario, **change)
    with pytest.raises(UsageError) as caught:
        validate(scenario)
    assert said in caught.value.message


def test_two_flows_of_sessions_need_links_of_their_own() -> None:
    scenario = background()
    other = dataclasses.replace(scenario.flows[-1], name="other")
    with pytest.raises(UsageError, match="receiver2-right delays the sessions of background"):
        validate(dataclasses.replace(scenario, flows=(*scenario.flows, other)))


def test_sessions_have_ports_that_no_other_flow_has() -> None:
    scenario = background(4)
    other = dataclasses.replace(scenario.flows[-1], name="other", src="sender1", dst="receiver1")
    scenario = dataclasses.replace(
        with_network(scenario),
        flows=(scenario.flows[-1], dataclasses.replace(other, variant="newreno")),
    )
    one, two = make_plan(scenario).flows
    assert one.src_ports == (61_000, 61_001, 61_002, 61_003)
    assert two.src_ports == (61_004, 61_005, 61_006, 61_007)


def test_the_receivers_link_is_a_wire_with_fq() -> None:
    """Whether it has a delay or not; every other wire has its netem."""
    plan = make_plan(background())
    (delays,) = plan.session_delays
    rtts = [each.rtt_ms or 0 for each in draw_sessions(dataclasses.replace(MANY, number=16),
                                                       "1 background")]  # fmt: skip
    assert list(delays.extra_ns) == [round((rtt_ms - 14) * 5e5) for rtt_ms in rtts]
    tc = [" ".join(c.argv) for c in plan.setup if c.node == "wires" and "root" in c.argv]
    held = {words.split()[4]: words.split()[8] for words in tc}
    assert {name for name, kind in held.items() if kind == "fq"} == set(delays.ends)
    assert set(held.values()) == {"fq", "netem"}
    plan = make_plan(with_network(background(), access={"delay_ms": 0}))
    (delays,) = plan.session_delays
    assert (delays.link, delays.link_delay_ns) == ("receiver2-right", 0)
    assert any(veth.name2 == delays.ends[0] for veth in plan.veths)


def test_without_round_trips_of_their_own_no_packet_is_delayed() -> None:
    plan = make_plan(with_sessions(background(), rtt_min_ms=None, rtt_max_ms=None))
    assert not plan.session_delays
    assert " fq " not in " ".join(" ".join(command.argv) for command in plan.setup)
    assert "fq" not in {need.name for need in plan.needs}
    assert {"fq", "clsact", "bpf"} <= {need.name for need in make_plan(background()).needs}


def test_a_flow_that_is_not_captured_is_so_at_the_bottleneck_alone() -> None:
    roles = {role for capture in make_plan(background()).captures for role in capture.roles}
    own = {role for role in roles if role.endswith(":background")}
    assert own == {"bottleneck-in:background", "bottleneck-out:background"}
    ends = (CapturePoint.SENDERS, CapturePoint.RECEIVERS)
    few = make_plan(background(captures=ends)).captures
    assert {capture.node for capture in few} == {"sender1", "receiver1"}


def free_ports(count: int) -> int:
    """Return the first of this many ports in a row on which nobody listens."""
    for first in range(17000, 30000, count):
        with socket.socket() as one, socket.socket() as other:
            try:
                one.bind(("", first))
                other.bind(("", first + count - 1))
            except OSError:
                continue
            return first
    raise AssertionError("no ports")


def asked(port: int, sessions: int, table: Path) -> dict[str, Any]:
    """Return the client's log, once it has ended by itself."""
    words = ("ask", "127.0.0.1", str(port), str(sessions), "31000", "0", "1000", str(table))
    done = subprocess.run(
        (str(BUILT_PROGRAM), *words), capture_output=True, check=True, timeout=PATIENCE_S
    )
    log: dict[str, Any] = json.loads(done.stdout)
    return log


def test_both_programs_on_the_loopback(tmp_path: Path) -> None:
    """Sessions that end: each transfer is complete, and begins after its pause."""
    planned = [(s, 20_000_000 * n, 10_000 * (s + 1)) for s in range(3) for n in range(4)]
    table = tmp_path / "table"
    table.write_text("".join(f"{s} {after} {size}\n" for s, after, size in planned))
    port = free_ports(3)
    serve = (str(BUILT_PROGRAM), "serve", str(port), "3", "16384", "1000")
    with subprocess.Popen(serve, stdout=subprocess.PIPE) as server:
        while f":{port + 2:04X} 00000000:0000 0A " not in Path("/proc/net/tcp").read_text():
            assert server.poll() is None
        log = asked(port, 3, table)["transfers"]
        server.terminate()
        served = json.loads(server.communicate()[0])["ports"]
    assert [row[3] for row in log] == [size for _, _, size in planned]
    assert [row[0] for row in log] == 3 * [31_000, 31_001, 31_002, 31_003]
    for session in range(3):
        own = log[4 * session : 4 * session + 4]
        for number, (before, after) in enumerate(pairwise(own), start=1):
            assert before[2] + 20_000_000 * number <= after[1]
    assert [each["connections"] for each in served] == [4, 4, 4]
    assert [each["sent_bytes"] for each in served] == [40_000, 80_000, 120_000]


def test_a_session_goes_on_when_a_connection_fails(tmp_path: Path) -> None:
    table = tmp_path / "table"
    table.write_text("0 0 -1\n1 0 500\n1 1000000 500\n")
    log = asked(free_ports(2), 2, table)["transfers"]
    assert [row[2] for row in log] == [-2, -2, -2]
    assert log[2][1] >= log[1][1] + 1_000_000


HELD_MS = 100 * 1514 * 8e-3 / 15  # by 99 packets and the one in service
QUEUE = QueueRecord("left", "left-eth0", 15, 1514, "pfifo", 99, "packets", False, True)


class Case:
    """A trial of four sessions, one of them long, that went as planned for a second or so."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.scenario = folder, background(4)
        for name in ("flows", "samples"):
            (folder / name).mkdir()
        self.listed = drawn(self.scenario)
        sessions = self.scenario.flows[-1].workload.arrivals.sessions  # type: ignore[union-attr]
        assert sessions is not None
        own = draw_sessions(sessions, "1 background")
        self.ports = [
            {
                "connections": 1,
                "control": "reno",
                "min_rtt_us": (each.rtt_ms or 0) * 1e3,
                "window_bytes": 64_000,
                **dict.fromkeys(("sent_bytes", "segments", "retransmissions"), 0),
            }
            for each in own
        ]
        self.log = [self._row(place) for place in range(len(self.listed))]
        self.counters: dict[str, dict[str, int]] = {"sender2": {}, "receiver2": {}}

    def _row(self, place: int) -> list[int]:
        """Return the log of a transfer that takes a second, and is its session's first, or none."""
        one = self.listed[place]
        if place and self.listed[place - 1].session == one.session:
            return [0, -1, -1, 0]
        if one.size == ENDLESS:
            return [10_000, one.at_ns, -1, 5000]
        return [10_000, one.at_ns, 10**10, one.size]

    def first(self, session: int) -> int:
        """Return the place of a session's first transfer."""
        return next(n for n, each in enumerate(self.listed) if each.session == session)

    @property
    def web(self) -> int:
        """The number of a session that is not long."""
        return next(each.session for each in self.listed if each.size != ENDLESS)

    @property
    def record(self) -> FlowRecord:
        ports = tuple(range(61_000, 61_004))
        times = (0.0, 10.0, 0.0, 10.0)
        return FlowRecord("background", "tcp", "10.1.2.2", "10.2.2.2", ports, 0, *times, "reno")

    @property
    def trial(self) -> Any:
        lines = (f"{each.session} {each.at_ns} {each.size}\n" for each in self.listed)
        (self.folder / "flows" / "background.transfers").write_text("".join(lines))
        files = {
            "flows/background.client.json": {"real_zero_ns": 0, "transfers": self.log},
            "flows/background.server.json": {"ports": self.ports},
            "samples/counters.json": self.counters,
        }
        for name, content in files.items():
            (self.folder / name).write_text(json.dumps(content))
        record = SimpleNamespace(flows=(self.record,), queues=(QUEUE,), epoch_s=0.0)
        own = file_in(self.folder)
        return SimpleNamespace(scenario=self.scenario, record=record, file=own)

    def bad(self) -> set[str]:
        """Return the names of the checks that are not valid, but for captures."""
        packets = SimpleNamespace(flow=lambda *_: None)
        evidence: Any = SimpleNamespace(trial=self.trial, virtual_time=True, packets=packets)
        found = list(transfers(evidence))
        assert {"session RTT", "session window", "session failures", "memory"} <= {
            each.name for each in found
        }
        return {each.name for each in found if each.verdict not in (Grade.VALID, Grade.UNKNOWN)}


@pytest.fixture
def case(tmp_path: Path) -> Case:
    return Case(tmp_path)


def test_sound_sessions_are_valid(case: Case) -> None:
    assert case.bad() == set()


def test_a_round_trip_may_have_met_queues_and_may_be_unknown(case: Case) -> None:
    case.ports[0]["min_rtt_us"] += 1e3 * HELD_MS - 100  # type: ignore[operator]
    case.ports[1]["min_rtt_us"] = 0
    assert case.bad() == set()


@pytest.mark.parametrize("off_ms", [-1, HELD_MS + 1])
def test_a_round_trip_that_queues_do_not_explain(case: Case, off_ms: float) -> None:
    case.ports[2]["min_rtt_us"] += 1e3 * off_ms  # type: ignore[operator]
    assert case.bad() == {"session RTT"}


def test_a_round_trip_by_timestamps_is_up_to_a_millisecond_less(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    case.ports[2]["min_rtt_us"] = case.ports[2]["min_rtt_us"] // 1000 * 1000  # type: ignore[operator]
    assert case.bad() == {"session RTT"}
    stamped = dataclasses.replace(case.record, options=("sack", "timestamps"))
    monkeypatch.setattr(Case, "record", stamped)
    assert case.bad() == set()
    case.ports[2]["min_rtt_us"] -= 1000  # type: ignore[operator]
    assert case.bad() == {"session RTT"}


def test_a_window_beyond_its_limit(case: Case) -> None:
    case.ports[2]["window_bytes"] = 64_001
    assert case.bad() == {"session window"}


def test_memory_that_ran_short(case: Case) -> None:
    case.counters["receiver2"][MEMORY_PRESSURE_COUNTER] = 1
    assert case.bad() == {"memory"}


def test_a_transfer_that_was_lost(case: Case) -> None:
    """Its session's next one is due after a pause, from an instant that the log does not have."""
    place = case.first(case.web)
    case.log[place][2:] = [-2, 100]
    assert case.bad() == {"session failures"}
    case.log[place + 1] = [10_001, 5 * 10**9, -1, 0]
    assert case.bad() == {"session failures"}


def test_a_transfer_that_is_late_early_or_missing(case: Case) -> None:
    place = case.first(case.web)
    one, pause = case.listed[place], case.listed[place + 1].at_ns
    case.log[place][2] = 10**9
    assert case.bad() == {"transfers"}  # the next one is missing
    for begun, sound in ((10**9 + pause, True), (10**9 + pause + 5000, False), (10**9, False)):
        case.log[place + 1] = [10_001, begun, -1, 0]
        assert case.bad() == (set() if sound else {"transfers"})
    case.log[place][2:] = [-1, one.size // 2]  # the first is still in progress
    assert case.bad() == {"transfers"}


def test_a_list_that_the_seed_does_not_draw(case: Case) -> None:
    place = case.first(case.web)
    case.listed[place] = dataclasses.replace(case.listed[place], size=1)
    case.log[place][3] = 1
    assert case.bad() == {"transfers"}


def test_a_row_for_each_session(case: Case) -> None:
    rows = session_rows(case.trial, case.record)
    assert rows is not None and list(rows["kind"]).count("long") == 1
    web = rows[rows["kind"] == "web"]
    assert list(web["transfers"]) == [1, 1, 1]
    assert list(web["received_bytes"]) == [
        case.listed[case.first(number)].size for number in web.index
    ]
    assert rows[rows["kind"] == "long"]["received_bytes"].item() == 5000


def test_load_and_losses_are_the_hosts_counters(case: Case) -> None:
    case.counters = {
        "sender2": {"TcpOutSegs": 950, "TcpRetransSegs": 51, "TcpExtTCPSynRetrans": 1},
        "receiver2": {"TcpInSegs": 990, "IpExtInOctets": 10**6 - 14 * 990},
    }
    load = load_of(case.trial, case.record)
    assert load is not None
    assert load.mbit == pytest.approx(0.8) and load.share == pytest.approx(0.8 / 15)
    assert load.loss_rate == pytest.approx(0.01)
    other = dataclasses.replace(case.scenario.flows[0], dst="receiver2")
    case.scenario = dataclasses.replace(case.scenario, flows=(other, case.scenario.flows[1]))
    assert load_of(case.trial, case.record) is None


def test_other_scenarios_have_no_sessions() -> None:
    assert not make_plan(router()).session_delays
