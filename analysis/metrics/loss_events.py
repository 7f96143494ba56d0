"""Losses as throughput models need them: loss events, recoveries and timeouts of a connection."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from analysis.captures.packet_matching import lost_packets
from analysis.captures.tcp import PacketArrays
from analysis.trials.packets import FlowPackets, TrialPackets, sender_queue
from analysis.trials.tcp_stream import Booleans, Integers, Segments
from testbed.store.reading import Trial
from testbed.store.records import FlowRecord

MIN_RTO_NS = 190_000_000  # Linux: 200 ms above the smoothed round trip; less a tick or two


@dataclass(frozen=True)
class Stack:
    """The properties of a sender that are needed to interpret its capture."""

    late_ns: Integers  # how long after its cause each segment may pass the capture
    has_rack: bool = False  # may retransmit a segment twice without the timer
    leaves_early: bool = False  # the first ACK of new data ends recovery: Reno of 1990


@dataclass(frozen=True)
class Responses:
    """Places among a connection's segments, in the order of time."""

    timeouts: Integers  # retransmissions by the timer
    first: Booleans  # of the timeouts: whether it is the first for its data
    wait_ns: Integers  # of the timeouts: time since an ACK of new data last set the timer
    recoveries: Integers  # retransmissions caused by duplicate ACKs that began a recovery


@dataclass(frozen=True)
class _Heads:
    """Retransmissions of the segment that the receiver waited for, and the state at that time."""

    place: Integers
    edge: Integers  # everything below was acknowledged
    before: Integers  # everything below had been sent
    now_ns: Integers
    since_ns: Integers  # when the edge was reached, or when the segment was first sent
    repaired: Integers  # the place of its retransmission before; -1: none
    repaired_ns: Integers
    alone: Booleans  # no ACK has just arrived

    def rows(self) -> Iterator[tuple[int, int, int, int, int, int]]:
        """Yield each as plain numbers.

        They are its place, the edge, what had been sent before, the wait since the edge was
        reached, the earlier repair, and whether the timer can have fired.
        """
        idle_ns = self.now_ns - np.maximum(self.since_ns, self.repaired_ns)
        silent = self.alone & (idle_ns >= MIN_RTO_NS)
        wait_ns = self.now_ns - self.since_ns
        columns = (self.place, self.edge, self.before, wait_ns, self.repaired, silent)
        return zip(*(column.tolist() for column in columns), strict=True)


def responses(segments: Segments, stack: Stack) -> Responses:
    """Find a connection's timeouts and recoveries.

    Both begin with the segment that the receiver waits for. The timer retransmits it when nothing
    has been acknowledged for a timeout and no ACK has just arrived; and also if it has already
    been retransmitted since the timer last fired, which only RACK does otherwise. Any other such
    segment begins a recovery, unless it belongs to the previous response, which lasts until
    everything is acknowledged that had been sent when it began.
    """
    heads = _heads(segments, stack.late_ns)
    timeouts: list[tuple[int, bool, int]] = []
    recoveries: list[int] = []
    recover, fired, fired_edge = 0, 0, -1
    in_loss = False  # after a timeout, slow start repairs
    for place, edge, before, wait_ns, repaired, silent in heads.rows():
        if silent or (repaired >= fired and not stack.has_rack):
            timeouts.append((place, edge != fired_edge, wait_ns))
            recover, fired, fired_edge, in_loss = before, place, edge, True
        elif edge >= recover or (stack.leaves_early and not in_loss):
            recoveries.append(place)
            recover, in_loss = before, False
    return Responses(
        timeouts=np.array([place for place, _, _ in timeouts], dtype=np.int64),
        first=np.array([first for _, first, _ in timeouts], dtype=np.bool_),
        wait_ns=np.array([wait_ns for _, _, wait_ns in timeouts], dtype=np.int64),
        recoveries=np.array(recoveries, dtype=np.int64),
    )


