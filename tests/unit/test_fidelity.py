"""The arithmetic below the verdict: segments, counters, and a shaped interface."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType, SimpleNamespace
from typing import Any, cast

import numpy as np
import pandas as pd
import pytest

from analysis.captures.packet_matching import Pairs
from analysis.captures.tcp import ACK, CE, RST, SYN, read_capture
from analysis.metrics.columns import CELL_COLUMNS
from analysis.metrics.metric_rows import counted
from analysis.statistics.intervals import widest
from analysis.trials.accurate_ecn import AE, CWR, ECE, RESET
from analysis.trials.packets import FlowPackets, select
from analysis.trials.queue_transit import QueueTransit
from analysis.trials.samples import Disciplines
from analysis.trials.tcp_stream import Segments, connection
from analysis.verdict import (
    configuration,
    iperf3,
    kernel_tcp,
    links,
    queues,
    recording,
    sender_queue,
)
from analysis.verdict.checks import Check, Grade, make_check
from analysis.verdict.evidence import Evidence
from analysis.verdict.queues import backlog_at_losses, backlogged, serialised, too_soon
from analysis.verdict.verdict import worst_verdict
from testbed.scenario.model import FlowKind, Misbehaviour
from testbed.store.names import DELAY_NODE
from tests.pcap_writer import write_pcap
from tests.scenarios import router
from tests.sealing import file_in
from tests.transits import sure_transit
from tests.trial_writer import ISN, SIZE, TCP, captures, flow_record, ns

MS = 1_000_000


@pytest.fixture(scope="module")
def segments(tmp_path_factory: pytest.TempPathFactory) -> Segments:
    """The connection of the trial made by hand, at its sender."""
    path = tmp_path_factory.mktemp("captures") / "sender.pcap"
    rows = read_capture(write_pcap(path, captures()["sender1-eth0"])).rows
    found = select(rows, flow_record("tcp", TCP, "tcp"))
    whole = connection(found.data, found.acks, (TCP.src_port, TCP.dst_port))
    assert whole is not None
    return whole


def at(*times_s: float) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.array([ns(time_s) for time_s in times_s])


def test_segments_sent_again_past_the_wrap(segments: Segments) -> None:
    assert ISN + 3 * SIZE > 2**32
    assert int(segments.again.sum()) == 2
    assert list(segments.retransmissions(at(2.164, 2.166, 3.001))) == [0, 1, 2]


def test_what_is_outstanding(segments: Segments) -> None:
    """The SYN counts, its acknowledgement does not; four are out when the first ACK comes."""
    assert list(segments.outstanding(at(1.01, 1.2, 2.045, 2.2, 2.4))) == [1, 0, 5, 7, 0]
    assert list(segments.outstanding(at(1.9), late_ns=200 * MS)) == [10]


@pytest.mark.parametrize(
    ("sample_ms", "allowed"), [(10, {1}), (20, {0, 1, 2}), (21, {2}), (60, {2, 1, 0}), (61, {0})]
)
def test_a_sample_in_the_instant_of_an_acknowledgement(sample_ms: int, allowed: set[int]) -> None:
    """A SYN, whose acknowledgement after 20 ms lets two segments leave in the same nanosecond."""
    every = Segments(
        row=np.arange(3),
        time_ns=np.array([0, 20, 20]) * MS,
        begin=np.array([0, 1, 101]),
        end=np.array([1, 101, 201]),
        ack_ns=np.array([20, 60, 60]) * MS,
        acked=np.array([1, 101, 201]),
    )
    low, high = kernel_tcp.outstanding_bounds(every, np.array([sample_ms * MS]), 0)
    assert set(range(int(low[0]), int(high[0]) + 1)) == allowed


def test_for_how_long_a_window_had_no_room() -> None:
    """Segments of 100 bytes: the window is full from 20 to 60 ms, lets one leave until 70, and the
    end of the data needs no room."""
    every = Segments(
        row=np.arange(4),
        time_ns=np.array([0, 20, 60, 70]) * MS,
        begin=np.array([0, 1, 101, 201]),
        end=np.array([1, 101, 201, 301]),
        ack_ns=np.array([20, 60, 70, 90]) * MS,
        acked=np.array([1, 101, 201, 301]),
        allowed=np.array([150, 301, 301, 350]),
    )
    assert every.held_by_window_ns(0, 100 * MS) == (40 * MS, 70 * MS)
    assert every.held_by_window_ns(50 * MS, 65 * MS) == (10 * MS, 15 * MS)
    unknown = dataclasses.replace(every, allowed=None)
    assert unknown.held_by_window_ns(0, 100 * MS) is None


@pytest.mark.parametrize(
    ("asked", "says", "grade"),
    [
        ("6.1", "Linux 6.1.192-testbed #1 1970-01-01", Grade.VALID),
        ("6.1", "Linux 6.12.117-testbed #1", Grade.INVALID),
        ("6.12", "Linux 6.12.117-testbed-mine #1", Grade.INVALID),
        ("mine", "Linux 6.19.0-rc2-testbed-mine #1", Grade.VALID),
        ("mine", "Linux 6.12.117-testbed-my-testbed-mine #1", Grade.INVALID),
        ("6.1-debug", "Linux 6.1.192-testbed+debug #1", Grade.VALID),
        ("6.1-debug", "Linux 6.1.192-testbed #1", Grade.INVALID),
        ("6.1", "Linux 6.1.192-testbed+debug #1", Grade.INVALID),
        ("6.1", "", Grade.SUSPECT),
    ],
)
def test_the_kernel_is_the_one_that_was_asked_for(asked: str, says: str, grade: Grade) -> None:
    trial = SimpleNamespace(scenario=router(kernel=asked), record=SimpleNamespace(kernel=says))
    evidence = SimpleNamespace(trial=trial, virtual_time=True)
    assert [each.verdict for each in configuration.kernel(cast(Any, evidence))] == [grade]


@pytest.mark.parametrize(("repaired", "grade"), [(True, Grade.VALID), (False, Grade.INVALID)])
def test_a_recovery_between_two_samples_says_nothing_of_the_window(
    repaired: bool, grade: Grade
) -> None:
    """30 segments are acknowledged as they go; then 40 go out while the first of them is awaited,
    which SACK allows within a window of 10. Without a repair it is more than was allowed."""
    sent_ms = [*range(30), *range(110, 150), *([155] if repaired else [])]
    place = [*range(70), *([30] if repaired else [])]
    begin = np.array(place) * 100
    ack_ms = [*(k + 5 for k in range(30)), *range(115, 155), 165]
    acked = [*((k + 1) * 100 for k in range(30)), *[3000] * 40, 7000]
    every = Segments(
        row=np.arange(len(place)),
        time_ns=np.array(sent_ms) * MS,
        begin=begin,
        end=begin + 100,
        ack_ns=np.array(ack_ms) * MS,
        acked=np.array(acked),
    )
    samples = pd.DataFrame(
        {"time_s": [0.0, 0.1, 0.2], "ca_state": "open", "cwnd": 10, "srtt_ms": 50.0}
    )
    trial = SimpleNamespace(record=SimpleNamespace(epoch_s=0.0))
    evidence = SimpleNamespace(trial=trial, virtual_time=True)
    found = kernel_tcp.check_window(
        cast(Evidence, evidence), flow_record("tcp", TCP, "tcp"), every, samples
    )
    assert found.verdict is grade


def test_a_flow_that_starts_at_the_bottleneck_starts_with_its_program() -> None:
    """It is captured behind the queue, in which its SYN may wait, or be dropped and sent again."""

    def first(shared: bool, sent: int = 2) -> float | None:
        data = pd.DataFrame({"time_ns": [3 * 10**9] * sent, "length": [74] * sent})
        packets = SimpleNamespace(
            starts_at_bottleneck=lambda _name: shared,
            connections=lambda _flow: [data],
            part=lambda *_: SimpleNamespace(data=data),
        )
        scenario = SimpleNamespace(flow=lambda _name: SimpleNamespace(kind=FlowKind.TCP))
        record = SimpleNamespace(epoch_s=0.0, queues=(), captures=())
        trial = SimpleNamespace(scenario=scenario, record=record)
        evidence = cast(Evidence, SimpleNamespace(packets=packets, trial=trial))
        flow = dataclasses.replace(flow_record("tcp", TCP, "tcp"), stopped_s=9.0)
        return recording.first_packet_s(evidence, flow)

    assert first(shared=True) is None
    assert first(shared=False) == 3
    assert first(shared=False, sent=0) == 9  # it did not even send a SYN


@pytest.mark.parametrize(
    ("first_s", "queue_s", "refused"),
    [
        (0.01, 0.06, 0),
        (1.05, 0.06, 1),
        (3.01, 0.06, 2),
        (7.02, 0.06, 3),
        (7.07, 0.06, 3),
        (9, 0, 0),
    ],
)
def test_a_syn_that_the_senders_own_queue_refused_is_sent_again(
    monkeypatch: pytest.MonkeyPatch, first_s: float, queue_s: float, refused: int
) -> None:
    """After 1, 3 and 7 s; what was sent may have waited in the queue. Others have no such queue."""
    monkeypatch.setattr(sender_queue, "own_queue_ns", lambda *_: round(queue_s * 1e9))
    every = SimpleNamespace(time_ns=np.array([round(first_s * 1e9)]))
    packets = SimpleNamespace(connections=lambda _flow: [every])
    trial = SimpleNamespace(record=SimpleNamespace(epoch_s=0.0))
    evidence = cast(Evidence, SimpleNamespace(packets=packets, trial=trial))
    flow = dataclasses.replace(flow_record("tcp", TCP, "tcp"), started_s=0.0)
    assert sender_queue.refused_syns(evidence, flow) == refused


@pytest.mark.parametrize(
    ("report", "counted", "grade"),
    [
        ({}, 3, Grade.VALID),
        ({}, 4, Grade.INVALID),
        ({"intervals": [{"sum": {"start": 0, "end": 1, "bytes": 1}}]}, 3, Grade.INVALID),
    ],
)
def test_the_end_of_an_unanswered_control_connection_is_sent_again(
    tmp_path: Path, report: object, counted: int, grade: Grade
) -> None:
    """On a network that is not captured; the kernel counts it, and two that are captured."""
    flow = flow_record("tcp", TCP, "tcp")
    for name, text in (
        ("samples/counters.json", {"a": {"TcpRetransSegs": counted}}),
        ("flows/tcp.server.json", report),
    ):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text(json.dumps(text))
    again = SimpleNamespace(again=np.array([1, 1]), retransmissions=lambda _ns: [2])
    packets = SimpleNamespace(connections=lambda _flow: [again])
    ends = SimpleNamespace(src="a", dst="b", kind=FlowKind.TCP)
    planned = SimpleNamespace(flow=lambda _name: ends)
    record = SimpleNamespace(epoch_s=0.0, queues=(), captures=())
    trial = SimpleNamespace(file=file_in(tmp_path), scenario=planned, record=record)
    samples = SimpleNamespace(last_s=lambda: 26.0)
    evidence = cast(
        Evidence,
        SimpleNamespace(
            packets=packets,
            trial=trial,
            tcp=(flow,),
            samples=samples,
            disciplines=SimpleNamespace(drops=dict),
            virtual_time=True,
        ),
    )
    assert [each.verdict for each in kernel_tcp.hosts(evidence)] == [grade]


@pytest.mark.parametrize(
    ("packets", "size", "grade"),
    [
        (3, 4542, Grade.VALID),
        (4, 4542, Grade.INVALID),  # more than were counted in the last second
        (2, 0, Grade.INVALID),  # a packet has bytes
        (3, 4543, Grade.INVALID),
        (-1, -100, Grade.INVALID),
    ],
)
def test_captures_may_lack_packets_that_came_when_they_ended(
    packets: int, size: int, grade: Grade
) -> None:
    """Nine are captured; three were counted after the last moment at which captures are whole."""
    times = np.arange(9)
    found = sure_transit(times, times, times + 100)
    sent, of_bytes = 9 + packets, int(found.length.sum()) + size
    rows = pd.DataFrame(
        {
            "time_s": [0.0, 25.0, 26.0],
            "sent_packets": [0, sent - 3, sent],
            "sent_bytes": [0, of_bytes - 4542, of_bytes],
            "drops": 0,
            "backlog_packets": 0,
        }
    )
    samples = SimpleNamespace(queue=lambda _name: rows, queue_end=lambda _name: rows.iloc[-1])
    evidence = SimpleNamespace(
        samples=samples,
        trial=SimpleNamespace(
            record=SimpleNamespace(epoch_s=0.0, captures=()), file=lambda _name: None
        ),
        sure_ns=25e9,
        virtual_time=True,
        disciplines=SimpleNamespace(leaves={}),
        injected=SimpleNamespace(at_queue=lambda _queue: 0),
    )
    queue = cast(Any, SimpleNamespace(interface="r-eth0"))
    checks = queues.conservation(cast(Evidence, evidence), queue, found)
    assert [each.verdict for each in checks] == [Grade.VALID, grade]


@pytest.mark.parametrize(("entered", "left", "grade"), [(7, 6, "valid"), (6, 6, "invalid")])
def test_an_icmp_error_that_met_a_full_queue_is_counted_as_dropped(
    monkeypatch: pytest.MonkeyPatch, entered: int, left: int, grade: str
) -> None:
    """The queue drops one packet more than the flows lack."""
    counts = {"r-eth0": left, "r-eth1": entered}
    monkeypatch.setattr(queues, "_other_frames", lambda _, *names: sum(counts[n] for n in names))
    times = np.arange(9)
    end = {"sent_packets": 9 + left, "sent_bytes": 0, "drops": 1, "backlog_packets": 0}
    captures = tuple(SimpleNamespace(interface=name, node="r") for name in counts)
    evidence = SimpleNamespace(
        samples=SimpleNamespace(queue_end=lambda _name: end),
        trial=SimpleNamespace(record=SimpleNamespace(captures=captures)),
        virtual_time=True,
        disciplines=SimpleNamespace(leaves={}),
        injected=SimpleNamespace(at_queue=lambda _queue: 0),
    )
    queue = cast(Any, SimpleNamespace(interface="r-eth0", node="r"))
    found = sure_transit(times, times, times + 100)
    check, _ = queues.conservation(cast(Evidence, evidence), queue, found)
    assert check.verdict == grade


@pytest.mark.parametrize(("virtual_time", "lost"), [(True, 2), (False, 1)])
def test_a_drop_in_the_last_second_is_lost_in_virtual_time(
    monkeypatch: pytest.MonkeyPatch, virtual_time: bool, lost: int
) -> None:
    """Retransmissions long after the flows meet queues that are still full."""

    def packets(*times_s: float) -> Any:
        times_ns = at(*times_s)
        return {"time_ns": times_ns, "length": np.full(len(times_ns), SIZE)}

    crossing = SimpleNamespace(entered=packets(1.0, 5.0, 6.5), left=packets(1.2))
    monkeypatch.setattr("analysis.verdict.evidence.flows_at_queue", lambda *_parts: [crossing])
    monkeypatch.setattr("analysis.verdict.evidence.captured_queues", lambda trial: trial.queues)
    found = Pairs(np.array([0]), np.array([0]), np.array([True, False, False]))
    monkeypatch.setattr("analysis.trials.queue_transit.pairs", lambda *_parts: found)
    flows = (SimpleNamespace(protocol="tcp", stopped_s=5.0),)
    record = SimpleNamespace(flows=flows, epoch_s=ns(0.0) / 1e9)
    trial = SimpleNamespace(record=record, queues=[SimpleNamespace(interface="r-eth0")])
    samples = SimpleNamespace(last_s=lambda: 7.0)
    evidence = Evidence(cast(Any, trial), cast(Any, None), cast(Any, samples), virtual_time)
    assert len(evidence.transits["r-eth0"].lost_ns) == lost


def test_a_capture_that_begins_later_has_no_segments() -> None:
    rows = pd.DataFrame({"src_port": [TCP.src_port], "dst_port": [TCP.dst_port], "flags": [16]})
    assert connection(rows, rows, (TCP.src_port, TCP.dst_port)) is None


def test_smoothed_rtt_of_ten_segments() -> None:
    """RFC 6298: the first one as it is, then an eighth of each; a repeated one does not count."""
    begin = np.arange(10) * 100
    sent = np.arange(10) * 10 * MS
    every = Segments(
        row=np.arange(11),
        time_ns=np.append(sent, 200 * MS),
        begin=np.append(begin, 400),
        end=np.append(begin + 100, 500),
        ack_ns=sent + 50 * MS + np.arange(10) * MS,
        acked=begin + 100,
    )
    time_ns, smooth_ms, calm = every.smoothed_rtt()
    assert len(time_ns) == 10 and smooth_ms[0] == 50
    assert smooth_ms[1] == pytest.approx(50 * 7 / 8 + 51 / 8)
    assert smooth_ms[4] == smooth_ms[3]
    assert list(calm) == [True] * 4 + [False] * 6


def test_a_retransmission_may_join_two_short_segments() -> None:
    every = Segments(
        row=np.arange(5),
        time_ns=np.array([0, 1, 2, 9, 19]),
        begin=np.array([0, 100, 140, 100, 0]),
        end=np.array([100, 140, 200, 200, 100]),
        ack_ns=np.array([], dtype=np.int64),
        acked=np.array([], dtype=np.int64),
    )
    assert list(every.joined(np.array([5, 9, 30]))) == [0, 1, 1]


def test_what_was_sent_ahead_is_what_the_chance_makes() -> None:
    def graded(ahead: int) -> list[Grade]:
        told = {"reorder": {"reorder": 0.5}}
        wire = {"kind": "netem", "dev": "w0a", "options": told, "requeues": ahead, "packets": 100}
        found = Disciplines(cast(Any, SimpleNamespace(scenario=router())))
        found.__dict__["_by_node"] = {DELAY_NODE: [wire]}
        evidence = SimpleNamespace(disciplines=found, flows=(), virtual_time=True)
        return [each.verdict for each in links.overtaking(cast(Any, evidence))]

    assert graded(50) == [Grade.VALID, Grade.VALID]
    assert graded(25) == [Grade.VALID, Grade.SUSPECT]  # five deviations
    assert graded(10) == [Grade.VALID, Grade.INVALID]


def marks_received(
    data: Mapping[str, object],
    flags: Sequence[int],
    receiver: Misbehaviour | None = None,
    address: str = "10.0.0.2",
) -> Iterator[Check]:
    """Yield the checks of marks of a flow: with these data packets, and acknowledgements' flags."""
    sent = pd.DataFrame({"time_ns": 0, **data})
    packets = SimpleNamespace(data=sent, acks=pd.DataFrame({"flags": flags}))
    flow = SimpleNamespace(dst="receiver", receiver=receiver)
    evidence = SimpleNamespace(
        flows=(SimpleNamespace(name="tcp", protocol="tcp", dst_address=address, stopped_s=1.0),),
        packets=SimpleNamespace(part=lambda _role, _flow: packets),
        trial=SimpleNamespace(
            scenario=SimpleNamespace(flow=lambda _name: flow),
            record=SimpleNamespace(epoch_s=0.0),
        ),
        virtual_time=True,
    )
    return iter(queues.marks_received(cast(Evidence, evidence)))


