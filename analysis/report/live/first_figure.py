"""The first figure of a run: its main metric by setting, which fills while trials end."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pandas as pd

from analysis.figures import style
from analysis.figures.figure import (
    Axis,
    Figure,
    LegendEntry,
    Panel,
    PointEvidence,
    PointSeries,
)
from analysis.metrics.columns import ALL_METRICS
from analysis.metrics.metric_rows import invalid
from analysis.report.page_plot import plot
from analysis.results.plotted import Json
from analysis.statistics.intervals import half_width, known
from testbed.scenario.model import Scenario

SETTING_INCHES, X_AXIS_INCHES = 0.15, 0.42
MAX_SETTINGS = 40  # settings that are shown; the table of the finished page has all
MAX_LETTERS = 40
AXIS_MARGIN = 0.15  # beside the points, of their range

Words = tuple[str, ...]


class FirstFigure:
    """Values by setting and flow; `number` tells one state of it from the next."""

    def __init__(self, metric: str) -> None:
        self.number = 0
        self._metric = metric
        self._values: dict[Words, dict[int, float]] = {}  # setting and flow → seed → value

    def add(self, scenario: Scenario, rows: pd.DataFrame) -> None:
        """Add a trial's rows, one for each flow; an invalid trial does not count."""
        if invalid(rows).any() or self._metric not in rows:
            return
        setting = tuple(scenario.axes.values()) or (scenario.label or scenario.experiment,)
        for flow, value in zip(rows["flow"], rows[self._metric], strict=True):
            if math.isfinite(value):
                own = self._values.setdefault((*setting, str(flow)), {})
                own[scenario.seed] = float(value)
        self.number += 1

    def told(self) -> Json:
        """Return the plot: each trial's value, and each setting's mean with its interval."""
        shown = list(self._values.values())[-MAX_SETTINGS:]
        names = _names(list(self._values)[-MAX_SETTINGS:])
        panel = Panel(
            [_trials(shown), _means(shown)],
            Axis(self._label(), margin=AXIS_MARGIN),
            Axis(names=names, grid=False),
        )
        figure = Figure(
            stem="first",
            title="",
            panels=((panel,),),
            legend=(
                LegendEntry("trial", style.GREY, "|", kind="points"),
                LegendEntry("mean", style.BLUE, "o", kind="points"),
            ),
            row_inches=X_AXIS_INCHES + SETTING_INCHES * max(1, len(names)),
        )
        return plot(figure, f"{self._label()} by setting, of the trials that have ended", {})

    def _label(self) -> str:
        unit = next((each.unit for each in ALL_METRICS if each.name == self._metric), "")
        words = self._metric.removesuffix("_mbps").removesuffix("_ms").replace("_", " ")
        return f"{words} ({unit})" if unit else words


def _names(shown: Sequence[Words]) -> list[str]:
    """Name settings by the words in which they differ; a single one by all its words."""
    width = max((len(words) for words in shown), default=0)
    apart = [i for i in range(width) if len({words[i : i + 1] for words in shown}) > 1]
    named = [" ".join(words[i] for i in apart if i < len(words)) for words in shown]
    return [
        (name or " ".join(words))[:MAX_LETTERS] for name, words in zip(named, shown, strict=True)
    ]


def _trials(shown: Sequence[dict[int, float]]) -> PointSeries:
    """Return a small mark for each trial."""
    pairs = [(value, place) for place, own in enumerate(shown) for value in own.values()]
    x, y = ([pair[side] for pair in pairs] for side in (0, 1))
    return PointSeries(x, y, style.GREY, "|", size=5, edge_width=0.9, series="trial")


def _means(shown: Sequence[dict[int, float]]) -> PointSeries:
    means, low, high, n = [], [], [], []
    for own in shown:
        values = known(own.values())
        mean, half = float(values.mean()), half_width(values)
        means.append(mean)
        low.append(mean - half)
        high.append(mean + half)
        n.append(len(values))
    places = list(range(len(shown)))
    evidence = PointEvidence(low, high, n)
    return PointSeries(means, places, style.BLUE, size=4.4, series="mean", evidence=evidence)
