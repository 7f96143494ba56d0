"""Draws a flow's timeline: panels over one time axis, and lanes of events below them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import MaxNLocator

from analysis.figures.plotting import style
from analysis.figures.plotting.named_figure import NamedFigure, save
from analysis.figures.timeline.event_lanes import draw_lanes, lanes_inches
from analysis.figures.timeline.panels import (
    Words,
    draw_queue,
    draw_rtts,
    draw_throughput,
    draw_window,
)
from analysis.figures.timeline.timeline_data import Span, Timeline, flow_span, table, timeline
from analysis.figures.timeline.timeline_events import Kind
from analysis.figures.timeline.timeline_text import doubt, footer, outcome, stem, title
from analysis.figures.timeline.title_lines import doubt_inches, write_words
from testbed.errors import TestbedError
from testbed.machine.atomic import replace
from testbed.store import FlowRecord, Trial, again

MARGIN = 0.875  # of the width, where the words beside the panels begin
HEAD_INCHES = 0.42  # above the panels
LINE_INCHES = 0.115  # between words beside a panel
Panel = Callable[[Axes, Trial, Timeline], Words]


def draw(trial: Trial, flow: FlowRecord, span: Span, folder: Path, name: str) -> list[Path]:
    """Draw the flow within the span; PNG and SVG, and what is drawn as CSV."""
    found = timeline(trial, flow, span)
    if not _panels(found):
        raise TestbedError(
            f"{trial.path}: flow {flow.name} was neither captured nor sampled",
            f"run it again with captures: {again(trial.path)} --captures keep",
        )
    with style.style_sheet(), mpl.rc_context({"hatch.linewidth": 0.5}):
        figure = _figure(trial, flow, found, doubt(trial))
        paths = save(figure, folder, f"{name}-timeline")
    data = folder / f"{name}-timeline.csv"
    replace(data, lambda path: table(found).to_csv(path, index=False, float_format="%.9g"))
    return [*paths, data]


def whole(trial: Trial, flow: FlowRecord) -> NamedFigure | None:
    """The flow's timeline from start to stop; None if it was neither captured nor sampled."""
    found = timeline(trial, flow, flow_span(flow, None, None))
    if not _panels(found):
        return None
    with mpl.rc_context({"hatch.linewidth": 0.5}):
        figure = _figure(trial, flow, found, doubt(trial))
    return NamedFigure(stem(flow, None, None), outcome(found), figure, table(found))


def _figure(trial: Trial, flow: FlowRecord, found: Timeline, doubt: str = "") -> Figure:
    panels = _panels(found)
    head = HEAD_INCHES + doubt_inches(doubt)
    figure, axes = _grid([height for height, _ in panels], lanes_inches(found), head)
    for each, (height, draw_panel) in zip(axes, panels, strict=False):
        _beside(each, draw_panel(each, trial, found), height)
        each.tick_params(axis="x", length=0)
        _timeouts(each, found)
    draw_lanes(axes[-1], found)
    _timeouts(axes[-1], found)
    axes[-1].set_xlim(found.span.start_s, found.span.stop_s)
    axes[-1].set_xlabel("time (s)")
    axes[-1].xaxis.set_major_locator(MaxNLocator(10))
    figure.align_ylabels(axes[:-1])
    write_words(figure, title(trial, flow), outcome(found), footer(trial, found), doubt)
    return figure


def _panels(found: Timeline) -> list[tuple[float, Panel]]:
    """The available panels, each with its height in inches."""
    wanted = (
        (1.35, draw_window, found.window),
        (1.15, draw_rtts, found.rtts),
        (1.15, draw_queue, found.queue),
        (0.9, draw_throughput, found.throughput),
    )
    return [(height, panel) for height, panel, data in wanted if data is not None]


def _grid(heights: Sequence[float], lanes: float, above: float) -> tuple[Figure, list[Axes]]:
    """The panels and the lanes, between a title and a footer of fixed heights."""
    inches = sum(heights) + lanes + above + 0.73
    head, foot = above / inches, 0.42 / inches
    figure = Figure(
        figsize=(style.WIDTH_INCHES, inches),
        layout=ConstrainedLayoutEngine(rect=(0, foot, MARGIN, 1 - head - foot), h_pad=0.03),
    )
    axes = figure.subplots(
        len(heights) + 1, 1, squeeze=False, sharex=True, height_ratios=[*heights, lanes]
    )
    return figure, list(axes[:, 0])


def _timeouts(axes: Axes, found: Timeline) -> None:
    for time_s in found.events.get(Kind.TIMEOUT, ()):
        axes.axvline(time_s, color=style.BLACK, linewidth=0.6, linestyle=(0, (1, 2)), zorder=1.6)


def _beside(axes: Axes, words: Words, inches: float) -> None:
    """Words at the right of the panel, at the height of what they name, none over another."""
    axes.yaxis.set_major_locator(MaxNLocator(4))
    low, high = axes.get_ylim()
    places = [float(np.clip(value, low, high)) for value, _, _ in words]
    apart = spread(places, LINE_INCHES / inches * (high - low), low, high)
    for place, (_, text, colour) in zip(apart, words, strict=True):
        axes.annotate(
            text,
            (1, place),
            xycoords=axes.get_yaxis_transform(),
            xytext=(4, 0),
            textcoords="offset points",
            fontsize=6.5,
            color=colour,
            va="center",
        ).set_in_layout(False)


def spread(places: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """The places in their order, moved apart until each has its gap; within the ends if they
    have room."""
    moved = list(places)
    order = sorted(range(len(places)), key=lambda each: -places[each])
    ceiling = high
    for index in order:
        moved[index] = min(moved[index], ceiling)
        ceiling = moved[index] - gap
    floor = low
    for index in reversed(order):
        moved[index] = max(moved[index], floor)
        floor = moved[index] + gap
    return moved
