"""Checks of iperf3's reports against the captures."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from analysis.captures.tcp import FIN, RST, PacketArrays
from analysis.trials.documents import Iperf3Report
from analysis.trials.packets import FlowPackets, epoch_ns
from analysis.trials.samples import read_iperf3
from analysis.trials.tcp_stream import delivered_bytes, unwrap, why_discarded
from analysis.verdict.checks import NEVER_CONNECTED, NOT_CAPTURED, Check, make_check, unknown
from analysis.verdict.evidence import Evidence
from analysis.verdict.sender_queue import own_queue_ns, refused_again, refused_syns
from testbed.scenario.model import FlowKind
from testbed.store.records import FlowRecord

Integers = npt.NDArray[np.int64]

COOKIE_BYTES = 37  # by which iperf3 recognises a connection: delivered, but not data
NO_IPERF3_REPORT = "iperf3 left no report"
# bytes this close to the end of an interval may be read on either side of it
READ_EDGE_NS = 100_000
LATE_END_NS = 50_000_000  # of iperf3 in real time
COUNTS_EACH_READ = (3, 12)  # this version does; 3.18 counts a block when it is full


def tcp(evidence: Evidence) -> Iterator[Check]:
    """Check bytes, intervals and retransmissions of every TCP flow."""
    for flow in evidence.tcp:
        if not is_iperf3(evidence, flow):
            continue
        yield from _seconds(evidence, flow)
        yield from _received(evidence, flow)
        yield _retransmissions(evidence, flow)


def _seconds(evidence: Evidence, flow: FlowRecord) -> Iterator[Check]:
    """Check that both programs were there at the end of each of their seconds."""
    for side in ("client", "server"):
        report = read_iperf3(evidence.trial, flow, side)
        intervals = (report or {}).get("intervals", [])
        if not any(each["sum"]["bytes"] for each in intervals):  # it may not have begun
            yield unknown("iperf3 seconds", f"{flow.name} {side}", NO_IPERF3_REPORT)
            continue
        ends_s = np.array([each["sum"]["end"] for each in intervals])
        due_s = np.arange(1, len(ends_s) + 1)
        off = np.abs(ends_s - due_s)
        off[-1] = max(0.0, ends_s[-1] - due_s[-1])  # it may end in the midst of a second
        worst = int(off.argmax())
        yield make_check(
            "iperf3 seconds",
            f"{flow.name} {side}",
            evidence.virtual_time,
            float(ends_s[worst]),
            float(due_s[worst]),
            deviation=float(off[worst]),
        )


def is_iperf3(evidence: Evidence, flow: FlowRecord) -> bool:
    """Return whether iperf3 makes the flow."""
    return evidence.trial.scenario.flow(flow.name).kind in (FlowKind.TCP, FlowKind.CBR)


def udp(evidence: Evidence) -> Iterator[Check]:
    """Check the bytes that a UDP flow's receiver had read when the client was told to end."""
    for flow in evidence.flows:
        if flow.protocol != "udp" or not is_iperf3(evidence, flow):
            continue
        report, packets = (
            read_iperf3(evidence.trial, flow, "server"),
            evidence.packets.part("receiver", flow),
        )
        if report is None or packets is None:
            yield unknown(
                "goodput", flow.name, NO_IPERF3_REPORT if report is None else NOT_CAPTURED
            )
            continue
        stop_ns = epoch_ns(evidence.trial) + round(flow.stopped_s * 1e9)
        captured = int(packets.data["payload"][packets.data["time_ns"] <= stop_ns].sum())
        yield _goodput(evidence, flow, report, captured, captured)


def _goodput(
    evidence: Evidence, flow: FlowRecord, report: Iperf3Report, least: int, most: int
) -> Check:
    """Check the goodput; bytes that arrive while the server is told to end may be read or not."""
    seconds = flow.stopped_s - flow.started_s
    if not seconds:  # a few bytes without a delay, in virtual time
        return unknown("goodput", flow.name, "over in no time")
    reported = report.get("end", {}).get("sum_received", {}).get("bytes", 0)
    captured = min(max(reported, least), most)
    measured, expected = (size * 8e-6 / seconds for size in (reported, captured))
    note = (
        f"{reported} bytes by iperf3, {captured} in the receiver's capture"
        if reported != captured
        else ""
    )
    return make_check("goodput", flow.name, evidence.virtual_time, measured, expected, note=note)


