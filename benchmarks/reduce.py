"""The reduction of captures beside tshark and pyshark: speed and memory.

    .venv/bin/python -m benchmarks.reduce CAPTURE [--repeats N] [--no-pyshark]

The capture is one of bulk transfer, with a million packets or more. Each time is a whole
process's, Python's start included, with the file in the page cache; ratios are of medians, and of
processor time too, which says more on a machine that is busy with other work. tshark prints the
fields that our columns are compared with (analysis/captures/tshark.py), once, because it takes
minutes. pyshark's time is extrapolated from 5,000 packets.
"""

from __future__ import annotations

import argparse
import functools
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

from analysis.captures.tshark import command
from benchmarks.engine import Cost, cost
from testbed.machine.process import run, stream

PYSHARK_PACKETS = 5_000
# of a process that prints the length of a table; ru_maxrss would count the parent's memory
COUNT_ROWS = """
import sys
from pathlib import Path
from analysis.captures.{module} import {function}
found = {function}(Path(sys.argv[1])).{table}
peak = next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(len(found), peak)
"""
REDUCTION_PROGRAMS = {
    "all columns": COUNT_ROWS.format(
        module="tcp", function="read_arrays", table='columns["frame"]'
    ),
    "as a pandas table": COUNT_ROWS.format(module="tcp", function="read_capture", table="rows"),
    "flows": COUNT_ROWS.format(module="flow_tables", function="read_flows", table="table"),
}
PYSHARK = f"""
import itertools, sys, pyshark
with pyshark.FileCapture(sys.argv[1], keep_packets=False) as capture:
    print(sum(1 for packet in itertools.islice(capture, {PYSHARK_PACKETS})))
"""


def run_python(program: str, path: Path) -> list[int]:
    """Run a program in its own process, and return the numbers that it prints."""
    return [int(word) for word in run([sys.executable, "-c", program, str(path)]).stdout.split()]


def print_fields(path: Path) -> None:
    """Let tshark print a capture's fields, and discard them."""
    with stream(command(path)) as process:
        assert process.stdout is not None
        while process.stdout.read(1 << 20):
            pass


def timed(act: Callable[[], object]) -> Cost:
    """Measure a call."""

    def wall_s() -> float:
        begun = time.monotonic()
        act()
        return time.monotonic() - begun

    return cost(wall_s)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Speed and memory of the reduction.")
    parser.add_argument("capture", type=Path)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--no-pyshark", action="store_true")
    options = parser.parse_args()
    path = options.capture
    packets = run_python(REDUCTION_PROGRAMS["all columns"], path)[0]
    print(f"{packets} packets, medians of whole processes")
    costs = {}
    for name, program in REDUCTION_PROGRAMS.items():
        peak_mb = run_python(program, path)[1] / 1024
        runs = [timed(functools.partial(run_python, program, path)) for _ in range(options.repeats)]
        costs[name] = Cost(
            statistics.median(each.wall_s for each in runs),
            statistics.median(each.processor_s for each in runs),
        )
        print(f"  {name:18} {_speed(costs[name], packets)}, {peak_mb:.0f} MB")
    tshark = timed(lambda: print_fields(path))
    print(f"  {'tshark -T fields':18} {_speed(tshark, packets)}")
    for name in ("all columns", "flows"):
        print(f"  {name}: {costs[name].to(tshark)} of tshark's time")
    if not options.no_pyshark:
        wall_s = timed(lambda: run_python(PYSHARK, path)).wall_s * packets / PYSHARK_PACKETS
        times = wall_s / costs["all columns"].wall_s
        print(f"  pyshark, extrapolated {wall_s:.0f} s: {times:.0f} times that of all columns")


def _speed(spent: Cost, packets: int) -> str:
    return (
        f"{spent.wall_s:8.3f} s {packets / spent.wall_s / 1e6:6.2f} M packets/s, "
        f"{spent.processor_s:8.3f} s of processor time"
    )


if __name__ == "__main__":
    main()
