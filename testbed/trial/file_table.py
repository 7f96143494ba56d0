"""The table of a trial's files: the size and hash of each, as the trial left it."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable
from pathlib import Path

from testbed.store.names import RECORD, is_file_name
from testbed.store.records import Record, file_record


def with_files(
    record: Record, folder: Path, before_piece: Callable[[], None] = lambda: None
) -> Record:
    """Return the record with all files of the trial's folder, itself excepted.

    `before_piece` may raise an error to end it: captures can take a while.
    """
    files = {name: file_record(folder / name, before_piece) for name in _names(folder)}
    captures = tuple(
        dataclasses.replace(each, sha256=files[each.file].sha256) if each.file in files else each
        for each in record.captures
    )
    return dataclasses.replace(record, files=files, captures=captures)


def _names(folder: Path) -> list[str]:
    """Return the paths of all plain files in a folder and below it, without recursion."""
    names, folders = list[str](), [""]
    while folders:
        above = folders.pop()
        with os.scandir(folder / above) as entries:
            for each in entries:
                name = f"{above}{each.name}"
                if each.is_dir(follow_symlinks=False):
                    folders.append(f"{name}/")
                elif each.is_file(follow_symlinks=False) and is_file_name(name):
                    names.append(name)
    return sorted({*names} - {RECORD})
