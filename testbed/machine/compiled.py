"""The programs and libraries in C, which the Makefile builds."""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path

from testbed.errors import TestbedError
from testbed.machine.file_hashes import hash_of

INSTALLED = Path(__file__).resolve().parents[1] / "compiled"  # that a wheel has
IN_WHEEL = INSTALLED.is_dir()
LIBRARIES = INSTALLED if IN_WHEEL else Path(sys.prefix) / "lib"
REINSTALL = "pip install --force-reinstall --no-deps tcp-testbed"
BUILDS = REINSTALL if IN_WHEEL else "./setup.sh builds it"


def require_built(path: Path) -> None:
    """Raise an error that says how to build a program or library if it is missing or damaged.

    The Makefile notes the hash of each beside it.
    """
    if not path.exists():
        raise TestbedError(f"{path} is not built", BUILDS)
    noted = path.with_name(f"{path.name}.sha256")
    if noted.exists() and hash_of(path) != noted.read_text().partition(" ")[0]:
        raise TestbedError(f"{path} is damaged", BUILDS)


def load(path: Path) -> ctypes.CDLL:
    """Load a compiled library; raise an error if it is missing or does not fit this machine."""
    require_built(path)
    try:
        return ctypes.CDLL(str(path))
    except OSError as error:
        raise TestbedError(f"{path}: {error}", BUILDS) from error
