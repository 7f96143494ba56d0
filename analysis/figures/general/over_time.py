"""Throughput over time, from the trials' cached series: means over the seeds with their band."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from scipy import special

from analysis.figures.plotting.style import SeriesStyle
from analysis.metrics.flow_digest import THROUGHPUT
from analysis.statistics.intervals import CONFIDENCE


def series(rows: pd.DataFrame, digest: pd.DataFrame, what: str = THROUGHPUT) -> pd.DataFrame:
    """One row per instant, over all trials of the rows: mean, the ends of its interval, n."""
    keys = pd.MultiIndex.from_frame(digest[["trial", "flow"]])
    wanted = pd.MultiIndex.from_frame(rows[["trial", "flow"]])
    own = digest[keys.isin(wanted) & (digest["what"] == what).to_numpy()]
    table = own.groupby("x")["value"].agg(["mean", "std", "count"]).reset_index()
    n = table["count"].to_numpy(dtype=float)
    half = special.stdtrit(np.maximum(n - 1, 1), (1 + CONFIDENCE) / 2) * table["std"] / np.sqrt(n)
    return pd.DataFrame(
        {
            "time_s": table["x"],
            "mean": table["mean"],
            "low": table["mean"] - half,
            "high": table["mean"] + half,
            "n": table["count"],
        }
    )


def singles(rows: pd.DataFrame, digest: pd.DataFrame) -> Iterator[pd.DataFrame]:
    """The series of each trial."""
    for _, own in rows.groupby("trial", sort=False):
        yield series(own, digest)


def thin(axes: Axes, tables: Iterable[pd.DataFrame], look: SeriesStyle) -> None:
    """Single trials as thin lines: where they diverge, a band around the mean would mislead."""
    for table in tables:
        axes.plot(
            table["time_s"], table["mean"], color=look.colour, linewidth=0.45, alpha=0.55, zorder=2
        )


def line(
    axes: Axes, table: pd.DataFrame, look: SeriesStyle, label: str = "", *, band: bool = True
) -> None:
    """Mean and band."""
    if band:
        low = table["low"].clip(lower=0)
        axes.fill_between(
            table["time_s"], low, table["high"], color=look.colour, alpha=0.2, linewidth=0
        )
    axes.plot(table["time_s"], table["mean"], color=look.colour, linewidth=0.9, label=label)
