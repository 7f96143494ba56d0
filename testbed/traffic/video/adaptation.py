"""Which rendition the next segment is asked for in: by throughput, by buffer, or always one."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from testbed.scenario.video_manifest import Rung


@dataclass(frozen=True)
class Situation:
    """What a rule may look at; rungs from low to high."""

    rungs: tuple[Rung, ...]
    current: Rung | None  # of the last segment
    level_s: float
    cap_s: float
    measured_bit_per_s: Sequence[float]  # of each segment so far


class Rule(Protocol):
    """A rule of adaptation."""

    def choose(self, situation: Situation) -> Rung:
        """The rung for the next segment."""


@dataclass(frozen=True)
class Fixed:
    """Always the same rung, as when a person has chosen it."""

    name: str

    def choose(self, situation: Situation) -> Rung:
        """The rung of that name."""
        return next(rung for rung in situation.rungs if rung.name == self.name)


@dataclass(frozen=True)
class Throughput:
    """The highest rung below what the last segments came with, as dash.js's rule of that name.

    Four segments, nine tenths of their harmonic mean, and 1 Mbit/s before there is any.
    """

    window: int = 4
    safety: float = 0.9
    first_bit_per_s: float = 1e6

    def choose(self, situation: Situation) -> Rung:
        """The highest that fits."""
        recent = situation.measured_bit_per_s[-self.window :]
        expected = statistics.harmonic_mean(recent) if recent else self.first_bit_per_s
        return highest_below(situation.rungs, self.safety * expected)


@dataclass(frozen=True)
class Buffer:
    """BBA-0 (Huang et al., SIGCOMM 2014): the fuller the buffer, the higher the rung.

    Its reservoir and cushion are of 240 s there (90 s and 126 s); here they are the same shares
    of the cap. A rung is left only when the next one's rate has been passed.
    """

    reservoir: float = 90 / 240
    cushion: float = 126 / 240

    def choose(self, situation: Situation) -> Rung:
        """The current rung, or as far from it as the map of the buffer's level has gone."""
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
        """A rate for the level: the lowest up to the reservoir, the highest beyond the cushion."""
        low, high = situation.rungs[0].bit_per_s, situation.rungs[-1].bit_per_s
        share = (situation.level_s / situation.cap_s - self.reservoir) / self.cushion
        return low + (high - low) * min(1.0, max(0.0, share))


def highest_below(rungs: Sequence[Rung], bit_per_s: float) -> Rung:
    """The highest rung of at most that rate; the lowest if there is none."""
    return next((rung for rung in reversed(rungs) if rung.bit_per_s <= bit_per_s), rungs[0])


def rule(name: str) -> Rule:
    """`throughput`, `buffer`, or the name of a rung."""
    named: dict[str, Rule] = {"throughput": Throughput(), "buffer": Buffer()}
    return named.get(name) or Fixed(name)
