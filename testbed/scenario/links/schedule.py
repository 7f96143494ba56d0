"""Schedules: what a link direction is set to while flows run, and when."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

UNSET = {"later": True}  # left out where a scenario is written, unless it is set
MOST_CHANGES = 10_000


@dataclass(frozen=True)
class Change:
    """New settings of a link's direction; what is not given stays as it was."""

    at_s: float
    """When they hold from."""
    rate_mbit: float | None = field(default=None, metadata=UNSET)
    """What it is shaped to."""
    delay_ms: float | None = field(default=None, metadata=UNSET)
    """Its propagation delay."""
    loss: float | None = field(default=None, metadata=UNSET)
    """The chance of each packet to be lost."""
    up: bool | None = field(default=None, metadata=UNSET)
    """A link that is not up loses all that is sent over it: packets leave its queue at its rate and
    do not arrive."""

    @property
    def of_wire(self) -> bool:
        """Whether it changes what happens to packets behind the queue."""
        return (self.delay_ms, self.loss, self.up) != (None, None, None)


Schedule = tuple[Change, ...]


def rates(schedule: Schedule, rate_mbit: float) -> list[tuple[float, float]]:
    """Every rate with the time from which it holds, the first from second 0."""
    set_ = [(each.at_s, each.rate_mbit) for each in schedule if each.rate_mbit is not None]
    return [(0.0, rate_mbit), *set_]


def delays(schedule: Schedule) -> list[float]:
    """Every delay that it sets, in ms."""
    return [each.delay_ms for each in schedule if each.delay_ms is not None]


def of_queue(schedule: Schedule) -> Schedule:
    """Its changes of the rate."""
    changed = (each for each in schedule if each.rate_mbit is not None)
    return tuple(Change(each.at_s, rate_mbit=each.rate_mbit) for each in changed)


def of_wire(schedule: Schedule) -> Schedule:
    """Its changes of what is behind the queue."""
    return tuple(dataclasses.replace(each, rate_mbit=None) for each in schedule if each.of_wire)


def order_faults(schedule: Sequence[Change], where: str, duration_s: float) -> Iterator[str]:
    """Changes that are not within the trial, not in order, or change nothing."""
    if len(schedule) > MOST_CHANGES:
        yield f"{where}: {len(schedule)} changes; at most {MOST_CHANGES}"
        return
    for index, each in enumerate(schedule):
        if not 0 < each.at_s < duration_s:
            yield (
                f"{where}[{index}].at_s: {each.at_s:g} is not within the trial: above 0 and below "
                f"{duration_s:g}"
            )
        if not each.of_wire and each.rate_mbit is None:
            yield f"{where}[{index}]: changes nothing: give rate_mbit, delay_ms, loss or up"
        if each.loss is not None and not 0 <= each.loss <= 1:
            yield f"{where}[{index}].loss: {each.loss:g} is no chance between 0 and 1"
    for index, (one, other) in enumerate(itertools.pairwise(schedule), start=1):
        if other.at_s <= one.at_s:
            yield (
                f"{where}[{index}].at_s: {other.at_s:g} is not after {one.at_s:g}, the change "
                "before it: put them in order of time, one for each time"
            )
