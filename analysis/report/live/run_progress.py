"""What is known of a run while it is under way: gathered from its events, told as JSON.

Its first figure is the main metric by setting, which fills while trials end.
"""

from __future__ import annotations

import math
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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
from analysis.report.live.loopback_server import LoopbackServer, Query
from analysis.report.page import SHARED, fill, policy_of
from analysis.report.page_plot import plot
from analysis.statistics.intervals import half_width, known
from testbed.scenario.model import Scenario
from testbed.store.reading import Trial
from testbed.store.records import Status

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
                values = self._values.setdefault((*setting, str(flow)), {})
                values[scenario.seed] = float(value)
        self.number += 1

    def as_json(self) -> Json:
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
        metric = self._metric.removesuffix("_mbps").removesuffix("_ms").replace("_", " ")
        return f"{metric} ({unit})" if unit else metric


def _names(shown: Sequence[Words]) -> list[str]:
    """Name settings by the words in which they differ; a single one by all its words."""
    width = max((len(parts) for parts in shown), default=0)
    apart = [i for i in range(width) if len({parts[i : i + 1] for parts in shown}) > 1]
    named = [" ".join(parts[i] for i in apart if i < len(parts)) for parts in shown]
    return [
        (name or " ".join(parts))[:MAX_LETTERS] for name, parts in zip(named, shown, strict=True)
    ]


def _trials(shown: Sequence[dict[int, float]]) -> PointSeries:
    """Return a small mark for each trial."""
    pairs = [(value, place) for place, values in enumerate(shown) for value in values.values()]
    x, y = ([pair[side] for pair in pairs] for side in (0, 1))
    return PointSeries(x, y, style.GREY, "|", size=5, edge_width=0.9, series="trial")


def _means(shown: Sequence[dict[int, float]]) -> PointSeries:
    means, low, high, n = [], [], [], []
    for in_setting in shown:
        values = known(in_setting.values())
        mean, half = float(values.mean()), half_width(values)
        means.append(mean)
        low.append(mean - half)
        high.append(mean + half)
        n.append(len(values))
    places = list(range(len(shown)))
    evidence = PointEvidence(low, high, n)
    return PointSeries(means, places, style.BLUE, size=4.4, series="mean", evidence=evidence)


SCRIPTS = (*SHARED, "live.js")
NEWS = "connect-src 'self'"  # events from the server that sent the page
HERE = "this machine"
LATEST_SHOWN = 12  # trials that ended
SECOND_DIGITS = 1  # of seconds
OVER = ("complete", "interrupted")

Json = dict[str, Any]


@dataclass(frozen=True)
class Ended:
    """A trial that ended, as the page lists it."""

    name: str
    status: str
    said: str


class RunProgress:
    """The progress of a run; the sweep's threads and the server's may call it."""

    def __init__(
        self, experiment: str, metric: str, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._experiment, self._clock = experiment, clock
        self._lock = threading.Lock()
        self._figure = FirstFigure(metric)
        self._began = clock()
        self._running: dict[str, tuple[str, float]] = {}  # trial → where, since when
        self._ended: list[Ended] = []
        self._notes: dict[str, None] = {}
        self._state, self._page = "running", ""
        self._stopped_after = 0.0
        self.begin(0)

    def begin(self, total: int) -> None:
        """Begin a round of trials; `--until` has several."""
        with self._lock:
            self._total, self._counts = total, Counter[str]()
            self._fresh, self._round_began = 0, self._clock()

    def began(self, scenario: Scenario, where: str) -> None:
        """Note that a trial began; `where` if that is not this machine."""
        with self._lock:
            self._running[scenario.name] = (where or HERE, self._clock())

    def finished(self, trial: Trial, fresh: bool) -> None:
        """Note that a trial is done; `fresh` if it ran now."""
        record, name = trial.record, trial.scenario.name
        outcome = record.reason or f"{record.wall_s:.1f} s"
        with self._lock:
            self._running.pop(name, None)
            self._counts[str(record.status)] += 1
            self._fresh += fresh
            self._ended.append(
                Ended(name, str(record.status), outcome if fresh else "already there")
            )
            del self._ended[:-LATEST_SHOWN]

    def note(self, sentence: str) -> None:
        """Something else that a reader should know; once."""
        with self._lock:
            self._notes[sentence] = None

    def reduced(self, scenario: Scenario, rows: pd.DataFrame) -> None:
        """Take a trial's metrics."""
        with self._lock:
            self._figure.add(scenario, rows)

    def end(self, state: str, page: Path | None = None) -> None:
        """Note how the run ends: `finishing`, `complete` or `interrupted`."""
        with self._lock:
            self._state, self._page = state, str(page.resolve()) if page else ""
            self._stopped_after = self._stopped_after or self._clock() - self._began
            if state in OVER:
                self._running.clear()

    @property
    def ended_well(self) -> int:
        """The trials that have ended well."""
        with self._lock:
            return self._counts[str(Status.OK)]

    def as_json(self, have: int = -1) -> Json:
        """Return what the page shows; the figure only if the page does not have it yet."""
        with self._lock:
            now, done = self._clock(), sum(self._counts.values())
            progress: Json = {
                "experiment": self._experiment,
                "state": self._state,
                "over": self._state in OVER,
                "page": self._page,
                "total": self._total,
                "done": done,
                "counts": dict(self._counts),
                "elapsed_s": round(self._stopped_after or now - self._began, SECOND_DIGITS),
                "left_s": self._left_s(now, done),
                "running": self._running_as_json(now),
                "ended": [vars(each) for each in reversed(self._ended)],
                "notes": list(self._notes),
                "figure_number": self._figure.number,
            }
            if self._figure.number not in (0, have):
                progress["figure"] = self._figure.as_json()
            return progress

    def _running_as_json(self, now: float) -> list[Mapping[str, object]]:
        return [
            {"name": name, "where": where, "for_s": round(now - since, SECOND_DIGITS)}
            for name, (where, since) in self._running.items()
        ]

    def _left_s(self, now: float, done: int) -> float | None:
        """Estimate the time left from this round's trials; None before the first has ended."""
        if self._state != "running" or not self._fresh:
            return None
        pace = (now - self._round_began) / self._fresh
        return round(pace * (self._total - done), SECOND_DIGITS)


def live_server(progress: RunProgress, experiment: str) -> LoopbackServer:
    """Return a server, not started, of the page of this run."""
    page = fill("live.html", SCRIPTS, NEWS, experiment=experiment)

    def news(query: Query) -> Json:
        have = query.get("have", ["-1"])[0]
        return progress.as_json(int(have) if have.isdecimal() else -1)

    return LoopbackServer(page, policy_of(SCRIPTS, NEWS), news)
