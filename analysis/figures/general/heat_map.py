"""Two numbers that vary, as the sides of a map: goodput and delay in each of their combinations."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import pandas as pd

from analysis.figures import cases, means
from analysis.figures.figure import Axis, Boxes, Figure, Panel
from analysis.figures.general.load_sweep import axis_label, is_number
from analysis.figures.general.messages import said_name
from analysis.figures.style import BLUE
from analysis.metrics.metric_rows import AXIS

GOODPUT = means.Measure("goodput_mbps", "goodput (Mbit/s)")
MAPPED = (GOODPUT, means.LATENCY)
MAX_MAPS = 4  # series, side by side
MIN_CELLS = 6  # fewer are read faster as points
PALEST, DARKEST = 0.06, 0.9  # opacities of the least and of the greatest value
DARK = 0.55  # from here on letters are white
LITTLE = 0.05  # of the greater mean: less is no change


def axes_of(rows: pd.DataFrame, axes: Sequence[str]) -> tuple[str, str] | None:
    """Return the two numeric axes with most values, if that makes a map."""
    numbers = [name for name in axes if is_number(rows, name)]
    counts = {name: int(rows[AXIS + name].nunique()) for name in numbers}
    most_varied = sorted(numbers, key=lambda name: -counts[name])[:2]
    if (
        len(most_varied) < 2
        or counts[most_varied[1]] < 2
        or counts[most_varied[0]] * counts[most_varied[1]] < MIN_CELLS
    ):
        return None
    across, up = sorted(most_varied, key=numbers.index)
    pairs = rows[[AXIS + across, AXIS + up]].drop_duplicates()
    # where one follows from the other there is a line, and no map
    return (across, up) if len(pairs) >= MIN_CELLS else None


def figure(rows: pd.DataFrame, axes: tuple[str, str], series: str) -> Figure:
    """Return a column for each series, goodput above and delay below; its words say what decides.

    Each row of maps has one scale of shades.
    """
    names = list(dict.fromkeys(rows[series]))[:MAX_MAPS]
    grid, tables = [], []
    for measure in MAPPED:
        table = means.summary(rows, [series, *(AXIS + name for name in axes)], measure)
        if table["mean"].isna().all():
            continue
        tables.append(table.assign(measure=measure.label))
        shown = table[table[series].isin(names)]
        limits = (float(shown["mean"].min()), float(shown["mean"].max()))
        grid.append(
            tuple(
                _map(shown[shown[series] == name], axes, measure, limits, name, column == 0)
                for column, name in enumerate(names)
            )
        )
    data = pd.concat(tables, ignore_index=True)
    goodput = data[data["measure"] == GOODPUT.label]
    return Figure(
        stem="",
        title=message(goodput, axes, series),
        panels=tuple(grid),
        row_inches=0.55 + 0.28 * rows[AXIS + axes[1]].nunique(),
        data=data,
    )


def _map(
    table: pd.DataFrame,
    axes: tuple[str, str],
    measure: means.Measure,
    limits: tuple[float, float],
    name: str,
    is_first: bool,
) -> Panel:
    values = [sorted(table[AXIS + each].unique()) for each in axes]
    places = [
        np.array([values[side].index(value) for value in table[AXIS + axis]], dtype=float)
        for side, axis in enumerate(axes)
    ]
    low, high = limits
    part = (table["mean"].fillna(low) - low) / ((high - low) or 1)
    known = table["mean"].notna()
    cells = Boxes(
        places[0] - 0.5,
        places[0] + 0.5,
        places[1] - 0.5,
        places[1] + 0.5,
        BLUE,
        opacities=[
            PALEST + float(p) * (DARKEST - PALEST) if k else 0.0
            for p, k in zip(part, known, strict=True)
        ],
        edge="#FFFFFF",
        texts=["" if pd.isna(mean) else f"{mean:.3g}" for mean in table["mean"]],
        text_colours=["#FFFFFF" if p > DARK else "#000000" for p in part],
        text_size=6.0,
    )
    across, up = ([cases.text(float(value)) for value in side] for side in values)
    sizes = (-0.5, len(across) - 0.5), (-0.5, len(up) - 0.5)
    return Panel(
        (cells,),
        Axis(axis_label(axes[0]), names=across, limits=sizes[0], grid=False),
        Axis(axis_label(axes[1]), names=up, limits=sizes[1], grid=False, names_shown=is_first),
        title=name,
        title_right=measure.label,
    )


def message(table: pd.DataFrame, axes: tuple[str, str], series: str) -> str:
    """Return in words whose goodput changes most along which axis, and what the other one does."""
    spans = [
        (abs(ends[1] - ends[0]), name, axis, ends)
        for (name, of_series), axis in itertools.product(table.groupby(series, sort=False), axes)
        if (ends := _ends(of_series, axis)) is not None
    ]
    if not spans:
        return "No goodput is known."
    _, name, axis, ends = max(spans, key=lambda each: each[0])
    other = next(each for each in axes if each != axis)
    first, last = (_worded(table, axis, value) for value in ends[2:])
    if abs(ends[1] - ends[0]) < LITTLE * max(ends[:2]):
        return f"Neither {_plain(axis)} nor {_plain(other)} changes goodput by 5 %."
    verb = "falls" if ends[1] < ends[0] else "rises"
    whose = f"{said_name(str(name))}'s goodput" if table[series].nunique() > 1 else "Goodput"
    sentence = f"{whose} {verb} from {ends[0]:.3g} to {ends[1]:.3g} Mbit/s"
    sentence += f" as {_plain(axis)} grows from {first} to {last}"
    across = next((span for span, who, each, _ in spans if (who, each) == (name, other)), 0.0)
    return f"{sentence}; {_plain(other)} changes it by {across:.2g}."


def _ends(table: pd.DataFrame, axis: str) -> tuple[float, float, float, float] | None:
    """Return the means at both ends of an axis, over all values of the other, and the ends."""
    by_value = table.groupby(AXIS + axis)["mean"].mean().dropna()
    if len(by_value) < 2:
        return None
    low, high = by_value.index.min(), by_value.index.max()
    return float(by_value[low]), float(by_value[high]), float(low), float(high)


def _plain(axis: str) -> str:
    return axis_label(axis).partition(" (")[0]


def _worded(table: pd.DataFrame, axis: str, value: float) -> str:
    _, bracket, unit = axis_label(axis).partition(" (")
    is_last = value == table[AXIS + axis].max()
    return cases.text(value) + (f" {unit.rstrip(')')}" if bracket and is_last else "")
