"""What a result was made with: versions of the tools and of ourselves."""

from __future__ import annotations

import functools
import importlib.metadata
import platform
import re
from collections.abc import Mapping

from testbed.machine.process import CHROMIUM, run
from testbed.scenario.model import Scenario
from testbed.scenario.video import Player

_COMMANDS = {
    "iperf3": ("iperf3", "--version"),
    "tcpdump": ("tcpdump", "--version"),
    "iproute2": ("ip", "-Version"),
    "mininet": ("mn", "--version"),
}


@functools.cache
def versions() -> Mapping[str, str]:
    """Name and version of everything that a trial is made by."""
    found = {name: _version(argv) for name, argv in _COMMANDS.items()}
    return {
        "testbed": importlib.metadata.version("tcp-testbed"),
        "python": platform.python_version(),
        **found,
    }


@functools.cache
def _video_versions() -> Mapping[str, str]:
    return {
        "nginx": _version(("nginx", "-v")),
        "aioquic": importlib.metadata.version("aioquic"),
    }


@functools.cache
def _radio_versions() -> Mapping[str, str]:
    return {"hostapd": _version(("hostapd", "-v")), "iw": _version(("iw", "--version"))}


@functools.cache
def _browser_version() -> Mapping[str, str]:
    return {"chromium": _version((CHROMIUM, "--version"))}


def versions_for(scenario: Scenario) -> Mapping[str, str]:
    """The same, and of what this scenario needs besides."""
    videos = [flow.video for flow in scenario.flows if flow.video is not None]
    browsers = any(video.player is Player.CHROMIUM for video in videos)
    radios = any(path.radio for path in scenario.topology.links.values())
    return {
        **versions(),
        **(_video_versions() if videos else {}),
        **(_browser_version() if browsers else {}),
        **(_radio_versions() if radios else {}),
    }


def _version(argv: tuple[str, ...]) -> str:
    done = run(argv, check=False)
    match = re.search(r"\d+\.\d[\w.+-]*", done.stdout + done.stderr)
    return match[0] if match else "unknown"
