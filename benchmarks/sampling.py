"""What samples of sockets and queues cost in the guest, against none.

    .venv/bin/python -m benchmarks.sampling [--repeats N] [--rate MBIT] [--seconds S]

The same trial (one Cubic flow, 60 ms, a buffer of one bandwidth-delay product) without
samples and with one every 10 and every 1 ms, in turn, so that whatever else the machine does
meets all of them. Beside the wall time stands the processors' time, which company on the
machine disturbs less. In virtual time samples change no packet; this is all that they cost.
"""

from __future__ import annotations

import argparse
import dataclasses
import resource
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.engine import TRIAL_SECONDS, measure, scenario
from testbed.engine import Engine
from testbed.guest.engine import GuestEngine
from testbed.scenario.model import Scenario

INTERVALS_MS = (0.0, 10.0, 1.0)


@dataclass(frozen=True)
class SamplingCost:
    """Of one trial."""

    wall_s: float
    cpu_s: float


def cost(engine: Engine, wanted: Scenario) -> SamplingCost:
    """Run it, alone among our children."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    wall_s = measure(engine, wanted).wall_s
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return SamplingCost(wall_s, spent_s)


def median(costs: Sequence[SamplingCost], name: str) -> float:
    """Of one of the two times."""
    return statistics.median(float(getattr(each, name)) for each in costs)


def ratio(costs: Sequence[SamplingCost], others: Sequence[SamplingCost], name: str) -> float:
    """Return the median of the ratios of trials that ran one after the other."""
    pairs = zip(costs, others, strict=True)
    return statistics.median(float(getattr(a, name) / getattr(b, name)) for a, b in pairs)


def main() -> None:
    """Print the medians and their ratios."""
    parser = argparse.ArgumentParser(description="The wall cost of samples in the guest.")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--rate", type=int, default=10, help="Mbit/s")
    parser.add_argument("--seconds", type=float, default=TRIAL_SECONDS)
    options = parser.parse_args()
    guest = GuestEngine()
    if problem := guest.ready():
        raise SystemExit(problem)
    plain = scenario(options.rate, options.seconds)
    costs: dict[float, list[SamplingCost]] = {interval: [] for interval in INTERVALS_MS}
    for _ in range(options.repeats):
        for interval, found in costs.items():
            found.append(cost(guest, dataclasses.replace(plain, sample_interval_ms=interval)))
    print(f"{options.seconds:g} s at {options.rate} Mbit/s, medians of {options.repeats}")
    for interval, found in costs.items():
        name = f"every {interval:g} ms" if interval else "no samples"
        print(
            f"{name:>12}"
            f"  wall {median(found, 'wall_s'):6.2f} s, {ratio(found, costs[0.0], 'wall_s'):.2f} x"
            f"  processors {median(found, 'cpu_s'):6.2f} s,"
            f" {ratio(found, costs[0.0], 'cpu_s'):.2f} x"
        )


if __name__ == "__main__":
    main()
