"""`testbed explore`: a scenario's fields moved by hand, each position a run."""

from __future__ import annotations

import argparse

from testbed.errors import UsageError
from testbed.machine.atomic import replace
from testbed.runs.console import console
from testbed.runs.explore import EXPLORE, LiveExploration, exploration, whole_page
from testbed.runs.orchestration import RunOptions
from testbed.runs.progress import ConsoleListener
from testbed.runs.selection import parse_settings
from testbed.store.names import results_folder

MOVED_EXAMPLE = "flows.one.variant=cubic,bbr"


def explore(options: argparse.Namespace) -> int:
    """Serve the page until ^C, or write one that has all positions."""
    from analysis.report.explore_page import explore_page, policy
    from analysis.report.live.loopback_server import LoopbackServer
    from analysis.report.live.run_progress import NEWS

    settings = parse_settings(options.set, MOVED_EXAMPLE)
    explored = exploration(options.file, settings, whole=options.page is not None)
    if options.page is not None:
        folder = options.page.absolute().parent
        if not folder.is_dir():  # before trials run for minutes
            raise UsageError(f"--page {options.page}: there is no folder {folder}", "make it")
        run = RunOptions(
            engine="guest", out=results_folder(EXPLORE), jobs=options.jobs, captures="drop"
        )
        text = whole_page(explored, run, ConsoleListener())
        replace(options.page, lambda path: path.write_text(text, encoding="utf-8"))
        console.print(f"page: {options.page}", soft_wrap=True)
        return 0
    live = LiveExploration(explored)
    page = explore_page(explored.explored, None, NEWS)
    with LoopbackServer(page, policy(NEWS), live.news) as server:
        console.print(f"explore: {server.url} (^C ends it)", soft_wrap=True)
        while True:
            live.run_next()
