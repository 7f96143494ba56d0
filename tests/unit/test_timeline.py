"""The trial's clock: order, ticks, and what a slow machine misses."""

from __future__ import annotations

import functools
import time
from collections.abc import Sequence

import pytest

from testbed.machine.timer import NS
from testbed.trial.parts.scheduler import ActionQueue

GRID_S = 0.1


class Clock:
    """A clock that moves only when something sleeps, or when it is told to."""

    def __init__(self) -> None:
        self.ns = 123_456_789

    def sleep_until(self, ns: int) -> None:
        self.ns = max(self.ns, ns)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(time, "monotonic_ns", lambda: made.ns)
    monkeypatch.setattr(time, "time_ns", lambda: 1_700_000_000 * NS + made.ns)
    monkeypatch.setattr("testbed.trial.parts.scheduler.sleep_until", made.sleep_until)
    return made


def test_second_zero_is_on_the_grid_and_not_before_the_lead(clock: Clock) -> None:
    timeline = ActionQueue(lead_s=0.25, grid_s=GRID_S)
    assert round(timeline.epoch_s * NS) % round(GRID_S * NS) == 0
    assert 0.25 <= timeline.epoch_s - time.time_ns() / NS < 0.36


def test_everything_in_its_time_and_ties_in_order_of_calls(clock: Clock) -> None:
    timeline = ActionQueue(0, GRID_S)
    seen: list[tuple[str, float]] = []
    for name, due in (("late", 2.0), ("first", 1.0), ("second", 1.0)):
        timeline.at(due, functools.partial(lambda name, now: seen.append((name, now)), name))
    timeline.run()
    assert seen == [("first", 1.0), ("second", 1.0), ("late", 2.0)]


def test_ticks_end_before_the_end(clock: Clock) -> None:
    timeline = ActionQueue(0, GRID_S)
    seen: list[float] = []
    timeline.every(0.1, 0.35, seen.append)
    timeline.run()
    assert seen == [0.0, 0.1, 0.2, 0.3]


def test_missed_ticks_are_left_out_not_caught_up(clock: Clock) -> None:
    timeline = ActionQueue(0, GRID_S)
    seen: list[float] = []

    def slow(time_s: float) -> None:
        seen.append(time_s)
        if len(seen) == 1:
            clock.ns += round(0.25 * NS)

    timeline.every(0.1, 0.55, slow)
    timeline.run()
    assert seen == [0.0, 0.25, 0.3, 0.4, 0.5]


def test_an_end_that_comes_sooner(clock: Clock) -> None:
    timeline = ActionQueue(0, GRID_S)
    seen: list[float] = []
    timeline.every(0.1, 10, seen.append)
    timeline.at(0.25, lambda now: timeline.end(now + 0.15))
    timeline.at(10, seen.append)
    timeline.run()
    assert seen == [0.0, 0.1, 0.2, 0.3, 0.4]


def test_ticks_ahead_are_those_before_the_next_action(clock: Clock) -> None:
    timeline = ActionQueue(0, GRID_S)
    seen: list[tuple[str, float]] = []

    def ahead(due_ns: Sequence[int]) -> int:
        for due in due_ns[:3]:
            clock.sleep_until(due)
            seen.append(("ahead", timeline.of_wall_clock_s(time.time_ns())))
        return len(due_ns[:3])

    timeline.every(0.1, 10, lambda now: seen.append(("tick", now)), ahead)
    timeline.at(0.25, lambda now: seen.append(("other", now)))
    timeline.at(0.7, lambda now: seen.append(("other", now)))
    timeline.end(1.0)
    timeline.run()
    assert seen == [
        *(("tick", 0.0), ("ahead", 0.1), ("ahead", 0.2), ("other", 0.25)),
        *(("tick", 0.3), ("ahead", 0.4), ("ahead", 0.5), ("ahead", 0.6)),
        *(("other", 0.7), ("tick", 0.7), ("ahead", 0.8), ("ahead", 0.9), ("ahead", 1.0)),
    ]
