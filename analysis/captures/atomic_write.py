"""Results are replaced whole: whoever reads meanwhile sees the old file or the new one."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from testbed.errors import TestbedError


def replace(path: Path, write: Callable[[Path], object]) -> None:
    """Have `write` make the file under a temporary name, then give it its own."""
    aside = path.with_name(f".{path.stem}.{os.getpid()}{path.suffix}")
    try:
        write(aside)
        aside.replace(path)
    except OSError as error:
        raise TestbedError(
            f"{path}: cannot be written: {error.strerror or error}",
            "is the disk full, or does the folder belong to another user?",
        ) from error
    finally:
        aside.unlink(missing_ok=True)
