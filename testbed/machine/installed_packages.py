"""Which files of the installed Python packages are not those that were installed.

It needs no package, as one that is damaged may be any. `setup.sh` runs this file by itself.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

_is_wheel = Path(__file__).resolve().parents[1].joinpath("compiled").is_dir()
INSTALLER = "pip install --force-reinstall" if _is_wheel else "./setup.sh"
INSTALLS = f"{INSTALLER} installs the packages again"
SITE = Path(sysconfig.get_path("purelib"))  # of this Python
RECORDS = "*.dist-info/RECORD"
RUN = (".py", ".so", ".pth")  # what runs; data, such as certificates, may be the administrator's


def damaged_files(site: Path) -> Iterator[Path]:
    """Yield the files of a `site-packages` that are missing or have another content.

    Each package lists its files with their hashes (RECORD). A file that two packages list is whole
    if it is one of theirs: venv's setuptools lies under the locked one.
    """
    known: dict[str, set[str]] = {}
    for record in site.glob(RECORDS):
        with record.open(newline="") as file:
            for name, digest, _ in csv.reader(file):
                if digest and name.endswith(RUN):
                    known.setdefault(name, set()).add(digest)
    for name, digests in known.items():
        if _digest(site / name) not in digests:
            yield site / name


def _digest(path: Path) -> str:
    """Return a file's hash as RECORD has it."""
    try:
        digest = hashlib.sha256(path.read_bytes()).digest()
    except OSError:
        return ""
    return f"sha256={base64.urlsafe_b64encode(digest).rstrip(b'=').decode()}"


def why_damaged(site: Path) -> str:
    """Return which packages are damaged, by their first file; empty if all are whole."""
    try:
        damaged = list(damaged_files(site))
    except (OSError, ValueError, csv.Error) as error:
        return f"{site}: {error}"
    others = f", and {len(damaged) - 1} more" if len(damaged) > 1 else ""
    return f"{damaged[0]} is damaged{others}" if damaged else ""


if __name__ == "__main__":
    for folder in map(Path, sys.argv[1:]):
        has_packages = any(folder.glob(RECORDS))
        if reason := why_damaged(folder) if has_packages else f"{folder} has no packages":
            print(reason)
            sys.exit(1)
