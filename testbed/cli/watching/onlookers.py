"""`testbed run --watch`: a run as a page in the browser while it goes on, and a file in the end."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from testbed.runs.sweep import Begun, Event, Finished, Unfit, Watcher
from testbed.scenario.model import Scenario
from testbed.store import REPORT, open_trial

if TYPE_CHECKING:
    import pandas as pd  # loaded where it is needed

    from analysis.report.live.loopback_server import LoopbackServer
    from analysis.report.live.run_progress import RunProgress


Say = Callable[[str], None]


class Onlookers:
    """Who watches a run in a browser: the page, if it was asked for, else nobody."""

    def __init__(
        self,
        say: Say,
        progress: RunProgress | None = None,
        server: LoopbackServer | None = None,
    ) -> None:
        self._say, self._progress, self._server = say, progress, server

    def begin(self, total: int) -> None:
        """A round of so many trials begins."""
        if self._progress:
            self._progress.begin(total)

    def see(self, event: Event) -> None:
        """An event of the sweep."""
        if not self._progress:
            return
        if isinstance(event, Begun):
            self._progress.began(event.scenario, event.where)
        elif isinstance(event, Finished):
            self._progress.finished(open_trial(event.path), event.fresh)
        elif isinstance(event, Unfit):
            self._progress.note(f"{event.worker} takes no trials: {event.reason}")
        else:
            self._progress.note(event.reason)

    def with_them(self, watch: Watcher) -> Watcher:
        """A watcher whose events they see too."""

        def tell(event: Event) -> None:
            watch(event)
            self.see(event)

        return tell

    def reduced(self, scenario: Scenario, rows: pd.DataFrame) -> None:
        """A trial's metrics are there."""
        if self._progress:
            self._progress.reduced(scenario, rows)

    def finish(self, results: Path, state: str = "complete") -> None:
        """Write the page of what is in these results, and let the reader know where it is."""
        if not self._progress or not self._server:
            return
        page = None
        if self._progress.ended_well:
            self._progress.end("finishing")
            page = _write_page(results)
            self._say(f"report: {page}")
        self._progress.end(state, page)
        self._server.deliver()


def _write_page(results: Path) -> Path:
    from analysis.report import collect, make_report

    return make_report(collect([results]), results / REPORT)  # the run has said its warnings


@contextlib.contextmanager
def watched(wanted: bool, experiment: str, metric: str, out: Path, say: Say) -> Iterator[Onlookers]:
    """The onlookers of a run; what an interrupted one has done so far becomes a page, too."""
    if not wanted:
        yield Onlookers(say)
        return
    from analysis.report.live.live_page import live_server
    from analysis.report.live.run_progress import RunProgress

    progress = RunProgress(experiment, metric)
    with live_server(progress, experiment) as server:
        say(f"watch: {server.url}")
        onlookers = Onlookers(say, progress, server)
        try:
            yield onlookers
        except KeyboardInterrupt:
            onlookers.finish(out, "interrupted")
            raise
