"""Trials are reduced while others run: in other processes, if they are many.

Their captures are then kept, compressed or dropped.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import shutil
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import TracebackType

import pandas as pd

from analysis.results.reduction import reduction_of
from analysis.results.workers import Workers
from testbed.errors import UsageError, nearest
from testbed.machine.atomic import one_journal, replace
from testbed.machine.safe_files import open_file, remove_file
from testbed.scenario.model import Scenario
from testbed.store.names import RECORD, ZSTD_SUFFIX
from testbed.store.reading import Trial, open_trial
from testbed.store.records import CaptureRecord, file_record

MANY = 20  # trials, from which on a process is worth its start

OnReduced = Callable[[Scenario, pd.DataFrame], None]


class ReductionQueue:
    """A context in which trials are reduced, and their captures settled, while others run.

    When it is left, all trials that came in are reduced; `then` gets the flows of each, and
    without it none are read. `trials` is how many are expected.
    """

    def __init__(self, captures: str, then: OnReduced | None = None, trials: int = 0) -> None:
        self._captures, self._then = captures_option(captures), then
        processes = len(os.sched_getaffinity(0)) // 2 if trials >= MANY else 0
        self._workers = Workers(apart=processes > 0)
        self._pool = ThreadPoolExecutor(processes or 1)
        self._lock = threading.Lock()
        self._pending: list[Future[None]] = []

    def add(self, path: Path, *, is_fresh: bool) -> None:
        """Reduce a whole trial that ran well, just now if it `is_fresh`."""
        self._pending = [each for each in self._pending if not each.done() or each.exception()]
        self._pending.append(self._pool.submit(self._reduce, path, is_fresh))

    def _reduce(self, path: Path, is_fresh: bool) -> None:
        wanted = self._captures, self._then is not None, is_fresh
        flows = self._workers.do(path.name, reduce_and_settle, path, *wanted)
        if self._then and flows is not None:
            with self._lock:
                self._then(open_trial(path).scenario, flows)

    def __enter__(self) -> ReductionQueue:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with contextlib.closing(self._workers):
            self._pool.shutdown(cancel_futures=error is not None)
        if error is None:
            for each in self._pending:
                each.result()  # raises what went wrong


def reduce_and_settle(
    path: Path, captures: str, with_flows: bool, is_fresh: bool
) -> pd.DataFrame | None:
    """Reduce a trial, keep, compress or drop its captures, and return its flows, if wanted."""
    trial = open_trial(path)
    with one_journal():
        reduction = reduction_of(trial, is_fresh=is_fresh)
        if not reduction.is_damaged:
            settle(trial, captures)
    return reduction.flows if with_flows else None


def captures_option(how: str) -> str:
    """Return the name of a way to treat captures; raise an error for an unknown one."""
    if how not in WAYS:
        raise UsageError(f"unknown --captures {how!r}", nearest(how, WAYS))
    return how


def settle(trial: Trial, how: str) -> None:
    """Keep, compress or drop a trial's captures, and note that in its record."""
    act = WAYS[captures_option(how)]
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
