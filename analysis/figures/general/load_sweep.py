"""Measures over an axis: lines if it is numeric, points otherwise."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from analysis.figures import cases, means, style
from analysis.figures.figure import (
    Axis,
    Figure,
    Mark,
    Panel,
    ReferenceLine,
    legend_entries,
    resolved_limits,
)
from analysis.figures.style import SeriesStyle
from analysis.metrics.metric_rows import AXIS
from analysis.trials.labels import variant_key

MAX_TICKS = 10  # values that are all written at the axis
AXIS_WORDS = {
    "cbr_mbit": "CBR load (Mbit/s)",
    "load": "load (share of the link)",
    "lost": "lost segments",
    "ratio": "ratio of round trips",
    "rtt_ms": "RTT (ms)",
}
TOWER = 3  # times the next line: far enough above to dwarf it


def axis_label(name: str) -> str:
    """Return an axis in words with its unit: `delay_ms` as `delay (ms)`."""
    if name in AXIS_WORDS:
        return AXIS_WORDS[name]
    start, _, unit = name.rpartition("_")
    return (
        f"{cases.axis_words(start)} ({cases.AXIS_UNITS[unit]})"
        if start and unit in cases.AXIS_UNITS
        else name
    )


def is_number(rows: pd.DataFrame, axis: str) -> bool:
    """Return whether the axis is numeric, so that lines may join its points."""
    return pd.api.types.is_numeric_dtype(rows[AXIS + axis])


def towers(table: pd.DataFrame, x: str) -> bool:
    """Return whether one line is so far above the others that they look flat."""
    ratios = []
    for _, there in table.groupby(x):
        first, *others = sorted(there["mean"].dropna(), reverse=True) or [0.0]
        if others and first > 0:
            ratios.append(first / others[0] if others[0] > 0 else np.inf)
    return bool(ratios) and float(np.median(ratios)) > TOWER


def figure(
    parts: Sequence[tuple[str, pd.DataFrame]],
    axis: str,
    measures: Sequence[means.Measure],
    series: str,
    order: Sequence[str] = (),
) -> Figure:
    """Return one row of panels per part, one column per measure; its words are the caller's.

    `order` is that of categories, where it is not that of their names.
    """
    looks = style.styles_of(pd.concat([rows for _, rows in parts]), series)
    lines = is_number(parts[0][1], axis)
    height = 1.7 if lines else max(1.5, 0.2 * max(rows[AXIS + axis].nunique() for _, rows in parts))
    grid, tables = [], []
    for place, (label, rows) in enumerate(parts):
        line = []
        for column, measure in enumerate(measures):
            table = means.summary(rows, [series, AXIS + axis], measure)
            tables.append(table.assign(part=label, measure=measure.label))
            if lines:
                panel = lines_panel(table, axis, series, looks, measure)
            else:
                panel = dots_panel(table, axis, series, looks, measure, order)
            x = panel.x
            if lines and place == len(parts) - 1:
                x = dataclasses.replace(x, label=axis_label(axis))
            y = dataclasses.replace(panel.y, names_shown=lines or column == 0)
            line.append(dataclasses.replace(panel, x=x, y=y, title="" if column else label))
        grid.append(tuple(line))
    return Figure(
        stem="",
        title="",
        panels=tuple(grid),
        legend=legend_entries(looks),
        row_inches=height,
        data=pd.concat(tables, ignore_index=True),
    )


def lines_panel(
    table: pd.DataFrame,
    axis: str,
    series: str,
    looks: Mapping[str, SeriesStyle],
    measure: means.Measure,
) -> Panel:
    """Return a panel with a line per series over a numeric axis."""
    column = AXIS + axis
    marks: list[Mark] = []
    for name, look in looks.items():
        of_series = table[table[series] == name]
        if len(of_series):
            marks += means.line_with_band(of_series, column, look, name)
    values = np.sort(table[column].unique())
    few = len(values) <= MAX_TICKS
    x = Axis(ticks=list(values) if few else None, tick_count=None if few else 8)
    y = Axis(measure.label, limits=(0 if measure.zero else None, None), tick_count=5, widen=True)
    panel = Panel(marks, x, y)
    if towers(table, column) and np.isfinite(measure.linear_below):
        return _with_towers(panel, measure)
    return panel


def _with_towers(panel: Panel, measure: means.Measure) -> Panel:
    """Make the axis linear below a bound and logarithmic above it, and say so in its label."""
    bound = measure.linear_below
    _, (_, top) = resolved_limits(panel)
    ticks = [0.0, *(bound * 10.0**power for power in range(int(np.log10(top / bound)) + 1))]
    y = Axis(
        f"{measure.label.removesuffix(')')}; log > {bound:g})",
        scale="symlog",
        limits=(0, top),
        ticks=ticks,
        linear_below=bound,
    )
    bend = ReferenceLine("y", bound, width=0.5, dash=(1, 2))
    return dataclasses.replace(panel, marks=(*panel.marks, bend), y=y)


def dots_panel(
    table: pd.DataFrame,
    axis: str,
    series: str,
    looks: Mapping[str, SeriesStyle],
    measure: means.Measure,
    order: Sequence[str] = (),
) -> Panel:
    """Return a panel with a line per category, on which the series stand side by side."""
    column = AXIS + axis
    there = list(dict.fromkeys(table[column]))
    values = list(order) or sorted(there, key=lambda value: variant_key(str(value)))
    alone = table.groupby(column)[series].nunique().max() == 1
    width = 0.0 if alone else 0.7 / max(1, len(looks))
    marks: list[Mark] = []
    for number, (name, look) in enumerate(looks.items()):
        shift = (number - (len(looks) - 1) / 2) * width
        for _, cell in table[table[series] == name].iterrows():
            place = values.index(cell[column]) + shift
            marks.append(means.mean_point(place, cell, look, name))
    x = Axis(measure.label, limits=(0 if measure.zero else None, None), tick_count=5, widen=True)
    return Panel(marks, x, Axis(names=[cases.text(value) for value in values]))
