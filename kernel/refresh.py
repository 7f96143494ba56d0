#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Update a build folder from a new source tree: `refresh.py NEW TREE`.

make compiles what is younger than its object file, so files that have not changed keep their times.
"""

import filecmp
import os
import shutil
import sys
from pathlib import Path

LISTED = ".testbed-sources"  # in TREE: the sources of the last build


def sources(folder: Path) -> list[str]:
    """Return all files and links, relative to the folder."""
    files = (Path(where) / name for where, _, names in os.walk(folder) for name in names)
    links = (path for path in folder.rglob("*") if path.is_symlink())
    return sorted({str(path.relative_to(folder)) for path in (*files, *links)})


def same(new: Path, tree: Path) -> bool:
    """Return whether a file or link need not be copied."""
    if new.is_symlink() or tree.is_symlink():
        return new.is_symlink() and tree.is_symlink() and new.readlink() == tree.readlink()
    return tree.is_file() and filecmp.cmp(new, tree, shallow=False)


def main(new: Path, tree: Path) -> None:
    """Copy the files that differ, and remove those that are gone."""
    now = sources(new)
    listed = tree / LISTED
    before = listed.read_text().splitlines() if listed.exists() else []
    for gone in set(before) - set(now):
        (tree / gone).unlink(missing_ok=True)
    for name in now:
        if not same(new / name, tree / name):
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            (tree / name).unlink(missing_ok=True)
            shutil.copyfile(new / name, tree / name, follow_symlinks=False)
            if not (new / name).is_symlink():
                shutil.copymode(new / name, tree / name)
    listed.write_text("".join(f"{name}\n" for name in now))


main(Path(sys.argv[1]), Path(sys.argv[2]))
