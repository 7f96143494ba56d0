"""`testbed run --watch`: a run as a page in the browser while it goes on, and a file in the end."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from testbed.runs.progress import ConsoleListener
from testbed.runs.selection import RunSelection
from testbed.runs.sweep import (
    SweepEvent,
    TrialFinished,
    TrialStarted,
    Watcher,
    WorkerRejected,
)
from testbed.scenario.experiment import Experiment
from testbed.scenario.model import Scenario
from testbed.store.names import REPORT
from testbed.store.reading import open_trial

if TYPE_CHECKING:
    import pandas as pd  # loaded where it is needed

    from analysis.report.live.loopback_server import LoopbackServer
    from analysis.report.live.run_progress import RunProgress


class LivePage(ConsoleListener):
    """A listener that also forwards what happens to a page in the browser."""

    takes_flows = True

    def __init__(
        self,
        progress: RunProgress,
        server: LoopbackServer,
        definitions: Mapping[str, Experiment],
    ) -> None:
        self._progress, self._server, self._definitions = progress, server, definitions

    @contextlib.contextmanager
    def watching(self, trials: int) -> Iterator[Watcher]:
        """Show a sweep on the terminal and on the page."""
        self._progress.begin(trials)
        with super().watching(trials) as terminal:

            def both(event: SweepEvent) -> None:
                terminal(event)
                self._forward(event)

            yield both

    def _forward(self, event: SweepEvent) -> None:
        if isinstance(event, TrialStarted):
            self._progress.began(event.scenario, event.where)
        elif isinstance(event, TrialFinished):
            self._progress.finished(open_trial(event.path), event.fresh)
        elif isinstance(event, WorkerRejected):
            self._progress.note(f"{event.worker} takes no trials: {event.reason}")
        else:
            self._progress.note(event.reason)

    def reduced(self, scenario: Scenario, rows: pd.DataFrame) -> None:
        """Show a trial's metrics."""
        self._progress.reduced(scenario, rows)

    def finish(self, results: Path, state: str = "complete") -> None:
        """Write the report of these results, and send the reader there."""
        page = None
        if self._progress.ended_well:
            from analysis.report import collect, make_report

            self._progress.end("finishing")
            # without its warnings: the run has printed them
            page = make_report(collect([results], self._definitions), results / REPORT)
            self.say(f"report: {page}")
        self._progress.end(state, page)
        self._server.deliver()


@contextlib.contextmanager
def live_page(experiment: str, selection: RunSelection, out: Path) -> Iterator[LivePage]:
    """Serve the page of a run; if the run is interrupted, report the trials that it has done."""
    from analysis.report.live.run_progress import RunProgress, live_server

    progress = RunProgress(experiment, selection.metric)
    with live_server(progress, experiment) as server:
        page = LivePage(progress, server, selection.definitions)
        page.say(f"watch: {server.url}")
        try:
            yield page
        except KeyboardInterrupt:
            page.finish(out, "interrupted")
            raise
