"""Private trace instances: separate buffers and settings of the kernel's tracing.

tracefs is mounted without a mount point, as a descriptor, and vanishes with the process that opened
it. Only the instance can stay behind, a folder named after the run's mark; `remove` deletes it and
no other.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
from collections.abc import Iterator
from pathlib import Path

_FSOPEN, _FSCONFIG, _FSMOUNT = 430, 431, 432  # the same numbers on every machine
_CLOSE_ON_EXEC, _CREATE = 1, 6

_libc = ctypes.CDLL(None, use_errno=True)


def _call(number: int, *arguments: object) -> int:
    result = int(_libc.syscall(number, *arguments))
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result


def _mount() -> int:
    """Mount tracefs and return its descriptor; OSError if the kernel lacks or denies it."""
    opened = _call(_FSOPEN, b"tracefs", _CLOSE_ON_EXEC)
    try:
        _call(_FSCONFIG, opened, _CREATE, None, None, 0)
        return _call(_FSMOUNT, opened, _CLOSE_ON_EXEC, 0)
    finally:
        os.close(opened)


def instance_name(mark: str) -> str:
    """Return the name of a run's instance, which is short enough for a folder."""
    import hashlib  # loads a big library, which trials in the guest never need

    return f"testbed-{hashlib.sha256(mark.encode()).hexdigest()[:16]}"


class Instance:
    """A trace instance, from its creation until `close`."""

    def __init__(self, mark: str) -> None:
        self._root = _mount()
        self._path = _instances(self._root) / instance_name(mark)
        try:
            self._path.mkdir(mode=0o700)
        except OSError:
            os.close(self._root)
            raise

    def set(self, name: str, value: str) -> None:
        """Write a setting."""
        (self._path / name).write_text(value)

    def format(self, event: str) -> str:
        """Return the kernel's description of an event; empty if there is no such event."""
        with contextlib.suppress(FileNotFoundError):
            return (self._path / "events" / event / "format").read_text()
        return ""

    def lines(self) -> Iterator[str]:
        """Yield the recorded lines in chronological order."""
        with (self._path / "trace").open(buffering=1 << 20, errors="replace") as file:
            yield from (line for line in file if not line.startswith("#"))

    def lost(self) -> int:
        """Return the number of events lost because the buffers were full."""
        counts = ("overrun", "commit overrun", "dropped events")
        return sum(
            int(number)
            for path in self._path.glob("per_cpu/cpu*/stats")
            for name, _, number in (line.partition(": ") for line in path.read_text().splitlines())
            if name in counts
        )

    def close(self) -> None:
        """Remove the instance, its buffers with it."""
        if self._root >= 0:
            with contextlib.suppress(FileNotFoundError):
                self._path.rmdir()
            os.close(self._root)
            self._root = -1


def _instances(root: int) -> Path:
    return Path(f"/proc/self/fd/{root}/instances")


def remove(mark: str) -> str:
    """Remove a dead run's instance and return its name, or nothing if there was none."""
    try:
        root = _mount()
    except OSError:  # no tracefs, or no permission: then the run had no instance either
        return ""
    try:
        with contextlib.suppress(FileNotFoundError):
            (_instances(root) / instance_name(mark)).rmdir()
            return instance_name(mark)
        return ""
    finally:
        os.close(root)
