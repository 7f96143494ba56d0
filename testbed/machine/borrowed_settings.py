"""The settings of this machine's kernel that a trial on the host engine changes for a while."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path

from testbed.machine.journal import JOURNAL

AVAILABLE = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
ALLOWED = Path("/proc/sys/net/ipv4/tcp_allowed_congestion_control")
_OURS = re.compile(rf"{ALLOWED}|/sys/module/tcp_[a-z0-9_]+/parameters/[a-z0-9_]+")
_VALUE = re.compile(r"[A-Za-z0-9_ -]{1,4000}")


def values(setting: str) -> frozenset[str]:
    """What a setting says, whatever the order of its list; the kernel writes Y for 1."""
    return frozenset({"Y": "1", "N": "0"}.get(word, word) for word in setting.split())


@contextlib.contextmanager
def changed(file: Path, wanted: str) -> Iterator[None]:
    """A setting has another value for a while, which is noted before."""
    before = file.read_text().strip()
    if values(wanted) == values(before):
        yield
        return
    with JOURNAL.noted(setting=str(file), before=before, after=wanted):
        try:
            file.write_text(wanted)
            yield
        finally:
            file.write_text(before)


def restored(name: str, before: str, after: str) -> str:
    """Undo what a killed run noted, and say so; nothing if it cannot have been a run of ours.

    A setting that has another value by now is somebody else's.
    """
    if not _OURS.fullmatch(name) or not _VALUE.fullmatch(before):
        return ""
    file = Path(name)
    now = values(file.read_text())
    if now == values(before):
        return ""
    if now != values(after):
        return f"left {file.name} alone: it was changed since"
    file.write_text(before)
    return f"set {file.name} back to {before!r}"
