"""Actions scheduled on the trial's clock, run in one thread.

In the guest every reading of the clock is a system call that costs wall time, so an action takes
one sleep and one reading.
"""

from __future__ import annotations

import heapq
import itertools
import math
import time
from collections.abc import Callable, Sequence

from testbed.machine.timer import NS, sleep_until

Action = Callable[[float], None]  # called with the time in seconds of the trial's clock
# Called with the instants of the monotonic clock at which a periodic action is next due while no
# other is: sleeps and acts at the first so many of them, and returns how many. Returning here in
# between costs more than most actions.
Ahead = Callable[[Sequence[int]], int]


_NEVER = 2**63


class ActionQueue:
    """A queue of actions on the trial's clock.

    Second 0 is the first multiple of `grid_s` on the wall clock that is at least `lead_s` ahead.
    """

    def __init__(self, lead_s: float, grid_s: float) -> None:
        monotonic, real = time.monotonic_ns(), time.time_ns()
        grid = round(grid_s * NS)
        epoch = math.ceil((real + lead_s * NS) / grid) * grid
        self._epoch = epoch
        self.epoch_s = epoch / NS
        self._zero = monotonic + epoch - real
        self._order = itertools.count()
        self._queue: list[tuple[int, int, Action]] = []
        self._end = _NEVER

    @property
    def zero_ns(self) -> int:
        """The instant of second 0 on the monotonic clock."""
        return self._zero

    def at(self, time_s: float, action: Action) -> None:
        """Run an action once; actions due at the same instant run in the order of these calls."""
        self._push(self._zero + round(time_s * NS), action)

    def every(
        self, interval_s: float, until_s: float, action: Action, ahead: Ahead = lambda _due: 0
    ) -> None:
        """Run an action periodically from second 0 on; ticks missed by a slow host are skipped."""
        step, until = max(1, round(interval_s * NS)), self._zero + round(until_s * NS)

        def tick(due: int, time_s: float) -> None:
            action(time_s)
            missed = max(0, (self._zero + round(time_s * NS) - due) // step)
            following = due + (missed + 1) * step
            following += step * ahead(range(following, min(until, self._alone_until()), step))
            if following < until:
                self._push(following, lambda now_s: tick(following, now_s))

        self._push(self._zero, lambda now_s: tick(self._zero, now_s))

    def _alone_until(self) -> int:
        """Return the instant at which the next action is due or all end."""
        following = self._queue[0][0] if self._queue else _NEVER
        return min(following, self._end + 1)

    def end(self, time_s: float) -> None:
        """Skip all actions due later than this."""
        self._end = self._zero + round(time_s * NS)

    def time_s(self, monotonic_ns: int) -> float:
        """Convert a monotonic time to seconds of the trial's clock."""
        return (monotonic_ns - self._zero) / NS

    def of_wall_clock_s(self, real_ns: int) -> float:
        """Convert a time of the wall clock to seconds of the trial's clock."""
        return (real_ns - self._epoch) / NS

    def _push(self, due: int, action: Action) -> None:
        heapq.heappush(self._queue, (due, next(self._order), action))

    def run(self) -> None:
        """Run all actions on time, until none is left."""
        while self._queue:
            due, _, action = heapq.heappop(self._queue)
            if due > self._end:
                return
            sleep_until(due)
            while (now := time.monotonic_ns()) < due:  # woken early by a signal
                sleep_until(due)
            action(self.time_s(now))
