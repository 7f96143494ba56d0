"""The layout of a figure: panels, title, legend, footer, and names beside lines."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.lines import Line2D

from analysis.figures import style
from analysis.figures.style import SeriesStyle

FOOT_INCHES = 0.26  # two lines
TITLE_POINTS = 7  # of a panel
SCALE_INCHES = 0.6  # beside a panel, for its scale
APART = 0.08  # of the axis height: the least distance between two labels
FEW_POINTS, MANY_POINTS = 7, 6  # letters of a legend with few entries, with many
LETTER = 0.62  # the mean width of a letter, of its height
LINE = 1.7  # between the lines of a legend, of the letters' height
LEAST_SPAN = 0.1  # of the largest value
ALIKE = 0.4  # of the range that all panels together have


def grid(
    down: int, across: int, *, panel: float = 1.5, head: float = 0.5, share: bool = False
) -> tuple[Figure, list[list[Axes]]]:
    """A grid of panels, with room for a title and a legend above and a footer below."""
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
    """Write the title at the top and the footer, in small print, at the bottom."""
    height = figure.get_figheight()
    figure.text(0.01, 1 - 0.06 / height, title, fontsize=9, fontweight="bold", va="top")
    figure.text(0.01, 0.05 / height, foot, fontsize=6, color=style.GREY, va="bottom")


def panel_title(axes: Axes, words: str) -> None:
    """Write a panel's setting above it, in lines as long as the panel is wide."""
    place = axes.get_subplotspec()
    across = place.get_gridspec().ncols if place else 1
    inches = style.WIDTH_INCHES / across - SCALE_INCHES
    letters = int(inches * 72 / (TITLE_POINTS * LETTER))
    lines = textwrap.fill(words, letters, break_long_words=False, break_on_hyphens=False)
    axes.set_title(lines, loc="left", fontweight="bold", fontsize=TITLE_POINTS)


def legend(figure: Figure, looks: Mapping[str, SeriesStyle]) -> None:
    """One legend for all panels: a line below the title, or beside them if it is too long."""
    few = len(looks) < 9
    size = FEW_POINTS if few else MANY_POINTS
    handles = [
        Line2D(
            [],
            [],
            color=look.colour,
            marker=look.marker,
            markersize=4,
            linewidth=1,
            linestyle=look.dash,
            label=name,
        )
        for name, look in looks.items()
    ]
    widths = [_entry_inches(name, size) for name in looks]
    if sum(widths) > figure.get_figwidth():
        _beside(figure, handles, max(_entry_inches(name, MANY_POINTS) for name in looks))
        return
    figure.legend(
        handles=handles,
        loc="upper left",
        bbox_to_anchor=(0.0, 1 - 0.25 / figure.get_figheight()),
        ncols=max(1, len(handles)),
        frameon=False,
        fontsize=size,
        handlelength=1.6 if few else 1.2,
        columnspacing=1.2 if few else 0.8,
        borderaxespad=0.2,
    )


def _entry_inches(name: str, size: float) -> float:
    """The width of a legend's entry: line, gaps and letters."""
    return size * (3.4 + LETTER * len(name)) / 72


def _beside(figure: Figure, handles: Sequence[Line2D], entry: float) -> None:
    """The legend at the right of the panels, which make room for it."""
    engine = figure.get_layout_engine()
    assert isinstance(engine, ConstrainedLayoutEngine)
    left, bottom, width, height = engine.get()["rect"]
    inches = height * figure.get_figheight()
    columns = math.ceil(len(handles) * LINE * MANY_POINTS / 72 / inches)
    taken = columns * entry / figure.get_figwidth()
    engine.set(rect=(left, bottom, width - taken, height))
    figure.legend(
        handles=handles,
        loc="upper right",
        bbox_to_anchor=(1.0, bottom + height),
        ncols=columns,
        frameon=False,
        fontsize=MANY_POINTS,
        handlelength=2,
        columnspacing=0.8,
        borderaxespad=0.2,
    )


def name_line_ends(axes: Axes, ends: Sequence[tuple[float, str, str]]) -> None:
    """Label lines at their right ends, moving labels up where they would overlap."""
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
    """Widen axes whose range is so small that it would exaggerate insignificant differences, and
    write numbers in full instead of relative to an offset."""
    for name in which:
        low, high = sorted(getattr(axes, f"get_{name}lim")())
        middle, least = (low + high) / 2, LEAST_SPAN * max(abs(low), abs(high))
        if 0 < high - low < least:
            getattr(axes, f"set_{name}lim")(middle - least / 2, middle + least / 2)
        axes.ticklabel_format(axis=name, useOffset=False)


def share_like_ranges(panels: Sequence[Axes], *which: Literal["x", "y"]) -> None:
    """Give panels one range where theirs are alike, so that places in them can be compared."""
    for name in which:
        limits = [sorted(getattr(axes, f"get_{name}lim")()) for axes in panels]
        low, high = min(each[0] for each in limits), max(each[1] for each in limits)
        if all(each[1] - each[0] >= ALIKE * (high - low) for each in limits):
            for axes in panels:
                getattr(axes, f"set_{name}lim")(low, high)
