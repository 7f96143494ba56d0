"""Locks of what one run uses alone: a results folder, this machine's settings, a processor."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import shlex
import threading
from collections.abc import Callable
from pathlib import Path

LOCK_POLL_S = 0.2
COMMAND_LENGTH = 80  # characters of the other's command line in a message
UNKNOWN_OWNER = "a process of another container or machine"
LOCKS = Path("/proc/locks")

Tell = Callable[[str], None]  # is called with a sentence for the user


def lock(descriptor: int, what: str, tell: Tell, cancel: threading.Event) -> None:
    """Lock a file or folder; if another process has it, say who, and wait.

    The kernel releases the lock when the descriptor is closed, or its owner dies.
    """
    has_said = False
    while not _try(descriptor, what, tell):
        if not has_said:
            tell(f"{what} is in use by {_owner(descriptor)}: waiting for its end")
        has_said = True
        if cancel.wait(LOCK_POLL_S):
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
    """Return the number and the command of the process that has the lock."""
    for line in LOCKS.read_text().splitlines():
        fields = line.split()
        if fields[1] == "FLOCK" and fields[5].rpartition(":")[2] == str(
            os.fstat(descriptor).st_ino
        ):
            with contextlib.suppress(OSError):
                argv = Path(f"/proc/{fields[4]}/cmdline").read_bytes().decode(errors="replace")
                return (
                    f"process {fields[4]} ({shlex.join(argv.split(chr(0))[:-1])[:COMMAND_LENGTH]})"
                )
    return UNKNOWN_OWNER
