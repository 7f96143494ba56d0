"""The first figure of a run: its main metric by setting, which fills while trials end."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pandas as pd

from analysis.figures.plotting import style
from analysis.metrics.columns import METRICS
from analysis.metrics.metric_rows import invalid
from analysis.report.inline import ink
from analysis.statistics.intervals import half_width, known
from testbed.scenario.model import Scenario

LANE, ABOVE, BELOW, RIGHT = 20, 8, 44, 16  # pixels
UNIT = 1.6  # pixels of a point
LETTER = 7  # pixels, about
MOST = 40  # settings that are shown; the table of the finished page has all
MOST_LETTERS = 40
ROOM = 0.15  # beside the points, of their range

Json = dict[str, Any]
Words = tuple[str, ...]


class FirstFigure:
    """Values by setting and flow; `number` tells one state of it from the next."""

    def __init__(self, metric: str) -> None:
        self.number = 0
        self._metric = metric
        self._values: dict[Words, dict[int, float]] = {}  # setting and flow → seed → value

    def add(self, scenario: Scenario, rows: pd.DataFrame) -> None:
        """A trial's rows, one a flow; an invalid trial does not count."""
        if invalid(rows).any() or self._metric not in rows:
            return
        setting = tuple(scenario.axes.values()) or (scenario.label or scenario.experiment,)
        for flow, value in zip(rows["flow"], rows[self._metric], strict=True):
            if math.isfinite(value):
                own = self._values.setdefault((*setting, str(flow)), {})
                own[scenario.seed] = float(value)
        self.number += 1

    def told(self) -> Json:
        """The plot: each trial's value, and each setting's mean with its interval."""
        shown = list(self._values.values())[-MOST:]
        names = _names(list(self._values)[-MOST:])
        values = [value for own in shown for value in own.values()] or [0.0]
        low, high = min(values), max(values)
        room = ROOM * ((high - low) or abs(high) or 1.0)
        marks = [_trials(shown), _means(shown)]
        height = LANE * max(1, len(names))
        return {
            "name": f"{self._label()} by setting, of the trials that have ended",
            "unit": UNIT,
            "height": ABOVE + height + BELOW,
            "panels": [self._panel(names, height, (low - room, high + room))],
            "marks": marks,
            "legend": {"box": None, "size": 7.5, "entries": _entries(marks)},
        }

    def _label(self) -> str:
        unit = next((each.unit for each in METRICS if each.name == self._metric), "")
        words = self._metric.removesuffix("_mbps").removesuffix("_ms").replace("_", " ")
        return f"{words} ({unit})" if unit else words

    def _panel(self, names: Sequence[str], height: int, across: tuple[float, float]) -> Json:
        left = 24 + LETTER * max((len(name) for name in names), default=0)
        lanes = {"names": True, "ticks": list(enumerate(names)), "grid": False}
        return {
            "box": [left, ABOVE, RIGHT, height],
            "x": {"lim": across, "scale": "linear", "label": self._label(), "grid": True},
            "y": {"lim": (len(names) - 0.4, -0.6), "scale": "linear", "label": "", **lanes},
            "zooms": True,
        }


def _names(shown: Sequence[Words]) -> list[str]:
    """What tells them apart: `cubic codel`; of one alone all of it."""
    width = max((len(words) for words in shown), default=0)
    apart = [i for i in range(width) if len({words[i : i + 1] for words in shown}) > 1]
    named = [" ".join(words[i] for i in apart if i < len(words)) for words in shown]
    return [
        (name or " ".join(words))[:MOST_LETTERS] for name, words in zip(named, shown, strict=True)
    ]


def _trials(shown: Sequence[dict[int, float]]) -> Json:
    """A small mark a trial."""
    pairs = [(value, place) for place, own in enumerate(shown) for value in own.values()]
    look = {"marker": "|", "size": 8, "width": 0.9}
    return _mark("trial", style.GREY, pairs, **look)


def _means(shown: Sequence[dict[int, float]]) -> Json:
    pairs, told = [], Json(low=[], high=[], n=[])
    for place, own in enumerate(shown):
        values = known(own.values())
        mean, half = float(values.mean()), half_width(values)
        pairs.append((mean, place))
        told["n"].append(len(values))
        told["low"].append(mean - half if math.isfinite(half) else None)
        told["high"].append(mean + half if math.isfinite(half) else None)
    return _mark("mean", style.BLUE, pairs, marker="o", size=7, width=0.8, told=told)


def _mark(series: str, colour: str, pairs: Sequence[tuple[float, int]], **look: object) -> Json:
    x, y = ([pair[side] for pair in pairs] for side in (0, 1))
    return {
        "kind": "points",
        "panel": 0,
        "series": series,
        "colour": ink(colour),
        "x": x,
        "y": y,
        "sorted": False,
        **look,
    }


def _entries(marks: Sequence[Json]) -> list[Json]:
    return [
        {"name": each["series"], "colour": each["colour"], "marker": each["marker"], "line": False}
        for each in marks
    ]
