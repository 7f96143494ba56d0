"""The programs and libraries that setup.sh compiles from our C sources."""

from __future__ import annotations

import ctypes
from pathlib import Path

from testbed.errors import TestbedError

BUILDS = "./setup.sh builds it"


def require_built(path: Path) -> None:
    """Raise an error that says how to build a program or library that is not there."""
    if not path.exists():
        raise TestbedError(f"{path} is not built", BUILDS)


def load(path: Path) -> ctypes.CDLL:
    """A compiled library; raises an error if it is not there or does not fit this machine."""
    require_built(path)
    try:
        return ctypes.CDLL(str(path))
    except OSError as error:
        raise TestbedError(f"{path}: {error}", BUILDS) from error
