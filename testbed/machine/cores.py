"""Processors for trials: each run of ours on this machine takes one that no other has."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator

from testbed.machine.journal import state_folder


@contextlib.contextmanager
def a_core() -> Iterator[int]:
    """A processor for as long as the block runs; shared with others if there are too few.

    Sweeps side by side, and the workers of a cluster, know of each other by locks on files,
    which the kernel lets go of when their owner dies.
    """
    usable = sorted(os.sched_getaffinity(0))
    folder = state_folder().parent / "cores"
    folder.mkdir(parents=True, exist_ok=True)
    for core in usable:
        descriptor = os.open(folder / str(core), os.O_RDWR | os.O_CREAT, 0o600)
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
