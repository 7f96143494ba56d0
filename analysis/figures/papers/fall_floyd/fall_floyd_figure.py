"""Fall, Floyd: segments over time, one column per variant, one row per number of lost segments."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure as DrawnFigure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from analysis.figures.general import general_figures
from analysis.figures.papers.fall_floyd import outcomes
from analysis.figures.papers.fall_floyd.loss_panels import (
    Extent,
    Panel,
    extent,
    figures,
    panels,
    split,
)
from analysis.figures.papers.fall_floyd.outcome_text import DEFINITIONS, footer, note, title
from analysis.figures.plotting import style
from analysis.figures.plotting.named_figure import AnyFigure, NamedFigure
from analysis.results.experiment_results import ExperimentResults
from analysis.trials.labels import variant_key

READING = "Segments and ACKs at the sender, one column per variant, one row per set of losses."

# How the marks look, in the panels and in the legend.
MARKS: dict[str, dict[str, Any]] = {
    "new data": {"linestyle": "", "marker": ".", "color": style.BLACK, "markersize": 1.6},
    "lost": {
        "linestyle": "",
        "marker": "x",
        "color": style.BLUE,
        "markersize": 3.4,
        "markeredgewidth": 0.8,
    },
    "sent again": {
        "linestyle": "",
        "marker": "o",
        "color": style.VERMILLION,
        "markersize": 2.8,
        "markeredgewidth": 0,
    },
    "ACKs": {
        "color": "#9A9A9A",
        "linewidth": 0.5,
        "marker": "|",
        "markersize": 2,
        "markeredgewidth": 0.3,
    },
    "timeout": {"color": style.BLACK, "linestyle": (0, (3, 2)), "linewidth": 0.7},
}


def draw(results: ExperimentResults) -> Iterator[AnyFigure]:
    """The segments over time, one figure per profile; then the general figures."""
    for stem, trials in figures(results.trials, results.key).items():
        drawn = panels(trials)
        if any(each.segments for each in drawn):
            caption = title(drawn).replace("\n", " ")
            yield NamedFigure(stem, caption, _figure(drawn), _points(drawn), READING)
    yield from general_figures.draw(results)


def _points(panels: Sequence[Panel]) -> pd.DataFrame:
    """The drawn points: each segment and ACK by the time since the first segment."""
    tables = []
    for each in panels:
        for mark, points in _marks(each).items():
            table = pd.DataFrame({"time_s": points.time_s, "segment": points.number})
            tables.append(table.assign(variant=each.variant, lost=len(each.lost), mark=mark))
    columns = ["variant", "lost", "mark", "time_s", "segment"]
    return pd.concat(tables, ignore_index=True)[columns]


def _marks(drawn: Panel) -> dict[str, outcomes.Points]:
    """The points by their mark, on a clock that starts with the first segment."""
    segments = drawn.segments
    if segments is None:
        return {}
    zero = float(segments.new.time_s[0])
    arrives, gone = split(segments.new, drawn.lost)
    marks = {"ACKs": segments.acks, "new data": arrives, "sent again": segments.again, "lost": gone}
    return {
        mark: outcomes.Points(points.time_s - zero, points.number) for mark, points in marks.items()
    }


def _figure(panels: Sequence[Panel]) -> DrawnFigure:
    across = sorted({each.variant for each in panels}, key=variant_key)
    down = sorted({each.lost for each in panels}, key=lambda lost: (len(lost), lost))
    figure, axes = _grid(len(down), len(across))
    colours = style.variant_colours(across)
    found = {(each.lost, each.variant): each for each in panels}
    shown = extent(panels)
    for i, lost in enumerate(down):
        for j, variant in enumerate(across):
            _draw_panel(axes[i][j], found.get((lost, variant)), shown)
        axes[i][0].set_ylabel(_row_name(lost), fontweight="bold", labelpad=5)
    for j, variant in enumerate(across):
        _head(axes[0][j], variant, colours[variant])
        axes[-1][j].set_xlabel("time (s)")
    figure.supylabel("segment number", fontsize=7)
    _words(figure, panels, shown)
    return figure


def _grid(height: int, width: int) -> tuple[DrawnFigure, list[list[Axes]]]:
    """The panels, between a title with a legend and a footer, both of fixed heights."""
    inches = 1.35 * height + 1.7
    head, foot = 0.68 / inches, 0.34 / inches
    figure = DrawnFigure(
        figsize=(max(style.WIDTH_INCHES, 1.35 * width), inches),
        layout=ConstrainedLayoutEngine(rect=(0, foot, 1, 1 - head - foot), h_pad=0.04, w_pad=0.03),
    )
    axes = figure.subplots(height, width, squeeze=False, sharex=True, sharey=True)
    return figure, [list(line) for line in axes]


def _words(figure: DrawnFigure, panels: Sequence[Panel], shown: Extent | None) -> None:
    """The title, the legend below it, and the footer."""
    figure.text(
        0.01, 0.992, title(panels), fontsize=9, fontweight="bold", va="top", linespacing=1.3
    )
    below = 1 - 0.38 / figure.get_figheight()
    figure.legend(
        handles=[Line2D([], [], label=label, **look) for label, look in MARKS.items()],
        loc="upper left",
        bbox_to_anchor=(0.0, below),
        ncols=len(MARKS),
        frameon=False,
        fontsize=6.5,
        handlelength=1.6,
        handletextpad=0.5,
        columnspacing=1.8,
    )
    small = footer(panels, shown)
    figure.text(0.01, 0.01, small, fontsize=5.5, color=style.GREY, va="bottom", linespacing=1.4)


def _row_name(lost: tuple[int, ...]) -> str:
    numbers = ", ".join(map(str, lost))
    return f"{len(lost)} lost: {numbers}"


def _head(axes: Axes, variant: str, colour: str) -> None:
    """The variant's name over its column, and what defines it."""
    for text, above, look in (
        (variant, 46, {"fontsize": 8, "fontweight": "bold", "color": colour}),
        (DEFINITIONS.get(variant, ""), 36, {"fontsize": 5.5, "linespacing": 1.2}),
    ):
        axes.annotate(
            text,
            (0, 1),
            xycoords="axes fraction",
            xytext=(0, above),
            textcoords="offset points",
            va="top",
            **look,
        )


