"""Draws sequence numbers over time: the whole flow, and a few round trips of it beside."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import MaxNLocator

from analysis.figures.plotting import style
from analysis.figures.plotting.named_figure import save
from analysis.figures.time_sequence.sequence_data import Sequence, Stretches, sequence, table, zoom
from analysis.figures.time_sequence.sequence_marks import (
    ACKS,
    COLUMNS,
    MANY,
    MEGA,
    NEW,
    bars,
    legend,
    steps,
)
from analysis.figures.time_sequence.zoomed_panel import draw_close
from analysis.figures.timeline.event_markers import MARKERS
from analysis.figures.timeline.timeline_data import Span
from analysis.figures.timeline.timeline_text import counted, doubt, foot, title
from analysis.figures.timeline.title_lines import doubt_inches, write_words
from testbed.machine.atomic import replace
from testbed.store import FlowRecord, Trial

HEIGHT = 4.3  # inches
LEGEND_INCHES = 0.36  # from the top
HEAD_INCHES, FOOT_INCHES = 0.6, 0.32


def draw(
    trial: Trial, flow: FlowRecord, span: Span, near: Span | None, folder: Path, stem: str
) -> list[Path]:
    """Draw the flow's first connection, with a close look at `near` (the first loss); PNG
    and SVG, and what is drawn as CSV."""
    found = sequence(trial, flow)
    near = near or zoom(found, span)
    with style.style_sheet():
        figure = _figure(trial, flow, found, span, near, doubt(trial))
        paths = save(figure, folder, f"{stem}-sequence")
    data = folder / f"{stem}-sequence.csv"
    replace(data, lambda path: table(found).to_csv(path, index=False, float_format="%.9f"))
    return [*paths, data]


def _figure(
    trial: Trial, flow: FlowRecord, found: Sequence, span: Span, near: Span, doubt: str = ""
) -> Figure:
    more = doubt_inches(doubt)
    height = HEIGHT + more
    head, foot_ = (HEAD_INCHES + more) / height, FOOT_INCHES / height
    figure = Figure(
        figsize=(style.WIDTH_INCHES, height),
        layout=ConstrainedLayoutEngine(rect=(0, foot_, 1, 1 - head - foot_), w_pad=0.06),
    )
    overview, close = figure.subplots(1, 2, width_ratios=[1, 1.6])
    _draw_overview(overview, found, span, near)
    draw_close(close, found, near)
    write_words(figure, title(trial, flow), _about(found), foot(trial), doubt)
    legend(figure, found, 1 - (LEGEND_INCHES + more) / height)
    return figure


def _about(found: Sequence) -> str:
    again = [counted(len(each), kind) for kind, each in found.again.items() if len(each)]
    parts = [
        f"Sequence numbers at the sender: {counted(len(found.new), 'segment')}",
        *(again or ["none sent again"]),
        f"{len(found.lost)} lost",
    ]
    if found.connections > 1:
        parts.append(f"the first of {found.connections} connections")
    return ", ".join(parts)


def _draw_overview(axes: Axes, found: Sequence, span: Span, near: Span) -> None:
    """The whole flow: what falls on the same pixels is drawn once."""
    axes.set_title("the whole flow", fontsize=7, fontweight="bold", loc="left", pad=4)
    bars(axes, _merged(found.new.within(span), span), MEGA, "segments", **NEW)
    steps(axes, found.ack_s, found.ack / MEGA, "ACKs", **ACKS)
    for kind, each in found.again.items():
        shown = each.within(span)
        axes.plot(
            shown.time_s,
            shown.start / MEGA,
            linestyle="",
            rasterized=len(shown) > MANY,
            label=str(kind),
            **MARKERS[kind],
        )
    axes.axvspan(near.start_s, near.stop_s, color="#E4E4E4", zorder=0.4, label="close look")
    top = max([*found.new.stop[-1:], *found.ack[-1:], 1]) / MEGA
    axes.set(xlim=(span.start_s, span.stop_s), ylim=(0, 1.04 * top))
    axes.set_xlabel("time (s)")
    axes.set_ylabel("sequence number (MB)")
    axes.xaxis.set_major_locator(MaxNLocator(5))


def _merged(each: Stretches, span: Span) -> Stretches:
    """A column of pixels is one bar: from its lowest sequence number to its highest."""
    if len(each) <= COLUMNS:
        return each
    column = np.floor((each.time_s - span.start_s) / span.seconds * COLUMNS)
    first = np.flatnonzero(np.diff(column, prepend=-1))
    return Stretches(
        each.time_s[first],
        np.minimum.reduceat(each.start, first),
        np.maximum.reduceat(each.stop, first),
    )
