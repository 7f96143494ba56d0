"""Measures over an axis: lines if it is numeric, points otherwise."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from analysis.figures.plotting import cases, error_bars, figure_layout, style
from analysis.figures.plotting.error_bars import Measure
from analysis.figures.plotting.style import SeriesStyle
from analysis.metrics.axes import AXIS
from analysis.trials.labels import by_number, variant_key

ROOM = 1.3  # the top of the axis, relative to the highest mean
TOWER = 3  # times the next line: far enough above to dwarf it


def axis_label(name: str) -> str:
    """`cbr_mbit` as `cbr (Mbit/s)`, and known ones in words."""
    if name == "cbr_mbit":
        return "CBR load (Mbit/s)"
    start, _, unit = name.rpartition("_")
    return (
        f"{start.replace('_', ' ')} ({cases.UNITS[unit]})"
        if start and unit in cases.UNITS
        else name
    )


def is_number(rows: pd.DataFrame, axis: str) -> bool:
    """True if the axis is numeric, so that lines may join its points."""
    return pd.api.types.is_numeric_dtype(rows[AXIS + axis])


def panels(
    parts: Sequence[tuple[str, pd.DataFrame]],
    axis: str,
    measures: Sequence[Measure],
    series: str,
) -> tuple[Figure, pd.DataFrame]:
    """One row of panels per part, one column per measure; and the table of what is drawn."""
    known = style.styles_of(pd.concat([rows for _, rows in parts]), series)
    lines = is_number(parts[0][1], axis)
    height = 1.7 if lines else max(1.5, 0.2 * max(rows[AXIS + axis].nunique() for _, rows in parts))
    figure, grid = figure_layout.grid(len(parts), len(measures), panel=height)
    tables = []
    for line, (words, rows) in zip(grid, parts, strict=True):
        for axes, measure in zip(line, measures, strict=True):
            table = error_bars.summary(rows, [series, AXIS + axis], measure)
            tables.append(table.assign(part=words, measure=measure.label))
            _panel(axes, table, AXIS + axis, series, known)
            if lines:
                axes.set_ylabel(measure.label)
            else:
                axes.set_xlabel(measure.label)
            figure_layout.widen_flat_axes(axes, "y" if lines else "x")
            if measure.zero:
                axes.set_ylim(bottom=0) if lines else axes.set_xlim(left=0)
            if lines and measure.zero and (most := float(table["mean"].max())) > 0:
                # the band of two seeds can be ten times as high as what it is about
                axes.set_ylim(top=min(axes.get_ylim()[1], ROOM * most))
            if lines and towers(table, AXIS + axis):
                _bend(axes, measure)
        if words:
            figure_layout.panel_title(line[0], words)
    for axes in grid[-1] if lines else ():
        axes.set_xlabel(axis_label(axis))
    figure_layout.legend(figure, known)
    return figure, pd.concat(tables, ignore_index=True)


def towers(table: pd.DataFrame, x: str) -> bool:
    """True if one line is so far above the others, at most points, that they look flat."""
    ratios = []
    for _, there in table.groupby(x):
        first, *others = sorted(there["mean"].dropna(), reverse=True) or [0.0]
        if others and first > 0:
            ratios.append(first / others[0] if others[0] > 0 else np.inf)
    return bool(ratios) and float(np.median(ratios)) > TOWER


def _bend(axes: Axes, measure: Measure) -> None:
    """Make the axis linear below a bound and logarithmic above it, and say so in its label."""
    bound = measure.linear_below
    if not np.isfinite(bound):
        return
    _, top = axes.get_ylim()
    axes.set_yscale("symlog", linthresh=bound, linscale=0.5)
    ticks = [0.0, *(bound * 10.0**power for power in range(int(np.log10(top / bound)) + 1))]
    axes.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.minorticks_off()
    axes.set_ylim(0, top)
    axes.axhline(bound, color=style.GREY, linewidth=0.5, linestyle=(0, (1, 2)), zorder=1.5)
    axes.set_ylabel(f"{measure.label.removesuffix(')')}; log > {bound:g})")


def _panel(
    axes: Axes, table: pd.DataFrame, x: str, series: str, known: dict[str, SeriesStyle]
) -> None:
    if not pd.api.types.is_numeric_dtype(table[x]):
        _dots(axes, table, x, series, known)
        return
    for name, look in known.items():
        own = table[table[series] == name]
        if len(own):
            error_bars.line_with_band(axes, own, x, look)
    values = np.sort(table[x].unique())
    if len(values) <= 10:
        axes.set_xticks(values)
    else:
        axes.xaxis.set_major_locator(MaxNLocator(8))
    axes.yaxis.set_major_locator(MaxNLocator(5))


def _name_key(value: object) -> tuple[object, ...]:
    return variant_key(str(value))[0], by_number(str(value))


def _dots(
    axes: Axes, table: pd.DataFrame, x: str, series: str, known: dict[str, SeriesStyle]
) -> None:
    """One line per name with the series side by side; only the first panel shows the names."""
    values = sorted(dict.fromkeys(table[x]), key=_name_key)
    alone = table.groupby(x)[series].nunique().max() == 1
    width = 0.0 if alone else 0.7 / max(1, len(known))
    for number, (name, look) in enumerate(known.items()):
        shift = (number - (len(known) - 1) / 2) * width
        for _, cell in table[table[series] == name].iterrows():
            error_bars.point(axes, values.index(cell[x]) + shift, cell, look)
    first = axes.get_subplotspec()
    shown = first is None or first.is_first_col()
    axes.set_yticks(range(len(values)), [cases.text(v) if shown else "" for v in values])
    axes.set_ylim(len(values) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    axes.xaxis.set_major_locator(MaxNLocator(5))
