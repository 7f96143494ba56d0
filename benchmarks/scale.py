"""Many flows at once, and a fast one: what a packet costs beside one of one flow at 100 Mbit/s.

    .venv/bin/python -m benchmarks.scale [--flows 256] [--seconds 5] [--repeats 3]

Whole trials: boot, four captures, samples, verdict. The cost is processor time of all
processes, and a packet one that the receiver's capture has. What a trial costs before its first
packet is not its packets': the cost is what that many seconds more take, divided by the packets
that they have more, each the least of its repeats. Many flows run once more with a sample per
second: what their packets cost without the samples, of which there is one per flow every 10 ms,
however few packets it sends.
"""

from __future__ import annotations

import dataclasses
import os
from collections import Counter
from dataclasses import dataclass

from analysis.results.reduction import reduction_of
from benchmarks import engine, simulators
from benchmarks.harness import (
    Cost,
    measured,
    one_more,
    parser_of,
    require_guest,
    run_trials,
    scratch_folder,
)
from testbed.errors import TestbedError
from testbed.plan.plan import tasks
from testbed.scenario.model import Scenario
from testbed.store.reading import open_trial

SCALE_RTT_MS = 61.7  # no multiple of the samples' interval: no sample in the midst of a burst
START_JITTER_MS = 500.0  # of the flows' starts
MAX_TIMES_ONE_FLOW = 1.5  # times the cost of one flow's packet
MAX_SCALE_MB = 1024


@dataclass(frozen=True)
class Case:
    """Which flows, and how often their sockets are sampled."""

    name: str
    flows: int
    rate_mbit: int
    sample_ms: int = 10


ONE = Case("1 flow at 100 Mbit/s", 1, 100)


@dataclass(frozen=True)
class TrialCost:
    """The cost of a trial, and its outcome."""

    cost: Cost
    packets: int
    verdicts: str = ""  # of all flows


def scenario(case: Case, seconds: float) -> Scenario:
    """Return a case's Cubic flows through the network of `benchmarks.engine`."""
    one = engine.scenario(case.rate_mbit, seconds, SCALE_RTT_MS / 2)
    names = [f"tcp{number}" for number in range(case.flows)]
    each = tuple(dataclasses.replace(one.flows[0], name=name) for name in names)
    return dataclasses.replace(
        one, flows=each, start_jitter_ms=START_JITTER_MS, sample_interval_ms=case.sample_ms
    )


def ran(wanted: Scenario) -> TrialCost:
    """Run a trial, and judge it when its cost is known."""
    with scratch_folder() as folder:
        (done,), spent = measured(lambda: run_trials([wanted], folder, jobs=1))
        record, flows = done.record, reduction_of(open_trial(done.path)).flows
    spent = dataclasses.replace(spent, memory_mb=record.peak_memory_mb)
    packets, verdicts = max(each.packets for each in record.captures), Counter(flows["verdict"])
    return TrialCost(spent, packets, ", ".join(f"{n} {verdict}" for verdict, n in verdicts.items()))


def simulated(case: Case, seconds: float) -> TrialCost:
    """Run a case in ns-3."""
    limit = simulators.queue_packets(case.rate_mbit, SCALE_RTT_MS)
    arguments = (case.rate_mbit, SCALE_RTT_MS, seconds, limit)
    spread_s = START_JITTER_MS / 1e3 if case.flows > 1 else 0
    flow = simulators.SimulatedFlow(*arguments, flows=case.flows, spread_s=spread_s)
    done, spent = measured(lambda: simulators.run_ns3(flow, max(os.sched_getaffinity(0))))
    return TrialCost(spent, done.packets)


def packet_us(short: TrialCost, long: TrialCost) -> float:
    """Return the microseconds of processor time per packet that the longer one has more."""
    return 1e6 * one_more(short.cost, long.cost, long.packets - short.packets).processor_s


def cost_us(case: Case, seconds: float, repeats: int) -> float:
    """Print and return what a packet takes (µs), from trials of that duration and of twice it."""
    short, long = (
        min((ran(scenario(case, s)) for _ in range(repeats)), key=lambda ran: ran.cost.processor_s)
        for s in (seconds, 2 * seconds)
    )
    cost = packet_us(short, long)
    print(
        f"{case.name:24} {cost:6.1f} us per packet; {short.cost.processor_s:.1f} s of processor "
        f"time for {seconds:g} s; {long.cost.memory_mb:.0f} MB (at most {MAX_SCALE_MB}); "
        f"flows: {long.verdicts}",
        flush=True,
    )
    return cost


def main() -> None:
    """Print each case and its ratio."""
    parser = parser_of(__doc__)
    parser.add_argument("--flows", type=int, default=256, help="of the last two cases (256)")
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    if options.repeats < 1:
        parser.error("--repeats: at least 1")
    require_guest()
    many = Case(f"{options.flows} flows at 100 Mbit/s", options.flows, 100)
    seldom = dataclasses.replace(many, name="a sample per second", sample_ms=1000)
    cases = (ONE, Case("1 flow at 1 Gbit/s", 1, 1000), many, seldom)
    try:
        tasks([scenario(case, 2 * options.seconds) for case in cases])
    except TestbedError as error:  # before the first of them has run for minutes
        parser.error(f"{error.message} (--flows, --seconds)")
    costs = list[float]()
    for case in cases:
        costs.append(cost_us(case, options.seconds, options.repeats))
        if case is not ONE:
            times = f"{costs[-1] / costs[0]:.2f} times one flow's"
            print(f"  {times} (at most {MAX_TIMES_ONE_FLOW})", flush=True)
        if simulators.has_ns3() and case is not seldom:
            simulators.build_ns3()
            other = packet_us(*(simulated(case, n * options.seconds) for n in (1, 2)))
            share = f"the guest's costs {costs[-1] / other:.2f} of it"
            print(f"  ns-3 {other:.1f} us per packet: {share}", flush=True)


if __name__ == "__main__":
    main()
