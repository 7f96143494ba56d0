"""A sender's responses to losses: firings of its retransmission timer, and recoveries begun by
duplicate acknowledgements. Read from its own capture, segment by segment."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from analysis.trials.segments import Booleans, Integers, Segments

LEAST_RTO_NS = 190_000_000  # Linux: 200 ms above the smoothed round trip; less a tick or two


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
        """One by one, as plain numbers: place, edge, what had been sent before, the wait since the
        edge was reached, the earlier repair, and whether the timer can have fired."""
        idle_ns = self.now_ns - np.maximum(self.since_ns, self.repaired_ns)
        silent = self.alone & (idle_ns >= LEAST_RTO_NS)
        wait_ns = self.now_ns - self.since_ns
        columns = (self.place, self.edge, self.before, wait_ns, self.repaired, silent)
        return zip(*(column.tolist() for column in columns), strict=True)


def responses(segments: Segments, stack: Stack) -> Responses:
    """A connection's timeouts and recoveries.

    Both begin with the segment that the receiver waits for. The timer retransmits it when nothing
    has been acknowledged for a timeout and no ACK has just arrived; and also if it has already been
    retransmitted since the timer last fired, which only RACK does otherwise. Any other such segment
    begins a recovery, unless it belongs to the previous response, which lasts until everything is
    acknowledged that had been sent when it began.
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
    found = np.full(len(begin), -1, dtype=np.int64)
    found[order[follows + 1]] = place[order[follows]]
    return found
