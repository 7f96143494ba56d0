"""Trials made by hand, or changed on purpose: their records list the files as they are."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

from testbed.machine import json_files
from testbed.runs.sweep import with_files
from testbed.store.names import RECORD, REDUCED, VERDICT_FILE
from testbed.store.records import Record


def seal(trial: Path) -> Path:
    """List a trial's files in its record, and return the trial."""
    record = with_files(Record.from_json(json_files.read_record(trial / RECORD)), trial)
    files = {n: each for n, each in record.files.items() if n not in (REDUCED, VERDICT_FILE)}
    (trial / RECORD).write_text(dataclasses.replace(record, files=files).to_json())
    return trial


def file_in(folder: Path) -> Callable[[str], Path | None]:
    """Return `Trial.file` of a stand-in for a trial in a folder, whose files are as they are."""
    return lambda name: folder / name if (folder / name).is_file() else None
