"""Other ways to set up the same trial, and what each of them does to its packets.

    python -m tests.set_ups FOLDER [--only PATTERN]

runs a few short trials once as they are and once with each variation, and prints which captures are
the same to the byte. A variation acts in the guest, before the trial's beginning, at several points
of its programme: there the runner starts this module with `--act NAME`, which acts, says so, and
keeps what it has taken until the trial ends.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import fcntl
import json
import mmap
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from testbed.plan.plan import Task
from testbed.runner.programme import NS
from testbed.scenario.model import CapturePoint, Scenario
from testbed.scenario.reading import read_scenario
from testbed.trial import make
from testbed.trial.parts.part import Part

ODD_S = 0.0123
DRAWS = 3000
PROJECT = Path(__file__).resolve().parents[1]
ACTED = "acted"
PATIENCE_S = 60.0


def sleep() -> None:
    """Sleep for odd times."""
    for number in range(3):
        time.sleep(ODD_S * (number + 1))


def fork() -> None:
    """Start processes that end at once."""
    for _ in range(20):
        subprocess.run(["/bin/true"], check=True)


def draw() -> None:
    """Read random numbers of all sizes."""
    for number in range(DRAWS):
        os.getrandom(1 + number % 70)
    with Path("/dev/urandom").open("rb") as generator:
        generator.read(10_000)


def allocate() -> None:
    """Fill the page cache and the kernel's object caches, and give part of it back."""
    # not in /tmp, whose free room a browser asks for
    files = [os.memfd_create(f"{number}") for number in range(100)]
    for number, file in enumerate(files):
        os.write(file, bytes(4096 * (number % 20)))
    for file in files[::3]:
        os.close(file)
    pairs = [socket.socketpair() for _ in range(100)]
    for one, other in pairs[::2]:
        one.send(bytes(10_000))
        other.recv(10_000)


def call() -> None:
    """Make more system calls than are free without a sleep."""
    for _ in range(3000):
        os.getppid()


def fragment() -> None:
    """Take pages in blocks of odd orders, and buffers of all sizes from the network's caches."""
    blocks = [mmap.mmap(-1, mmap.PAGESIZE * (2 * number + 1)) for number in range(60)]
    for number, block in enumerate(blocks):
        block[:: mmap.PAGESIZE] = bytes(len(block) // mmap.PAGESIZE)
        if number % 3:
            block.close()
    pairs = [socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM) for _ in range(20)]
    for number, (one, _) in enumerate(pairs):
        for size in (1, 700, 1500, 9000, 30_000):
            one.send(bytes(size + number))
    pipes = [os.pipe() for _ in range(10)]
    for number, (_, end) in enumerate(pipes):
        fcntl.fcntl(end, fcntl.F_SETPIPE_SZ, mmap.PAGESIZE << number % 4)
    for one, other in pairs[::2]:
        one.close()
        other.close()
    for begin, end in pipes[::2]:
        os.close(begin)
        os.close(end)
    LEFT.extend((blocks, pairs))


def connect() -> None:
    """Use TCP and UDP, by which the kernel draws its keys."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        for _ in range(5):
            with socket.create_connection(server.getsockname()) as client:
                client.send(bytes(5000))
                server.accept()[0].close()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        for port in range(1000, 1020):
            sender.sendto(b"x", ("127.0.0.1", port))


def do_all() -> None:
    """Do all that the other variations do."""
    for action in (sleep, fork, draw, allocate, call, fragment, connect):
        action()


VARIATIONS: Mapping[str, Callable[[], None]] = {
    "sleeps": sleep,
    "forks": fork,
    "draws": draw,
    "allocations": allocate,
    "calls": call,
    "fragments": fragment,
    "connections": connect,
    "all": do_all,
}
VIDEOS = """
video-players network=shaped rule=720p transport=quic player=model length_s=4
video-players network=wifi-weak rule=720p transport=https player=model length_s=3
video-access network=netem-congested transport=https variant=veno setting=sender rule=240p \
duration_s=5
"""
# those that are no action: another order of nodes, links and commands; a longer environment;
# another folder
OTHERS = ("order", "environment", "path")
LONGER = "a project that lies in a folder whose path is longer".replace(" ", "-")
# who looks how often, and where from
VIEWS: Mapping[str, Mapping[str, Any]] = {
    "1 ms": {"sample_interval_ms": 1.0},
    "unsampled": {"sample_interval_ms": 0.0},
    "bottleneck": {"captures": (CapturePoint.BOTTLENECK,)},
    "senders": {"captures": (CapturePoint.SENDERS,), "sample_interval_ms": 0.0},
}
NAMES = (*OTHERS, *VARIATIONS, *VIEWS)
LEFT: list[Any] = []  # stays open
Results = tuple[list[Scenario], list[dict[str, str]]]


def another_order(plan: Any) -> Any:
    """Return the plan with nodes and links in reverse; a node's commands keep their order."""
    nodes = {node: -number for number, node in enumerate(plan.nodes)}
    return dataclasses.replace(
        plan,
        nodes=tuple(reversed(plan.nodes)),
        veths=tuple(reversed(plan.veths)),
        sysctls=tuple(reversed(plan.sysctls)),
        setup=tuple(sorted(plan.setup, key=lambda command: nodes.get(command.node, 1))),
    )


