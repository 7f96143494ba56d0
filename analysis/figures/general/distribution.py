"""Cumulative distributions of round-trip times and one-way delays, from cached quantiles."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from analysis.figures.plotting import figure_layout, style
from analysis.figures.plotting.style import SeriesStyle
from analysis.metrics.flow_digest import DELAYS, RTTS

KINDS = {RTTS: "round-trip time (ms)", DELAYS: "one-way delay (ms)"}
WIDE = 300  # times the least: beyond, only powers of ten are written
FAR = 12  # times the least: beyond, a logarithmic axis
READING = "quantiles over all packets of a trial, averaged over the seeds; marker: median"


def panels(
    parts: Sequence[tuple[str, pd.DataFrame]], digest: pd.DataFrame, series: str
) -> tuple[Figure, pd.DataFrame]:
    """One column per part; round-trip times above, one-way delays below."""
    known = style.styles_of(pd.concat([rows for _, rows in parts]), series)
    figure, grid = figure_layout.grid(len(KINDS), len(parts), panel=1.75)
    tables = []
    for column, (words, rows) in enumerate(parts):
        own = curves(rows, digest, series)
        tables.append(own.assign(part=words))
        for axes, (what, label) in zip((line[column] for line in grid), KINDS.items(), strict=True):
            _panel(axes, own[own["what"] == what], series, known)
            axes.set_xlabel(label)
        figure_layout.panel_title(grid[0][column], words)
    for line in grid:
        line[0].set_ylabel("share of packets (%)")
    figure_layout.legend(figure, known)
    return figure, pd.concat(tables, ignore_index=True)


def curves(rows: pd.DataFrame, digest: pd.DataFrame, series: str) -> pd.DataFrame:
    """Quantiles averaged over the trials of a series."""
    of = rows.set_index(["trial", "flow"])[series]
    own = digest[digest["what"].isin(list(KINDS))]
    keys = pd.MultiIndex.from_frame(own[["trial", "flow"]])
    found = own.assign(**{series: of.reindex(keys).to_numpy()}).dropna(subset=[series])
    means = found.groupby([series, "what", "x"], sort=False)["value"].agg(["mean", "count"])
    return means.reset_index().rename(columns={"x": "fraction", "mean": "ms", "count": "n"})


def _panel(axes: Axes, curve: pd.DataFrame, series: str, known: dict[str, SeriesStyle]) -> None:
    widest = []
    for name, look in known.items():
        own = curve[curve[series] == name]
        if own.empty:
            continue
        ms, part = own["ms"].to_numpy(), 100 * own["fraction"].to_numpy()
        axes.plot(ms, part, color=look.colour, linewidth=1, linestyle=look.dash)
        axes.plot(
            [float(np.interp(50, part, ms))],
            [50],
            look.marker,
            color=look.colour,
            markersize=3.5,
            markeredgewidth=0,
        )
        widest.append((float(np.interp(1, part, ms)), float(np.interp(99.5, part, ms))))
    axes.set_ylim(0, 100)
    if widest:
        low, high = min(w[0] for w in widest), max(w[1] for w in widest)
        if low > 0 and high > FAR * low:
            axes.set_xscale("log")
            axes.set_xlim(low / 1.1, high * 1.1)
            axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if high < WIDE * low else (1,)))
            axes.xaxis.set_major_formatter(FuncFormatter(lambda ms, _: f"{ms:g}"))
            axes.xaxis.set_minor_formatter(NullFormatter())
            return
        room = 0.05 * (high - low) or 0.05 * high or 1.0
        axes.set_xlim(max(0.0, low - room), high + room)  # single stragglers are in the table
        figure_layout.widen_flat_axes(axes, "x")
