"""`testbed clean`: undo what killed processes noted in their journals, and nothing else.

A journal is only a file: what it says is done if a run of ours can have written it, in this place.
"""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import json
import os
import re
import select
import signal
import stat
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from testbed.errors import TestbedError
from testbed.machine import safe_files, tracefs
from testbed.machine.atomic import put_back_or_remove
from testbed.machine.journal import JOURNAL_SUFFIX, MARKER, Origin, journals
from testbed.machine.sysctl_guard import restore

END_PATIENCE_S = 2.0  # for processes of a dead run to end
JOURNAL_BYTES = 1 << 28  # of a journal: a million trials'
_JOURNAL_NAME = re.compile(rf"([0-9a-f]{{16}}){re.escape(JOURNAL_SUFFIX)}")

JournalEntry = Mapping[str, str]


@dataclass
class Cleaned:
    """What `clean` did, what it left alone, and what it could not do; a sentence each."""

    done: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)


class _NotOurs(Exception):
    """A journal that is left alone, with the reason."""


def clean() -> Cleaned:
    """Undo what dead processes left, and return a sentence about each thing."""
    result = Cleaned()
    with contextlib.suppress(FileNotFoundError), safe_files.folder(journals()) as folder:
        for name in sorted(each.name for each in safe_files.place(folder).iterdir()):
            try:
                _clean_one(folder, name, result)
            except _NotOurs as why:
                result.left.append(f"{journals() / name}: {why}")
            except (OSError, TestbedError) as error:
                result.failed.append(f"{journals() / name}: {error}")
    return result


def _clean_one(folder: int, name: str, result: Cleaned) -> None:
    match = _JOURNAL_NAME.fullmatch(name)
    if not match:
        raise _NotOurs("not a journal of this version; delete it if no run of another goes on")
    with contextlib.suppress(FileNotFoundError):
        file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
        try:
            if _owner_is_dead(file, folder, name):
                _undo(match[1], *_read(file), result)
                os.unlink(name, dir_fd=folder)
        finally:
            os.close(file)


def _owner_is_dead(file: int, folder: int, name: str) -> bool:
    """Return whether a journal's process is dead: then we have its lock and its name."""
    info = os.fstat(file)
    if not stat.S_ISREG(info.st_mode) or info.st_uid != os.geteuid():
        raise _NotOurs(f"it belongs to user {info.st_uid}, who can clean up")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return os.path.samestat(os.stat(name, dir_fd=folder, follow_symlinks=False), info)


def _read(file: int) -> tuple[Origin | None, list[JournalEntry]]:
    """Return where a journal was written, and its entries that were not crossed out.

    Lines of any other form are ignored.
    """
    text = os.read(file, JOURNAL_BYTES).decode(errors="replace")
    lines = [line for line in map(_parse, text.splitlines()) if line]
    done = {line["done"] for line in lines if "done" in line}
    entries = [line for line in lines if "number" in line and line["number"] not in done]
    return _origin(lines[0]) if lines else None, entries


def _parse(text: str) -> JournalEntry:
    """Return a line of a journal with texts for values; empty if it has another form."""
    with contextlib.suppress(ValueError, RecursionError):
        line = json.loads(text)
        if isinstance(line, dict):
            return {name: str(value) for name, value in line.items()}
    return {}


def _origin(line: JournalEntry) -> Origin | None:
    names = {each.name for each in dataclasses.fields(Origin)}
    return Origin(**line) if line.keys() == names else None


def _undo(mark: str, origin: Origin | None, entries: list[JournalEntry], result: Cleaned) -> None:
    """Undo a journal's entries if it was written here.

    One that does not say where it was written was cut off before its process did anything.
    """
    here = Origin.here()
    if origin is None:
        return
    if origin.machine != here.machine:
        raise _NotOurs(f"a run on another machine, {origin.machine}: clean up there, or delete it")
    if origin.boot == here.boot:
        if origin.processes != here.processes:
            raise _NotOurs("a run in another container: clean up there, or delete it")
        result.done += _end_processes(mark)
        if instance := tracefs.remove(mark):
            result.done.append(f"removed trace instance {instance}")
        result.done += _each(entries, _restored)
    result.done += _each(entries, lambda entry: _removed(mark, entry))


def _each(
    entries: Sequence[JournalEntry], undo: Callable[[JournalEntry], Iterator[str]]
) -> Iterator[str]:
    """Undo the entries, the last first: what is in a folder before the folder."""
    for entry in reversed(entries):
        with contextlib.suppress(ValueError):  # a name that no file can have
            yield from undo(entry)


def _restored(entry: JournalEntry) -> Iterator[str]:
    if "setting" in entry:
        complaint = restore(entry["setting"], entry.get("before", ""), entry.get("after", ""))
        yield from [complaint] if complaint else []


def _removed(mark: str, entry: JournalEntry) -> Iterator[str]:
    """Remove what was being made; put back what was being replaced if nothing has its place."""
    path = Path(entry.get("temporary") or entry.get("aside") or "")
    name = entry.get("of", "")
    if not path.is_absolute() or not _is_temporary(path.name, mark):
        return
    if "aside" in entry and (name.startswith(".") or Path(name).name != name or not name):
        return
    with contextlib.suppress(FileNotFoundError), safe_files.folder(path.parent) as parent:
        if not safe_files.exists(parent, path.name):
            return
        if "aside" in entry and put_back_or_remove(parent, path.name, name):
            yield f"put back {path.with_name(name)}"
        else:
            _remove(parent, path.name)
            yield f"removed unfinished {path}"


def _is_temporary(name: str, mark: str) -> bool:
    """Return whether a temporary name is one of the process with this mark."""
    return re.fullmatch(rf"\.[^/]+\.{mark}\.[0-9a-f]{{8}}", name) is not None


def _remove(parent: int, name: str) -> None:
    """Remove a folder; a guest that dies with its run may write in it for another moment."""
    deadline = time.monotonic() + END_PATIENCE_S
    while True:
        try:
            return safe_files.remove(parent, name)
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.01)


def _end_processes(mark: str) -> Iterator[str]:
    """End the processes with this mark, and with them their namespaces and links."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                process = os.pidfd_open(int(entry.name))
                try:
                    yield from _end_process(process, entry, f"{MARKER}={mark}".encode())
                finally:
                    os.close(process)


def _end_process(process: int, entry: Path, marker: bytes) -> Iterator[str]:
    if marker in (entry / "environ").read_bytes().split(b"\0"):
        name = (entry / "comm").read_text().strip()
        signal.pidfd_send_signal(process, signal.SIGKILL)
        select.select([process], [], [], END_PATIENCE_S)  # readable when it has ended
        yield f"ended process {entry.name} ({name})"
