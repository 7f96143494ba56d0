"""Settings of this machine's kernel that a trial on the host changes, and that are restored."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path

from testbed.machine.journal import JOURNAL

AVAILABLE = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
ALLOWED = Path("/proc/sys/net/ipv4/tcp_allowed_congestion_control")
_CHANGED_BY_TRIALS = re.compile(rf"{ALLOWED}|/sys/module/tcp_[a-z0-9_]+/parameters/[a-z0-9_]+")
_SETTING_VALUE = re.compile(r"[A-Za-z0-9_ -]{1,4000}")


def values(setting: str) -> frozenset[str]:
    """Return the words of a setting without their order, with Y and N as 1 and 0."""
    return frozenset({"Y": "1", "N": "0"}.get(word, word) for word in setting.split())


@contextlib.contextmanager
def temporarily(file: Path, wanted: str) -> Iterator[None]:
    """Give a setting another value for the duration of a block, noted in the journal first."""
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


def restore(name: str, before: str, after: str) -> str:
    """Restore a setting that a killed run has changed, and return a sentence about it.

    A setting that has another value by now is left alone; what no run of ours can have noted is
    ignored, and the sentence is empty.
    """
    if not _CHANGED_BY_TRIALS.fullmatch(name) or not _SETTING_VALUE.fullmatch(before):
        return ""
    file = Path(name)
    now = values(file.read_text())
    if now == values(before):
        return ""
    if now != values(after):
        return f"left {file.name} alone: it was changed since"
    file.write_text(before)
    return f"set {file.name} back to {before!r}"
