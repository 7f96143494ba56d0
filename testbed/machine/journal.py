"""What a killed run leaves behind, noted beforehand so that it can be removed: and only that.

Every run writes a journal: who runs it, the folder that it writes to, the settings of
the host that it changed. Its name is the run's mark, which its processes and its trace
instance carry. It is deleted when the run ends in order. `testbed clean` reads the
journals whose owner is dead.
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

WORKPLACE = "testbed-worker-"  # begins the name of a cluster's worker's temporary folder
MARKER = "TCP_TESTBED_RUN"  # in the environment of every process of a host trial
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


def state_folder() -> Path:
    """Where the journals are."""
    base = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(base) / "tcp-testbed" / "running"


def _started_ticks(pid: int) -> int | None:
    """When a process began, in clock ticks since boot: tells it from a later one's same id."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    return int(text.rpartition(")")[2].split()[19])


class Journal:
    """The note of one run; a context that removes it when all is in order again."""

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
        """What is the run's own: its processes and its trace instance go by it."""
        return self._path.stem

    @property
    def marker(self) -> dict[str, str]:
        """What the run's processes carry in their environment."""
        return {MARKER: self.mark}

    def change(self, path: Path, before: str, after: str) -> None:
        """Note a setting that is about to be changed."""
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
    """Remove what dead runs left; says what it removed."""
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
        shutil.rmtree(folder)
        yield f"unfinished folder {folder}"
        if folder.parent.name.startswith(WORKPLACE):
            folder.parent.rmdir()
    path.unlink()


def _end_processes(run: str) -> Iterator[str]:
    """Processes that carry this run's mark; with them go their namespaces and cables."""
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