def _draw_panel(axes: Axes, drawn: Panel | None, shown: Extent | None) -> None:
    if drawn is None or drawn.segments is None or drawn.outcome is None or shown is None:
        axes.set_facecolor("#F2F2F2")
        axes.grid(False)
        reason = textwrap.fill(drawn.reason if drawn else "no trial", 28, max_lines=6)
        axes.text(0.05, 0.5, reason, transform=axes.transAxes, fontsize=5.5, va="center")
        return
    words = note(drawn.outcome)
    axes.set_title(words, fontsize=5.5, color=style.GREY, loc="left", pad=2, linespacing=1.15)
    _draw_segments(axes, drawn, drawn.segments)
    axes.set_xlim(shown.time_s)
    axes.set_ylim(shown.number)
    axes.xaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))
    axes.yaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10], integer=True))


def _draw_segments(axes: Axes, drawn: Panel, segments: outcomes.Sequence) -> None:
    """All marks, on a clock that starts with the first segment."""
    for label, points in _marks(drawn).items():
        step = "steps-post" if label == "ACKs" else "default"
        axes.plot(points.time_s, points.number, drawstyle=step, label=label, **MARKS[label])
    for time_s in segments.timeouts_s - float(segments.new.time_s[0]):
        axes.axvline(time_s, label="timeout", **MARKS["timeout"])
        axes.annotate(
            "timeout",
            (time_s, 0.02),
            xycoords=axes.get_xaxis_transform(),
            xytext=(-1.5, 0),
            textcoords="offset points",
            fontsize=5.5,
            rotation=90,
            ha="right",
            va="bottom",
        )
