"""The journal of a process: what it is making or has changed, noted before it does so.

Whatever ends in order is crossed out again, and without entries there is no journal. A killed
process leaves it behind, and `testbed clean` undoes what it says (leftovers.py). It is locked by
the process that writes it, and the kernel releases the lock when that ends, however it ends.
Names of temporary files and folders contain the process's mark, which no other has.
"""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import fcntl
import functools
import json
import os
import pwd
import socket
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from testbed.errors import TestbedError
from testbed.machine.process import User, sudo_user
from testbed.machine.safe_files import changed_by_others

MARKER = "TCP_TESTBED_RUN"  # in the environment of every process of a trial
JOURNAL_SUFFIX = ".journal"
MAX_NAME_LENGTH = 100  # of what a temporary name is made from: file names end at 255 bytes
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_MACHINE_ID = Path("/etc/machine-id")
_OWN_PIDS = Path("/proc/self/ns/pid")
STATE_HINT = "set XDG_STATE_HOME to a folder of yours on a disk with room"


def state_folder() -> Path:
    """Return the folder of this user's state; root's is never one that others could change."""
    return _base_folder("XDG_STATE_HOME", ".local/state") / "tcp-testbed"


def core_locks() -> Path:
    """Return the folder of the locks by which this user's guests share the processors."""
    return state_folder() / "cores"


def _base_folder(variable: str, below_home: str, trusted: User | None = None) -> Path:
    base = Path(os.environ.get(variable) or Path.home() / below_home)
    if os.geteuid() == 0 and changed_by_others(base, trusted):
        return Path(pwd.getpwuid(0).pw_dir) / below_home
    return base


def leave_homes_of_others() -> None:
    """Let no program or library that root uses write in the home of another user, as HOME may be.

    The cache may be that of the user who ran sudo, who may have built the guest's kernel.
    """
    if os.geteuid() == 0:
        os.environ["XDG_CACHE_HOME"] = str(_base_folder("XDG_CACHE_HOME", ".cache", sudo_user()))
        if changed_by_others(Path(os.environ.get("MPLCONFIGDIR") or Path.home())):
            os.environ["MPLCONFIGDIR"] = str(state_folder() / "matplotlib")


def journals() -> Path:
    """Return the folder of the journals."""
    return state_folder() / "running"


@dataclass(frozen=True)
class Origin:
    """The place where a journal was written: what it says holds there only."""

    machine: str
    boot: str
    processes: str  # the namespace of process ids

    @staticmethod
    def here() -> Origin:
        """Return the origin of this process's journal."""
        identity = _MACHINE_ID.read_text().strip() if _MACHINE_ID.exists() else ""
        machine = f"{socket.gethostname()} {identity}".strip()
        return Origin(machine, _BOOT_ID.read_text().strip(), str(_OWN_PIDS.readlink()))


class Journal:
    """A process's journal; it exists while there are entries."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._entries: set[int] = set()
        self._number = 0
        self._holders = 0
        self._file = -1
        self._path = Path()

    @functools.cached_property
    def mark(self) -> str:
        """The mark of the process, in its temporary names and in its programs' environment."""
        return _random(8)

    @property
    def marker(self) -> dict[str, str]:
        """The environment variable that the process's programs carry."""
        return {MARKER: self.mark}

    def temporary_name(self, name: str) -> str:
        """Return a name that nobody can guess, for what will replace the file or folder `name`."""
        return f".{name[:MAX_NAME_LENGTH]}.{self.mark}.{_random(4)}"

    def note(self, **entry: str) -> int:
        """Write an entry; returns its number, by which it is crossed out."""
        return self._note(entry, durable=False)

    def note_on_disk(self, **entry: str) -> int:
        """Write an entry that must outlive a loss of power."""
        return self._note(entry, durable=True)

    def _note(self, entry: Mapping[str, str], *, durable: bool) -> int:
        with self._lock:
            if self._file < 0:
                self._open()
            self._number += 1
            self._write({"number": self._number, **entry})
            if durable:
                os.fsync(self._file)
            self._entries.add(self._number)
            return self._number

    def cross_out(self, number: int) -> None:
        """Mark an entry as done."""
        with self._lock:
            self._entries.discard(number)
            if self._remove_if_unused():
                return
            with contextlib.suppress(OSError):  # undoing it twice does no harm
                self._write({"done": number})

    @contextlib.contextmanager
    def noted(self, **entry: str) -> Iterator[None]:
        """Keep an entry for the duration of a block."""
        number = self.note(**entry)
        try:
            yield
        finally:
            self.cross_out(number)

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Keep the file for the duration of a block, even while nothing is noted."""
        with self._lock:
            self._holders += 1
        try:
            yield
        finally:
            with self._lock:
                self._holders -= 1
                self._remove_if_unused()

    def _remove_if_unused(self) -> bool:
        unused = not self._entries and not self._holders
        if unused:
            self._remove()
        return unused

    def _open(self) -> None:
        try:
            self._path = journals() / f"{self.mark}{JOURNAL_SUFFIX}"
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            while self._file < 0:
                self._file = _locked(self._path)
            self._write(dataclasses.asdict(Origin.here()))
        except OSError as error:
            self._remove()
            raise TestbedError(
                f"{journals()}: no journal can be written: {error.strerror}",
                STATE_HINT,
            ) from error

    def _write(self, line: Mapping[str, object]) -> None:
        text = f"\n{json.dumps(line)}".encode()  # in a line of its own, whatever became of the last
        if os.write(self._file, text) != len(text):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self._path))

    def _remove(self) -> None:
        """Remove the name, then the lock: a journal without a lock is a dead process's."""
        if self._file >= 0:
            self._path.unlink(missing_ok=True)
            os.close(self._file)
            self._file = -1

    def leave_to_parent(self) -> None:
        """Forget, in a forked process, what the parent has noted."""
        if self._file >= 0:
            os.close(self._file)
        self.__dict__.clear()
        self.__init__()  # type: ignore[misc]


def _random(size: int) -> str:
    """Return that many random bytes in hexadecimal.

    `secrets` would load OpenSSL, and this is a part of every trial.
    """
    return os.urandom(size).hex()


def _locked(path: Path) -> int:
    """Create a journal and lock it; -1 if `testbed clean` took it for a dead one in between."""
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    file = os.open(path, flags, 0o600)
    with contextlib.suppress(BlockingIOError):
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.fstat(file).st_nlink:
            return file
    os.close(file)
    return -1


JOURNAL = Journal()
os.register_at_fork(after_in_child=JOURNAL.leave_to_parent)
