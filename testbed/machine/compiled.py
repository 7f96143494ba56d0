"""The programs and libraries in C, which the Makefile builds."""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path

from testbed.errors import TestbedError

BUILDS = "./setup.sh builds it"
LIBRARIES = Path(sys.prefix) / "lib"
ALIAS = Path("/run/testbed-libraries")  # of their folder, in the guest


def require_built(path: Path) -> None:
    """Raise an error that says how to build a program or library if it is missing."""
    if not path.exists():
        raise TestbedError(f"{path} is not built", BUILDS)


def load(path: Path) -> ctypes.CDLL:
    """Load a compiled library; raise an error if it is missing or does not fit this machine."""
    require_built(path)
    try:
        return ctypes.CDLL(str(path))
    except OSError as error:
        raise TestbedError(f"{path}: {error}", BUILDS) from error


def give_alias() -> None:
    """Give their folder a path that is the same wherever the project lies.

    What stands in a process's arguments and environment lies above its stack, and glibc's mkstemp,
    which iperf3 calls, begins with the stack's address: one in twenty draws a random number more.
    So the payload of flows, and all that is drawn after it, would depend on the project's path.
    """
    ALIAS.symlink_to(LIBRARIES)


def as_started(path: Path) -> str:
    """Return the path by which a program is started or a library preloaded."""
    return str(ALIAS / path.relative_to(LIBRARIES) if ALIAS.is_symlink() else path)
