"""The buffer level during playback: the player's model over the real browser."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis.figures.own_experiments.player_pairs import Pair, pairs
from analysis.figures.plotting import cases, style
from analysis.figures.plotting.named_figure import AnyFigure, NamedFigure
from analysis.results.experiment_results import ExperimentResults
from analysis.trials.video import read_playback
from testbed.store import Trial

COLUMNS = 2
LOOKS = {
    "chromium": {"color": style.SKY, "linewidth": 2.4, "solid_capstyle": "butt"},
    "model": {"color": style.BLACK, "linewidth": 0.7},
}


def draw(results: ExperimentResults) -> Iterator[AnyFigure]:
    """Seconds of video in the buffer over time, one panel per video."""
    if found := pairs(results.trials):
        stem = cases.stem(results.key, "buffer")
        yield NamedFigure(stem, _caption(found), _figure(found), _data(found))


def _caption(found: Sequence[Pair]) -> str:
    loads = [pair.seconds("loaded_s") for pair in found]
    apart = max(abs(model - browser) for model, browser in loads)
    return (
        "Video in the buffer, of the player's model and of the browser. Until all is loaded, the "
        f"two take times that are at most {apart:.2f} s apart."
    )


def _data(found: Sequence[Pair]) -> pd.DataFrame:
    tables = [
        pd.DataFrame(_levels(trials[0]), columns=["time_s", "buffer_s"]).assign(
            video=pair.name, player=name
        )
        for pair in found
        for name, trials in (("chromium", pair.browser), ("model", pair.model))
    ]
    return pd.concat(tables, ignore_index=True)


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
    axes.plot(*zip(*_levels(trial), strict=True), label=name, **LOOKS[name])  # type: ignore[arg-type]


def _levels(trial: Trial) -> list[tuple[float, float]]:
    """Time and seconds of video, where the playback was reported."""
    playback = read_playback(trial, trial.scenario.flows[0].name)
    return list(playback["levels"]) if playback else []