def _heads(segments: Segments, late_ns: Integers) -> _Heads:
    again = np.flatnonzero(segments.again)
    heard = np.searchsorted(segments.ack_ns, segments.time_ns[again], side="right")
    edge = np.concatenate(([0], segments.acked))[heard]
    head = (segments.begin[again] <= edge) & (edge < segments.end[again])
    repaired = _previous(segments.begin[again], again)[head]
    again, heard, edge = again[head], heard[head], edge[head]
    begun_ns, now_ns = segments.time_ns[:1], segments.time_ns[again]
    moved = np.diff(segments.acked, prepend=0) > 0
    moved_ns = np.maximum.accumulate(np.where(moved, segments.ack_ns, begun_ns))
    sent_ns = segments.new_ns[np.searchsorted(segments.new_end, edge, side="right")]
    return _Heads(
        place=again,
        edge=edge,
        before=np.maximum.accumulate(segments.end)[again - 1],
        now_ns=now_ns,
        since_ns=np.maximum(np.concatenate((begun_ns, moved_ns))[heard], sent_ns),
        repaired=repaired,
        repaired_ns=np.where(repaired < 0, 0, segments.time_ns[repaired]),
        alone=now_ns - np.concatenate((begun_ns, segments.ack_ns))[heard] > late_ns[again],
    )


def _previous(begin: Integers, place: Integers) -> Integers:
    """For each segment the place of the previous one with the same beginning; -1 if none."""
    order = np.argsort(begin, kind="stable")
    follows = np.flatnonzero(np.diff(begin[order]) == 0)
    latest = np.full(len(begin), -1, dtype=np.int64)
    latest[order[follows + 1]] = place[order[follows]]
    return latest


@dataclass(frozen=True)
class LossEvent:
    """A window's losses, from the first to which the sender responded."""

    began_ns: int  # when the first of them was sent
    answered_ns: int  # when it was retransmitted: the sender leaves its previous state
    by_timeout: bool  # whether the timer caused that, and not duplicate ACKs
    losses: int  # packets, lost retransmissions included


def loss_events(segments: Segments, lost: Booleans, packet_answers: Responses) -> list[LossEvent]:
    """Find a connection's loss events; `lost` says which of its segments never arrived.

    An event begins with a lost segment that is retransmitted. It includes everything sent by then,
    and if the timer fires before that is acknowledged, everything sent when it fired. A loss
    beyond that begins the next event.
    """
    again = np.flatnonzero(segments.again)
    begins, ends = segments.begin[again].tolist(), segments.end[again].tolist()
    before = np.concatenate(([0], np.maximum.accumulate(segments.end)))
    fired = packet_answers.timeouts.tolist()
    heads: list[tuple[int, int]] = []  # the first loss and its answer
    reach: list[int] = []  # the upper end of each event's losses
    places = np.flatnonzero(lost)
    nexts = np.searchsorted(again, places, side="right")
    for place, following in zip(places.tolist(), nexts.tolist(), strict=True):
        begin = int(segments.begin[place])
        if reach and begin < reach[-1]:
            continue
        answers = (k for k in range(following, len(again)) if begins[k] <= begin < ends[k])
        if (answer := next(answers, None)) is None:
            continue  # the flow ended first, or the retransmission was spurious
        heads.append((place, int(again[answer])))
        reach.append(_reach(heads[-1][1], fired, segments.begin, before))
    within = np.searchsorted(reach, segments.begin[places], side="right")
    counts = np.bincount(within, minlength=len(reach) + 1)
    timers = set(fired)
    return [
        LossEvent(
            began_ns=int(segments.time_ns[first]),
            answered_ns=int(segments.time_ns[answer]),
            by_timeout=answer in timers,
            losses=int(count),
        )
        for (first, answer), count in zip(heads, counts[: len(reach)], strict=True)
    ]


def _reach(answer: int, fired: list[int], begin: Integers, before: Integers) -> int:
    """Return the upper end of what a response repairs.

    That is all data sent before it, or before a timeout in it.
    """
    reach = int(before[answer])
    for timeout in fired[int(np.searchsorted(fired, answer)) :]:
        if begin[timeout] >= reach:
            break
        reach = max(reach, int(before[timeout]))
    return reach


