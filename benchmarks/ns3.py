"""The same bottleneck in ns-3, a simulator: what a real kernel's speed is compared with.

python -m benchmarks.ns3 --rate 10 --rtt 60 --seconds 60
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from testbed.errors import TestbedError
from testbed.machine.process import run

SOURCE = Path(__file__).with_name("ns3_bottleneck.cc")
NS3_HEADER = Path("/usr/include/ns3/core-module.h")
MODULES = ("applications", "point-to-point", "traffic-control", "internet", "network", "core")
INSTALL_NS3_HINT = "apt install libns3-dev"
SMALLEST_QUEUE_BYTES = 100_000
EMPTY_PCAP_BYTES = 24  # a file header and no packet


@dataclass(frozen=True)
class Ns3Run:
    """One run of the simulator; the wall time is that of the whole process."""

    wall_s: float
    goodput_mbps: float
    packets: int  # that reached the receiver
    captures: int  # files with packets in them


def is_installed() -> bool:
    """Whether ns-3's development files are on this machine."""
    return NS3_HEADER.exists()


def run_ns3(
    rate_mbit: float,
    rtt_ms: float,
    seconds: float,
    *,
    flows: int = 1,
    spread_s: float = 0,
    limit_bytes: int | None = None,
    captures: bool = True,
    core: int | None = None,
) -> Ns3Run:
    """Cubic flows through the bottleneck, on one core; the queue is a BDP unless given.

    They start one after the other within `spread_s`.
    """
    program = build()
    with tempfile.TemporaryDirectory() as folder:
        argv = [
            *("taskset", "-c", str(max(os.sched_getaffinity(0)) if core is None else core)),
            str(program),
            f"--rate={rate_mbit}",
            f"--rtt={rtt_ms}",
            f"--seconds={seconds}",
            f"--flows={flows}",
            f"--spread={spread_s}",
            f"--limit={limit_bytes or queue_bytes(rate_mbit, rtt_ms)}",
        ]
        if captures:
            argv.append(f"--pcap={folder}/ns3")
        began = time.perf_counter()
        said = json.loads(run(argv).stdout)
        wall_s = time.perf_counter() - began
        written = sum(pcap.stat().st_size > EMPTY_PCAP_BYTES for pcap in Path(folder).iterdir())
    return Ns3Run(wall_s, said["goodput_mbps"], said["packets"], written)


def queue_bytes(rate_mbit: float, rtt_ms: float) -> int:
    """Return a bandwidth-delay product, but enough packets that the flow does not starve."""
    return max(SMALLEST_QUEUE_BYTES, round(rate_mbit * 1e6 / 8 * rtt_ms / 1e3))


def build() -> Path:
    """Compile the program, unless it is in the user's cache, and return its path."""
    if not is_installed():
        raise TestbedError("ns-3 not installed", INSTALL_NS3_HINT)
    libraries = [f"-lns3-{module}" for module in MODULES]
    key = hashlib.sha256(SOURCE.read_bytes() + version().encode()).hexdigest()[:16]
    program = cache() / key / SOURCE.stem
    if program.exists():
        return program
    program.parent.mkdir(parents=True, exist_ok=True)
    # aside, then renamed: a program that is there is whole
    unfinished = program.with_suffix(f".{os.getpid()}")
    run(["g++", "-std=c++17", "-O2", "-o", str(unfinished), str(SOURCE), *libraries])
    return unfinished.rename(program)


def version() -> str:
    """Return the installed ns-3's version, as Debian names it."""
    return run(["dpkg-query", "-W", "-f", "${Version}", "libns3-dev"]).stdout


def cache() -> Path:
    """Where compiled programs are kept between runs."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "tcp-testbed" / "ns3"


def main() -> None:
    """Run once and print."""
    parser = argparse.ArgumentParser(description="One Cubic flow through a bottleneck in ns-3.")
    parser.add_argument("--rate", type=float, default=10, help="Mbit/s (10)")
    parser.add_argument("--rtt", type=float, default=60, help="ms (60)")
    parser.add_argument("--seconds", type=float, default=60, help="how long it sends (60)")
    options = parser.parse_args()
    result = run_ns3(options.rate, options.rtt, options.seconds)
    print(
        f"{result.wall_s:.2f} s of wall time, {result.goodput_mbps:.2f} Mbit/s, "
        f"{result.packets} packets, {result.captures} captures"
    )


if __name__ == "__main__":
    main()
