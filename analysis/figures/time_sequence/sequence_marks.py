"""The look of segments, acknowledgements, blocks and windows in a time-sequence diagram."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from analysis.figures.plotting import style
from analysis.figures.plotting.thinning import seen
from analysis.figures.time_sequence.sequence_data import Sequence, Stretches
from analysis.figures.timeline.event_markers import MARKERS
from analysis.figures.timeline.timeline_events import Kind
from analysis.trials.series import Floats

COLUMNS = 700  # of a panel: what can be told apart, printed
MANY = 2000  # marks; beyond, an SVG holds them as pixels
KILO, MEGA = 1e3, 1e6

ACKS: dict[str, Any] = {"color": style.GREEN, "linewidth": 0.9}
WINDOW: dict[str, Any] = {
    "color": style.BROWN,
    "linewidth": 0.9,
    "linestyle": (0, (4, 1.5, 1, 1.5)),
}
SACKS: dict[str, Any] = {"color": style.PURPLE, "linewidth": 1.1}
NEW: dict[str, Any] = {"color": style.BLACK, "linewidth": 0.9}
AGAIN: dict[str, Any] = {"color": style.VERMILLION, "linewidth": 1.6}
DISORDERED: dict[str, Any] = {"color": style.SKY, "linewidth": 1.6}
LOST: dict[str, Any] = {**MARKERS[Kind.DROP], "markersize": 3, "markeredgewidth": 0.6}


def bars(axes: Axes, each: Stretches, scale: float, label: str, **look: Any) -> None:
    """Vertical lines, each from its first byte to its last."""
    ends = [np.column_stack((each.time_s, number / scale)) for number in (each.start, each.stop)]
    lines = LineCollection(
        list(np.stack(ends, axis=1)),
        label=label,
        rasterized=len(each) > MANY,
        capstyle="butt",
        **look,
    )
    axes.add_collection(lines)


def steps(axes: Axes, time_s: Floats, value: Floats, label: str, **look: Any) -> None:
    """A line of steps, with as many of them as can be seen."""
    keep = seen(time_s, value, COLUMNS)
    axes.plot(time_s[keep], value[keep], drawstyle="steps-post", label=label, **look)


def legend(figure: Figure, found: Sequence, below: float) -> None:
    """The legend; classes that do not occur are left out."""
    stroke: dict[str, Any] = {"linestyle": "", "marker": "|", "markersize": 6}
    handles = [
        Line2D([], [], label="segment", color=style.BLACK, markeredgewidth=1, **stroke),
        *(
            Line2D([], [], linestyle="", label=str(kind), **MARKERS[kind])
            for kind, each in found.again.items()
            if len(each)
        ),
        Line2D([], [], linestyle="", label="lost", **LOST),
        Line2D([], [], label="ACKs (ticks: duplicates)", **ACKS),
        Line2D([], [], label="receiver's window", **WINDOW),
    ]
    if len(found.sacks):
        block = Line2D(
            [], [], label="SACK block", color=style.PURPLE, markeredgewidth=1.4, **stroke
        )
        handles.insert(-1, block)
    figure.legend(
        handles=handles,
        loc="upper left",
        bbox_to_anchor=(0.0, below),
        ncols=len(handles),
        frameon=False,
        fontsize=5.8,
        handlelength=1.4,
        handletextpad=0.4,
        columnspacing=1.0,
    )