PROMPT_NS = 1_000_000  # in virtual time an answer leaves at once; in real time within this
LEAVES_EARLY = ("reno1990",)  # controls whose recovery the first ACK of new data ends
RACK = "net.ipv4.tcp_recovery"


@dataclass(frozen=True)
class LossyConnection:
    """A connection's segments, which of them were lost, and the sender's responses."""

    segments: Segments
    payload: Integers  # of each segment
    lost: Booleans
    answers: Responses
    events: list[LossEvent]


def lossy_connections(
    trial: Trial, packets: TrialPackets, flow: FlowRecord
) -> tuple[LossyConnection, ...] | None:
    """Find what a TCP flow's connections lost, and how their sender responded.

    None if they were not captured whole at their sender. A segment is lost if it is not in the
    receiver's capture. Without one, a segment that was retransmitted counts as lost, unless it had
    been acknowledged by then.
    """
    sender, every = packets.part("sender", flow), packets.connections(flow)
    if sender is None or every is None:
        return None
    receiver = packets.part("receiver", flow)
    gone = None if receiver is None else lost_packets(sender.data, receiver.data).index
    late_ns = _late_ns(trial, packets, flow, sender)
    lossy = []
    for segments in every:
        places = np.searchsorted(sender.data.index, segments.row)
        segment_rows = sender.data[places]
        lost = _repaired(segments, segment_rows) if gone is None else np.isin(segments.row, gone)
        answers = responses(segments, _stack(trial, flow, late_ns[places]))
        events = loss_events(segments, lost, answers)
        payload = segment_rows["payload"].astype(np.int64)
        lossy.append(LossyConnection(segments, payload, lost, answers, events))
    return tuple(lossy)


def _stack(trial: Trial, flow: FlowRecord, late_ns: Integers) -> Stack:
    sysctls = trial.record.sysctls.get(trial.scenario.flow(flow.name).src, {})
    return Stack(
        late_ns=late_ns,
        has_rack=sysctls.get(RACK, "1") != "0",
        leaves_early=flow.variant_seen in LEAVES_EARLY,
    )


def _late_ns(
    trial: Trial, packets: TrialPackets, flow: FlowRecord, sender: FlowPackets[PacketArrays]
) -> Integers:
    """Return how long before its capture TCP may have sent each packet.

    That is the time since the sender's own queue was last idle.
    """
    late_ns = np.full(len(sender.data), PROMPT_NS)
    queue, capture = sender_queue(trial, flow), packets.capture("sender", flow.name)
    if queue is None or capture is None:
        return late_ns
    out = capture.part[capture.part.places("src", flow.src_address)]
    waited_ns = busy_ns(out["time_ns"], out["length"], queue.rate_mbit)
    return late_ns + waited_ns[np.searchsorted(out.index, sender.data.index)]


def busy_ns(time_ns: Integers, size_bytes: Integers, rate_mbit: float) -> Integers:
    """Return how long a link had been busy at each packet's end of transmission."""
    takes_ns = np.round(size_bytes * 8e3 / rate_mbit).astype(np.int64)
    gap_ns = np.diff(time_ns, prepend=time_ns[:1])
    idle = gap_ns > np.maximum(takes_ns, np.roll(takes_ns, 1)) + PROMPT_NS // 10
    since_ns = np.maximum.accumulate(np.where(idle, time_ns, time_ns[:1]))
    return np.asarray(time_ns - since_ns + takes_ns)


def _repaired(segments: Segments, rows: PacketArrays) -> Booleans:
    """Return a mask of the repaired transmissions: the one before each needed retransmission."""
    order = np.argsort(segments.begin, kind="stable")
    follows = np.diff(segments.begin[order], prepend=-1) == 0
    new = np.flatnonzero(~segments.again)
    covering = np.searchsorted(segments.new_end, segments.begin, side="right")
    before = new[np.minimum(covering, len(new) - 1)]
    before[order[follows]] = order[np.flatnonzero(follows) - 1]
    needed = segments.again & ~rows["spurious_retransmission"]
    needed &= rows["payload"] > 0
    lost: Booleans = np.zeros(len(segments.begin), dtype=np.bool_)
    lost[before[needed]] = True
    return lost
