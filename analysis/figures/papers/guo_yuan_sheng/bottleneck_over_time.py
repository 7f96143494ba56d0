"""The flows over time: one column per variant, one row per measure, the axes shared, so
that the eye compares along a row. Each queue and rate has a figure of its own."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import MaxNLocator

from analysis.figures.papers.guo_yuan_sheng.bottleneck_columns import Column, columns
from analysis.figures.papers.guo_yuan_sheng.bottleneck_rows import Row, rows
from analysis.figures.papers.guo_yuan_sheng.bottleneck_text import footer, title
from analysis.figures.plotting import cases, style
from analysis.figures.plotting.named_figure import AnyFigure, NamedFigure
from analysis.figures.plotting.setting_groups import by_setting
from analysis.results.experiment_results import ExperimentResults
from analysis.trials.series import Floats, Series
from testbed.store import Trial

READING = "One column per variant; over the panels, means and percentiles of all packets."
MANY = 5  # seeds; beyond, their range is drawn instead of their lines
DASHES = (0, (4, 2))


def draw(results: ExperimentResults) -> Iterator[AnyFigure]:
    """A figure for each setting whose flows were captured or sampled."""
    trials = [trial for trial in results.trials if _crosses(trial)]
    for stem, members in by_setting(trials, cases.stem(results.key, "time")).items():
        across = columns(members, results.rows)
        down = rows(members[0].scenario, across)
        data = _data(across, down)
        if len(data):
            caption = title(members[0].scenario, across).replace("\n", " ") + "."
            yield NamedFigure(stem, caption, _figure(members, across, down), data, READING)


def _data(across: Sequence[Column], down: Sequence[Row]) -> pd.DataFrame:
    """The lines as drawn: of many seeds their median and range, of a few each its own."""
    tables = [pd.DataFrame(columns=["variant", "measure", "line", "time_s", "value"])]
    for column in across:
        for row in down:
            lines = row.lines(column)
            several = len(lines) > MANY
            low, high = None, None
            if several:
                middle, low, high = _envelope(lines)
                lines = [middle]
            for number, series in enumerate(lines, start=1):
                values = {"time_s": series.time_s, "value": series.value}
                table = pd.DataFrame(values | ({"low": low, "high": high} if several else {}))
                name = row.label.replace("\n", " ")
                tables.append(table.assign(variant=column.variant, measure=name, line=number))
    found = [table for table in tables if len(table)]
    return pd.concat(found, ignore_index=True).dropna(subset="value") if found else tables[0]


def _crosses(trial: Trial) -> bool:
    """True if the flows cross the bottleneck; those to the router itself do not."""
    return all(flow.dst != "router" for flow in trial.scenario.flows)


def _figure(trials: Sequence[Trial], across: list[Column], down: list[Row]) -> Figure:
    scenario = trials[0].scenario
    figure, axes = _grid(down, len(across))
    colours = style.variant_colours(column.variant for column in across)
    for j, column in enumerate(across):
        for i, row in enumerate(down):
            _panel(axes[i][j], row, column, colours[column.variant], labelled=j == 0)
        _head(axes[0][j], column, colours[column.variant])
    for i, row in enumerate(down):
        _scale(axes[i][0], row)
    axes[0][0].set_xlim(0, scenario.duration_s)
    axes[0][0].xaxis.set_major_locator(MaxNLocator(3, steps=[1, 2, 3, 5, 10], integer=True))
    for lowest in axes[-1]:
        lowest.set_xlabel("time (s)")
    words = title(scenario, across)
    figure.text(0.01, 0.99, words, fontsize=9, fontweight="bold", va="top", linespacing=1.3)
    small = footer(trials, across, MANY)
    figure.text(0.01, 0.012, small, fontsize=5.5, color=style.GREY, va="bottom", linespacing=1.4)
    return figure


def _grid(down: list[Row], width: int) -> tuple[Figure, list[list[Axes]]]:
    """The panels, between a title and a footer of fixed heights."""
    inches = 1.4 * sum(row.height for row in down) + 1.5
    head, foot = 0.45 / inches, 0.32 / inches
    figure = Figure(
        figsize=(max(style.WIDTH_INCHES, 1.4 * width), inches),
        layout=ConstrainedLayoutEngine(rect=(0, foot, 1, 1 - head - foot), h_pad=0.05),
    )
    axes = figure.subplots(
        len(down),
        width,
        squeeze=False,
        sharex=True,
        sharey="row",
        height_ratios=[row.height for row in down],
    )
    return figure, [list(line) for line in axes]


def _panel(axes: Axes, row: Row, column: Column, colour: str, labelled: bool) -> None:
    if column.reason:
        axes.set_facecolor("#F2F2F2")
        axes.grid(False)
        return
    if row.reference:
        _draw_reference(axes, *row.reference, labelled)
    if lines := row.lines(column):
        axes.set_title(row.note(column), fontsize=6, color=style.GREY, loc="left", pad=2.5)
        _draw_lines(axes, lines, colour, row.filled)
    if row.drops:
        _draw_drops(axes, column)


def _draw_reference(axes: Axes, value: float, text: str, labelled: bool) -> None:
    axes.axhline(value, color=style.GREY, linewidth=0.7, linestyle=DASHES, zorder=1.5)
    if labelled:
        axes.annotate(
            text,
            (0.97, value),
            xycoords=axes.get_yaxis_transform(),
            xytext=(0, 2),
            textcoords="offset points",
            fontsize=5.5,
            color=style.GREY,
            ha="right",
        )


def _draw_lines(axes: Axes, lines: list[Series], colour: str, filled: bool) -> None:
    """One seed: a line. A few: thin lines. Many: their median and their range."""
    if len(lines) > MANY:
        middle, low, high = _envelope(lines)
        axes.fill_between(middle.time_s, low, high, color=colour, alpha=0.25, linewidth=0)
        lines = [middle]
    one = len(lines) == 1
    for series in lines:
        seen = np.isfinite(series.value)
        time_s, value = series.time_s[seen], series.value[seen]
        axes.plot(time_s, value, color=colour, linewidth=0.9 if one else 0.5, alpha=0.85)
        if filled and one:
            axes.fill_between(time_s, value, color=colour, alpha=0.25, linewidth=0)


def _envelope(lines: list[Series]) -> tuple[Series, Floats, Floats]:
    """Median, minimum and maximum over the seeds, where any has a value."""
    table = pd.DataFrame(
        {i: pd.Series(each.value, index=np.round(each.time_s, 6)) for i, each in enumerate(lines)}
    ).dropna(how="all")
    median = Series(table.index.to_numpy(dtype=np.float64), table.median(axis=1).to_numpy())
    return median, table.min(axis=1).to_numpy(), table.max(axis=1).to_numpy()


def _draw_drops(axes: Axes, column: Column) -> None:
    """A tick at the top for each time that packets were dropped."""
    times = [queue.drop_times_s for queue in column.queues]
    every = np.concatenate(times) if times else np.zeros(0)
    axes.plot(
        every,
        np.full(len(every), 0.97),
        "|",
        transform=axes.get_xaxis_transform(),
        color=style.BLACK,
        markersize=3.5,
        markeredgewidth=0.4,
    )


def _scale(axes: Axes, row: Row) -> None:
    if row.top is None:
        axes.margins(y=0.15)  # room for the ticks at the top
        axes.autoscale_view()
    axes.set_ylim(0, row.top)
    axes.set_ylabel(row.label)
    axes.yaxis.set_major_locator(MaxNLocator(4))


def _head(axes: Axes, column: Column, colour: str) -> None:
    """The variant's name over its column, and why the column is empty if it is."""
    axes.annotate(
        column.variant,
        (0, 1),
        xycoords="axes fraction",
        xytext=(0, 12),
        textcoords="offset points",
        fontsize=8.5,
        fontweight="bold",
        color=colour,
    )
    if column.doubts:
        axes.annotate(
            column.doubts,
            (1, 1),
            xycoords="axes fraction",
            xytext=(0, 12),
            textcoords="offset points",
            fontsize=5.5,
            color=style.GREY,
            ha="right",
        )
    if column.reason:
        text = textwrap.fill(column.reason, 24, max_lines=7)
        axes.text(0.05, 0.5, text, transform=axes.transAxes, fontsize=5.5, va="center")
