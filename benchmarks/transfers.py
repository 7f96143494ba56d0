"""How much longer many transfers take to emulate than one flow of as many bytes.

    .venv/bin/python -m benchmarks.transfers [--count 10000] [--mean-bytes 50000] [--repeats 3]

Both cross the same dumbbell of 100 Mbit/s and 20 ms in the guest, one trial at a time. The
transfers come by a Poisson process that fills 0.9 of the link, with web-search sizes of that mean;
the flow has as many bytes. Times are of whole trials, boot and captures included; the best of the
repeats.
"""

from __future__ import annotations

import argparse
import dataclasses

from benchmarks.engine import trial_cost
from testbed.scenario.model import Flow, FlowKind, Scenario
from testbed.scenario.named_networks import LinkSettings, dumbbell
from testbed.scenario.network import Queue
from testbed.scenario.transfers import mean_bytes, planned_transfers, rate_per_s
from testbed.scenario.workload import Arrivals, Sizes, Workload

LINK_RATE_MBIT, ONE_WAY_MS, OFFERED_LOAD = 100.0, 10.0, 0.9
LONGER_DURATION_S = 15.0


def scenarios(count: int, mean: float) -> tuple[Scenario, Scenario]:
    """Return a scenario of transfers, and one of a single flow with their bytes."""
    sizes = Sizes(scale=mean / mean_bytes(Sizes()))
    workload = Workload(Arrivals(load=OFFERED_LOAD), sizes, count=count)
    many = Flow("many", FlowKind.WORKLOAD, "sender1", "receiver1", variant="cubic",
                workload=workload)  # fmt: skip
    bottleneck = LinkSettings(LINK_RATE_MBIT, ONE_WAY_MS, Queue("bfifo", limit_bdp=1.0))
    scenario = Scenario(
        experiment="benchmark",
        network=dumbbell(bottleneck),
        flows=(many,),
        duration_s=round(1.2 * count / rate_per_s(workload, LINK_RATE_MBIT)) + LONGER_DURATION_S,
    )
    size = sum(each.size for each in planned_transfers(scenario, many))
    one = Flow("one", FlowKind.TCP, "sender1", "receiver1", variant="cubic", bytes=size)
    return scenario, dataclasses.replace(scenario, flows=(one,))


def main() -> None:
    """Print both times and their ratio."""
    parser = argparse.ArgumentParser(description="Many transfers against one flow of their bytes.")
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--mean-bytes", type=float, default=50_000)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    many, one = scenarios(options.count, options.mean_bytes)
    size = one.flows[0].bytes or 0
    # alternately: what else the machine does falls on both
    times = [(trial_cost(many).wall_s, trial_cost(one).wall_s) for _ in range(options.repeats)]
    slow, fast = (min(each) for each in zip(*times, strict=True))
    print(f"{options.count} transfers, {size / 1e6:.0f} MB: {slow:.1f} s")
    print(f"one flow of as many bytes: {fast:.1f} s")
    print(f"ratio: {slow / fast:.2f}")


if __name__ == "__main__":
    main()
