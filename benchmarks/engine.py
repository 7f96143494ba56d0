"""The guest engine's speed and memory, as ratios to real time and to simulators in the same run.

    .venv/bin/python -m benchmarks.engine [--repeats N] [--rates 1,10,100] [--no-simulators]

A trial is what `testbed run` runs: boot, network, verification, four captures, samples
every 10 ms, one Cubic flow of 60 s; on one core. Real time is the 60 s. ns-3 (Debian's
libns3-dev, if installed) runs the same network with captures at the same four points, and ns-2
(Debian's ns2) with a trace of both links. They take turns, and the best of the repeats counts:
what is slower had company on the machine. Processor time is of all processes, and says more
on a machine that is busy with other work. The table is that of docs/performance.md.
"""

from __future__ import annotations

import argparse
import os
import resource
from collections.abc import Callable
from dataclasses import dataclass

from benchmarks import simulators
from benchmarks.simulators import SimulatedFlow, queue_bytes, queue_packets
from benchmarks.trials import run_trials, scratch_folder
from testbed.engine import Engine
from testbed.guest.engine import GuestEngine
from testbed.host.engine import HostEngine
from testbed.scenario.model import Flow, FlowKind, Scenario
from testbed.scenario.named_networks import LinkSettings, router_bottleneck
from testbed.scenario.network import Direction, Queue
from testbed.store import Record

TRIAL_SECONDS = 60
RTT_BY_RATE_MS = {1: 0, 10: 60, 100: 60}
MOST_OF_NS3_TIME = {1: 1.5, 10: 0.5, 100: 0.25}  # of ns-3's time; it is only printed


@dataclass(frozen=True)
class Cost:
    """The wall time of a run, and the processor time of all its processes."""

    wall_s: float
    processor_s: float
    memory_mb: float = 0

    def to(self, other: Cost) -> str:
        """Return the ratio to another cost, as text."""
        return (
            f"{self.wall_s / other.wall_s:.2f} ({self.processor_s / other.processor_s:.2f} of the "
            "processor time)"
        )


def scenario(
    rate_mbit: int, seconds: float = TRIAL_SECONDS, delay_ms: float | None = None
) -> Scenario:
    """One Cubic flow; a buffer of one bandwidth-delay product, or 0.1 MB if that is more."""
    rtt_ms = RTT_BY_RATE_MS[rate_mbit] if delay_ms is None else 2 * delay_ms
    buffer = Queue("bfifo", limit_bytes=queue_bytes(rate_mbit, rtt_ms))
    return Scenario(
        experiment="benchmark",
        network=router_bottleneck(
            LinkSettings(rate_mbit, queue=buffer, reverse=Direction()),
            access=LinkSettings(delay_ms=rtt_ms / 2),
        ),
        flows=(Flow("tcp", FlowKind.TCP, "sender1", "receiver", variant="cubic"),),
        duration_s=seconds,
    )


def measure(engine: Engine, wanted: Scenario) -> Record:
    """Run a trial as `testbed run` does, its captures converted and all."""
    with scratch_folder() as folder:
        record = run_trials([wanted], folder, engine, jobs=1)[0].record
    assert not any(capture.dropped for capture in record.captures)
    return record


def processor_s() -> float:
    """Return the processor time of this process and its ended children."""
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in used)


def cost(wall_s: Callable[[], float]) -> Cost:
    """Measure a call that returns the wall time of what it ran."""
    before = processor_s()
    return Cost(wall_s(), processor_s() - before)


def trial_cost(wanted: Scenario) -> Cost:
    """Measure a trial in the guest."""
    before = processor_s()
    record = measure(GuestEngine(), wanted)
    return Cost(record.wall_s, processor_s() - before, record.peak_memory_mb)


def best(costs: list[Cost]) -> Cost:
    """Return the least of each time."""
    return Cost(min(each.wall_s for each in costs), min(each.processor_s for each in costs))


def compare(rate_mbit: int, repeats: int, core: int, with_simulators: bool) -> None:
    """One rate: the trial, and beside it what is installed of the simulators."""
    rtt_ms, trials = RTT_BY_RATE_MS[rate_mbit], list[Record]()

    def trial() -> float:
        trials.append(measure(GuestEngine(), scenario(rate_mbit)))
        return trials[-1].wall_s

    runs: dict[str, Callable[[], float]] = {"guest": trial}
    flow = SimulatedFlow(rate_mbit, rtt_ms, TRIAL_SECONDS, queue_packets(rate_mbit, rtt_ms))
    if with_simulators and simulators.has_ns3():
        simulators.build_ns3()
        runs["ns-3"] = lambda: simulators.run_ns3(flow, core).wall_s
    if with_simulators and simulators.has_ns2():
        runs["ns-2"] = lambda: simulators.run_ns2(flow, core).wall_s
    costs: dict[str, list[Cost]] = {name: [] for name in runs}
    for _ in range(repeats):
        for name, act in runs.items():
            costs[name].append(cost(act))
    print(f"{rate_mbit} Mbit/s, {rtt_ms} ms")
    for name, found in costs.items():
        least = best(found)
        print(f"  {name:5} {least.wall_s:7.2f} s, {least.processor_s:7.2f} s of processor time")
    ours = best(costs["guest"])
    print(
        f"  real time {TRIAL_SECONDS / ours.wall_s:.1f} times; network up after "
        f"{min(each.network_up_s for each in trials):.2f} s; "
        f"{max(each.peak_memory_mb for each in trials):.0f} MB"
    )
    for name in [*costs][1:]:
        limit = f", at most {MOST_OF_NS3_TIME[rate_mbit]:g}" if name == "ns-3" else ""
        print(f"  to {name}: {ours.to(best(costs[name]))}{limit}", flush=True)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Speed and memory of the engines.")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--rates", default="1,10,100", help="Mbit/s, of 1, 10 and 100")
    parser.add_argument("--no-simulators", action="store_true")
    options = parser.parse_args()
    core = min(os.sched_getaffinity(0))  # the one that a single worker is given
    for name, installed, package in (
        ("ns-3", simulators.has_ns3(), "libns3-dev"),
        ("ns-2", simulators.has_ns2(), "ns2"),
    ):
        if not installed:
            print(f"{name} is not installed (apt install {package}): no comparison with it")
    guest = GuestEngine()
    if problem := guest.ready():
        raise SystemExit(problem)
    print(
        f"{TRIAL_SECONDS} s of one Cubic flow in the guest, best of {options.repeats}, core {core}"
    )
    for rate in map(int, options.rates.split(",")):
        compare(rate, options.repeats, core, not options.no_simulators)
    if os.geteuid() == 0:
        up_s = min(
            measure(HostEngine(), scenario(1, 1)).network_up_s for _ in range(options.repeats)
        )
        print(
            f"host engine: network up after {up_s:.2f} s, Python's start included (at most 0.3 s)"
        )


if __name__ == "__main__":
    main()
