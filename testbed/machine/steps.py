"""Steps of a trial's set-up that begin at a set time, with the same randomness.

In the guest what follows must not depend on what a step took: the kernel's timers keep the phase at
which they began, its next random key is due so many seconds after the last, and programs make their
keys from its random numbers and from the time. What a step took does vary: with our own code, with
the versions of what it runs, and with the path of the project. A program in Python makes more
system calls where it lies deeper, and many of them take time (kernel/patches/0003).
"""

from __future__ import annotations

import contextlib
import fcntl
from pathlib import Path

from testbed.machine.timer import sleep_to_multiple

RNDRESEEDCRNG = 0x5207  # linux/random.h


class Steps:
    """When steps begin: at multiples of so many seconds of the wall clock; 0: at once."""

    seconds = 0.0

    def begin(self) -> None:
        """Wait until the next step may begin, and take a new random key."""
        if self.seconds:
            sleep_to_multiple(self.seconds)
            begin_randomness_anew()


STEPS = Steps()


def begin_randomness_anew() -> None:
    """Make the kernel's random generator take a new key.

    In the guest the key follows from the seed alone, so that the captures and samples set up before
    make no difference to the random choices of BBR or RED. On the host this has no effect.
    """
    with Path("/dev/urandom").open() as generator, contextlib.suppress(OSError):
        fcntl.ioctl(generator, RNDRESEEDCRNG)
