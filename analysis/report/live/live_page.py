"""The live page of a run: served while the run goes on, and in its place in the end a file."""

from __future__ import annotations

from analysis.report.live.loopback_server import LoopbackServer
from analysis.report.live.run_progress import RunProgress
from analysis.report.page import SHARED, fill, policy_of

SCRIPTS = (*SHARED, "live.js")
NEWS = "connect-src 'self'"  # of its own server


def live_server(progress: RunProgress, experiment: str) -> LoopbackServer:
    """A server, not started, of the page of this run."""
    page = fill("live.html", SCRIPTS, NEWS, experiment=experiment)
    return LoopbackServer(page, policy_of(SCRIPTS, NEWS), progress.told)
