"""Mininet's installed examples, and speeds: `python -m benchmarks.whole_programs`.

A row for each script: its exit status, its virtual time, its wall time and its processor time.
With `--speed`, the rows are programs to be timed: pings in a tree of hosts, a bufferbloat script,
without and with a monitor of its queue, a monitor that forks; with `--scripts`, they are short
scripts and the laboratories of experiments/course, each run again with the same seed while two
loops keep the processors busy, and in another folder. `--beside-plain` runs all of them with plain
Mininet, too, as root on this host.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import hashlib
import io
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.course_scripts import COURSE_SCRIPTS, SCRIPT_HEAD
from benchmarks.harness import errors_as_exit, processor_s
from benchmarks.plain_mininet import ProgramOutput, compared, run_plain
from testbed.cli.programs import script_command
from testbed.errors import TestbedError
from testbed.guest.machine import MachineProgram, machine_kernel, root_environment
from testbed.machine.atomic import workplace
from testbed.programs.program_runs import run_in_folder
from testbed.store.names import MACHINE_ERRORS, MACHINE_OUTPUT, MACHINE_RECORD

LABORATORIES = Path(__file__).resolve().parents[1] / "experiments" / "course"
MININET_EXAMPLES = Path("/usr/share/doc/mininet/examples")
NO_SCRIPTS = ("__init__", "cluster", "clustercli", "clusterperf", "clusterSanity")  # modules, ssh
PROGRAM_PATIENCE_S = 300.0  # of wall time, for a program
PLAIN_PATIENCE_S = 60.0  # beyond the guest's virtual time
ANOTHER_FOLDER = "a-folder-with-a-name-of-another-length/and-deeper"
BUSY_LOOPS = 2
BUFFERBLOAT = """
import time
from mininet.link import TCLink
from mininet.net import Mininet
for maxq in (20, 100):
    net = Mininet(link=TCLink, controller=None)
    h1, h2 = net.addHost("h1"), net.addHost("h2")
    net.addLink(h1, h2, bw=1.5, delay="10ms", max_queue_size=maxq)
    net.start()
    h2.popen("iperf -s")
    h1.popen(f"iperf -c {h2.IP()} -t 120")
    with open(f"ping-{maxq}.txt", "w") as output:
        ping = h1.popen(["ping", "-i", "0.1", "-w", "120", h2.IP()], stdout=output)
    ping.wait()
    net.stop()
"""
WATCHED_QUEUE = """    for _ in range(1200):
        h1.cmd("tc -s qdisc show dev h1-eth0 >>queue.txt")
        time.sleep(0.1)
"""
MONITOR = "i=0; while [ $i -lt 1000 ]; do tc -s qdisc show dev lo >/dev/null; i=$((i + 1)); done"


@dataclass(frozen=True)
class Program:
    """A program that is to be run."""

    name: str
    folder: Path
    words: Sequence[str]
    captured: Sequence[str] = ()


@dataclass(frozen=True)
class Measured:
    """A program that ran, or why it did not."""

    status: str
    virtual_s: float
    wall_s: float
    processor_s: float
    last_line: str
    output: ProgramOutput = field(default_factory=ProgramOutput)
    digests: Set[tuple[str, str]] = frozenset()  # of each file of its results, with its name


def main() -> None:
    """Run the programs, and print their table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="only these examples or scripts")
    instead = parser.add_mutually_exclusive_group()
    instead.add_argument("--speed", action="store_true", help="programs to be timed")
    instead.add_argument("--scripts", action="store_true", help="scripts in the style of courses")
    parser.add_argument("--beside-plain", action="store_true", help="with plain Mininet, too")
    parser.add_argument(
        "--patience", type=float, default=PROGRAM_PATIENCE_S, help="seconds of wall time for each"
    )
    options = parser.parse_args()
    columns = ["program", "status", "virtual s", "wall s", "processor s"]
    columns += [] if options.speed or options.scripts else ["last line"]
    columns += ["again, busy", "in another folder"] if options.scripts else []
    if options.beside_plain:
        columns += ["plain: status", "wall s", "processor s", "what it printed"]
    _print_row(columns)
    _print_row(["---"] * len(columns))
    with errors_as_exit(), workplace("programs") as folder:
        if options.scripts:
            programs = _scripts(folder)
        else:
            programs = _speeds(folder) if options.speed else _examples()
        for program in programs:
            if not options.names or program.name in options.names:
                _print_row(list(_cells(program, folder, options)))


