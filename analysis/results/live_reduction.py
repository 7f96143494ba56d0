"""Trials are reduced as they come in, while others still run, and their captures settled."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import TracebackType

import pandas as pd

from analysis.metrics.digest import cached_digest
from analysis.results.link_rows import cached_links, has_several
from analysis.results.table import cached_metrics
from analysis.transfers.transfer_rows import cached_transfers, workloads
from analysis.trials import retention
from analysis.trials.packets import TrialPackets
from testbed.scenario.model import Scenario
from testbed.store import open_trial

Then = Callable[[Scenario, pd.DataFrame], None]


class Incoming:
    """A context: when it is left, all trials that came in are reduced; `then` gets each one's
    metrics."""

    def __init__(self, captures: str, then: Then | None = None) -> None:
        self._captures, self._then = retention.check(captures), then
        self._pool = ThreadPoolExecutor(1)
        self._pending: list[Future[None]] = []

    def add(self, path: Path) -> None:
        """A whole trial that ran well."""
        self._pending = [each for each in self._pending if not each.done() or each.exception()]
        self._pending.append(self._pool.submit(self._reduce, path))

    def _reduce(self, path: Path) -> None:
        trial = open_trial(path)
        packets = TrialPackets(trial)
        rows = cached_metrics(trial, packets)
        cached_digest(trial, packets)
        if has_several(trial):
            cached_links(trial, packets)
        if workloads(trial):
            cached_transfers(trial, packets)
        retention.settle(trial, self._captures)
        if self._then:
            self._then(trial.scenario, rows)

    def __enter__(self) -> Incoming:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._pool.shutdown(cancel_futures=error is not None)
        if error is None:
            for each in self._pending:
                each.result()  # raises what went wrong
