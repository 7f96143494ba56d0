"""Departures from a shaped interface, compared with a token bucket of htb's rate and burst."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from analysis.trials.passage import Passage

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Gaps:
    """Times from one packet's departure to the next one's, where the second had been waiting since
    before the first left and the bucket's credit was spent: each is then the serialisation time of
    the first."""

    gap_ns: Integers
    bits: Integers  # of the packet before the gap
    since_ns: Integers  # its departure

    def rate_mbit(self) -> float:
        """The rate over all gaps."""
        return float(self.bits.sum() * 1e3 / self.gap_ns.sum())

    def share_off(self, rate_mbit: float | npt.NDArray[np.float64], part: float) -> float:
        """The share of the gaps that differ from the serialisation time by more than this part of
        it."""
        expected = self.bits * 1e3 / rate_mbit
        return float((np.abs(self.gap_ns - expected) > part * expected).mean())


def backlogged(found: Passage, burst_bytes: int) -> Gaps:
    """The gaps of stretches in which the queue never emptied.

    After a pause htb sends packets at once until its bucket is empty: one burst and the packet
    that overdraws it. Gaps count only from then on.
    """
    waited = found.arrived_ns[1:] <= found.left_ns[:-1]
    sent = np.concatenate(([0], np.cumsum(found.length)))[:-1]  # before each packet
    begin = np.concatenate(([True], ~waited))  # of each stretch
    first = np.maximum.accumulate(np.where(begin, np.arange(len(begin)), 0))
    # by the end of the packet before the gap, excluding the one that may overdraw the bucket
    spent = sent - sent[first] >= burst_bytes
    use = waited & spent[:-1]
    gaps = np.diff(found.left_ns)[use]
    return Gaps(gaps, found.length[:-1][use] * 8, found.left_ns[:-1][use])


def too_soon(
    left_ns: Integers, length: Integers, rate_mbit: float, burst_bytes: int, part: float
) -> float:
    """The share of an interface's packets that left earlier than a token bucket of this rate
    allows, by more than this part of the serialisation time.

    Each packet puts the bucket into debt for its serialisation time; the next may leave while the
    debt does not exceed the burst. `backlogged` is stricter, and needs the packets' arrivals.
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
