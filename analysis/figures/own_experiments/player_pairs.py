"""Our model of a player against a real browser: the same video over the same line."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from analysis.results.experiment_results import ExperimentResults
from analysis.statistics.text_tables import TextTable
from analysis.trials.video import video_measures
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
