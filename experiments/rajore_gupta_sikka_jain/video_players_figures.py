"""Our model of a player against a real browser: the same video over the same line."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from analysis.figures import cases, style
from analysis.figures.figure import Axis, Curve, Figure, LegendEntry, Panel, in_rows
from analysis.results.experiment_results import ExperimentResults
from analysis.statistics.text_tables import TextTable
from analysis.trials.video import read_playback, video_measures
from testbed.store.reading import Trial
from testbed.store.records import Status

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
        *parts, length_s = self.axes.values()
        return ", ".join((*parts, f"{length_s} s"))

    def seconds(self, measure: str) -> tuple[float, float]:
        """Return the medians of a measure: the model's, the browser's."""
        model, browser = (
            float(video_measures(trials)[measure].median()) for trials in (self.model, self.browser)
        )
        return model, browser

    def agrees(self, measure: str) -> bool:
        """Return whether the model is within its stated tolerance of the browser."""
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
    """Return a sort key that orders numbers by value: 240p before 1080p."""
    return tuple(_number(value) for value in axes.values())


def _number(text: str) -> tuple[float, str]:
    digits = text.removesuffix("p")
    return (float(digits), "") if digits.isdigit() else (math.inf, text)


def table(results: ExperimentResults) -> TextTable:
    """One row per video and measure."""
    all_pairs = pairs(results.trials)
    lines = [line for pair in all_pairs for line in _lines(pair)]
    verdicts = [line[-1] for line in lines]
    note = (
        f"medians; within {WITHIN_S:g} s or {WITHIN_SHARE:.0%}: "
        f"{verdicts.count(WITHIN)} of {len(verdicts) - verdicts.count('')}"
    )
    axes = tuple(all_pairs[0].axes) if all_pairs else ()
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


PANELS_ACROSS = 2
LOOKS = {"chromium": (style.SKY, 2.4), "model": (style.BLACK, 0.7)}  # colour, width


def draw(results: ExperimentResults) -> Iterator[Figure]:
    """Yield the seconds of video in the buffer over time, one panel per video."""
    if all_pairs := pairs(results.trials):
        yield Figure(
            stem=cases.stem(results.key, "buffer"),
            title=f"{results.experiment}: video in the buffer",
            panels=_panels(all_pairs),
            caption=_caption(all_pairs),
            legend=tuple(
                LegendEntry(name, colour, width=width) for name, (colour, width) in LOOKS.items()
            ),
            row_inches=1.35,
            data=_data(all_pairs),
        )


def _caption(all_pairs: Sequence[Pair]) -> str:
    loads = [pair.seconds("loaded_s") for pair in all_pairs]
    apart = max(abs(model - browser) for model, browser in loads)
    return (
        "Video in the buffer, of the player's model and of the browser. Until all is loaded, the "
        f"two take times that are at most {apart:.2f} s apart."
    )


def _data(all_pairs: Sequence[Pair]) -> pd.DataFrame:
    tables = [
        pd.DataFrame(_levels(trials[0]), columns=["time_s", "buffer_s"]).assign(
            video=pair.name, player=name
        )
        for pair in all_pairs
        for name, trials in (("chromium", pair.browser), ("model", pair.model))
    ]
    return pd.concat(tables, ignore_index=True)


def _panels(all_pairs: Sequence[Pair]) -> Sequence[Sequence[Panel | None]]:
    """Between two of the points the level falls as time passes, or stands still."""
    panels = []
    for place, pair in enumerate(all_pairs):
        marks = []
        for name, trials in (("chromium", pair.browser), ("model", pair.model)):
            levels = np.array(_levels(trials[0]), dtype=float).reshape(-1, 2)
            marks.append(Curve(levels[:, 0], levels[:, 1], *LOOKS[name], series=name))
        last, first = place >= len(all_pairs) - PANELS_ACROSS, place % PANELS_ACROSS == 0
        x = Axis("since the click (s)" if last else "", limits=(0, None))
        y = Axis("in the buffer (s)" if first else "", limits=(0, None))
        panels.append(Panel(marks, x, y, title=pair.name))
    return in_rows(panels, PANELS_ACROSS)


def _levels(trial: Trial) -> list[tuple[float, float]]:
    """Time and seconds of video, where the playback was reported."""
    playback = read_playback(trial, trial.scenario.flows[0].name)
    return list(playback["levels"]) if playback else []
