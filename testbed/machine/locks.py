"""Things of which only one run may be at: a results folder, this machine's settings."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import shlex
import threading
from collections.abc import Callable
from pathlib import Path

POLL_S = 0.2
SHOWN = 80  # characters of the other's command line
ELSEWHERE = "a process of another container or machine"
LOCKS = Path("/proc/locks")

Tell = Callable[[str], None]  # is called with a sentence for the user


def lock(descriptor: int, what: str, tell: Tell, cancel: threading.Event) -> None:
    """Lock a file or folder; if another process has it, say who, and wait.

    The kernel releases the lock when the descriptor is closed, or its owner dies.
    """
    told = False
    while not _try(descriptor, what, tell):
        if not told:
            tell(f"{what} is in use by {_owner(descriptor)}: waiting for its end")
        told = True
        if cancel.wait(POLL_S):
            return


def _try(descriptor: int, what: str, tell: Tell) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno not in (errno.EBADF, errno.ENOLCK, errno.EOPNOTSUPP):
            raise
        tell(f"{what} is on a file system without locks for folders: run one command at a time")
    return True


def _owner(descriptor: int) -> str:
    """The process that has the lock, by its number and its command."""
    for line in LOCKS.read_text().splitlines():
        words = line.split()
        if words[1] == "FLOCK" and words[5].rpartition(":")[2] == str(os.fstat(descriptor).st_ino):
            with contextlib.suppress(OSError):
                argv = Path(f"/proc/{words[4]}/cmdline").read_bytes().decode(errors="replace")
                return f"process {words[4]} ({shlex.join(argv.split(chr(0))[:-1])[:SHOWN]})"
    return ELSEWHERE
