"""Means with 95 % confidence intervals: as tables, and drawn as points, lines and bands."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from analysis.figures.plotting.point_evidence import TRIALS, note, trial_names
from analysis.figures.style import PAPER, SeriesStyle
from analysis.statistics.intervals import half_width, known

# of markers, which are whole at a panel's edge too
WHOLE: dict[str, Any] = {"clip_on": False, "in_layout": False}
READING = "points: means; bands and bars: 95 % interval of the mean (Student's t)"


@dataclass(frozen=True)
class Measure:
    """A metric with its axis label, scale and limits."""

    metric: str
    label: str
    scale: float = 1.0
    zero: bool = True
    linear_below: float = math.inf  # logarithmic above, if one line dwarfs the others


THROUGHPUT = Measure("throughput_mbps", "throughput (Mbit/s)")
DROPS = Measure("drop_rate", "drop rate (%)", 100, linear_below=0.1)
MARKS = Measure("mark_rate", "marked (%)", 100)
LATENCY = Measure("owd_mean_ms", "one-way delay (ms)", zero=False)


def summary(rows: pd.DataFrame, by: Sequence[str], measure: Measure) -> pd.DataFrame:
    """One row per cell: mean, the interval's ends (NaN if n < 2), n, and the number of suspects."""
    cells = []
    for key, members in rows.groupby(list(by), sort=False, dropna=False):
        values = known(members[measure.metric]) * measure.scale
        mean = float(values.mean()) if len(values) else float("nan")
        half = half_width(values)
        suspect = int((members["verdict"] == "suspect").sum())
        keys = key if isinstance(key, tuple) else (key,)
        trials = trial_names(members.loc[members[measure.metric].notna()])
        cells.append((*keys, mean, mean - half, mean + half, len(values), suspect, trials))
    columns = [*by, "mean", "low", "high", "n", "suspect", TRIALS]
    return pd.DataFrame(cells, columns=columns).sort_values(list(by), kind="stable")


def line_with_band(axes: Axes, table: pd.DataFrame, x: str, look: SeriesStyle) -> None:
    """Means over a numeric axis with a band for their intervals; suspect points are hollow."""
    at, mean = table[x].to_numpy(dtype=float), table["mean"].to_numpy()
    axes.fill_between(
        at, table["low"], table["high"], color=look.colour, alpha=0.18, linewidth=0, zorder=2
    )
    (line,) = axes.plot(at, mean, color=look.colour, linewidth=1, linestyle=look.dash)
    note(line, table)
    for hollow in (False, True):
        own = table["suspect"].to_numpy() > 0 if hollow else table["suspect"].to_numpy() == 0
        axes.plot(
            at[own],
            mean[own],
            look.marker,
            color=look.colour,
            markerfacecolor=PAPER if hollow else look.colour,
            markersize=3.2,
            markeredgewidth=0.7,
            linestyle="none",
            **WHOLE,
        )


def point(
    axes: Axes, place: float, cell: pd.Series, look: SeriesStyle, *, across: bool = True
) -> None:
    """One mean with an error bar, horizontal or vertical."""
    ends, at = [cell["low"], cell["high"]], [place, place]
    bar = (ends, at) if across else (at, ends)
    point = (cell["mean"], place) if across else (place, cell["mean"])
    if np.isfinite(cell["low"]):
        axes.plot(*bar, color=look.colour, linewidth=1.6, alpha=0.5)
    (mark,) = axes.plot(
        *point,
        look.marker,
        color=look.colour,
        markerfacecolor=PAPER if cell["suspect"] else look.colour,
        markersize=4.5,
        markeredgewidth=0.8,
        **WHOLE,
    )
    note(mark, cell.to_frame().T)


def single_trials(axes: Axes, values: Iterable[float], place: float, look: SeriesStyle) -> None:
    """Single trials beside their mean: where outcomes are of two kinds, the mean is neither."""
    found = known(values)
    axes.plot(
        found,
        [place] * len(found),
        "o",
        markersize=2.2,
        markerfacecolor=PAPER,
        markeredgecolor=look.colour,
        markeredgewidth=0.6,
        **WHOLE,
    )
