"""Video flows: a server (nginx for TCP, aioquic for QUIC) and a player, loaded in advance."""

from __future__ import annotations

import os
import signal
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from testbed.errors import TestbedError
from testbed.machine.netlink import listening
from testbed.machine.process import Place, Process, end, start
from testbed.machine.timer import SETUP_CLOCK
from testbed.plan.flows import FlowPlan
from testbed.plan.video_commands import (
    CERTIFICATE,
    KEY,
    NGINX_CONFIG,
    SERVER_READY,
    SERVER_REPORT,
    SITE_FOLDER,
    Serving,
    Watching,
    executable,
)
from testbed.scenario.video import PlayerKind, Transport, Video, Viewing, write_site
from testbed.store import playback_file, report_file, sizes_file, write_json
from testbed.traffic.running_flow import RunningFlow
from testbed.traffic.video.result import Result

SERVER_READY_S = 10.0
PLAYER_READY_S = 30.0  # a browser starts slowly
PLAYER_PATIENCE_S = 20.0


class VideoFlow(RunningFlow):
    """The server and the player of one flow."""

    def __init__(self, plan: FlowPlan, server: Place, viewer: Place, folder: Path) -> None:
        assert plan.video is not None and plan.flow.video is not None
        super().__init__(plan, server, viewer, folder.resolve())
        # not in the trial's folder: hundreds of files, which say nothing that their sizes do not
        self._files = tempfile.TemporaryDirectory(prefix="testbed-video-")
        site = Path(self._files.name)
        _write_site(plan.flow.video, site)
        report = self._folder / playback_file(plan.flow.name)
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
        name = self.plan.flow.name
        yield f"video server {name}", self._places["server"].name, self._server.pid
        yield f"video player {name}", self._places["client"].name, self._viewer.pid

    @property
    def ended(self) -> bool:
        """True once the player has exited."""
        return self._viewer.ended

    def done_ns(self) -> int | None:
        """Return the end of playback on the monotonic clock; None while it lasts."""
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

    def kill(self) -> None:
        """Kill both ends after a failed trial."""
        self._viewer.kill()
        self._server.kill()
        self._files.cleanup()


def _write_site(viewing: Viewing, folder: Path) -> None:
    """Write a server's site, which for a browser has real media files, and its certificate."""
    from testbed.traffic.video.certificate import write_certificate  # slow to import

    video = Video(viewing.length_s)
    write_site(video, folder / SITE_FOLDER)
    SETUP_CLOCK.begin_step()  # the certificate's key depends on the time as well
    write_certificate(folder)
    if viewing.player is PlayerKind.CHROMIUM:
        from testbed.traffic.video.webm import write_browser_files  # imports Pillow

        write_browser_files(video, viewing.rule, folder / SITE_FOLDER)


class VideoServer:
    """A server process; `folder` holds its files and its messages."""

    def __init__(self, folder: Path, place: Place, serving: Serving) -> None:
        self._folder = folder
        self._place = place
        self._serving = serving
        if serving.transport is not Transport.QUIC:
            config = nginx_config(folder, serving.transport, serving.port)
            (folder / NGINX_CONFIG).write_text(config)
        self._process: Process = start(
            executable(serving.words),
            place=place,
            stderr=folder / "server.err",
            env=dict(os.environ),
            cwd=folder,
        )

    @property
    def pid(self) -> int:
        """The process id of the server, which is a single process."""
        return self._process.pid

    @property
    def ready(self) -> bool:
        """True once the server accepts connections."""
        if self._serving.transport is Transport.QUIC:
            return (self._folder / SERVER_READY).exists()
        return listening(self._place.pid, self._serving.port)

    def wait_until_ready(self) -> None:
        """Return once the server accepts connections."""
        deadline = time.monotonic() + SERVER_READY_S
        while not self.ready:
            if self._process.poll() is not None or time.monotonic() > deadline:
                said = (self._folder / "server.err").read_text().strip().splitlines()
                raise TestbedError(f"the video server did not start: {' '.join(said[-1:])}")
            time.sleep(0.001)

    def stop(self) -> str:
        """Stop the server, and return the QUIC server's loss report as JSON."""
        end(self._process, signal.SIGTERM)
        report = self._folder / SERVER_REPORT
        return report.read_text() if report.exists() else ""

    def kill(self) -> None:
        """Kill the server after a failed trial."""
        end(self._process, signal.SIGKILL)


def nginx_config(folder: Path, transport: Transport, port: int) -> str:
    """Configure nginx as one foreground process, with Debian's settings where TCP sees them."""
    secure = transport is Transport.HTTPS
    tls = f"""
    ssl_certificate {folder / CERTIFICATE};
    ssl_certificate_key {folder / KEY};
    ssl_protocols TLSv1.3;
    ssl_session_tickets off;"""
    temporary = "\n".join(
        f"  {name}_temp_path {folder}/temporary;"
        for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    return f"""\
daemon off;
master_process off;
pid {folder}/nginx.pid;
error_log stderr warn;
events {{ worker_connections 64; }}
http {{
  access_log off;
{temporary}
  sendfile on;
  tcp_nopush on;
  keepalive_timeout 3600;
  keepalive_requests 1000000;
  open_file_cache off;
  types {{
    text/html html; text/css css; text/javascript js; image/jpeg jpg;
    application/dash+xml mpd; video/mp4 m4s;
  }}
  server {{
    listen {port}{" ssl http2" if secure else ""};
    root {folder}/{SITE_FOLDER};{tls if secure else ""}
  }}
}}
"""


class Viewer:
    """A player process that writes its result to `output` and runs in `folder`."""

    def __init__(self, watching: Watching, place: Place, output: Path, folder: Path) -> None:
        self._output = output.resolve()
        self._ready = self._output.with_suffix(".ready")
        argv = [*executable(watching.words), "--ready", f"{self._ready}", f"{self._output}"]
        self._process: Process = start(
            argv, place=place, stderr=self._errors, env=dict(os.environ), cwd=folder
        )

    @property
    def _errors(self) -> Path:
        return self._output.with_suffix(".err")

    @property
    def pid(self) -> int:
        """The player's process id."""
        return self._process.pid

    @property
    def ended(self) -> bool:
        """True once the player has exited."""
        return self._process.poll() is not None

    def wait_until_ready(self) -> None:
        """Return once the player waits for its start signal."""
        deadline = time.monotonic() + PLAYER_READY_S
        while not self._ready.exists():
            if self.ended or time.monotonic() > deadline:
                raise TestbedError(f"the player did not start: {self._said}")
            time.sleep(0.001)
        self._ready.unlink()

    def begin(self) -> None:
        """Let the player send its first packet now."""
        self._process.send_signal(signal.SIGUSR1)

    def stop(self) -> None:
        """Ask the player to stop if it is still running."""
        if not self.ended:
            self._process.send_signal(signal.SIGTERM)

    def collect(self) -> Result:
        """End the player if necessary, and read its result."""
        end(self._process, signal.SIGTERM, PLAYER_PATIENCE_S)
        if not self._output.exists():
            raise TestbedError(f"the player left no result: {self._said}")
        if not self._errors.read_text():
            self._errors.unlink()
        return Result.from_json(self._output.read_text())

    def kill(self) -> None:
        """End the player after a failed trial; not by SIGKILL, as it must end its browser."""
        end(self._process, signal.SIGINT)

    @property
    def _said(self) -> str:
        return " ".join(self._errors.read_text().strip().splitlines()[-1:])
