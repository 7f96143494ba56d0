"""The same bottleneck in ns-2, the simulator of the papers.

python -m benchmarks.ns2 --rate 10 --rtt 60 --seconds 60
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from benchmarks.ns3 import queue_bytes
from testbed.errors import TestbedError
from testbed.machine.process import run

BOTTLENECK_SCRIPT = Path(__file__).with_name("ns2_bottleneck.tcl")
SEGMENT_BITS = 1448 * 8


@dataclass(frozen=True)
class Ns2Run:
    """One run of the simulator; the wall time is that of the whole process."""

    wall_s: float
    goodput_mbps: float


def is_installed() -> bool:
    """Whether ns-2 is on this machine."""
    return shutil.which("ns") is not None


def run_ns2(rate_mbit: float, rtt_ms: float, seconds: float, *, core: int) -> Ns2Run:
    """One Cubic flow, with a trace of both links, on one core."""
    if not is_installed():
        raise TestbedError("ns-2 not installed", "apt install ns2")
    with tempfile.TemporaryDirectory() as folder:
        limit = queue_bytes(rate_mbit, rtt_ms)
        words = (rate_mbit, rtt_ms, seconds, limit, f"{folder}/trace")
        began = time.perf_counter()
        said = run(
            ["taskset", "-c", str(core), "ns", str(BOTTLENECK_SCRIPT), *map(str, words)]
        ).stdout
        wall_s = time.perf_counter() - began
    acked = next(int(line) for line in said.splitlines() if line.isdigit())  # ns-2 says more
    return Ns2Run(wall_s, acked * SEGMENT_BITS / seconds / 1e6)


def main() -> None:
    """Run once and print."""
    parser = argparse.ArgumentParser(description="One Cubic flow through a bottleneck in ns-2.")
    parser.add_argument("--rate", type=float, default=10, help="Mbit/s (10)")
    parser.add_argument("--rtt", type=float, default=60, help="ms (60)")
    parser.add_argument("--seconds", type=float, default=60, help="how long it sends (60)")
    options = parser.parse_args()
    result = run_ns2(options.rate, options.rtt, options.seconds, core=0)
    print(f"{result.wall_s:.2f} s of wall time, {result.goodput_mbps:.2f} Mbit/s")


if __name__ == "__main__":
    main()
