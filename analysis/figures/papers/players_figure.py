"""Draws what lay in the buffer while a video was watched: the model over the real browser."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis.figures.papers.players import Pair, pairs
from analysis.figures.shared import style
from analysis.trials.video import read_playback
from testbed.store import Trial

COLUMNS = 2
LOOKS = {
    "chromium": {"color": style.SKY, "linewidth": 2.4, "solid_capstyle": "butt"},
    "model": {"color": style.BLACK, "linewidth": 0.7},
}


def draw(results: Path) -> list[Path]:
    """Seconds of video in the buffer over time, a panel a video; PNG and SVG under figures/."""
    found = pairs(results)
    if not found:
        return []
    with mpl.rc_context(fname=style.SHEET):
        return style.save(_figure(found), results / "figures", "players")


def _figure(found: Sequence[Pair]) -> Figure:
    rows = -(-len(found) // COLUMNS)
    figure = Figure(figsize=(style.WIDTH_INCHES, 1.35 * rows + 0.5), layout="constrained")
    grid = figure.subplots(rows, COLUMNS, squeeze=False)
    for axes, pair in zip(grid.flat, found, strict=False):
        for name, trials in (("chromium", pair.browser), ("model", pair.model)):
            _line(axes, trials[0], name)
        axes.set_title(pair.name, fontsize=7, loc="left")
        axes.set_ylim(bottom=0)
        axes.set_xlim(left=0)
    for axes in list(grid.flat)[len(found) :]:
        axes.set_visible(False)
    for first in grid[:, 0]:
        first.set_ylabel("in the buffer (s)")
    for axes in list(grid.flat)[len(found) - COLUMNS : len(found)]:
        axes.set_xlabel("since the click (s)")
    grid[0][0].legend(fontsize=6)
    return figure


def _line(axes: Axes, trial: Trial, name: str) -> None:
    """Between two of the points the level falls as time passes, or stands still."""
    playback = read_playback(trial, trial.scenario.flows[0].name)
    points = playback["levels"] if playback else []
    axes.plot(*zip(*points, strict=True), label=name, **LOOKS[name])  # type: ignore[arg-type]
