"""The outcome of losses: as a variant's definition predicts it, and as observed."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

ROUND_TRIP_TOLERANCE = 0.25  # a retransmission's own serialisation, and the queue it meets


@dataclass(frozen=True)
class Outcome:
    """A flow's recovery; segments of new data are numbered from 1."""

    lost: tuple[int, ...]
    sent_again: tuple[int, ...]  # in the order of sending
    timeouts: int
    halvings: int  # times that ssthresh was lowered
    slow_start: bool  # after the first loss, outside of fast recovery
    recovery_s: float  # from the first retransmission to the ACK of all that was sent before it
    round_trips: float  # the same, in round trips of the idle path
    rto_ms: float  # before the loss
    acked: int  # segments, when the flow's measured time was over

    @property
    def needless(self) -> int:
        """Segments sent again that had not been lost."""
        return sum(number not in self.lost for number in self.sent_again)

    @property
    def recovered(self) -> bool:
        """True if all data sent before the first retransmission was acknowledged."""
        return math.isfinite(self.round_trips)


@dataclass(frozen=True)
class Expected:
    """The outcome that a variant's definition predicts."""

    timeouts: int
    halvings: int
    slow_start: bool
    exactly_the_lost: bool  # sent again, each once, in their order; else at least those
    round_trips: tuple[float, float]  # at least and at most

    def differences(self, seen: Outcome) -> Iterator[str]:
        """Describe the differences between the observed and the expected outcome."""
        if seen.timeouts != self.timeouts:
            yield f"{seen.timeouts} timeouts, not {self.timeouts}"
        if seen.halvings != self.halvings:
            yield f"{seen.halvings} halvings, not {self.halvings}"
        if seen.slow_start != self.slow_start:
            yield "slow start" if seen.slow_start else "no slow start"
        if self.exactly_the_lost and seen.sent_again != seen.lost:
            yield f"sends again {seen.sent_again}, not {seen.lost}"
        if not set(seen.lost) <= set(seen.sent_again):
            yield f"sends again {seen.sent_again}, not all of {seen.lost}"
        low, high = self.round_trips
        if not low - ROUND_TRIP_TOLERANCE <= seen.round_trips <= high + ROUND_TRIP_TOLERANCE:
            yield f"{seen.round_trips:.1f} round trips, not {low:g} to {high:g}"