@pytest.mark.parametrize(
    ("payload", "receiver", "grade"),
    [
        (0, None, "valid"),
        (1000, None, "invalid"),
        (1000, Misbehaviour.ACK_DIVISION, "invalid"),
        (1000, Misbehaviour.BLEACHED_ECN, "valid"),
    ],
)
def test_marks_of_packets_with_data_alone_are_echoed(
    payload: int, receiver: Misbehaviour | None, grade: str
) -> None:
    """DCTCP's SYN can be marked, too, which nobody echoes."""
    data = {"ecn": [CE, 0], "payload": [payload, 1000]}
    echo = next(marks_received(data, [16, 16], receiver))
    assert echo.name == "ECN echo" and echo.verdict == grade


@pytest.mark.parametrize(("time_s", "grade"), [(0.9, "invalid"), (1.1, "valid")])
def test_a_closed_socket_echoes_no_mark(time_s: float, grade: str) -> None:
    data = {"ecn": [CE], "payload": [1000], "time_ns": [round(time_s * 1e9)]}
    assert next(marks_received(data, [16])).verdict == grade


@pytest.mark.parametrize(("marked", "counters", "grade"), [
    (0, (5, 5), "valid"),  # the counter begins at 5: it has ECE without a mark
    (3, (5, 8), "valid"),
    (3, (5, 5), "invalid"),
    (0, (5, 6), "invalid"),
])  # fmt: skip
def test_accurate_ecn_counts_marks_in_three_flags(
    marked: int, counters: tuple[int, int], grade: str
) -> None:
    bits = ((4, AE), (2, CWR), (1, ECE))
    flags = [16 | sum(bit for weight, bit in bits if each % 8 & weight) for each in counters]
    data = {"ecn": [CE] * marked + [1], "payload": 1000}
    echo = next(marks_received(data, [SYN | 16 | AE, *flags, RESET]))
    assert echo.name == "ECN echo" and echo.verdict == grade


