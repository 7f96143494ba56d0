"""Departures from a shaped interface, held against a token bucket of htb's rate and burst."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from analysis.trials.evidence import Crossing
from analysis.trials.pairing import NOWHERE, pair

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Booleans = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Passage:
    """All packets of an interface's queue: those that left it, and those that did not."""

    left_ns: Integers  # in this order
    arrived_ns: Integers  # of the same; the time of leaving where nothing tells
    length: Integers  # bytes
    lost_ns: Integers  # when those arrived that never left
    lost_length: Integers
    strangers: int  # that left and had not been seen to arrive
    complete: bool  # whether every flow's arrivals were captured

    @property
    def entered(self) -> int:
        """How many arrived."""
        return len(self.left_ns) - self.strangers + len(self.lost_ns)


def passage(crossings: Iterable[Crossing]) -> Passage:
    """The flows' packets put together, in the order of leaving."""
    every = tuple(crossings)
    parts = [_of_flow(each) for each in every]
    left, arrived, length, lost, lost_length = (
        np.concatenate([part[i] for part in parts] or [np.zeros(0, dtype=np.int64)])
        for i in range(5)
    )
    order = np.argsort(left, kind="stable")
    return Passage(
        left_ns=left[order],
        arrived_ns=np.where(arrived == NOWHERE, left, arrived)[order],
        length=length[order],
        lost_ns=lost,
        lost_length=lost_length,
        strangers=int((arrived == NOWHERE).sum()),
        complete=all(each.entered is not None for each in every),
    )


def _of_flow(crossing: Crossing) -> tuple[Integers, Integers, Integers, Integers, Integers]:
    left = crossing.left["time_ns"].to_numpy(dtype=np.int64)
    length = crossing.left["length"].to_numpy(dtype=np.int64)
    if crossing.entered is None:
        nothing = np.zeros(0, dtype=np.int64)
        return left, np.full(len(left), NOWHERE), length, nothing, nothing
    entered = crossing.entered["time_ns"].to_numpy(dtype=np.int64)
    sizes = crossing.entered["length"].to_numpy(dtype=np.int64)
    places = pair(crossing.entered, crossing.left)
    arrived = np.where(places == NOWHERE, NOWHERE, entered[places])
    lost = np.ones(len(entered), dtype=np.bool_)
    lost[places[places != NOWHERE]] = False
    return left, arrived, length, entered[lost], sizes[lost]


@dataclass(frozen=True)
class Gaps:
    """From a packet's leaving to the next one's, where that one waited all the while and the
    bucket's credit was spent: the gap is then the first one's serialisation time."""

    gap_ns: Integers
    bits: Integers  # of the packet before the gap

    def rate_mbit(self) -> float:
        """Bits over time."""
        return float(self.bits.sum() * 1e3 / self.gap_ns.sum())

    def share_off(self, rate_mbit: float, part: float) -> float:
        """How many gaps differ from the serialisation time by more than this part of it."""
        expected = self.bits * 1e3 / rate_mbit
        return float((np.abs(self.gap_ns - expected) > part * expected).mean())


def backlogged(found: Passage, burst_bytes: int) -> Gaps:
    """The gaps of stretches in which the queue never emptied.

    htb lets packets out at once after a pause until its bucket is empty, one burst and the
    packet that overdraws it; only then it counts.
    """
    waited = found.arrived_ns[1:] <= found.left_ns[:-1]
    sent = np.concatenate(([0], np.cumsum(found.length)))[:-1]  # before each packet
    begin = np.concatenate(([True], ~waited))  # of a stretch
    first = np.maximum.accumulate(np.where(begin, np.arange(len(begin)), 0))
    # by the end of the packet before the gap, without the one that may overdraw the bucket
    spent = sent - sent[first] >= burst_bytes
    use = waited & spent[:-1]
    gaps = np.diff(found.left_ns)[use]
    return Gaps(gaps, found.length[:-1][use] * 8)


def too_soon(
    left_ns: Integers, length: Integers, rate_mbit: float, burst_bytes: int, part: float
) -> float:
    """The share of an interface's packets that left before a token bucket of this rate let them, by
    more than this part of the serialisation time.

    Each packet puts the bucket into debt for its serialisation time; the next may go while the
    debt is no more than the burst. `backlogged` asks for more, and needs to know who waited.
    """
    if len(left_ns) < 2:
        return 0.0
    takes_ns = length * 8e3 / rate_mbit
    before_ns = np.concatenate(([0.0], np.cumsum(takes_ns)[:-1]))
    paid_ns = np.maximum.accumulate(left_ns - before_ns)[:-1] + before_ns[1:]
    allowed_ns = burst_bytes * 8e3 / rate_mbit + part * takes_ns[:-1]
    return float((paid_ns - left_ns[1:] > allowed_ns).mean())


def backlog_at_losses(found: Passage) -> tuple[Integers, Integers]:
    """Packets and bytes that were waiting when each lost packet arrived, itself included."""
    arrived = np.sort(found.arrived_ns)
    by_arrival = np.argsort(found.arrived_ns, kind="stable")
    sizes_in = np.concatenate(([0], np.cumsum(found.length[by_arrival])))
    sizes_out = np.concatenate(([0], np.cumsum(found.length)))
    came = np.searchsorted(arrived, found.lost_ns, side="right")
    went = np.searchsorted(found.left_ns, found.lost_ns, side="left")
    return came - went + 1, sizes_in[came] - sizes_out[went] + found.lost_length
