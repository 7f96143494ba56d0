"""Atomic replacement of result files: readers see either the old file or the new one."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from testbed.errors import TestbedError, hint_for


def replace(path: Path, write: Callable[[Path], object]) -> None:
    """Let `write` create the file under a temporary name, then rename it."""
    aside = path.with_name(f".{path.stem}.{os.getpid()}{path.suffix}")
    try:
        write(aside)
        aside.replace(path)
    except OSError as error:
        raise TestbedError(
            f"{path}: cannot be written: {error.strerror or error}",
            hint_for(error),
        ) from error
    finally:
        aside.unlink(missing_ok=True)
