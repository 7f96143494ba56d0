"""The command lines of a video's server and player, relative to their folder."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field

from testbed.scenario.video import PlayerKind, Thresholds, Transport

PYTHON = "python3"
NGINX_CONFIG = "nginx.conf"
SITE_FOLDER = "site"
CERTIFICATE, KEY = "certificate.pem", "key.pem"
SERVER_READY = "server.ready"
SERVER_REPORT = "server.json"  # QUIC's
_MODULES = {
    PlayerKind.MODEL: "testbed.traffic.video.player",
    PlayerKind.CHROMIUM: "testbed.traffic.video.browser",
}


def executable(words: tuple[str, ...]) -> list[str]:
    """Return a command line, with Python's name replaced by the running interpreter's path."""
    return [sys.executable if words[0] == PYTHON else words[0], *words[1:]]


@dataclass(frozen=True)
class Serving:
    """The server: transport, port, and QUIC's congestion control."""

    transport: Transport
    port: int
    control: str = "reno"

    @property
    def words(self) -> tuple[str, ...]:
        """The server's command line."""
        if self.transport is not Transport.QUIC:
            # -e: else it opens /var/log/nginx/error.log before it has read its configuration
            return ("nginx", "-p", "./", "-c", NGINX_CONFIG, "-e", "stderr")
        return (
            *(PYTHON, "-m", "testbed.traffic.video.http3_server"),
            *("--root", SITE_FOLDER, "--keys", ".", "--port", f"{self.port}"),
            *("--control", self.control, "--ready", SERVER_READY),
            *("--report", SERVER_REPORT),
        )


@dataclass(frozen=True)
class Site:
    """The server as a client sees it.

    It has an address, a certificate (none without TLS), and the client's own port (0: any).
    """

    address: str
    port: int
    authority: str = ""  # the file of the certificate
    own_port: int = 0

    @property
    def local(self) -> tuple[str, int] | None:
        """The address to which the client's socket is bound."""
        return ("0.0.0.0", self.own_port) if self.own_port else None


@dataclass(frozen=True)
class Watching:
    """The player: transport, site, and how it chooses bitrates and buffers."""

    transport: Transport
    site: Site
    rule: str = "throughput"  # or `buffer`, or a rung's name
    thresholds: Thresholds = field(default_factory=Thresholds)
    deadline_s: float = 3600.0
    player: PlayerKind = PlayerKind.MODEL

    @property
    def words(self) -> tuple[str, ...]:
        """The player's command line, without its output."""
        return (
            *(PYTHON, "-m", _MODULES[self.player]),
            *("--transport", self.transport.value, "--rule", self.rule),
            *("--address", self.site.address, "--port", f"{self.site.port}"),
            *(("--own-port", f"{self.site.own_port}") if self.site.own_port else ()),
            *(("--authority", self.site.authority) if self.site.authority else ()),
            *self._thresholds,
            *("--cap-s", f"{self.thresholds.cap_s}", "--deadline-s", f"{self.deadline_s}"),
        )

    @property
    def _thresholds(self) -> tuple[str, ...]:
        """The buffer levels at which playback starts and resumes; a browser has its own."""
        if self.player is not PlayerKind.MODEL:
            return ()
        start, resume = self.thresholds.start_s, self.thresholds.resume_s
        return ("--start-s", f"{start}", "--resume-s", f"{resume}")