def _retransmissions(evidence: Evidence, flow: FlowRecord) -> Check:
    """Check iperf3's retransmissions.

    It reads TCP_INFO at the ends of its intervals, and finally when it is told to end. A last
    interval of less than a tenth of the others is not listed, but is in the total.
    """
    report, connections = (
        read_iperf3(evidence.trial, flow, "client"),
        evidence.packets.connections(flow),
    )
    if evidence.trial.scenario.flow(flow.name).bytes:
        why = "iperf3 reads it when it has handed over its last byte, not when that has arrived"
        return unknown("retransmissions", f"{flow.name} iperf3", why)
    if report is None or connections is None:
        why = NO_IPERF3_REPORT if report is None else NOT_CAPTURED
        return unknown("retransmissions", f"{flow.name} iperf3", why)
    intervals = report.get("intervals")
    if not intervals:
        return unknown("retransmissions", f"{flow.name} iperf3", NEVER_CONNECTED)
    reported = sum(each["sum"].get("retransmits", 0) for each in intervals)
    total = report.get("end", {}).get("sum_sent", {})
    if intervals[-1]["sum"]["end"] < total.get("end", -math.inf):
        reported = total.get("retransmits", reported)
    stop_ns = epoch_ns(evidence.trial) + round(flow.stopped_s * 1e9)
    # packets waiting in the sender's own queue have been sent, but not captured
    late_ns = own_queue_ns(evidence, flow) + (1000 if evidence.virtual_time else LATE_END_NS)
    low, high = (
        int(sum(each.retransmissions(np.array([at]))[0] for each in connections))
        for at in (stop_ns - 1000, stop_ns + late_ns)
    )
    high += refused_again(evidence, evidence.trial.scenario.flow(flow.name).src)[1]
    high += refused_syns(evidence, flow)
    captured = min(max(reported, low), high)
    return make_check(
        "retransmissions", f"{flow.name} iperf3", evidence.virtual_time, reported, captured
    )


def _received(evidence: Evidence, flow: FlowRecord) -> Iterator[Check]:
    """Check the bytes that the server received, in all and by interval."""
    report, packets = (
        read_iperf3(evidence.trial, flow, "server"),
        evidence.packets.part("receiver", flow),
    )
    if report is None or packets is None:
        why = NO_IPERF3_REPORT if report is None else NOT_CAPTURED
        yield unknown("goodput", flow.name, why)
        yield unknown("iperf3 intervals", flow.name, why)
        return
    over_gaps = evidence.trial.scenario.flow(flow.name).conceals_losses
    connections = [_Delivered(packets, port, over_gaps=over_gaps) for port in flow.src_ports]
    stop_ns = np.array([epoch_ns(evidence.trial) + round(flow.stopped_s * 1e9)])
    most = sum(each.by_the_end() for each in connections)
    least = min(most, int(sum(each.until(stop_ns)[0] for each in connections)))
    if _why_discarded(evidence, flow):
        least = min(least, sum(each.acknowledged(int(stop_ns[0])) for each in connections))
    uncounted = len(connections) * _block_bytes(report)
    yield _goodput(evidence, flow, report, max(0, least - uncounted), most)
    yield _intervals(evidence, flow, report, connections, uncounted)


def _why_discarded(evidence: Evidence, flow: FlowRecord) -> str:
    trial = evidence.trial
    return why_discarded(trial, trial.scenario.flow(flow.name).dst)


def _block_bytes(report: Iperf3Report) -> int:
    """Return how many bytes a connection may have read without counting them."""
    start = report.get("start", {})
    version = re.match(r"iperf (\d+)\.(\d+)", start.get("version", ""))
    if version is None or (int(version[1]), int(version[2])) <= COUNTS_EACH_READ:
        return 0
    return start.get("test_start", {}).get("blksize", 0)  # none: it never connected


