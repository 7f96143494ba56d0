"""The video servers: nginx for TCP, aioquic for QUIC; all their files are in one folder."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from testbed.errors import TestbedError
from testbed.machine.netlink import listening
from testbed.machine.process import Place, Process, end, start
from testbed.machine.timer import SETUP_CLOCK
from testbed.plan.video_commands import (
    CERTIFICATE,
    KEY,
    NGINX_CONFIG,
    SERVER_READY,
    SERVER_REPORT,
    SITE_FOLDER,
    Serving,
    executable,
)
from testbed.scenario.video import Transport
from testbed.scenario.video_content import Video, write_site

READY_S = 10.0


def write_files(folder: Path, video: Video) -> None:
    """Write a server's site and certificate."""
    from testbed.traffic.video.certificate import write_certificate  # slow to import

    write_site(video, folder / SITE_FOLDER)
    SETUP_CLOCK.begin_step()  # the certificate's key depends on the time as well
    write_certificate(folder)


class VideoServer:
    """A server process; `folder` holds its files and its messages."""

    def __init__(self, folder: Path, place: Place, serving: Serving) -> None:
        """Start it."""
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
        deadline = time.monotonic() + READY_S
        while not self.ready:
            if self._process.poll() is not None or time.monotonic() > deadline:
                said = (self._folder / "server.err").read_text().strip().splitlines()
                raise TestbedError(f"the video server did not start: {' '.join(said[-1:])}")
            time.sleep(0.001)

    def stop(self) -> str:
        """Stop the server; returns the QUIC server's loss report as JSON."""
        end(self._process, signal.SIGTERM)
        report = self._folder / SERVER_REPORT
        return report.read_text() if report.exists() else ""

    def kill(self) -> None:
        """Kill the server after a failed trial."""
        end(self._process, signal.SIGKILL)


def nginx_config(folder: Path, transport: Transport, port: int) -> str:
    """nginx as one foreground process of any user, with Debian's settings where TCP sees them."""
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