class Variation(Part):
    """What a variation does besides: between a trial's beginnings, where the set-up is."""

    name = ""

    def act(self, when: str) -> None:
        """Act, and wait until that is done."""
        program, said = f"variation {when}", f"guest.{when}"
        python = (sys.executable, "-m", "tests.set_ups", "--act", self.name)
        files = (said, f"{said}.err")
        path = {"PYTHONPATH": str(PROJECT)}
        self._programme.start(program, "-", python, *files, environment=path)
        self._programme.add("await", program, round(PATIENCE_S * NS), "says", said, ACTED)


@contextlib.contextmanager
def varied(name: str) -> Iterator[None]:
    """Set trials up in this way for the duration of the block."""
    with pytest.MonkeyPatch.context() as patch:
        if name in ("order", "all"):
            make_it = make.TrialProgramme.__init__

            def reordered(self: Any, task: Task, *rest: Any, **more: Any) -> None:
                make_it(self, Task(task.scenario, another_order(task.plan)), *rest, **more)

            patch.setattr(make.TrialProgramme, "__init__", reordered)
        if name in ("environment", "all"):
            user = {"LOGNAME": "a-user-with-a-name-of-another-length" * 3}
            patch.setattr(make, "PROGRAM_ENVIRONMENT", {**make.PROGRAM_ENVIRONMENT, **user})
        if name in VARIATIONS:
            first = type("First", (Variation,), {"name": name, "place": _acting("cabled")})
            steps = {"place": _acting("placed"), "join": _acting("joined")}
            last = type("Last", (Variation,), {"name": name, **steps})
            patch.setattr(make, "PARTS", (first, *make.PARTS, last))
        yield


def _acting(when: str) -> Callable[[Variation], None]:
    return lambda self: self.act(when)


def act(name: str) -> None:
    """Act in the guest, and keep what was taken."""
    VARIATIONS[name]()
    print(ACTED, flush=True)
    signal.pause()


def scenarios() -> Iterator[Scenario]:
    """Yield a trial of each kind of randomness and of timers."""
    from benchmarks import recipes as trials

    flows = trials.tcp("linux-reno"), trials.tcp("linux-reno", "other", src="sender2")
    documents: dict[str, Any] = {
        "reno bfifo": trials.router(trials.queue("bfifo", limit_bytes=20_000), flows[0]),
        "bbr bfifo": trials.router(trials.queue("bfifo", limit_bytes=60_000), trials.tcp("bbr")),
        "fairness": trials.router(
            trials.queue("bfifo", limit_bytes=30_000),
            *(trials.tcp("cubic", f"tcp{n}", src=f"sender{n}") for n in range(1, 5)),
        ),
    }
    wanted: tuple[str, ...] = ("queue pie", "queue red", "queue fq_codel ecn", "queue cake")
    documents |= {name: data for name, data in trials.queue_trials() if name in wanted}
    wanted = ("loss events any time", "loss channel")
    documents |= {name: data for name, data in trials.loss_trials() if name in wanted}
    wanted = ("flows cbr jitter", "flows parallel")
    documents |= {name: data for name, data in trials.flow_trials() if name in wanted}
    wanted = ("access netem", "access radio", "access video http")
    documents |= {name: data for name, data in trials.access_trials() if name in wanted}
    documents |= {n: d for n, d in trials.background_trials() if n == "background modern"}
    yield from map(trials._read, documents.items())
    yield from trials.experiment_trials(VIDEOS)


def compare(
    out: Path, chosen: Sequence[Scenario], variations: Iterable[str]
) -> dict[str, dict[str, str]]:
    """Run trials in variations; return by trial and variation how their captures differ."""
    usual = dict(zip(_labels(chosen), run(out, chosen, "none"), strict=True))
    table: dict[str, dict[str, str]] = {label: {} for label in usual}
    for name in variations:
        for label, hashes in zip(usual, run(out, chosen, name), strict=True):
            table[label][name] = difference(usual[label], hashes)
    return table


def _labels(chosen: Sequence[Scenario]) -> list[str]:
    names = [f"{each.experiment} {each.label}" for each in chosen]
    return [f"{name} {number}" for number, name in enumerate(names, start=1)]


def difference(usual: Mapping[str, str], hashes: Mapping[str, str]) -> str:
    """Compare the captures that both have."""
    both = usual.keys() & hashes.keys()
    if not both:
        return "NONE"
    return "same" if all(usual[each] == hashes[each] for each in both) else "DIFFERENT"


def run(out: Path, chosen: Sequence[Scenario], name: str) -> list[dict[str, str]]:
    """Run trials in one variation, or looked at in another way; return their captures' hashes."""
    from testbed.runs.engine_choice import choose
    from tests.lab import capture_hashes, ended_trials

    if name == "path" and PROJECT.name != LONGER:
        return run_elsewhere(out / name, chosen)
    seen = [dataclasses.replace(each, **VIEWS.get(name, {})) for each in chosen]
    with varied(name):
        choice = choose("guest", (), seen[0].kernel)
        trials = ended_trials(seen, out / name.replace(" ", "-"), choice)
    return [capture_hashes(trial) if (trial.path / "captures").exists() else {} for trial in trials]


def run_elsewhere(out: Path, chosen: Sequence[Scenario]) -> list[dict[str, str]]:
    """Run trials by a copy of the project in a folder with a longer path, by its own Python."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / LONGER
        copy.mkdir()
        for each in PROJECT.iterdir():
            if each.name in (".git", ".venv", "results"):
                continue
            (shutil.copytree if each.is_dir() else shutil.copy)(each, copy / each.name)
        (copy / ".venv").symlink_to(PROJECT / ".venv")
        asked = Path(folder) / "scenarios.json"
        asked.write_text(json.dumps([each.to_json() for each in chosen]))
        words = (str(copy / ".venv/bin/python"), "-m", "tests.set_ups", "--run", str(asked))
        done = subprocess.run((*words, str(out)), cwd=copy, stdout=subprocess.PIPE, check=True)
    hashes: list[dict[str, str]] = json.loads(done.stdout)
    return hashes


def main() -> None:
    """Run all and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="", metavar="PATTERN")
    parser.add_argument("--every", action="store_true", help="a trial of every experiment and part")
    parser.add_argument("--kernel", default="", metavar="VERSION")
    parser.add_argument("--variations", metavar="NAME,…", default=",".join(NAMES))
    parser.add_argument("--run", type=Path, metavar="FILE", help="only run FILE's trials")
    options = parser.parse_args()
    if options.run:
        asked = [read_scenario(each) for each in json.loads(options.run.read_text())]
        print(json.dumps(run(options.folder, asked, "none")))
        return
    from benchmarks import recipes

    chosen = recipes.scenarios() if options.every else list(scenarios())
    if options.kernel:
        chosen = [dataclasses.replace(each, kernel=options.kernel) for each in chosen]
    chosen = [each for each in chosen if re.search(options.only, f"{each.experiment} {each.label}")]
    names = options.variations.split(",")
    table = compare(options.folder, chosen, names)
    print(f"{'':48}" + "".join(f"{name:>13}" for name in names))
    for label, row in table.items():
        print(f"{label:48}" + "".join(f"{row[name]:>13}" for name in names))


if __name__ == "__main__":
    act(sys.argv[2]) if sys.argv[1:2] == ["--act"] else main()
