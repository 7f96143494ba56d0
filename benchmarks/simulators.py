"""A flow through a bottleneck in ns-2 and ns-3, to compare a trial's speed and numbers with."""

from __future__ import annotations

import hashlib
import json
import math
import os
import shutil
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd

from testbed.errors import TestbedError
from testbed.machine.process import run
from testbed.scenario.network import FRAME_BYTES
from testbed.scenario.transfers import SEGMENT_BYTES

NS2_SCRIPT = Path(__file__).with_name("ns2_bottleneck.tcl")
NS3_SOURCE = Path(__file__).with_name("ns3_bottleneck.cc")
NS3_HEADER = Path("/usr/include/ns3/core-module.h")
NS3_MODULES = ("applications", "point-to-point", "traffic-control", "internet", "network", "core")
MIN_QUEUE_BYTES = 100_000
NS2_FRAME_BYTES, NS3_FRAME_BYTES = 1498, 1502  # of a full segment; on our links it has FRAME_BYTES
TRACE_FIELDS = {0: "event", 1: "time", 2: "source", 3: "target", 4: "type", 10: "number", 11: "id"}
NS2_CONTROLS = {"linux-reno": "reno", "cubic": "cubic", "vegas": "vegas"}
NS3_CONTROLS = {
    "linux-reno": "TcpLinuxReno",
    "cubic": "TcpCubic",
    "bbr": "TcpBbr",
    "vegas": "TcpVegas",
}


@dataclass(frozen=True)
class SimulatedFlow:
    """What a simulator runs: a flow, or several, through a router with a drop-tail queue."""

    rate_mbit: float
    rtt_ms: float
    seconds: float
    limit_packets: int
    variant: str = "cubic"
    start_s: float = 0.0
    measure_from_s: float = 0.0
    flows: int = 1  # that start one after the other within `spread_s`: only in ns-3
    spread_s: float = 0.0


@dataclass(frozen=True)
class SimulatorRun:
    """The wall time of a simulator's process, and what came of the flow."""

    wall_s: float
    packets: int  # that reached the receiver
    goodput_mbps: float = math.nan
    drop_rate: float = math.nan
    queue_mean_ms: float = math.nan


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
    return max(MIN_QUEUE_BYTES, round(rate_mbit * 1e6 / 8 * rtt_ms / 1e3))


def queue_packets(rate_mbit: float, rtt_ms: float) -> int:
    """Return `queue_bytes` in full frames."""
    return max(1, queue_bytes(rate_mbit, rtt_ms) // FRAME_BYTES)


def run_ns2(flow: SimulatedFlow, core: int) -> SimulatorRun:
    """Run a flow in ns-2, with a trace of both links, on one core."""
    with tempfile.TemporaryDirectory() as folder:
        return _ns2(flow, core, Path(folder) / "trace")


def measured_ns2(flow: SimulatedFlow, core: int) -> SimulatorRun:
    """Run a flow in ns-2, and read from its trace what came of it."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        path = Path(folder) / "trace"
        done = _ns2(flow, core, path)
        trace = pd.read_csv(path, sep=" ", header=None, usecols=list(TRACE_FIELDS))
    trace = trace.rename(columns=TRACE_FIELDS)
    trace = trace[(trace["type"] == "tcp") & (trace["source"] == 1) & (trace["target"] == 2)]
    late = trace[trace["time"] >= flow.measure_from_s]
    entered, left, dropped = (late[late["event"] == event] for event in "+-d")
    waits = left.set_index("id")["time"] - entered.set_index("id")["time"]
    segments = late.loc[late["event"] == "r", "number"].nunique()
    seconds = flow.seconds - flow.measure_from_s
    return replace(
        done,
        goodput_mbps=segments * SEGMENT_BYTES * 8e-6 / seconds,
        drop_rate=len(dropped) / len(entered),
        queue_mean_ms=1e3 * float(waits.mean()),
    )


def _ns2(flow: SimulatedFlow, core: int, trace: Path) -> SimulatorRun:
    rate_mbit = flow.rate_mbit * NS2_FRAME_BYTES / FRAME_BYTES  # so that a segment takes as long
    arguments = [NS2_SCRIPT, NS2_CONTROLS[flow.variant], rate_mbit, flow.rtt_ms, flow.start_s]
    argv = map(str, [*arguments, flow.seconds, flow.limit_packets, trace])
    began = time.perf_counter()
    output = run(["taskset", "-c", str(core), "ns", *argv]).stdout
    wall_s = time.perf_counter() - began
    # ns-2 says more than the number of segments
    return SimulatorRun(wall_s, next(int(line) for line in output.splitlines() if line.isdigit()))


def run_ns3(flow: SimulatedFlow, core: int) -> SimulatorRun:
    """Run flows in ns-3, with captures at four points, on one core."""
    program = build_ns3()
    rate_mbit = flow.rate_mbit * NS3_FRAME_BYTES / FRAME_BYTES
    with tempfile.TemporaryDirectory() as folder:
        argv = [
            *("taskset", "-c", str(core), str(program), f"--variant={NS3_CONTROLS[flow.variant]}"),
            *(f"--rate={rate_mbit}", f"--rtt={flow.rtt_ms}", f"--seconds={flow.seconds}"),
            *(f"--flows={flow.flows}", f"--start={flow.start_s}", f"--spread={flow.spread_s}"),
            *(f"--from={flow.measure_from_s}", f"--limit={flow.limit_packets}"),
            f"--pcap={folder}/ns3",
        ]
        began = time.perf_counter()
        output = json.loads(run(argv).stdout)
        return SimulatorRun(time.perf_counter() - began, **output)


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
