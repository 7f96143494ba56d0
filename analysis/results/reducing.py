"""Trials are reduced while others run: in other processes, if they are many."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import TracebackType

import pandas as pd

from analysis.results.reduction import reduction_of
from analysis.results.workers import Workers
from analysis.trials import retention
from testbed.machine.atomic import one_journal
from testbed.scenario.model import Scenario
from testbed.store.reading import open_trial

MANY = 20  # trials, from which on a process is worth its start

Then = Callable[[Scenario, pd.DataFrame], None]


class Incoming:
    """A context in which trials are reduced, and their captures settled, while others run.

    When it is left, all trials that came in are reduced; `then` gets the flows of each, and
    without it none are read. `trials` is how many are expected.
    """

    def __init__(self, captures: str, then: Then | None = None, trials: int = 0) -> None:
        self._captures, self._then = retention.check(captures), then
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

    def __enter__(self) -> Incoming:
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
            retention.settle(trial, captures)
    return reduction.flows if with_flows else None
