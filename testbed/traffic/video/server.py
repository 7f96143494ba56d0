"""The servers of the video: nginx over TCP, aioquic over QUIC; all they need below one folder."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

from testbed.errors import TestbedError
from testbed.probes import listening
from testbed.process import Place, Process, end, start
from testbed.traffic.video.certificate import certificate_path, key_path, write_certificate
from testbed.traffic.video.content import Video, write_site
from testbed.traffic.video.transfer import Transport

READY_S = 10.0


def write_files(folder: Path, video: Video) -> None:
    """The site and the certificate of a server."""
    write_site(video, folder / "site")
    write_certificate(folder)


class VideoServer:
    """A server in a place; `folder` holds its files and what it says."""

    def __init__(
        self, folder: Path, place: Place, transport: Transport, port: int, control: str = "reno"
    ) -> None:
        """Start it; `control` is QUIC's congestion control, TCP's is the kernel's to choose."""
        self._folder = folder
        self._place = place
        self._transport = transport
        self._port = port
        argv = self._http3(control) if transport is Transport.QUIC else self._nginx()
        self._process: Process = start(
            argv, place=place, stderr=folder / "server.err", env=dict(os.environ)
        )

    def _nginx(self) -> list[str]:
        config = self._folder / "nginx.conf"
        config.write_text(nginx_config(self._folder, self._transport, self._port))
        # -e: else it opens /var/log/nginx/error.log before it has read its configuration
        return ["nginx", "-p", f"{self._folder}", "-c", f"{config}", "-e", "stderr"]

    def _http3(self, control: str) -> list[str]:
        folder = self._folder
        return [
            *(sys.executable, "-m", "testbed.traffic.video.http3_server"),
            *("--root", f"{folder / 'site'}", "--keys", f"{folder}", "--port", f"{self._port}"),
            *("--control", control, "--ready", f"{self._ready_file}"),
        ]

    @property
    def _ready_file(self) -> Path:
        return self._folder / "server.ready"

    @property
    def pid(self) -> int:
        """Of its one process."""
        return self._process.pid

    @property
    def ready(self) -> bool:
        """Whether it takes connections."""
        if self._transport is Transport.QUIC:
            return self._ready_file.exists()
        return listening(self._place.pid, self._port)

    def wait_until_ready(self) -> None:
        """Return once it takes connections."""
        deadline = time.monotonic() + READY_S
        while not self.ready:
            if self._process.poll() is not None or time.monotonic() > deadline:
                said = (self._folder / "server.err").read_text().strip().splitlines()
                raise TestbedError(f"the video's server did not start: {' '.join(said[-1:])}")
            time.sleep(0.001)

    def stop(self) -> None:
        """End it."""
        end(self._process, signal.SIGTERM)


def nginx_config(folder: Path, transport: Transport, port: int) -> str:
    """One process in the foreground, for any user; Debian's settings where they matter to TCP."""
    secure = transport is Transport.HTTPS
    tls = f"""
    ssl_certificate {certificate_path(folder)};
    ssl_certificate_key {key_path(folder)};
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
    listen {port}{" ssl" if secure else ""};
    root {folder}/site;{tls if secure else ""}
  }}
}}
"""