@pytest.mark.parametrize(("address", "grade"), [("10.0.0.2", "invalid"), ("2001:db8::2", "valid")])
def test_marks_over_ipv6_are_not_in_the_hosts_count(
    monkeypatch: pytest.MonkeyPatch, address: str, grade: str
) -> None:
    monkeypatch.setattr(queues, "read_counters", lambda _trial, _node: {"IpExtInCEPkts": 0, "x": 1})
    data = {"ecn": [CE], "payload": [1000]}
    *_, counted = marks_received(data, [16 | ECE], address=address)
    assert (counted.name, counted.subject, counted.verdict) == ("ECN", "receiver", grade)


def queue_transit(left: list[int], arrived: list[int], lost: list[int]) -> QueueTransit:
    return sure_transit(left, arrived, [1000] * len(left), lost, [1000] * len(lost))


def test_gaps_count_only_behind_a_backlog() -> None:
    """1000 bytes take 1 ms at 8 Mbit/s. Two leave at once after a pause, as htb lets them."""
    left = [0, 0, 1 * MS, 2 * MS, 50 * MS, 50 * MS, 51 * MS]
    arrived = [0, 0, 0, 0, 50 * MS, 50 * MS, 50 * MS]
    gaps = backlogged(queue_transit(left, arrived, []), burst_bytes=1000)
    assert list(gaps.gap_ns) == [MS, MS, MS]
    assert gaps.rate_mbit() == 8 and gaps.share_off(8, 0.1) == 0
    assert gaps.share_off(9, 0.1) == 1


