"""Phases of trials, second by second: the data on which claims about time are tested."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd

from analysis.claims.comparisons import Sample
from analysis.claims.samples import Group
from analysis.metrics.digest import NotMeasured
from analysis.results.reduction import reduction_of
from testbed.store.reading import open_trial


def seconds(group: Group) -> dict[int, list[pd.DataFrame]]:
    """Map each seed to its trials' second-by-second tables."""
    if group.folder is None:
        raise NotMeasured("the trials' folder is not available, only their metrics")
    by_seed: dict[int, list[pd.DataFrame]] = {}
    trials = group.rows[["trial", "seed"]].drop_duplicates()
    for name, seed in trials.itertuples(index=False):
        path = group.folder / str(name)
        by_seed.setdefault(int(seed), []).append(reduction_of(open_trial(path)).seconds)
    return by_seed


def phase(
    table: pd.DataFrame, flow: str, since_s: float, until_s: float, column: str = "throughput_mbps"
) -> pd.Series[float]:
    """Return a column of a flow's whole seconds within a time window."""
    second = table["second"].to_numpy()
    of_flow = (table["flow"] == flow).to_numpy() & (second >= since_s) & (second < until_s)
    return pd.Series(table[column].to_numpy()[of_flow], index=second[of_flow])


def delay_ms(table: pd.DataFrame, flow: str, since_s: float, until_s: float, name: str) -> float:
    """Return a flow's mean delay per packet within a time window."""
    means = phase(table, flow, since_s, until_s, f"{name}_ms")
    numbers = phase(table, flow, since_s, until_s, f"{name}_n")
    total = float(numbers.sum())
    return float((means.fillna(0.0) * numbers).sum()) / total if total else float("nan")


def rate(
    by_seed: dict[int, list[pd.DataFrame]], flow: str, since_s: float, until_s: float
) -> Sample:
    """Return a flow's mean throughput within a time window, by seed."""
    return each_seed(by_seed, lambda table: float(phase(table, flow, since_s, until_s).mean()))


def delay(
    by_seed: dict[int, list[pd.DataFrame]], flow: str, since_s: float, until_s: float, name: str
) -> Sample:
    """Return a flow's mean delay within a time window, by seed."""
    return each_seed(by_seed, lambda table: delay_ms(table, flow, since_s, until_s, name))


def each_seed(
    by_seed: dict[int, list[pd.DataFrame]], number: Callable[[pd.DataFrame], float]
) -> Sample:
    """Return the mean of a number over the trials of each seed."""
    return {
        seed: float(np.mean([number(table) for table in tables]))
        for seed, tables in sorted(by_seed.items())
    }
