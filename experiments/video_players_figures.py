"""Our model of a player against a real browser: the same video over the same line."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis.figures import cases, style
from analysis.figures.plotting.named_figure import AnyFigure, NamedFigure
from analysis.results.experiment_results import ExperimentResults
from analysis.statistics.text_tables import TextTable
from analysis.trials.video import read_playback, video_measures
from testbed.store import Status, Trial

PLAYER = "player"  # the axis on which the two differ
PLAYERS = MODEL, BROWSER = "model", "chromium"
WITHIN, BEYOND = "agree", "differ"
# The model's tolerance: so many seconds, or that fraction of the browser's value.
WITHIN_S, WITHIN_SHARE = 0.5, 0.05
SECONDS = {
    "page_s": "page s",
    "startup_s": "playback starts s",
    "loaded_s": "loaded s",
    "ended_s": "shown s",
    "stall_s": "stalled s",
}


@dataclass(frozen=True)
class Pair:
    """One video as played by both players, once or several times."""

    axes: dict[str, str]
    model: tuple[Trial, ...]
    browser: tuple[Trial, ...]

    @property
    def name(self) -> str:
        """A label of the video watched: `shaped, 720p, quic, 30 s`."""
        *words, length_s = self.axes.values()
        return ", ".join((*words, f"{length_s} s"))

    def seconds(self, measure: str) -> tuple[float, float]:
        """The medians of a measure: the model's, the browser's."""
        model, browser = (
            float(video_measures(trials)[measure].median()) for trials in (self.model, self.browser)
        )
        return model, browser

    def agrees(self, measure: str) -> bool:
        """True if the model is within its stated tolerance of the browser."""
        model, browser = self.seconds(measure)
        return abs(model - browser) <= max(WITHIN_S, WITHIN_SHARE * browser)


def pairs(all_trials: Iterable[Trial]) -> list[Pair]:
    """All videos that both players saw."""
    seen: dict[tuple[str, ...], dict[str, list[Trial]]] = {}
    for trial in all_trials:
        axes = trial.scenario.axes
        if trial.record.status is Status.OK and PLAYER in axes:
            key = tuple(value for name, value in axes.items() if name != PLAYER)
            seen.setdefault(key, {}).setdefault(axes[PLAYER], []).append(trial)
    both = [each for each in seen.values() if {MODEL, BROWSER} <= each.keys()]
    return sorted(map(_pair, both), key=lambda pair: _place(pair.axes))


def _pair(trials: dict[str, list[Trial]]) -> Pair:
    model, browser = trials[MODEL], trials[BROWSER]
    axes = {name: value for name, value in model[0].scenario.axes.items() if name != PLAYER}
    return Pair(axes, tuple(model), tuple(browser))


def _place(axes: dict[str, str]) -> tuple[object, ...]:
    """A sort key that orders numbers by value: 240p before 1080p."""
    return tuple(_number(value) for value in axes.values())


def _number(text: str) -> tuple[float, str]:
    digits = text.removesuffix("p")
    return (float(digits), "") if digits.isdigit() else (math.inf, text)


def table(results: ExperimentResults) -> TextTable:
    """One row per video and measure."""
    found = pairs(results.trials)
    lines = [line for pair in found for line in _lines(pair)]
    verdicts = [line[-1] for line in lines]
    note = (
        f"medians; within {WITHIN_S:g} s or {WITHIN_SHARE:.0%}: "
        f"{verdicts.count(WITHIN)} of {len(verdicts) - verdicts.count('')}"
    )
    axes = tuple(found[0].axes) if found else ()
    return TextTable((*axes, "n", "measure", *PLAYERS, "difference", "verdict"), tuple(lines), note)


def _lines(pair: Pair) -> Iterator[tuple[str, ...]]:
    first = (*pair.axes.values(), f"{len(pair.model)}+{len(pair.browser)}")
    for measure, heading in SECONDS.items():
        model, browser = pair.seconds(measure)
        verdict = WITHIN if pair.agrees(measure) else BEYOND
        cells = (f"{model:.2f}", f"{browser:.2f}", f"{model - browser:+.2f}", verdict)
        yield (*first, heading, *cells)
        first = ("",) * len(first)
    model, browser = pair.seconds("stalls")
    yield (*first, "stalls", f"{model:g}", f"{browser:g}", f"{model - browser:+g}", "")


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
