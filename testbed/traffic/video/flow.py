"""A video flow: a server and a player, started and stopped by the trial."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from testbed.machine.process import Place
from testbed.machine.timer import SETUP_CLOCK
from testbed.plan.flows import FlowPlan
from testbed.plan.video_commands import SITE_FOLDER
from testbed.scenario.video import Player, Viewing
from testbed.scenario.video_content import Video
from testbed.store import playback_file, report_file, sizes_file, write_json
from testbed.traffic.video.result import Result
from testbed.traffic.video.server import VideoServer, write_files
from testbed.traffic.video.viewer import Viewer


def _write(viewing: Viewing, folder: Path) -> None:
    """Write the files to be served; for a browser they must be real media files."""
    video = Video(viewing.length_s)
    write_files(folder, video)
    if viewing.player is Player.CHROMIUM:
        from testbed.traffic.video.browser_files import write_browser_files  # imports Pillow

        write_browser_files(video, viewing.rule, folder / SITE_FOLDER)


class VideoFlow:
    """The server and the player of one flow."""

    def __init__(self, plan: FlowPlan, server: Place, viewer: Place, folder: Path) -> None:
        assert plan.video is not None and plan.flow.video is not None
        self.plan = plan
        self._places = {"server": server, "player": viewer}
        # not in the trial's folder: hundreds of files, which say nothing that their sizes do not
        self._files = tempfile.TemporaryDirectory(prefix="testbed-video-")
        site = Path(self._files.name)
        _write(plan.flow.video, site)
        self._folder = folder.resolve()
        report = self._folder / playback_file(plan.flow.name)
        report.parent.mkdir(exist_ok=True)
        self._server = VideoServer(site, server, plan.video.serving)
        self._viewer = Viewer(plan.video.watching, viewer, report, site)
        self._result: Result | None = None
        self._begun_ns = 0

    def wait_until_ready(self) -> None:
        """Return once the server listens and the player waits for its signal.

        Both take some time of the guest's to load. What comes next, the trial's random key above
        all, is at a set time.
        """
        self._server.wait_until_ready()
        self._viewer.wait_until_ready()
        SETUP_CLOCK.begin_step()

    def begin(self) -> None:
        """Let the player send its first packet now."""
        self._begun_ns = time.monotonic_ns()
        self._viewer.begin()

    @property
    def processes(self) -> Iterator[tuple[str, str, int]]:
        """All processes of the flow, running or ended, as (name, node, process id)."""
        pids = {"server": self._server.pid, "player": self._viewer.pid}
        for role, pid in pids.items():
            yield f"video {role} {self.plan.flow.name}", self._places[role].name, pid

    @property
    def may_end(self) -> bool:
        """Always true: a playback may finish early."""
        return True

    @property
    def ended(self) -> bool:
        """True once the player has exited."""
        return self._viewer.ended

    def done_ns(self) -> int | None:
        """The end of playback on the monotonic clock; None while it lasts."""
        if not self.ended:
            return None
        result = self._read()
        return self._begun_ns + round(result.stopped_s * 1e9)

    def stop(self) -> None:
        """Stop the player if it is still running."""
        self._viewer.stop()

    def collect(self) -> None:
        """Wait for both ends, and record the requested bytes and QUIC's losses."""
        result = self._read()
        if told := self._server.stop():
            (self._folder / report_file(self.plan.flow.name, "server")).write_text(told)
        loads = (*result.page, *(segment.load for segment in result.segments))
        site = Path(self._files.name) / SITE_FOLDER
        sizes = {load.path: (site / load.path).stat().st_size for load in loads}
        write_json(self._folder, sizes_file(self.plan.flow.name), sizes)
        self._files.cleanup()

    def _read(self) -> Result:
        if self._result is None:
            self._result = self._viewer.collect()
        return self._result

    def seen(self) -> tuple[str, tuple[str, ...]]:
        """Nothing: the samples of its sockets know."""
        return "", ()

    def kill(self) -> None:
        """Kill both ends after a failed trial."""
        self._viewer.kill()
        self._server.kill()
        self._files.cleanup()
