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
from statistics import median

from benchmarks.engine import TRIAL_SECONDS, Cost, scenario, trial_cost
from testbed.guest.engine import GuestEngine

INTERVALS_MS = (0.0, 10.0, 1.0)


def main() -> None:
    """Print the medians and their ratios to no samples."""
    parser = argparse.ArgumentParser(description="The wall cost of samples in the guest.")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--rate", type=int, default=10, help="Mbit/s")
    parser.add_argument("--seconds", type=float, default=TRIAL_SECONDS)
    options = parser.parse_args()
    if problem := GuestEngine().ready():
        raise SystemExit(problem)
    plain = scenario(options.rate, options.seconds)
    costs: dict[float, list[Cost]] = {interval: [] for interval in INTERVALS_MS}
    for _ in range(options.repeats):
        for interval, spent in costs.items():
            spent.append(trial_cost(dataclasses.replace(plain, sample_interval_ms=interval)))
    print(f"{options.seconds:g} s at {options.rate} Mbit/s, medians of {options.repeats}")
    for interval, spent in costs.items():
        line = f"{f'every {interval:g} ms' if interval else 'no samples':>12}"
        for what, name in (("wall", "wall_s"), ("processors", "processor_s")):
            times, plain_times = ([getattr(c, name) for c in cs] for cs in (spent, costs[0.0]))
            # ratios are of trials that ran one after the other
            ratio = median(a / b for a, b in zip(times, plain_times, strict=True))
            line += f"  {what} {median(times):6.2f} s, {ratio:.2f} x"
        print(line)


if __name__ == "__main__":
    main()
