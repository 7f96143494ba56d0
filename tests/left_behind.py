"""What trials could leave on the machine, where others run beside them that are not asked about."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from testbed.machine.journal import JOURNAL_SUFFIX, MARKER
from testbed.machine.process import CHROMIUM
from testbed.machine.sysctl_guard import ALLOWED

HYSTART = Path("/sys/module/tcp_cubic/parameters/hystart")
OF_TRIALS = re.compile(r"testbed-runner|mininet:|iperf3|tcpdump|um_seed=")


@dataclass(frozen=True)
class Seen:
    """The processes of trials, network namespaces, links and settings of this machine."""

    processes: frozenset[str]
    namespaces: frozenset[Path]
    links: frozenset[str]
    settings: tuple[str, ...]

    def beyond(self, before: Seen) -> list[str]:
        """What was not there before, and links that were."""
        new = (
            self.processes - before.processes,
            {str(each) for each in self.namespaces - before.namespaces},
            self.links ^ before.links,
            set(self.settings) - set(before.settings),
        )
        return sorted(each for kind in new for each in kind)


def seen(marks: frozenset[str] | None = None) -> Seen:
    """All of it, or without the processes that carry the mark of any other run than these."""
    processes, namespaces = set[str](), set[Path]()
    for entry, words, environment in _processes():
        own = _marks(environment)
        if marks is not None and own and not own & marks:
            continue
        if OF_TRIALS.search(words):
            processes.add(f"{entry.name} {words}")
        try:
            namespaces.add((entry / "ns/net").readlink())
        except OSError:  # it has ended
            continue
    links = _said("ip", "-o", "link")
    named = _said("ip", "netns")
    settings = (f"allowed: {ALLOWED.read_text()}", f"hystart: {HYSTART.read_text()}")
    names = re.findall(r"^\d+: ([^:@]+)", links, re.MULTILINE)
    return Seen(
        frozenset(processes),
        frozenset(namespaces),
        frozenset([*names, *(f"namespace {line}" for line in named.splitlines())]),
        settings,
    )


def marks_of(state: Path) -> frozenset[str]:
    """The marks of the runs whose state is in this folder, by their processes and journals."""
    found = {path.stem for path in state.rglob(f"*{JOURNAL_SUFFIX}")}
    for _, _, environment in _processes():
        if f"XDG_STATE_HOME={state}" in environment:
            found |= _marks(environment)
    return frozenset(found)


def commands_of(marks: frozenset[str]) -> dict[int, list[str]]:
    """The command lines of these runs' processes."""
    return {
        int(entry.name): words.split(" ")
        for entry, words, environment in _processes()
        if _marks(environment) & marks
    }


def _marks(environment: list[str]) -> set[str]:
    start = f"{MARKER}="
    return {each.removeprefix(start) for each in environment if each.startswith(start)}


def _processes() -> Iterator[tuple[Path, str, list[str]]]:
    """Of every process its folder in /proc, its command line and its environment."""
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            words, environment = (
                (entry / name).read_bytes().decode(errors="replace").split("\0")
                for name in ("cmdline", "environ")
            )
        except OSError:
            continue
        yield entry, " ".join(words), environment


def browsers(marks: frozenset[str]) -> list[str]:
    """The processes of Chromium that belong to these runs."""
    commands = commands_of(marks)
    return sorted(f"{words[0]} {pid}" for pid, words in commands.items() if CHROMIUM in words[0])


def _said(*argv: str) -> str:
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout
