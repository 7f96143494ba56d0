"""The folder of a sweep's results: made, checked, and one command's at a time."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator
from pathlib import Path

from testbed.errors import TestbedError
from testbed.machine import safe_files
from testbed.machine.locks import Tell, lock
from testbed.store import belongs_in_results


def prepare_folder(out: Path) -> None:
    """Create the results folder, or check that it can hold results."""
    if out.exists() and not out.is_dir():
        raise TestbedError(f"{out} is a file", "name a folder with --out")
    try:
        safe_files.make_folder(out)
        foreign = [path.name for path in out.iterdir() if not belongs_in_results(path)]
    except OSError as error:
        raise _unwritable(out, error.strerror or str(error)) from error
    if foreign:
        raise TestbedError(
            f"{out} holds something other than results: {foreign[0]}",
            "name another folder with --out",
        )
    if not os.access(out, os.W_OK | os.X_OK):
        raise _unwritable(out, "no right to, or a read-only file system")


def _unwritable(out: Path, reason: str) -> TestbedError:
    return TestbedError(f"cannot write to {out}: {reason}", "name another folder with --out")


@contextlib.contextmanager
def claimed(out: Path, tell: Tell) -> Iterator[None]:
    """Have a results folder for oneself: two sweeps would replace each other's trials."""
    prepare_folder(out)
    with safe_files.folder(out) as folder:
        lock(folder, str(out), tell, threading.Event())
        yield