class _Delivered:
    """The bytes that one connection's receiver could read, over time."""

    def __init__(
        self, packets: FlowPackets[PacketArrays], port: int, *, over_gaps: bool = False
    ) -> None:
        data = packets.data[packets.data["src_port"] == port]
        acks = packets.acks[packets.acks["dst_port"] == port]
        self._time_ns = np.asarray(data["time_ns"], dtype=np.int64)
        self._bytes = np.concatenate(([0], delivered_bytes(data, over_gaps=over_gaps)))
        self.largest = int(data["payload"].max()) if len(data) else 0
        # not the end of the handshake: the first packet of data may be lost
        known = np.flatnonzero(self._bytes[1:] >= COOKIE_BYTES)
        self.accepted_ns = int(self._time_ns[known[0]]) if len(known) else 0
        self._acks = acks
        ends = np.asarray(acks["time_ns"][(acks["flags"] & (FIN | RST)) > 0])
        self._end_ns = int(ends[0]) if len(ends) else None

    def until(self, at_ns: Integers) -> Integers:
        """Return the bytes of data delivered by given times."""
        places = np.searchsorted(self._time_ns, at_ns, side="right")
        return np.asarray(np.maximum(0, self._bytes[places] - COOKIE_BYTES))

    def acknowledged(self, at_ns: int) -> int:
        """Return the bytes of data acknowledged by a time; the first ACK is the SYN's."""
        acks = self._acks[(self._acks["time_ns"] <= at_ns) & ((self._acks["flags"] & RST) == 0)]
        ends = unwrap(np.asarray(acks["ack"], dtype=np.int64))
        return max(0, int(ends[-1] - ends[0]) - COOKIE_BYTES) if len(ends) else 0

    def by_the_end(self) -> int:
        """Return the bytes of data delivered until the receiver closed."""
        end_ns = self._time_ns[-1:] if self._end_ns is None else np.array([self._end_ns])
        return int(self.until(end_ns)[0]) if len(end_ns) else 0


def _intervals(
    evidence: Evidence,
    flow: FlowRecord,
    report: Iperf3Report,
    connections: list[_Delivered],
    uncounted: int,
) -> Check:
    """Check the server's intervals, from the time at which it had recognised all connections.

    A server whose client was interrupted repeats its last whole interval at the end (so does
    iperf3's own sum: all bytes over the time of whole intervals); the repetition is left out.
    """
    reported = {
        (each["sum"]["start"], each["sum"]["end"]): each["sum"]
        for each in report.get("intervals", [])
    }
    if not reported:
        return unknown("iperf3 intervals", flow.name, NO_IPERF3_REPORT)
    if why := _why_discarded(evidence, flow):
        return unknown("iperf3 intervals", flow.name, why)
    accepted_ns = max(each.accepted_ns for each in connections)
    begins_s, ends_s = (np.array([key[i] for key in reported]) for i in (0, 1))

    def until(times_s: npt.NDArray[np.float64], later_ns: int = 0) -> Integers:
        at_ns = accepted_ns + np.round(times_s * 1e9).astype(np.int64) + later_ns
        return np.asarray(np.sum([each.until(at_ns) for each in connections], axis=0))

    def within(wider_ns: int) -> npt.NDArray[np.float64]:
        # on a path without delay data arrive in the nanosecond in which the connection is accepted
        before = np.where(begins_s > 0, until(begins_s, -wider_ns), 0)
        return np.asarray((until(ends_s, wider_ns) - before) * scale)

    scale = 8e-6 / np.maximum(ends_s - begins_s, 1e-9)
    measured = np.array([each["bytes"] for each in reported.values()]) * scale
    expected = within(0)
    # a segment may arrive as the interval ends, and be read in the next one; several where one
    # fills a hole
    late = (max(each.largest for each in connections) + uncounted) * scale
    below, above = within(-READ_EDGE_NS) - late - measured, measured - within(READ_EDGE_NS) - late
    off = np.maximum(0, np.maximum(below, above))
    worst = int(off.argmax())
    return make_check(
        "iperf3 intervals",
        flow.name,
        evidence.virtual_time,
        float(measured[worst]),
        float(expected[worst]),
        deviation=float(off[worst]),
    )
