"""The columns of the figure over time: a variant each, with its trials."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import pandas as pd

from analysis.metrics.metric_rows import INVALID, SUSPECT, counted
from analysis.trials.labels import variant_key
from analysis.trials.series import (
    Floats,
    FlowSeries,
    QueueSeries,
    Series,
    TrialSeries,
    trial_series,
)
from testbed.store import Status, Trial


@dataclass(frozen=True)
class Column:
    """A variant: its trials that ran, over time, or the reason why none did."""

    variant: str
    trials: tuple[TrialSeries, ...]
    mean_mbps: float
    reason: str = ""
    doubts: str = ""  # how many of its trials are suspect, or invalid and left out

    def all(self, measure: Callable[[FlowSeries], Series | None]) -> list[Series]:
        """The measure of every flow of every seed."""
        found = [measure(flow) for trial in self.trials for flow in trial.flows]
        return [series for series in found if series is not None and len(series.value)]

    @property
    def queues(self) -> list[QueueSeries]:
        """The bottleneck's queue of every seed."""
        return [trial.queue for trial in self.trials if trial.queue is not None]

    @property
    def delays_ms(self) -> Floats:
        """Every packet's one-way delay, of all seeds."""
        parts = [flow.delays_ms for trial in self.trials for flow in trial.flows]
        return np.concatenate(parts) if parts else np.zeros(0)


def columns(trials: Iterable[Trial], metrics: pd.DataFrame) -> list[Column]:
    """One column per variant, in the usual order."""
    groups: dict[str, list[Trial]] = {}
    for trial in trials:
        groups.setdefault(_variant(trial), []).append(trial)
    return [_column(name, groups[name], metrics) for name in sorted(groups, key=variant_key)]


def _variant(trial: Trial) -> str:
    return "+".join(dict.fromkeys(flow.variant for flow in trial.scenario.flows if flow.variant))


def _column(variant: str, trials: list[Trial], metrics: pd.DataFrame) -> Column:
    own = metrics[metrics["trial"].isin([trial.path.name for trial in trials])]
    rows = counted(own)
    names = set(rows["trial"])
    ran = [trial for trial in trials if trial.path.name in names]
    rows = rows[rows["kind"] == "tcp"]
    with ThreadPoolExecutor(os.cpu_count()) as pool:  # the core works outside of Python's lock
        series = tuple(pool.map(trial_series, ran))
    return Column(
        variant,
        series,
        float(rows["throughput_mbps"].mean()),
        "" if ran else _reason(trials[0], own),
        _doubts(own),
    )


def _reason(trial: Trial, rows: pd.DataFrame) -> str:
    """Why a column is empty."""
    if trial.record.status is not Status.OK:
        return f"{trial.record.status}: {trial.record.reason}"
    return f"invalid: {rows['why'].iloc[0]}"


def _doubts(rows: pd.DataFrame) -> str:
    trials = rows.drop_duplicates("trial")["verdict"]
    counts = {name: int((trials == name).sum()) for name in (SUSPECT, INVALID)}
    return ", ".join(f"{count} {name}" for name, count in counts.items() if count)
