"""The layout of a figure: panels, title, legend, footer, and names beside lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.lines import Line2D

from analysis.figures.plotting import style
from analysis.figures.plotting.style import SeriesStyle

FOOT_INCHES = 0.26  # two lines
APART = 0.08  # of an axis's height: less, and names at the lines' ends overlap
LEAST_SPAN = 0.1  # of the largest value: differences below it are no difference to look at


def grid(
    down: int, across: int, *, panel: float = 1.5, head: float = 0.5, share: bool = False
) -> tuple[Figure, list[list[Axes]]]:
    """Panels below room for a title and a legend, above room for a foot."""
    inches = panel * down + head + FOOT_INCHES + 0.08
    figure = Figure(
        figsize=(style.WIDTH_INCHES, inches),
        layout=ConstrainedLayoutEngine(
            rect=(0, FOOT_INCHES / inches, 1, 1 - (FOOT_INCHES + head) / inches),
            h_pad=0.05,
            w_pad=0.05,
        ),
    )
    axes = figure.subplots(down, across, squeeze=False, sharex=share, sharey=share)
    return figure, [list(line) for line in axes]


def title_and_foot(figure: Figure, title: str, foot: str) -> None:
    """The title above and, small, what was counted below."""
    height = figure.get_figheight()
    figure.text(0.01, 1 - 0.06 / height, title, fontsize=9, fontweight="bold", va="top")
    figure.text(0.01, 0.05 / height, foot, fontsize=6, color=style.GREY, va="bottom")


def legend(figure: Figure, looks: Mapping[str, SeriesStyle]) -> None:
    """One for all panels, between the title and them."""
    handles = [
        Line2D([], [], color=look.colour, marker=look.marker, markersize=4, linewidth=1, label=name)
        for name, look in looks.items()
    ]
    figure.legend(
        handles=handles,
        loc="upper left",
        bbox_to_anchor=(0.0, 1 - 0.25 / figure.get_figheight()),
        ncols=min(10, len(handles)),
        frameon=False,
        fontsize=7 if len(handles) < 9 else 6,
        handlelength=1.6 if len(handles) < 9 else 1.2,
        columnspacing=1.2 if len(handles) < 9 else 0.8,
        borderaxespad=0.2,
    )


def name_line_ends(axes: Axes, ends: Sequence[tuple[float, str, str]]) -> None:
    """Names in their colours where lines end, the upper ones moved up where two meet."""
    low, high = axes.get_ylim()
    last = -np.inf
    for value, words, colour in sorted(ends):
        last = max((value - low) / (high - low), last + APART)
        axes.annotate(
            words,
            (1.01, last),
            xycoords="axes fraction",
            fontsize=6,
            color=colour,
            va="center",
            annotation_clip=False,
        )


def widen_flat_axes(axes: Axes, *which: Literal["x", "y"]) -> None:
    """Axes `x`, `y` that would blow up differences of no account are widened; numbers are written
    whole, not as small ones beside an offset."""
    for name in which:
        low, high = sorted(getattr(axes, f"get_{name}lim")())
        middle, least = (low + high) / 2, LEAST_SPAN * max(abs(low), abs(high))
        if 0 < high - low < least:
            getattr(axes, f"set_{name}lim")(middle - least / 2, middle + least / 2)
        axes.ticklabel_format(axis=name, useOffset=False)
