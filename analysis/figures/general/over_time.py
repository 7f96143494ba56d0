"""Throughput over time, from the trials' cached series: means over the seeds with their band."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy import special

from analysis.figures.plotting import figure_layout, style
from analysis.figures.plotting.point_evidence import TRIALS, note, trial_names
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
            TRIALS: [trial_names(rows)] * len(table),
        }
    )


def by_variant(rows: pd.DataFrame, digest: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Rows and series in which a trial's flows of one variant are one flow: their sum."""
    of = rows.set_index(["trial", "flow"])["variant"]
    keys = pd.MultiIndex.from_frame(digest[["trial", "flow"]])
    own = digest.assign(flow=of.reindex(keys).to_numpy())
    own = own[own["flow"].notna() & (own["what"] == THROUGHPUT)]
    sums = own.groupby(["trial", "flow", "what", "x"])[["value"]].sum().reset_index()
    return rows.assign(flow=rows["variant"]).drop_duplicates(["trial", "flow"]), sums


def panels(
    parts: Sequence[tuple[str, pd.DataFrame]], digest: pd.DataFrame
) -> tuple[Figure, pd.DataFrame]:
    """One panel per part, one line per variant, each the sum of its flows."""
    known = style.styles_of(pd.concat([rows for _, rows in parts]), "variant")
    figure, grid = figure_layout.grid(len(parts), 1, panel=1.6)
    tables = []
    for [axes], (words, rows) in zip(grid, parts, strict=True):
        flows, sums = by_variant(rows, digest)
        for name, look in known.items():
            table = series(flows[flows["flow"] == name], sums)
            if len(table):
                line(axes, table, look)
                tables.append(table.assign(variant=name, part=words))
        figure_layout.panel_title(axes, words)
        axes.set_ylabel("throughput (Mbit/s)")
        axes.set_ylim(bottom=0)
        axes.margins(x=0)
    grid[-1][0].set_xlabel("time (s)")
    figure_layout.legend(figure, known)
    return figure, pd.concat(tables, ignore_index=True)


def singles(rows: pd.DataFrame, digest: pd.DataFrame) -> Iterator[pd.DataFrame]:
    """The series of each trial."""
    for _, own in rows.groupby("trial", sort=False):
        yield series(own, digest)


def thin(axes: Axes, tables: Iterable[pd.DataFrame], look: SeriesStyle) -> None:
    """Single trials as thin lines: where they diverge, a band around the mean would mislead."""
    for table in tables:
        (curve,) = axes.plot(
            table["time_s"], table["mean"], color=look.colour, linewidth=0.45, alpha=0.55, zorder=2
        )
        note(curve, table)


def line(
    axes: Axes, table: pd.DataFrame, look: SeriesStyle, label: str = "", *, band: bool = True
) -> None:
    """Mean and band."""
    if band:
        low = table["low"].clip(lower=0)
        axes.fill_between(
            table["time_s"], low, table["high"], color=look.colour, alpha=0.2, linewidth=0
        )
    (curve,) = axes.plot(
        table["time_s"], table["mean"], color=look.colour, linewidth=0.9, label=label
    )
    note(curve, table)
