"""Entering a node's network namespace temporarily, without starting a process."""

from __future__ import annotations

import contextlib
import ctypes
import os
from collections.abc import Iterator

_libc = ctypes.CDLL(None, use_errno=True)
_CLONE_NEWNET = 0x40000000


@contextlib.contextmanager
def inside(pid: int | None) -> Iterator[None]:
    """Enter a process's network namespace; sockets and processes from inside stay there.

    Only the calling thread moves, so this is for single-threaded programs such as a trial.
    """
    if pid is None:
        yield
        return
    home = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    try:
        there = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY)
        try:
            _setns(there)
        finally:
            os.close(there)
        try:
            yield
        finally:
            _setns(home)
    finally:
        os.close(home)


def _setns(descriptor: int) -> None:
    if _libc.setns(descriptor, _CLONE_NEWNET):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
