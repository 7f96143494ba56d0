"""Means with 95 % confidence intervals: as tables, and as the marks of most figures."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from analysis.figures.figure import (
    TRIALS,
    Annotation,
    Area,
    Curve,
    Interval,
    Mark,
    PointEvidence,
    PointSeries,
)
from analysis.figures.style import SeriesStyle
from analysis.statistics.intervals import MIN_SEEDS_OF_A_SPREAD, half_width, known

INTERVALS_READ = "; bands and bars: 95 % interval of the mean (Student's t)"
READING = f"points: means{INTERVALS_READ}"
LABEL_APART = 0.08  # of the axis's height: the least distance between two lines' names


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
MARKED = Measure("mark_rate", "marked (%)", 100)
LATENCY = Measure("owd_mean_ms", "one-way delay (ms)")
JITTER = Measure("jitter_ms", "jitter (ms)")


def trial_names(rows: pd.DataFrame) -> tuple[str, ...]:
    """Return the names of these rows' trials, each once."""
    return tuple(dict.fromkeys(rows["trial"].astype(str))) if "trial" in rows else ()


def with_goodput_shares(rows: pd.DataFrame) -> pd.DataFrame:
    """Add `share_percent`: each flow's part of what its trial's TCP flows delivered."""
    total = rows.groupby("trial")["goodput_mbps"].transform("sum")
    return rows.assign(share_percent=(100 * rows["goodput_mbps"] / total).where(total > 0))


def summary(rows: pd.DataFrame, by: Sequence[str], measure: Measure) -> pd.DataFrame:
    """Return a row per cell: mean, the interval's ends (NaN if n < 3), n, number of suspects."""
    cells = []
    for key, members in rows.groupby(list(by), sort=False, dropna=False):
        values = known(members[measure.metric]) * measure.scale
        mean = float(values.mean()) if len(values) else float("nan")
        # of two, the interval says nothing
        half = half_width(values) if len(values) >= MIN_SEEDS_OF_A_SPREAD else math.nan
        suspect = int((members["verdict"] == "suspect").sum())
        keys = key if isinstance(key, tuple) else (key,)
        trials = trial_names(members.loc[members[measure.metric].notna()])
        cells.append((*keys, mean, mean - half, mean + half, len(values), suspect, trials))
    columns = [*by, "mean", "low", "high", "n", "suspect", TRIALS]
    return pd.DataFrame(cells, columns=columns).sort_values(list(by), kind="stable")


def line_with_band(
    table: pd.DataFrame, x: str, look: SeriesStyle, series: str = ""
) -> tuple[Mark, ...]:
    """Return means over a numeric axis with a band for their intervals; suspect ones hollow."""
    at, mean = table[x].to_numpy(dtype=float), table["mean"].to_numpy(dtype=float)
    evidence = PointEvidence.from_table(table)
    return (
        Area(at, table["low"], table["high"], look.colour, series=series),
        Curve(at, mean, look.colour, dash=look.dashes, series=series),
        PointSeries(
            at,
            mean,
            look.colour,
            look.marker,
            hollow=list(table["suspect"] > 0),
            series=series,
            evidence=evidence,
        ),
    )


def mean_point(place: float, cell: pd.Series, look: SeriesStyle, series: str = "") -> PointSeries:
    """Return one mean with its horizontal error bar."""
    return PointSeries(
        [float(cell["mean"])],
        [place],
        look.colour,
        look.marker,
        size=4.5,
        edge_width=0.8,
        hollow=bool(cell["suspect"]),
        low=[float(cell["low"])],
        high=[float(cell["high"])],
        along="x",
        series=series,
        evidence=PointEvidence.from_table(cell.to_frame().T),
    )


def single_trials(
    values: Iterable[float], place: float, look: SeriesStyle, series: str = ""
) -> PointSeries:
    """Return single trials as rings: where outcomes are of two kinds, their mean is neither."""
    measured = known(values)
    return PointSeries(
        measured,
        [place] * len(measured),
        look.colour,
        size=2.2,
        hollow=True,
        edge_width=0.6,
        series=series,
    )


def line_end_names(
    ends: Sequence[tuple[float, str, str]], limits: Interval
) -> tuple[Annotation, ...]:
    """Name lines at their right ends (value, words, colour), moved up where names would overlap."""
    low, high = limits
    last = -np.inf
    names = []
    for value, name, colour in sorted(ends):
        last = max((value - low) / (high - low), last + LABEL_APART)
        names.append(
            Annotation(
                name,
                1.01,
                float(last),
                x_place="panel",
                y_place="panel",
                colour=colour,
                up="center",
            )
        )
    return tuple(names)