def _cells(program: Program, folder: Path, options: argparse.Namespace) -> Iterator[str]:
    """Run a program in each requested way, and yield its row."""
    row = measure(program, options.patience)
    yield program.name
    has_last_line = not (options.speed or options.scripts)
    yield row.status if row.digests or has_last_line else row.last_line
    yield from _times(row.virtual_s, row.wall_s, row.processor_s)
    if options.scripts:
        elsewhere = dataclasses.replace(program, folder=folder / ANOTHER_FOLDER)
        yield _differing(row, _measure_busy(program, options.patience))
        yield _differing(row, measure(elsewhere, options.patience))
    if has_last_line:
        yield row.last_line
    if options.beside_plain:
        patience_s = min(options.patience, row.virtual_s + PLAIN_PATIENCE_S)
        plain = run_plain(program.folder, program.words, patience_s)
        yield plain.status
        yield from _times(plain.wall_s, plain.processor_s)
        yield compared(row.output, plain.output)


def _print_row(cells: Sequence[str]) -> None:
    print("|", " | ".join(cell.replace("|", "¦") for cell in cells), "|", flush=True)


def _times(*seconds: float) -> list[str]:
    return [f"{each:.1f}" for each in seconds]


def _examples() -> Iterator[Program]:
    for script in sorted(MININET_EXAMPLES.glob("*.py")):
        if script.stem not in NO_SCRIPTS:
            yield Program(script.stem, MININET_EXAMPLES, script_command(script, ()))


def _scripts(folder: Path) -> Iterator[Program]:
    here = folder / "here"
    shutil.copytree(LABORATORIES, here, ignore=shutil.ignore_patterns("__pycache__"))
    for name, text in COURSE_SCRIPTS.items():
        (here / f"{name}.py").write_text(SCRIPT_HEAD + text)
    shutil.copytree(here, folder / ANOTHER_FOLDER)
    for name in COURSE_SCRIPTS:
        yield Program(name, here, script_command(here / f"{name}.py", ()), ("all",))
    for expectations in sorted(LABORATORIES.glob("*.toml")):
        name = expectations.stem
        yield Program(name, here, script_command(here / f"{name}.py", ()))


def _speeds(folder: Path) -> Iterator[Program]:
    plain, watched = folder / "bufferbloat.py", folder / "watched.py"
    plain.write_text(BUFFERBLOAT)
    watched.write_text(BUFFERBLOAT.replace("    ping.wait()", f"{WATCHED_QUEUE}    ping.wait()"))
    yield Program("pingall, tree,3", folder, ["mn", "--topo", "tree,3", "--test", "pingall"])
    yield Program("bufferbloat, 2 × 120 s", folder, script_command(plain, ()))
    yield Program("the same, tc ten times a second", folder, script_command(watched, ()))
    yield Program("tc, 1000 times", folder, ["sh", "-c", MONITOR])


def _measure_busy(program: Program, patience_s: float) -> Measured:
    """Run a program beside loops that keep the processors busy."""
    with contextlib.ExitStack() as loops:
        for _ in range(BUSY_LOOPS):
            loop = loops.enter_context(subprocess.Popen([sys.executable, "-c", "while True: pass"]))
            loops.callback(loop.kill)
        return measure(program, patience_s)


def _differing(row: Measured, again: Measured) -> str:
    """Return which results of two runs of a program differ."""
    names = {name.split("/")[0] for name, _digest in row.digests ^ again.digests}
    if not row.digests or not again.digests:
        return "no results"
    return f"{', '.join(sorted(names))} differ" if names else "same bytes"


def measure(wanted: Program, patience_s: float) -> Measured:
    """Run a program without input in a guest, and give it up after a while."""
    environment = root_environment(Path("/root"), {}, ())
    program = MachineProgram(
        wanted.words,
        wanted.folder,
        environment,
        patience_s=patience_s,
        captured=wanted.captured,
    )
    kernel = machine_kernel("", lambda _line: None)
    begun, used = time.monotonic(), processor_s()
    with workplace("program") as place:
        out = place / "out"
        try:
            run = run_in_folder(program, kernel, out, io.BytesIO(), io.BytesIO())
        except TestbedError as error:
            wall_s = time.monotonic() - begun
            return Measured("none", 0.0, wall_s, processor_s() - used, error.message)
        used = processor_s() - used
        digests = _digests(out, wanted.folder)
        output = ProgramOutput(
            *((out / name).read_text(errors="replace") for name in (MACHINE_OUTPUT, MACHINE_ERRORS))
        )
    status = "at its limit" if run.end.at_limit else f"{run.end.status}"
    lines = (line for line in reversed(output.stderr.splitlines()) if line)
    last = next(iter(run.notes), "") or next(lines, "")
    return Measured(status, run.end.took_s, run.wall_s, used, last[:90], output, digests)


def _digests(out: Path, folder: Path) -> frozenset[tuple[str, str]]:
    """Return a hash of each file of a run's results, apart from its folder's name in them.

    The record is left out, which has the wall time.
    """
    name = str(folder).encode()
    return frozenset(
        (
            str(path.relative_to(out)),
            hashlib.sha256(path.read_bytes().replace(name, b"FOLDER")).hexdigest(),
        )
        for path in out.rglob("*")
        if path.is_file() and path.name != MACHINE_RECORD
    )


if __name__ == "__main__":
    main()
