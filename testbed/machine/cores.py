"""Processors for trials: each run on this machine reserves one of its own."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator

from testbed.machine.journal import state_folder


@contextlib.contextmanager
def a_core() -> Iterator[int]:
    """Reserve a processor for the duration of the block; shared if there are too few.

    Parallel sweeps and cluster workers coordinate by file locks, which the kernel releases when
    their owner dies.
    """
    usable = sorted(os.sched_getaffinity(0))
    folder = state_folder() / "cores"
    folder.mkdir(parents=True, exist_ok=True)
    for core in usable:
        descriptor = os.open(folder / str(core), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            continue
        try:
            yield core
        finally:
            os.close(descriptor)
        return
    yield usable[os.getpid() % len(usable)]
