"""`testbed run --watch`: a run as a page in the browser while it goes on, and a file in the end."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from testbed.cli.console import console, errors
from testbed.runs.sweep import Event, Watcher
from testbed.scenario.model import Scenario
from testbed.store import REPORT

if TYPE_CHECKING:
    import pandas as pd  # loaded where it is needed

    from analysis.report.live.loopback_server import LoopbackServer
    from analysis.report.live.run_progress import RunProgress


class Onlookers:
    """Who watches a run in a browser: the page, if it was asked for, else nobody."""

    def __init__(
        self, progress: RunProgress | None = None, server: LoopbackServer | None = None
    ) -> None:
        self._progress, self._server = progress, server

    def begin(self, total: int) -> None:
        """A round of so many trials begins."""
        if self._progress:
            self._progress.begin(total)

    def see(self, event: Event) -> None:
        """An event of the sweep."""
        if self._progress:
            self._progress(event)

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
        self._progress.end(state, page)
        self._server.deliver()


def _write_page(results: Path) -> Path:
    from analysis.report import collect, make_report

    found = collect([results])
    for text in found.warnings:
        errors.print(f"testbed: warning: {text}", soft_wrap=True)
    page = make_report(found, results / REPORT)
    console.print(f"report: {page}", soft_wrap=True)
    return page


@contextlib.contextmanager
def watched(wanted: bool, experiment: str, metric: str, out: Path) -> Iterator[Onlookers]:
    """The onlookers of a run; what an interrupted one has done so far becomes a page, too."""
    if not wanted:
        yield Onlookers()
        return
    from analysis.report.live.live_page import live_server
    from analysis.report.live.run_progress import RunProgress

    progress = RunProgress(experiment, metric)
    with live_server(progress, experiment) as server:
        console.print(f"watch: {server.url}", soft_wrap=True)
        onlookers = Onlookers(progress, server)
        try:
            yield onlookers
        except KeyboardInterrupt:
            onlookers.finish(out, "interrupted")
            raise
