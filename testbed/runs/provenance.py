"""The provenance of a result: versions of the tools and of the testbed itself."""

from __future__ import annotations

import functools
import hashlib
import importlib.metadata
import platform
import re
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path

from testbed.errors import TestbedError
from testbed.machine.process import CHROMIUM, require, run
from testbed.runner.recorded_netlink import IP
from testbed.scenario.model import Scenario
from testbed.scenario.programs import PROGRAM_PATH
from testbed.scenario.video import PlayerKind
from testbed.traffic.iperf3.iperf3_flow import IPERF3

VERSION_COMMANDS = {
    "chromium": (CHROMIUM, "--version"),
    "hostapd": ("hostapd", "-v"),
    "iperf3": (IPERF3.name, "--version"),
    "iproute2": (IP.name, "-Version"),
    "iw": ("iw", "--version"),
    "nginx": ("nginx", "-v"),
    "tcpdump": ("tcpdump", "--version"),
}
VIDEO_PACKAGE = "aioquic"
VIDEO_HINT = "pip install 'tcp-testbed[video]'"
_ON_THE_HOST = ("tcpdump", "iproute2", "mininet")
_IN_THE_GUEST = ("iproute2",)


def programs_of(scenario: Scenario) -> tuple[str, ...]:
    """Return the external programs and libraries that produce the scenario's packets."""
    videos = [flow.video for flow in scenario.flows if flow.video is not None]
    browsers = any(video.player is PlayerKind.CHROMIUM for video in videos)
    radios = any(link.forward.radio for link in scenario.network.links)
    return (
        "iperf3",
        *(("nginx", VIDEO_PACKAGE) if videos else ()),
        *(("chromium",) if browsers else ()),
        *(("hostapd", "iw") if radios else ()),
    )


def programs(scenario: Scenario) -> Mapping[str, str]:
    """Return the installed versions of the programs that the scenario uses."""
    return {**versions_of(programs_of(scenario)), **_hashes_of_user_files(scenario)}


def user_files(scenario: Scenario) -> set[Path]:
    """Return the programs and files of command flows."""
    paths: set[Path] = set()
    for flow in scenario.flows:
        if flow.command is not None:
            lines = (flow.command.server, flow.command.client)
            absolute = [word for line in lines for word in line if word.startswith("/")]
            programs = [shutil.which(line[0], path=PROGRAM_PATH) for line in lines if line]
            paths |= {Path(each) for each in (*flow.command.files, *absolute, *programs) if each}
    return {path for path in paths if path.is_file()}


def _hashes_of_user_files(scenario: Scenario) -> Mapping[str, str]:
    """Return a hash of each program of command flows, by its path, and of each of their files.

    A file is known by its flow and its name, wherever it lies.
    """
    files = {
        path: f"{flow.name}/{Path(path).name}"
        for flow in scenario.flows
        for path in (flow.command.files if flow.command else ())
    }
    hashes = ((str(path), _digest(path)) for path in sorted(user_files(scenario)))
    return {files.get(path, path): digest for path, digest in hashes}


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return f"sha256 {hashlib.file_digest(file, 'sha256').hexdigest()[:16]}"


def versions_of(names: Iterable[str]) -> Mapping[str, str]:
    """Return the versions of programs and libraries, by name."""
    return {name: _version(name) for name in names}


def versions_for(scenario: Scenario, *, in_guest: bool) -> Mapping[str, str]:
    """Return the versions of all software that takes part in the scenario's trial."""
    return {
        "testbed": importlib.metadata.version("tcp-testbed"),
        "python": platform.python_version(),
        **programs(scenario),
        **versions_of(_IN_THE_GUEST if in_guest else _ON_THE_HOST),
    }


@functools.cache
def _version(name: str) -> str:
    if name not in VERSION_COMMANDS:
        return _package_version(name)
    program, *options = VERSION_COMMANDS[name]
    # an ordinary user's PATH has no sbin, where nginx and hostapd are
    done = run([require(program), *options], check=False)
    match = re.search(r"\d+\.\d[\w.+-]*", done.stdout + done.stderr)
    return match[0] if match else "unknown"


def _package_version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError as error:
        if name != VIDEO_PACKAGE:
            raise
        raise TestbedError(f"{name} is not installed: videos need it", VIDEO_HINT) from error