def test_an_idle_link_shows_its_rate_too() -> None:
    """Alone after 10 ms, behind another after 20; the arrival of the last one is not known."""
    left = [1 * MS, 11 * MS, 21 * MS, 22 * MS, 40 * MS]
    transit = queue_transit(left, [0, 10 * MS, 20 * MS, 20 * MS, 40 * MS], [])
    assert list(serialised(transit, idle_too=True).gap_ns) == [MS, MS, MS]
    assert list(serialised(transit, idle_too=False).gap_ns) == [MS]


def test_packets_that_leave_before_their_bucket_lets_them() -> None:
    """1 Mbit/s, a millisecond a packet of 125 bytes; a burst of one packet lets two go at once."""
    length = np.full(6, 125)
    even = np.arange(6) * 1_000_000
    assert too_soon(even, length, 1, 125, 0.1) == 0
    assert too_soon(even - 1_000_000 * (np.arange(6) % 2), length, 1, 125, 0.1) == 0  # in pairs
    assert (
        too_soon(even - 1_000_000 * (np.arange(6) % 3), length, 1, 125, 0.1) == 2 / 5
    )  # in threes
    assert too_soon(even[:1], length[:1], 1, 125, 0.1) == 0


def test_backlog_when_packets_are_lost() -> None:
    """Four arrive at once, the first is sent at once, a fifth finds three and is lost."""
    left = [MS, 2 * MS, 3 * MS, 4 * MS]
    found = queue_transit(left, [0, 0, 0, 0], [MS // 2, 5 * MS // 2])
    packets, sizes = backlog_at_losses(found, np.array(left) - MS)
    assert list(packets) == [4, 2] and list(sizes) == [4000, 2000]


@pytest.mark.parametrize(
    ("judged_ns", "others", "names"),
    [(3 * MS, 0, []), (9 * MS, 0, ["tail drop"]), (9 * MS, 1, [])],  # one more: a ping's
)
def test_a_packet_in_the_queue_at_the_end_is_no_drop_of_a_full_fifo(
    judged_ns: int, others: int, names: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queues, "_other_frames", lambda *_: others)
    transit = queue_transit([MS], [0], [5 * MS])
    queue = SimpleNamespace(
        interface="router-eth1",
        discipline="pfifo",
        unit="packets",
        limit=9,
        sampled=False,
        is_exact=False,
    )
    evidence = SimpleNamespace(
        scenario=router(),
        samples=SimpleNamespace(queue=lambda _interface: None),
        injected=SimpleNamespace(at_queue=lambda _queue: 0),
        judged_ns=judged_ns,
        trial=None,
        virtual_time=True,
    )
    checks = list(queues.buffer(cast(Any, evidence), cast(Any, queue), transit))
    assert [each.name for each in checks if each.verdict is Grade.INVALID] == names


def test_limits_are_those_of_virtual_or_of_real_time() -> None:
    assert make_check("rate", "x", True, 10.005, 10).verdict is Grade.VALID
    assert make_check("rate", "x", True, 10.05, 10).verdict is Grade.SUSPECT
    assert make_check("rate", "x", False, 10.05, 10).verdict is Grade.VALID
    off = make_check("rate", "x", True, 9.7, 10)
    assert off.verdict is Grade.INVALID
    assert off.why == "rate of x: 9.7, expected 10 ± 0.01 Mbit/s"


def test_the_worst_check_decides_then_cause_before_effect() -> None:
    def check(name: str, verdict: Grade, measured: float = 1) -> Check:
        return Check(name, "x", measured, 0, 0, "", verdict, f"{name} {measured:g}")

    suspect, loss = check("variant", Grade.SUSPECT), check("loss", Grade.INVALID)
    assert worst_verdict((suspect, loss)).why == "loss 1"
    drops = check("capture drops", Grade.INVALID)
    more = check("capture drops", Grade.INVALID, 9)
    assert worst_verdict((loss, drops, more)).why == "capture drops 9"
    assert worst_verdict((check("rate", Grade.UNKNOWN),)).verdict is Grade.VALID


def metrics() -> pd.DataFrame:
    """Two variants with three trials each; one of reno's is invalid and far off."""
    rows: list[dict[str, object]] = [
        {"variant": variant, "seed": seed, "verdict": "valid", "goodput_mbps": 1.0 + seed}
        for variant in ("reno", "cubic")
        for seed in (1, 2, 3)
    ]
    rows[2] |= {"verdict": "invalid", "goodput_mbps": 900.0}
    alike = {name: "x" for name in CELL_COLUMNS if name != "variant"} | {
        "kind": "tcp",
        "status": "ok",
    }
    return pd.DataFrame([{**alike, **row} for row in rows])


def test_statistics_leave_invalid_trials_out() -> None:
    assert len(counted(metrics())) == 5
    assert widest(metrics(), "goodput_mbps").relative < 10


def test_a_table_without_verdicts_has_no_invalid_trials(tmp_path: Path) -> None:
    assert len(counted(metrics().drop(columns="verdict"))) == 6


def told_by_iperf3(
    tmp_path: Path,
    cookie_s: float,
    report: dict[str, Any],
    acked: int = 0,
    counters: Mapping[str, int] = MappingProxyType({}),
) -> dict[str, Check]:
    """The checks of a server's report; two intervals of 1000 bytes arrived after the cookie. The
    receiver acknowledged so many bytes, and its kernel counted this."""
    arrived = [(0.0, 0, SYN), (0.0005, 0, ACK), (cookie_s, 37, ACK)]
    arrived += [(cookie_s + second + 0.9, 100, ACK) for second in (0, 1) for _ in range(10)]
    sizes = [size for _, size, _ in arrived]
    data = pd.DataFrame(
        {
            "time_ns": [ns(time_s) for time_s, _, _ in arrived],
            "src_port": 1,
            "seq": np.cumsum([0, 1, *sizes[1:-1]]),
            "payload": sizes,
            "flags": [flags for _, _, flags in arrived],
        }
    )
    acks = pd.DataFrame(
        {"time_ns": [ns(0.0), ns(1.9)], "dst_port": 1, "flags": ACK, "ack": [1, 1 + 37 + acked]}
    )
    flow = SimpleNamespace(name="tcp", src_ports=(1,), started_s=0.0, stopped_s=2.0)
    (tmp_path / "flows").mkdir()
    (tmp_path / "samples").mkdir()
    (tmp_path / "samples" / "counters.json").write_text(json.dumps({"receiver": dict(counters)}))
    (tmp_path / "flows" / "tcp.server.json").write_text(json.dumps(report))
    record = SimpleNamespace(epoch_s=ns(0) / 1e9)
    evidence = SimpleNamespace(
        virtual_time=True,
        trial=SimpleNamespace(scenario=router(), record=record, file=file_in(tmp_path)),
        tcp=(flow,),
        packets=SimpleNamespace(
            part=lambda *_: FlowPackets(data, acks), connections=lambda _: None
        ),
    )
    return {each.name: each for each in iperf3.tcp(cast(Evidence, evidence))}


def server_report(each: int, total: int, **start: object) -> dict[str, Any]:
    """A server's report of two intervals."""
    intervals = [{"sum": {"start": at, "end": at + 1.0, "bytes": each}} for at in (0.0, 1.0)]
    received = {"sum_received": {"bytes": total}}
    return {"start": start, "intervals": intervals, "end": received}


@pytest.mark.parametrize(
    ("counter", "acked", "grade", "intervals"),
    [
        ("TcpExtPAWSEstab", 1900, Grade.VALID, Grade.UNKNOWN),
        ("TcpExtPAWSEstab", 2000, Grade.INVALID, Grade.UNKNOWN),
        ("TcpExtOfoPruned", 1900, Grade.VALID, Grade.UNKNOWN),
        ("TcpExtTCPRcvQDrop", 1900, Grade.VALID, Grade.UNKNOWN),
        ("TcpExtTCPOFOQueue", 1900, Grade.INVALID, Grade.VALID),
    ],
)
def test_a_discarded_segment_leaves_a_hole_that_no_capture_shows(
    tmp_path: Path, counter: str, acked: int, grade: Grade, intervals: Grade
) -> None:
    """It had an old timestamp, or found a full buffer: what the receiver had, its acknowledgements
    say. That others waited for a lost one discards nothing."""
    report = server_report(950, 1900)
    checks = told_by_iperf3(tmp_path, 0.001, report, acked, {counter: 1})
    assert checks["goodput"].verdict is grade
    assert checks["iperf3 intervals"].verdict is intervals


@pytest.mark.parametrize("cookie_s", [0.001, 0.3])
def test_iperf3s_clock_begins_with_the_cookie(tmp_path: Path, cookie_s: float) -> None:
    """A cookie that is lost and sent again puts the server's intervals off."""
    checks = told_by_iperf3(tmp_path, cookie_s, server_report(1000, 2000))
    assert checks["iperf3 intervals"].verdict is Grade.VALID
    assert checks["iperf3 intervals"].measured == pytest.approx(0.008)
    assert checks["goodput"].verdict is Grade.VALID


@pytest.mark.parametrize(
    ("version", "each", "total", "valid"),
    [
        ("3.12", 700, 1800, False),
        ("3.18", 700, 1800, True),
        ("3.18", 500, 1500, False),
        ("3.18", 1500, 2100, False),
    ],
)
def test_newer_iperf3_counts_whole_blocks(
    tmp_path: Path, version: str, each: int, total: int, valid: bool
) -> None:
    report = server_report(each, total, version=f"iperf {version}", test_start={"blksize": 300})
    checks = told_by_iperf3(tmp_path, 0.001, report)
    for name in ("goodput", "iperf3 intervals"):
        assert (checks[name].verdict is Grade.VALID) is valid, name


def test_an_iperf3_that_never_connected_tells_no_block(tmp_path: Path) -> None:
    told_by_iperf3(tmp_path, 0.001, server_report(0, 0, version="iperf 3.18"))


def socket_evidence(
    flow: SimpleNamespace,
    answers: int,
    captured: tuple[str, ...] = ("sender",),
    flags: int = ACK,
) -> Evidence:
    """One flow, to whose sender so many packets came back, as captured at these ends."""
    sent, back = pd.DataFrame({"flags": [SYN]}), pd.DataFrame({"flags": [flags] * answers})
    parts = {side: SimpleNamespace(data=sent, acks=back) for side in captured}
    packets = SimpleNamespace(part=lambda side, _flow: parts.get(side))
    trial = SimpleNamespace(scenario=router())
    return cast(Evidence, SimpleNamespace(tcp=(flow,), packets=packets, trial=trial))


@pytest.mark.parametrize("side", ["sender", "receiver"])
@pytest.mark.parametrize(("answers", "grade"), [(0, Grade.UNKNOWN), (1, Grade.INVALID)])
def test_a_flow_that_never_connected_has_no_options(answers: int, grade: Grade, side: str) -> None:
    flow = SimpleNamespace(
        name="tcp",
        stopped_s=1,
        variant_seen="reno",
        control="reno",
        options_seen=(),
        options=("sack",),
    )
    variant, options = configuration.sockets(socket_evidence(flow, answers, (side,)))
    assert (variant.verdict, options.verdict) == (Grade.VALID, grade)


@pytest.mark.parametrize(
    ("seen", "said"),
    [
        ("dctcp-reno", "on a connection without ECN: run it again with --rerun"),
        ("cubic", "a program or a route chose it: run it again with --rerun"),
        ("", "no connection of the flow was seen"),
    ],
)
def test_a_flow_that_ran_another_variant_says_why_and_what_to_do(seen: str, said: str) -> None:
    flow = SimpleNamespace(
        name="tcp", stopped_s=1, variant_seen=seen, control="dctcp", options_seen=(), options=()
    )
    variant, options = configuration.sockets(socket_evidence(flow, answers=2))
    assert (variant.verdict, options.verdict) == (Grade.INVALID, Grade.VALID)
    assert f"variant of tcp: {seen!r}, not 'dctcp'" in variant.why and said in variant.why


def test_a_flow_whose_connections_were_reset_ran_no_variant() -> None:
    flow = SimpleNamespace(
        name="tcp",
        stopped_s=1,
        variant_seen="",
        control="cubic",
        options_seen=(),
        options=("sack",),
    )
    evidence = socket_evidence(flow, answers=2, flags=RST | ACK)
    assert [each.verdict for each in configuration.sockets(evidence)] == [Grade.UNKNOWN] * 2
