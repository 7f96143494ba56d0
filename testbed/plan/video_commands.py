"""The command lines of a video's server and player, relative to their folder."""

from __future__ import annotations

import sys
from dataclasses import dataclass

from testbed.scenario.video import PlayerKind
from testbed.video_site import Site, Thresholds, Transport

PYTHON = "python3"
NGINX_CONFIG = "nginx.conf"
SITE_FOLDER = "site"
SERVER_READY = "server.ready"
DEADLINE_S = 3600.0  # of a player, which a trial ends earlier
SERVER_REPORT = "server.json"  # QUIC's
_MODULES = {
    PlayerKind.MODEL: "testbed.traffic.video.player",
    PlayerKind.CHROMIUM: "testbed.traffic.video.browser",
}


def executable(argv: tuple[str, ...]) -> list[str]:
    """Return a command line, with Python's name replaced by the running interpreter's path."""
    return [sys.executable if argv[0] == PYTHON else argv[0], *argv[1:]]


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
class Watching:
    """The player: transport, site, and how it chooses bitrates and buffers."""

    transport: Transport
    site: Site
    rule: str = "throughput"  # or `buffer`, or a rung's name
    player: PlayerKind = PlayerKind.MODEL

    @property
    def words(self) -> tuple[str, ...]:
        """The player's command line, without its output."""
        levels = Thresholds()
        chosen = ("--start-s", f"{levels.start_s}", "--resume-s", f"{levels.resume_s}")
        return (
            *(PYTHON, "-m", _MODULES[self.player]),
            *("--transport", self.transport.value, "--rule", self.rule),
            *("--address", self.site.address, "--port", f"{self.site.port}"),
            *(("--own-port", f"{self.site.own_port}") if self.site.own_port else ()),
            *(("--authority", self.site.authority) if self.site.authority else ()),
            *(
                chosen if self.player is PlayerKind.MODEL else ()
            ),  # a browser chooses its own levels
            *("--cap-s", f"{levels.cap_s}", "--deadline-s", f"{DEADLINE_S}"),
        )
