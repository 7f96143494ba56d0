"""Sleeping to the nanosecond, and the set times at which the steps of a trial's set-up begin."""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import time
from pathlib import Path

NS = 1_000_000_000

PR_SET_TIMERSLACK = 29
TIMER_ABSTIME = 1
RNDRESEEDCRNG = 0x5207  # linux/random.h

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


class SetupClock:
    """The multiples of the wall clock at which a set-up's steps and processes begin; 0: at once.

    In the guest, what follows must not depend on how long a step took: the kernel's timers keep the
    phase at which they began, its next random key is due a fixed time after the last, and programs
    make their keys from its random numbers and from the time. How long a step takes depends on our
    code, on the versions of the programs that it runs, and on the project's path: a Python program
    that lies deeper makes more system calls, many of which take time (kernel/patches/0003).
    """

    step_s = 0.0
    start_s = 0.0

    def begin_step(self) -> None:
        """Wait until the next step may begin, and take a new random key."""
        if self.step_s:
            sleep_to_multiple(self.step_s)
            reseed_random()

    def wait_for_start(self) -> None:
        """Wait until the next process may start."""
        if self.start_s:
            sleep_to_multiple(self.start_s)


SETUP_CLOCK = SetupClock()


def reseed_random() -> None:
    """Make the kernel's random generator take a new key.

    In the guest the key follows from the seed alone, so that the captures and samples set up before
    make no difference to the random choices of BBR or RED. On the host this has no effect.
    """
    with Path("/dev/urandom").open() as generator, contextlib.suppress(OSError):
        fcntl.ioctl(generator, RNDRESEEDCRNG)
