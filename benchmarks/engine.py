"""The guest engine's speed and memory, as ratios to real time and to ns-3 in the same run.

    .venv/bin/python -m benchmarks.engine [--repeats N] [--rates 1,10,100] [--no-ns3]

A trial is what `testbed run` runs: boot, network, verification, four captures, samples
every 10 ms, one Cubic flow of 60 s; on one core. Real time is the 60 s. ns-3 (Debian's
libns3-dev, if installed) runs the same network with captures at the same four points.
The best of the repeats counts: what is slower had company on the machine.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from benchmarks.ns3 import is_installed, queue_bytes, run_ns3
from testbed.engines.base import Engine
from testbed.engines.choice import Choice
from testbed.engines.guest import GuestEngine
from testbed.engines.host import HostEngine
from testbed.plan.task import tasks
from testbed.runs.sweep import run_all
from testbed.scenario.model import (
    Bottleneck,
    Flow,
    FlowKind,
    Queue,
    Scenario,
    Topology,
    TopologyKind,
)
from testbed.scenario.model import (
    Path as Way,
)
from testbed.store import Record, Status

SECONDS = 60
RTT_MS = {1: 0, 10: 60, 100: 60}
LIMIT_S = {1: 4, 10: 8, 100: 45}  # what each trial may take


def scenario(rate_mbit: int, seconds: float = SECONDS, delay_ms: float | None = None) -> Scenario:
    """One Cubic flow; a buffer of one bandwidth-delay product, or 0.1 MB if that is more."""
    rtt_ms = RTT_MS[rate_mbit] if delay_ms is None else 2 * delay_ms
    buffer = Queue("bfifo", limit_bytes=queue_bytes(rate_mbit, rtt_ms))
    return Scenario(
        experiment="benchmark",
        topology=Topology(
            TopologyKind.ROUTER_BOTTLENECK,
            Bottleneck(rate_mbit, buffer, both_directions=False),
            access=Way(delay_ms=rtt_ms / 2),
        ),
        flows=(Flow("tcp", FlowKind.TCP, "sender1", "receiver", variant="cubic"),),
        duration_s=seconds,
    )


def measure(engine: Engine, wanted: Scenario) -> Record:
    """Run a trial as `testbed run` does, its captures converted and all."""
    with tempfile.TemporaryDirectory(prefix="testbed-benchmark-") as name:
        choice = Choice(engine, "benchmark")
        done = run_all(tasks([wanted]), choice, Path(name) / "out", lambda _event: None, jobs=1)
        record = done[0].record
    assert record.status is Status.OK, record.reason
    assert not any(capture.dropped for capture in record.captures)
    return record


def best(repeats: int, act: Callable[[], float]) -> float:
    """The least of several measurements."""
    return min(act() for _ in range(repeats))


def compare(rate_mbit: int, repeats: int, core: int, with_ns3: bool) -> None:
    """One line of the table."""
    trials = [measure(GuestEngine(), scenario(rate_mbit)) for _ in range(repeats)]
    wall_s = min(trial.wall_s for trial in trials)
    line = (
        f"{rate_mbit:>4} Mbit/s {RTT_MS[rate_mbit]:>3} ms  {wall_s:6.2f} s (at most "
        f"{LIMIT_S[rate_mbit]} s)  {SECONDS / wall_s:5.1f} x real time  "
        f"network up after {min(t.network_up_s for t in trials):.2f} s  "
        f"{max(t.peak_memory_mb for t in trials):.0f} MB"
    )
    if with_ns3:
        ns3_s = best(
            repeats, lambda: run_ns3(rate_mbit, RTT_MS[rate_mbit], SECONDS, core=core).wall_s
        )
        line += f"  ns-3 {ns3_s:5.2f} s  ratio {wall_s / ns3_s:.2f}"
    print(line, flush=True)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Speed and memory of the engines.")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--rates", default="1,10,100", help="Mbit/s, of 1, 10 and 100")
    parser.add_argument("--no-ns3", action="store_true")
    options = parser.parse_args()
    core = min(os.sched_getaffinity(0))  # the one that a single worker is given
    with_ns3 = is_installed() and not options.no_ns3
    if not is_installed():
        print("ns-3 is not installed (apt install libns3-dev): no comparison with it")
    guest = GuestEngine()
    if problem := guest.ready():
        raise SystemExit(problem)
    print(f"{SECONDS} s of one Cubic flow in the guest, best of {options.repeats}, on core {core}")
    for rate in map(int, options.rates.split(",")):
        compare(rate, options.repeats, core, with_ns3)
    if os.geteuid() == 0:
        up_s = best(options.repeats, lambda: measure(HostEngine(), scenario(1, 1)).network_up_s)
        print(
            f"host engine: network up after {up_s:.2f} s, Python's start included (at most 0.3 s)"
        )


if __name__ == "__main__":
    main()
