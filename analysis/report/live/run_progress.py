"""What is known of a run while it is under way: gathered from its events, told as JSON."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from analysis.report.live.first_figure import FirstFigure
from analysis.report.live.loopback_server import LoopbackServer
from analysis.report.page import SHARED, fill, policy_of
from testbed.scenario.model import Scenario
from testbed.store.reading import Trial
from testbed.store.records import Status

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
    """Safe to be told by the sweep's threads and asked by the server's."""

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
        said = record.reason or f"{record.wall_s:.1f} s"
        with self._lock:
            self._running.pop(name, None)
            self._counts[str(record.status)] += 1
            self._fresh += fresh
            self._ended.append(Ended(name, str(record.status), said if fresh else "already there"))
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

    def told(self, have: int = -1) -> Json:
        """Return what the page shows; the figure only if the page does not have it yet."""
        with self._lock:
            now, done = self._clock(), sum(self._counts.values())
            found: Json = {
                "experiment": self._experiment,
                "state": self._state,
                "over": self._state in OVER,
                "page": self._page,
                "total": self._total,
                "done": done,
                "counts": dict(self._counts),
                "elapsed_s": round(self._stopped_after or now - self._began, SECOND_DIGITS),
                "left_s": self._left_s(now, done),
                "running": self._told_running(now),
                "ended": [vars(each) for each in reversed(self._ended)],
                "notes": list(self._notes),
                "figure_number": self._figure.number,
            }
            if self._figure.number not in (0, have):
                found["figure"] = self._figure.told()
            return found

    def _told_running(self, now: float) -> list[Mapping[str, object]]:
        return [
            {"name": name, "where": where, "for_s": round(now - since, SECOND_DIGITS)}
            for name, (where, since) in self._running.items()
        ]

    def _left_s(self, now: float, done: int) -> float | None:
        """By the trials that ran in this round; None before the first has ended."""
        if self._state != "running" or not self._fresh:
            return None
        pace = (now - self._round_began) / self._fresh
        return round(pace * (self._total - done), SECOND_DIGITS)


def live_server(progress: RunProgress, experiment: str) -> LoopbackServer:
    """Return a server, not started, of the page of this run."""
    page = fill("live.html", SCRIPTS, NEWS, experiment=experiment)
    return LoopbackServer(page, policy_of(SCRIPTS, NEWS), progress.told)
