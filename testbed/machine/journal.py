"""Journals of running trials, so that exactly the leftovers of a killed run can be removed.

Every run writes a journal: its owner's process, the folder that it writes to, the host settings
that it changes. Its name is the run's mark, which the run's processes and trace instance carry. It
is deleted when the run ends in order. `testbed clean` reads the journals whose owner is dead.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType

from testbed.machine import tracefs

WORKPLACE = "testbed-worker-"  # prefix of a cluster worker's temporary folder
MARKER = "TCP_TESTBED_RUN"  # in the environment of every process of a host trial
PATIENCE_S = 2.0  # for processes of a dead run to end
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


def state_folder() -> Path:
    """The folder of the journals."""
    base = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(base) / "tcp-testbed" / "running"


def _started_ticks(pid: int) -> int | None:
    """A process's start in clock ticks since boot, which distinguishes reused process ids."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    return int(text.rpartition(")")[2].split()[19])


class Journal:
    """The journal of one run; a context that deletes it after an orderly end."""

    def __init__(self, folder: Path) -> None:
        self._path = state_folder() / f"{os.getpid()}-{folder.name.strip('.')}.json"
        self._data: dict[str, object] = {
            "boot": BOOT_ID.read_text().strip(),
            "pid": os.getpid(),
            "started": _started_ticks(os.getpid()),
            "folder": str(folder.resolve()),
            "changes": [],
        }

    @property
    def mark(self) -> str:
        """The mark of the run's processes and of its trace instance."""
        return self._path.stem

    @property
    def marker(self) -> dict[str, str]:
        """The environment variable that the run's processes carry."""
        return {MARKER: self.mark}

    def change(self, path: Path, before: str, after: str) -> None:
        """Record a setting before it is changed."""
        changes = self._data["changes"]
        assert isinstance(changes, list)
        changes.append({"path": str(path), "before": before, "after": after})
        self._write()

    def _write(self) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        temporary = self._path.with_suffix(".new")
        temporary.write_text(json.dumps(self._data))
        temporary.rename(self._path)

    def __enter__(self) -> Journal:
        self._write()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._path.unlink(missing_ok=True)


def clean() -> list[str]:
    """Remove what dead runs left; returns descriptions of what was removed."""
    found: list[str] = []
    for path in sorted(state_folder().glob("*.json")):
        with contextlib.suppress(json.JSONDecodeError):
            found += _clean_one(path, json.loads(path.read_text()))
    return found


def _clean_one(path: Path, data: dict[str, object]) -> Iterator[str]:
    this_boot = data["boot"] == BOOT_ID.read_text().strip()
    pid = data["pid"]
    assert isinstance(pid, int)
    if this_boot and _started_ticks(pid) == data["started"]:
        return  # still running
    if this_boot:
        yield from _end_processes(path.stem)
        changes = data["changes"]
        assert isinstance(changes, list)
        yield from (_restore(change) for change in changes)
        if name := tracefs.remove(path.stem):
            yield f"trace instance {name}"
    folder = Path(str(data["folder"]))
    if folder.name.startswith(".") and folder.is_dir():
        _remove(folder)
        yield f"unfinished folder {folder}"
        if folder.parent.name.startswith(WORKPLACE):
            folder.parent.rmdir()
    path.unlink()


def _remove(folder: Path) -> None:
    """A guest that dies with its run may still be writing for a moment."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            shutil.rmtree(folder)
            return
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.01)


def _end_processes(run: str) -> Iterator[str]:
    """End the processes with this run's mark, and with them their namespaces and links."""
    mark = f"{MARKER}={run}".encode()
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        with contextlib.suppress(OSError):
            if mark in (entry / "environ").read_bytes().split(b"\0"):
                name = (entry / "comm").read_text().strip()
                os.kill(int(entry.name), signal.SIGKILL)
                _wait_gone(entry)
                yield f"process {entry.name} ({name})"


def _wait_gone(entry: Path) -> None:
    for _ in range(100):
        if not entry.exists():
            return
        time.sleep(0.01)


def _restore(change: dict[str, str]) -> str:
    path = Path(change["path"])
    if path.read_text().split() == change["after"].split():
        path.write_text(change["before"])
        return f"setting {path.name} back to {change['before']!r}"
    return f"setting {path.name}: changed by somebody else since, left alone"
