"""Captures that are read more than once: for the metrics, then for the figures."""

from __future__ import annotations

import functools
from pathlib import Path

from analysis.captures.tcp import Packets, read_capture
from testbed.errors import TestbedError

KEPT = 32
KEPT_BYTES = 8_000_000  # a larger capture's packets would fill the memory


def read_shared(path: Path) -> Packets:
    """As `read_capture`; the last few small captures are kept. Don't change what it gives."""
    try:
        state = path.stat()
    except OSError as error:
        raise TestbedError(
            f"{path}: {error.strerror}", "the trial had this capture; run it again"
        ) from error
    if state.st_size > KEPT_BYTES:
        return read_capture(path)
    return _read_kept(path, state.st_size, state.st_mtime_ns)


@functools.lru_cache(KEPT)
def _read_kept(path: Path, _size: int, _time_ns: int) -> Packets:
    return read_capture(path)
