"""Bitrate adaptation: choosing a segment's rung by throughput, by buffer level, or fixed."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from testbed.scenario.video import Rung


@dataclass(frozen=True)
class Situation:
    """The player's state that a rule decides on; rungs are ordered from low to high."""

    rungs: tuple[Rung, ...]
    current: Rung | None  # of the last segment
    level_s: float
    cap_s: float
    measured_bit_per_s: Sequence[float]  # of each segment so far


class Rule(Protocol):
    """An adaptation rule."""

    def choose(self, situation: Situation) -> Rung:
        """Return the rung for the next segment."""


@dataclass(frozen=True)
class Fixed:
    """Always the same rung, as if the viewer had selected it."""

    name: str

    def choose(self, situation: Situation) -> Rung:
        """Return the rung with the configured name."""
        return next(rung for rung in situation.rungs if rung.name == self.name)


@dataclass(frozen=True)
class Throughput:
    """The highest rung below the recent throughput, as dash.js's rule of that name.

    Recent throughput is nine tenths of the harmonic mean of the last four segments, and 1 Mbit/s
    before the first one.
    """

    window: int = 4
    safety: float = 0.9
    first_bit_per_s: float = 1e6

    def choose(self, situation: Situation) -> Rung:
        """Return the highest rung that the throughput sustains."""
        recent = situation.measured_bit_per_s[-self.window :]
        expected = statistics.harmonic_mean(recent) if recent else self.first_bit_per_s
        return highest_below(situation.rungs, self.safety * expected)


@dataclass(frozen=True)
class Buffer:
    """BBA-0 (Huang et al., SIGCOMM 2014): the fuller the buffer, the higher the rung.

    There, reservoir and cushion are 90 s and 126 s of a 240 s buffer; here they are the same shares
    of the cap. The rung changes only once the mapped rate passes that of a neighbour.
    """

    reservoir: float = 90 / 240
    cushion: float = 126 / 240

    def choose(self, situation: Situation) -> Rung:
        """Keep the current rung until the mapped rate passes that of a neighbour."""
        rungs, current = situation.rungs, situation.current
        mapped = self._map(situation)
        if current is None:
            return rungs[0]
        place = rungs.index(current)
        if place + 1 < len(rungs) and mapped >= rungs[place + 1].bit_per_s:
            return highest_below(rungs, mapped)
        if place and mapped <= rungs[place - 1].bit_per_s:
            return next(rung for rung in rungs if rung.bit_per_s >= mapped)
        return current

    def _map(self, situation: Situation) -> float:
        """Map a buffer level to a rate: lowest up to the reservoir, highest above the cushion."""
        low, high = situation.rungs[0].bit_per_s, situation.rungs[-1].bit_per_s
        share = (situation.level_s / situation.cap_s - self.reservoir) / self.cushion
        return low + (high - low) * min(1.0, max(0.0, share))


def highest_below(rungs: Sequence[Rung], bit_per_s: float) -> Rung:
    """Return the highest rung not above the rate, or the lowest rung if all are above it."""
    return next((rung for rung in reversed(rungs) if rung.bit_per_s <= bit_per_s), rungs[0])


def rule(name: str) -> Rule:
    """`throughput`, `buffer`, or the name of a rung."""
    named: dict[str, Rule] = {"throughput": Throughput(), "buffer": Buffer()}
    return named.get(name) or Fixed(name)
