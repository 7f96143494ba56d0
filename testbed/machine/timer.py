"""Sleeping to the nanosecond."""

from __future__ import annotations

import ctypes
import time

NS = 1_000_000_000

PR_SET_TIMERSLACK = 29
TIMER_ABSTIME = 1

_libc = ctypes.CDLL(None)


class _Timespec(ctypes.Structure):
    _fields_ = (("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long))


def wake_exactly() -> None:
    """Reduce the timer slack of this process and its children from 50 µs to 1 ns."""
    _libc.prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0)


def sleep_until(monotonic_ns: int) -> None:
    """Sleep until an instant; a signal may end the sleep early."""
    until = _Timespec(*divmod(monotonic_ns, NS))
    _libc.clock_nanosleep(time.CLOCK_MONOTONIC, TIMER_ABSTIME, ctypes.byref(until), None)


def sleep_to_multiple(grid_s: float) -> None:
    """Sleep until the wall clock's next multiple of `grid_s`."""
    real, grid = time.time_ns(), round(grid_s * NS)
    sleep_until(time.monotonic_ns() + grid - real % grid)
