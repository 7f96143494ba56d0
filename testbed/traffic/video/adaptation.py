"""Bitrate adaptation: choosing a segment's rung by throughput, by buffer level, or fixed."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from testbed.video_site import Rung


@dataclass(frozen=True)
class Situation:
    """The player's state that a rule decides on; rungs are ordered from low to high."""

    rungs: tuple[Rung, ...]
    current: Rung | None  # of the last segment
    level_s: float
    cap_s: float
    measured_bit_per_s: Sequence[float]  # of each segment so far


Rule = Callable[[Situation], Rung]  # returns the rung for the next segment

RECENT_SEGMENTS, SAFETY_SHARE, FIRST_BIT_PER_S = 4, 0.9, 1e6  # of the rule `throughput`
RESERVOIR, CUSHION = 90 / 240, 126 / 240  # of the rule `buffer`, as shares of the cap


def by_throughput(situation: Situation) -> Rung:
    """Return the highest rung below the recent throughput, as dash.js's rule of that name.

    Recent throughput is nine tenths of the harmonic mean of the last four segments, and 1 Mbit/s
    before the first one.
    """
    recent = situation.measured_bit_per_s[-RECENT_SEGMENTS:]
    expected = statistics.harmonic_mean(recent) if recent else FIRST_BIT_PER_S
    return highest_below(situation.rungs, SAFETY_SHARE * expected)


def by_buffer(situation: Situation) -> Rung:
    """Return a higher rung the fuller the buffer is: BBA-0 (Huang et al., SIGCOMM 2014).

    There, reservoir and cushion are 90 s and 126 s of a 240 s buffer; here they are the same shares
    of the cap. The rate is the lowest up to the reservoir and the highest above the cushion, and
    the rung changes only once that rate passes that of a neighbour.
    """
    rungs, current = situation.rungs, situation.current
    if current is None:
        return rungs[0]
    low, high = rungs[0].bit_per_s, rungs[-1].bit_per_s
    share = (situation.level_s / situation.cap_s - RESERVOIR) / CUSHION
    mapped = low + (high - low) * min(1.0, max(0.0, share))
    place = rungs.index(current)
    if place + 1 < len(rungs) and mapped >= rungs[place + 1].bit_per_s:
        return highest_below(rungs, mapped)
    if place and mapped <= rungs[place - 1].bit_per_s:
        return next(rung for rung in rungs if rung.bit_per_s >= mapped)
    return current


def highest_below(rungs: Sequence[Rung], bit_per_s: float) -> Rung:
    """Return the highest rung not above the rate, or the lowest rung if all are above it."""
    return next((rung for rung in reversed(rungs) if rung.bit_per_s <= bit_per_s), rungs[0])


def rule(name: str) -> Rule:
    """Return the rule `throughput` or `buffer`, or one that always returns the rung of that name.

    A rung by its name is what a viewer selects.
    """
    named: dict[str, Rule] = {"throughput": by_throughput, "buffer": by_buffer}
    return named.get(name) or (
        lambda situation: next(rung for rung in situation.rungs if rung.name == name)
    )
