"""Trials are reduced while others run: in other processes, if they are many.

Python does one thing at a time in a process. Where trials run on many processors, those that
reduction would keep busy are not to wait for it.
"""

from __future__ import annotations

import contextlib
import io
import os
import pickle
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import IO

import pandas as pd

from analysis.results.reduction import reduction_of
from analysis.trials import retention
from testbed.errors import TestbedError
from testbed.machine.atomic import one_journal
from testbed.machine.process import Process, start_told
from testbed.scenario.model import Scenario
from testbed.store import open_trial

MANY = 20  # trials, from which on a process is worth its start
TRIES = 2  # a process can be killed, e.g. for its memory
FROM_PARENT, TO_PARENT = 3, 4  # descriptors
KILLED = (EOFError, OSError, pickle.UnpicklingError)

Then = Callable[[Scenario, pd.DataFrame], None]
_Request = tuple[Path, str, bool]
_Answer = tuple[pd.DataFrame | None, Exception | None]


class Incoming:
    """A context in which trials are reduced, and their captures settled, while others run.

    When it is left, all trials that came in are reduced; `then` gets the flows of each, and
    without it none are read. `trials` is how many are expected.
    """

    def __init__(self, captures: str, then: Then | None = None, trials: int = 0) -> None:
        self._captures, self._then = retention.check(captures), then
        processes = len(os.sched_getaffinity(0)) // 2 if trials >= MANY else 0
        self._reducers = [_Reducer() for _ in range(processes)]
        self._pool = ThreadPoolExecutor(processes or 1)
        self._lock = threading.Lock()
        self._pending: list[Future[None]] = []

    def add(self, path: Path) -> None:
        """Reduce a whole trial that ran well."""
        self._pending = [each for each in self._pending if not each.done() or each.exception()]
        self._pending.append(self._pool.submit(self._reduce, path))

    def _reduce(self, path: Path) -> None:
        request = path, self._captures, self._then is not None
        flows = self._reduce_elsewhere(request) if self._reducers else reduce_and_settle(*request)
        if self._then and flows is not None:
            with self._lock:
                self._then(open_trial(path).scenario, flows)

    def _reduce_elsewhere(self, request: _Request) -> pd.DataFrame | None:
        with self._lock:  # there are as many as threads
            reducer = self._reducers.pop()
        try:
            return reducer.reduce(request)
        finally:
            with self._lock:
                self._reducers.append(reducer)

    def __enter__(self) -> Incoming:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._pool.shutdown(cancel_futures=error is not None)
        for reducer in self._reducers:
            reducer.close()
        if error is None:
            for each in self._pending:
                each.result()  # raises what went wrong


class _Reducer:
    """A process that reduces one trial at a time; it is started when it is needed."""

    def __init__(self) -> None:
        self._process: Process | None = None

    def reduce(self, request: _Request) -> pd.DataFrame | None:
        """Have a trial reduced, once more if the process is killed meanwhile."""
        for _ in range(TRIES):
            try:
                flows, error = self._exchange(request)
            except KILLED:
                self.close()
                continue
            if error is not None:
                raise error
            return flows
        raise TestbedError(
            f"{request[0].name}: the process that reduces it was killed",
            "is there too little memory? `testbed reduce` reduces it again",
        )

    def _exchange(self, request: _Request) -> _Answer:
        if self._process is None:
            self._process = start_told([sys.executable, "-P", "-m", __name__], dict(os.environ))
        assert self._process.stdin is not None and self._process.stdout is not None
        pickle.dump(request, self._process.stdin)
        self._process.stdin.flush()
        answer: _Answer = pickle.load(self._process.stdout)
        return answer

    def close(self) -> None:
        """Let the process end, which it does when its input is closed."""
        if self._process is not None:
            for pipe in (self._process.stdin, self._process.stdout):
                with contextlib.suppress(OSError):
                    if pipe is not None:
                        pipe.close()
            self._process.wait()
            self._process = None


def reduce_and_settle(path: Path, captures: str, with_flows: bool) -> pd.DataFrame | None:
    """Reduce a trial, keep, compress or drop its captures, and return its flows, if wanted."""
    trial = open_trial(path)
    with one_journal():
        reduction = reduction_of(trial)
        retention.settle(trial, captures)
    return reduction.flows if with_flows else None


def serve(requests: IO[bytes], answers: IO[bytes]) -> None:
    """Reduce trials as they are requested, until the requests end."""
    while True:
        try:
            request: _Request = pickle.load(requests)
        except EOFError:
            return
        answer: _Answer
        try:
            answer = reduce_and_settle(*request), None
        except Exception as error:  # whoever requested it raises it
            name = request[0].name
            answer = None, error if _can_be_sent(error) else TestbedError(f"{name}: {error!r}")
        pickle.dump(answer, answers)
        answers.flush()


def _can_be_sent(error: Exception) -> bool:
    try:
        pickle.load(io.BytesIO(pickle.dumps(error)))
    except Exception:
        return False
    return True


if __name__ == "__main__":
    serve(os.fdopen(FROM_PARENT, "rb"), os.fdopen(TO_PARENT, "wb"))
