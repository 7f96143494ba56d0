"""Keeps, compresses or drops a trial's captures once they are reduced."""

from __future__ import annotations

import dataclasses
import os
import shutil
from collections.abc import Callable
from pathlib import Path

from testbed.errors import UsageError, nearest
from testbed.machine.atomic import replace
from testbed.machine.safe_files import open_file, remove_file
from testbed.store.names import RECORD, ZSTD_SUFFIX
from testbed.store.reading import Trial
from testbed.store.records import CaptureRecord, file_record


def check(how: str) -> str:
    """Return the name of a way to treat captures; raise an error for an unknown one."""
    if how not in WAYS:
        raise UsageError(f"unknown --captures {how!r}", nearest(how, WAYS))
    return how


def settle(trial: Trial, how: str) -> None:
    """Keep, compress or drop a trial's captures, and note that in its record."""
    act = WAYS[check(how)]
    captures = tuple(act(trial, capture) for capture in trial.record.captures)
    if captures == trial.record.captures:
        return
    names = {capture.file for capture in captures} - {"", *trial.record.files}
    compressed = {name: file_record(trial.path / name) for name in names}
    files = {**trial.record.files, **compressed}
    record = dataclasses.replace(trial.record, captures=captures, files=files)
    replace(trial.path / RECORD, lambda path: path.write_text(record.to_json()), durable=True)
    # last: an interruption before leaves too many files, not too few
    kept = {capture.file for capture in captures}
    for capture in trial.record.captures:
        if capture.file and capture.file not in kept:
            remove_file(trial.path / capture.file)


def _keep(_trial: Trial, capture: CaptureRecord) -> CaptureRecord:
    return capture


def _compress(trial: Trial, capture: CaptureRecord) -> CaptureRecord:
    import pyarrow as pa  # only here: it takes a while to load

    if not capture.file or capture.file.endswith(ZSTD_SUFFIX):
        return capture
    if trial.file_fault(capture.file):
        return capture

    def write(aside: Path) -> None:
        with (
            os.fdopen(open_file(trial.path / capture.file), "rb") as plain,
            aside.open("wb") as file,
            pa.CompressedOutputStream(file, "zstd") as packed,
        ):
            shutil.copyfileobj(plain, packed, 1 << 20)

    replace(trial.path / (capture.file + ZSTD_SUFFIX), write)
    return dataclasses.replace(capture, file=capture.file + ZSTD_SUFFIX)


def _drop(_trial: Trial, capture: CaptureRecord) -> CaptureRecord:
    return dataclasses.replace(capture, file="")


WAYS: dict[str, Callable[[Trial, CaptureRecord], CaptureRecord]] = {
    "keep": _keep,
    "zstd": _compress,
    "drop": _drop,
}
