"""Reading samples/: what a trial sampled and counted while it ran."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import pandas as pd

from testbed.store import COUNTERS, QUEUES, SOCKETS, FlowRecord, Table, Trial, read_json


def read_samples(trial: Trial, table: Table) -> pd.DataFrame | None:
    """A table of samples; None if the trial took none."""
    path = trial.path / table.file
    if not path.is_file():
        return None
    found = pd.read_csv(path)
    return None if found.empty else found


def read_counters(trial: Trial, node: str) -> dict[str, int]:
    """A node's kernel counters over the trial; empty if they were not kept."""
    counters: dict[str, dict[str, int]] = read_json(trial.path, COUNTERS) or {}
    return counters.get(node, {})


def total_counter(trial: Trial, name: str) -> int | None:
    """A kernel counter summed over all nodes; None if counters were not kept."""
    counters: dict[str, dict[str, int]] | None = read_json(trial.path, COUNTERS)
    return None if counters is None else sum(node.get(name, 0) for node in counters.values())


class Samples:
    """The samples of sockets and queues, each table read once."""

    def __init__(self, trial: Trial) -> None:
        self._trial = trial

    @cached_property
    def sockets(self) -> pd.DataFrame | None:
        """All samples of TCP sockets."""
        return read_samples(self._trial, SOCKETS)

    @cached_property
    def queues(self) -> pd.DataFrame | None:
        """All samples of queues."""
        return read_samples(self._trial, QUEUES)

    def flow(self, flow: FlowRecord) -> pd.DataFrame | None:
        """The samples of a flow's sockets up to its stop."""
        if self.sockets is None:
            return None
        own = self.sockets[
            (self.sockets["flow"] == flow.name) & (self.sockets["time_s"] <= flow.stopped_s + 1e-6)
        ]
        return None if own.empty else own

    def queue(self, interface: str) -> pd.DataFrame | None:
        """The samples of one interface's queue."""
        if self.queues is None:
            return None
        own = self.queues[self.queues["interface"] == interface]
        return None if own.empty else own

    def queue_end(self, interface: str) -> pd.Series[Any] | None:
        """A queue's counters in its last sample."""
        own = self.queue(interface)
        return None if own is None else own.iloc[-1]

    def last_s(self) -> float:
        """The time of the last sample; 0 if nothing was sampled."""
        tables = (self.sockets, self.queues)
        times = (float(table["time_s"].iloc[-1]) for table in tables if table is not None)
        return max(times, default=0.0)
