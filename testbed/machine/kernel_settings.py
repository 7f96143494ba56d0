"""Settings of the kernel, read and written by three system calls each.

Path.read_text() makes nine, and a trial in the guest has hundreds of settings.
"""

from __future__ import annotations

import os
from pathlib import Path

_LONGEST_BYTES = 4096


def read_setting(file: Path) -> str:
    """The text of a file below /proc/sys or /sys."""
    descriptor = os.open(file, os.O_RDONLY)
    try:
        return os.read(descriptor, _LONGEST_BYTES).decode()
    finally:
        os.close(descriptor)


def write_setting(file: Path, value: str) -> None:
    """Change a setting; raises the kernel's error if it does not take the value."""
    descriptor = os.open(file, os.O_WRONLY)
    try:
        os.write(descriptor, value.encode())
    finally:
        os.close(descriptor)
