"""Mininet's installed examples, and three speeds: `python -m benchmarks.whole_programs`.

A row for each script: its exit status, its virtual time and its wall time. With `--speed`, the
rows are three programs to be timed: pings in a tree of hosts, a bufferbloat script, a monitor that
forks; with `--scripts`, they are short scripts and the laboratories of experiments/course, each run
twice with the same seed.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.course_scripts import COURSE_SCRIPTS, SCRIPT_HEAD
from testbed.cli.programs import script_command
from testbed.errors import TestbedError
from testbed.guest.machine import MachineProgram, machine_kernel, root_environment
from testbed.machine.atomic import workplace
from testbed.runs.programs import run_in_folder
from testbed.store import MACHINE_ERRORS, MACHINE_RECORD

LABORATORIES = Path(__file__).resolve().parents[1] / "experiments" / "course"
MININET_EXAMPLES = Path("/usr/share/doc/mininet/examples")
NO_SCRIPTS = ("__init__", "cluster", "clustercli", "clusterperf", "clusterSanity")  # modules, ssh
EXAMPLE_PATIENCE_S = 100  # of wall time, for an example
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
    for _ in range(1200):
        h1.cmd("tc -s qdisc show dev h1-eth0 >>queue.txt")
        time.sleep(0.1)
    ping.wait()
    net.stop()
"""
MONITOR = "i=0; while [ $i -lt 5000 ]; do tc -s qdisc show dev lo >/dev/null; i=$((i + 1)); done"


@dataclass(frozen=True)
class Measured:
    """A program that ran, or why it did not."""

    name: str
    status: str
    virtual_s: float
    wall_s: float
    last_line: str
    digest: str = ""  # of all that the program printed and wrote, and of its captures


def main() -> None:
    """Run the programs, and print their table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="only these examples")
    parser.add_argument("--speed", action="store_true", help="three programs to be timed")
    parser.add_argument("--scripts", action="store_true", help="scripts in the style of courses")
    options = parser.parse_args()
    if options.scripts:
        _print_scripts(options.names)
        return
    print("| program | status | virtual s | wall s | last line |\n|---|---|---|---|---|")
    for name, folder, words in _speeds() if options.speed else _examples(options.names):
        row = measure(name, folder, words)
        numbers = f"{row.virtual_s:.1f} | {row.wall_s:.1f}"
        print(f"| {row.name} | {row.status} | {numbers} | {row.last_line} |", flush=True)


def _print_scripts(names: Sequence[str]) -> None:
    print("| script | status | virtual s | wall s | again |\n|---|---|---|---|---|")
    with workplace("scripts") as folder:
        scripts = []
        for name, text in COURSE_SCRIPTS.items():
            scripts.append(folder / f"{name}.py")
            scripts[-1].write_text(SCRIPT_HEAD + text)
        laboratories = (path.with_suffix(".py") for path in sorted(LABORATORIES.glob("*.toml")))
        for script in (*scripts, *laboratories):
            if names and script.stem not in names:
                continue
            words = script_command(script, ())
            captured = ("all",) if script.parent == folder else ()
            row, again = (measure(script.stem, script.parent, words, captured) for _ in range(2))
            same = "same bytes" if row.digest == again.digest != "" else "differs"
            numbers = f"{row.virtual_s:.1f} | {row.wall_s:.1f}"
            print(f"| {row.name} | {row.status} | {numbers} | {same} |", flush=True)


def _examples(names: Sequence[str]) -> Iterator[tuple[str, Path, list[str]]]:
    for script in sorted(MININET_EXAMPLES.glob("*.py")):
        if script.stem not in NO_SCRIPTS and (not names or script.stem in names):
            yield script.stem, MININET_EXAMPLES, script_command(script, ())


def _speeds() -> Iterator[tuple[str, Path, list[str]]]:
    with workplace("speeds") as folder:
        script = folder / "bufferbloat.py"
        script.write_text(BUFFERBLOAT)
        yield "pingall, tree,3", folder, ["mn", "--topo", "tree,3", "--test", "pingall"]
        yield "bufferbloat, 2 × 120 s", folder, script_command(script, ())
        yield "tc, 5000 times", folder, ["sh", "-c", MONITOR]


def measure(
    name: str, folder: Path, words: Sequence[str], captured: Sequence[str] = ()
) -> Measured:
    """Run a program without input in a guest, and give it up after a while."""
    environment = root_environment(Path("/root"), {}, ())
    program = MachineProgram(
        words, folder, environment, patience_s=EXAMPLE_PATIENCE_S, captured=captured
    )
    kernel, begun = machine_kernel("", lambda _line: None), time.monotonic()
    with workplace("program") as place:
        try:
            run = run_in_folder(program, kernel, place / "out", io.BytesIO(), io.BytesIO())
        except TestbedError as error:
            return Measured(name, "none", 0.0, time.monotonic() - begun, error.message)
        digest = _digest(place / "out")
        errors = (place / "out" / MACHINE_ERRORS).read_text(errors="replace").splitlines()
    status = "at its limit" if run.end.at_limit else f"{run.end.status}"
    last = next(iter(run.notes), "") or next((line for line in reversed(errors) if line), "")
    return Measured(name, status, run.end.took_s, run.wall_s, last.replace("|", "¦")[:90], digest)


def _digest(out: Path) -> str:
    """Return a hash of a run's results but for the record, which has the wall time."""
    whole = hashlib.sha256()
    for path in sorted(out.rglob("*")):
        if path.is_file() and path.name != MACHINE_RECORD:
            whole.update(f"{path.relative_to(out)}\n".encode() + path.read_bytes())
    return whole.hexdigest()


if __name__ == "__main__":
    main()
