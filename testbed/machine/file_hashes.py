"""The sha256 of files, computed once for each state that a file is in."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path

MAX_KNOWN = 1 << 16  # states of files
HASHED_AT_ONCE_BYTES = 1 << 20
_KNOWN: dict[tuple[int, ...], str] = {}


def hash_of(path: Path, before_piece: Callable[[], None] = lambda: None) -> str:
    """Return a file's sha256, computed again only if it has changed: thousands of trials ask.

    `before_piece` is called now and then, and may raise an error to end a long computation.
    """
    with path.open("rb") as file:
        now = os.fstat(file.fileno())
        state = (now.st_dev, now.st_ino, now.st_size, now.st_mtime_ns, now.st_ctime_ns)
        known = _KNOWN.get(state)
        if known is None:
            digest = hashlib.sha256()
            while piece := file.read(HASHED_AT_ONCE_BYTES):
                before_piece()
                digest.update(piece)
            if len(_KNOWN) >= MAX_KNOWN:
                _KNOWN.clear()
            known = _KNOWN[state] = digest.hexdigest()
    return known
