#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""`refresh.py NEW KEPT`: makes the sources in KEPT those of NEW, and leaves what is the same.

make compiles what is younger than its object file, so a file of the same content keeps its time.
"""

import filecmp
import os
import shutil
import sys
from pathlib import Path

LISTED = ".testbed-sources"  # in KEPT: what its sources were the last time


def sources(folder: Path) -> list[str]:
    """All files and links, relative to the folder."""
    found = (Path(where) / name for where, _, names in os.walk(folder) for name in names)
    links = (path for path in folder.rglob("*") if path.is_symlink())
    return sorted({str(path.relative_to(folder)) for path in (*found, *links)})


def same(new: Path, kept: Path) -> bool:
    """Whether a file or link need not be copied."""
    if new.is_symlink() or kept.is_symlink():
        return new.is_symlink() and kept.is_symlink() and new.readlink() == kept.readlink()
    return kept.is_file() and filecmp.cmp(new, kept, shallow=False)


def main(new: Path, kept: Path) -> None:
    """Copy what is another one, and remove what is no more."""
    now = sources(new)
    listed = kept / LISTED
    before = listed.read_text().splitlines() if listed.exists() else []
    for gone in set(before) - set(now):
        (kept / gone).unlink(missing_ok=True)
    for name in now:
        if not same(new / name, kept / name):
            (kept / name).parent.mkdir(parents=True, exist_ok=True)
            (kept / name).unlink(missing_ok=True)
            shutil.copyfile(new / name, kept / name, follow_symlinks=False)
            if not (new / name).is_symlink():
                shutil.copymode(new / name, kept / name)
    listed.write_text("".join(f"{name}\n" for name in now))


main(Path(sys.argv[1]), Path(sys.argv[2]))
