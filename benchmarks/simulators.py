"""The bottleneck of `benchmarks.engine` in ns-2 and ns-3, for comparison with a trial's speed."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from testbed.errors import TestbedError
from testbed.machine.process import run

NS2_SCRIPT = Path(__file__).with_name("ns2_bottleneck.tcl")
NS3_SOURCE = Path(__file__).with_name("ns3_bottleneck.cc")
NS3_HEADER = Path("/usr/include/ns3/core-module.h")
NS3_MODULES = ("applications", "point-to-point", "traffic-control", "internet", "network", "core")
SMALLEST_QUEUE_BYTES = 100_000


@dataclass(frozen=True)
class SimulatorRun:
    """The wall time of a simulator's process, and how many packets reached the receiver."""

    wall_s: float
    packets: int


def has_ns2() -> bool:
    """Return whether ns-2 is on this machine."""
    return shutil.which("ns") is not None


def require_ns2() -> None:
    """Raise an error unless ns-2 is on this machine."""
    if not has_ns2():
        raise TestbedError("ns-2 is not installed", "apt install ns2")


def has_ns3() -> bool:
    """Return whether ns-3's development files are on this machine."""
    return NS3_HEADER.exists()


def queue_bytes(rate_mbit: float, rtt_ms: float) -> int:
    """Return a bandwidth-delay product, but enough packets that the flow does not starve."""
    return max(SMALLEST_QUEUE_BYTES, round(rate_mbit * 1e6 / 8 * rtt_ms / 1e3))


def run_ns2(rate_mbit: float, rtt_ms: float, seconds: float, core: int) -> SimulatorRun:
    """Run one Cubic flow, with a trace of both links, on one core."""
    with tempfile.TemporaryDirectory() as folder:
        limit = queue_bytes(rate_mbit, rtt_ms)
        words = (NS2_SCRIPT, rate_mbit, rtt_ms, seconds, limit, f"{folder}/trace")
        began = time.perf_counter()
        said = run(["taskset", "-c", str(core), "ns", *map(str, words)]).stdout
        wall_s = time.perf_counter() - began
    # ns-2 says more than the number of segments
    return SimulatorRun(wall_s, next(int(line) for line in said.splitlines() if line.isdigit()))


def run_ns3(
    rate_mbit: float,
    rtt_ms: float,
    seconds: float,
    *,
    flows: int = 1,
    spread_s: float = 0,
    core: int,
) -> SimulatorRun:
    """Run Cubic flows with captures at four points, on one core; they start within `spread_s`."""
    program = build_ns3()
    with tempfile.TemporaryDirectory() as folder:
        argv = [
            *("taskset", "-c", str(core), str(program)),
            *(f"--rate={rate_mbit}", f"--rtt={rtt_ms}", f"--seconds={seconds}"),
            *(f"--flows={flows}", f"--spread={spread_s}"),
            *(f"--limit={queue_bytes(rate_mbit, rtt_ms)}", f"--pcap={folder}/ns3"),
        ]
        began = time.perf_counter()
        said = json.loads(run(argv).stdout)
        return SimulatorRun(time.perf_counter() - began, said["packets"])


def build_ns3() -> Path:
    """Compile the program for ns-3, unless it is in the user's cache, and return its path."""
    if not has_ns3():
        raise TestbedError("ns-3 not installed", "apt install libns3-dev")
    version = run(["dpkg-query", "-W", "-f", "${Version}", "libns3-dev"]).stdout
    key = hashlib.sha256(NS3_SOURCE.read_bytes() + version.encode()).hexdigest()[:16]
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    program = cache / "tcp-testbed" / "ns3" / key / NS3_SOURCE.stem
    if program.exists():
        return program
    program.parent.mkdir(parents=True, exist_ok=True)
    # renamed when complete: a program that exists can run
    unfinished = program.with_suffix(f".{os.getpid()}")
    libraries = [f"-lns3-{module}" for module in NS3_MODULES]
    run(["g++", "-std=c++17", "-O2", "-o", str(unfinished), str(NS3_SOURCE), *libraries])
    return unfinished.rename(program)
