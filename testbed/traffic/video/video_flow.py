"""Video flows: a server (nginx for TCP, aioquic for QUIC) and a player, loaded in advance."""

from __future__ import annotations

import shutil
import signal
from pathlib import Path

from testbed.machine import json_files, safe_files
from testbed.plan.video_commands import (
    NGINX_CONFIG,
    SERVER_READY,
    SERVER_REPORT,
    SITE_FOLDER,
    executable,
)
from testbed.runner.programme import NS, Answers
from testbed.scenario.video import PlayerKind, Video, Viewing, write_site
from testbed.store.names import errors_file, playback_file, report_file, sizes_file, video_folder
from testbed.store.writing import write_json
from testbed.traffic.flow_programs import READY_S, FlowPrograms
from testbed.traffic.video.result import Result
from testbed.video_site import CERTIFICATE, KEY, Transport

PLAYER_READY_S = 30.0  # a browser starts slowly
READY = "player.ready"


class VideoFlow(FlowPrograms):
    """The server and the player of one flow, which run in a folder with the server's files.

    The folder goes after the trial: hundreds of files, which say nothing that their sizes do not.
    """

    program = "video"

    @property
    def _site(self) -> str:
        return video_folder(self.plan.flow.name)

    def open(self) -> None:
        """Write the server's files, and load both programs."""
        assert self.plan.video is not None and self.plan.flow.video is not None
        folder = self._folder / self._site
        folder.mkdir()
        self._sizes = write_files(folder, self.plan.flow.video)
        serving, watching = self.plan.video.serving, self.plan.video.watching
        if serving.transport is not Transport.QUIC:
            config = nginx_config(serving.transport, serving.port)
            (folder / NGINX_CONFIG).write_text(config)
        self._load("server", tuple(executable(serving.words)))
        report = f"../../{playback_file(self.plan.flow.name)}"
        player = (*executable(watching.words), "--ready", READY, report)
        self._load("client", player)

    def _load(self, role: str, argv: tuple[str, ...]) -> None:
        self._begun.append(role)
        errors = errors_file(self.plan.flow.name, role)
        self._programme.start(
            self._name(role), self._node(role), argv, "/dev/null", errors, self._site
        )

    def wait_until_ready(self) -> None:
        """Wait until the server accepts connections and the player awaits its signal."""
        assert self.plan.video is not None
        if self.plan.video.serving.transport is Transport.QUIC:
            self._await("server", READY_S, SERVER_READY)
        else:
            self._await_port(self.plan.video.serving.port)
        self._await("client", PLAYER_READY_S, READY)

    def _await(self, role: str, patience_s: float, file: str) -> None:
        fault = f"{self.plan.flow.name}: the video {role} did not start"
        condition = ("exists", f"{self._site}/{file}")
        self._programme.await_program(self._name(role), patience_s, *condition, fault=fault)

    def begin(self) -> None:
        """Let the player send its first packet now."""
        self._begun_at = self._programme.add("signal", self.client, int(signal.SIGUSR1))

    def check(self, answers: Answers) -> None:
        """Read the player's result."""
        output = self._folder / playback_file(self.plan.flow.name)
        if not output.exists():
            raise self._fault("client", "left no result")
        self._result = Result.from_json(json_files.checked(safe_files.read_bytes(output)))

    def done_s(self, answers: Answers) -> float | None:
        """Return when the playback ended; None if it was stopped before."""
        if not self.ended_before(answers):
            return None
        _, begun_ns = answers.numbers(self._begun_at)
        return begun_ns / NS + self._result.stopped_s

    def write(self, answers: Answers) -> None:
        """Record the requested bytes and QUIC's losses."""
        folder = self._folder / self._site
        if (report := folder / SERVER_REPORT).exists():
            shutil.move(report, self._folder / report_file(self.plan.flow.name, "server"))
        loads = (*self._result.page, *(segment.load for segment in self._result.segments))
        sizes = {load.path: self._sizes[load.path] for load in loads}
        write_json(self._folder, sizes_file(self.plan.flow.name), sizes)
        self._errors("server").unlink()
        if not self._errors("client").stat().st_size:
            self._errors("client").unlink()

    def clean_up(self) -> None:
        """Remove the server's files."""
        safe_files.remove_folder(self._folder / self._site)


def write_files(folder: Path, viewing: Viewing) -> dict[str, int]:
    """Write a server's site and certificate, and return the sizes of the site's files.

    For a browser they must be real media files.
    """
    video = Video(viewing.length_s)
    write_site(video, folder / SITE_FOLDER)
    if viewing.player is PlayerKind.CHROMIUM:
        from testbed.traffic.video.webm import write_browser_files  # imports Pillow

        write_browser_files(video, viewing.rule, folder / SITE_FOLDER)
    for name in (CERTIFICATE, KEY):
        shutil.copy(Path(__file__).with_name(name), folder)
    site = folder / SITE_FOLDER
    return {str(path.relative_to(site)): path.stat().st_size for path in site.rglob("*")}


def nginx_config(transport: Transport, port: int) -> str:
    """Configure nginx as one foreground process, with Debian's settings where TCP sees them."""
    secure = transport is Transport.HTTPS
    tls = f"""
    ssl_certificate {CERTIFICATE};
    ssl_certificate_key {KEY};
    ssl_protocols TLSv1.3;
    ssl_session_tickets off;"""
    temporary = "\n".join(
        f"  {name}_temp_path temporary;"
        for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    return f"""\
daemon off;
master_process off;
pid nginx.pid;
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
    root {SITE_FOLDER};{tls if secure else ""}
  }}
}}
"""
