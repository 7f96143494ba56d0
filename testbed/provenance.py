"""What a result was made with: versions of the tools and of ourselves."""

from __future__ import annotations

import functools
import importlib.metadata
import platform
import re
from collections.abc import Mapping

from testbed.process import run

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


def _version(argv: tuple[str, ...]) -> str:
    done = run(argv, check=False)
    match = re.search(r"\d+\.\d[\w.+-]*", done.stdout + done.stderr)
    return match[0] if match else "unknown"
