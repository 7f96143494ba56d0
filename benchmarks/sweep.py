"""A sweep's speed: Kapre and Saxena's first experiment, its scaling, and a trial's fixed cost.

    .venv/bin/python -m benchmarks.sweep [--trials N] [--scaling N]

The experiment: 4 variants x 10 loads of CBR x 2 orders x 5 seeds of 60 s on the six-node
dumbbell, 400 trials, captures at every point, reduced and compressed as they come; the time of all
is extrapolated from a sample. Scaling: the same trials by a worker on one processor and by two on
two, half of them at a time, so that a machine that is busy meanwhile is as busy for both. Fixed
cost: the processor time of one more trial of 1 s at 1 Mbit/s. Cores: the sweep's own process works
under Python's lock, for which workers wait. The speed-up on n cores is computed from the share of a
trial's processor time that is spent there.
"""

from __future__ import annotations

import itertools
import os
import random
from collections.abc import Sequence
from dataclasses import replace

from analysis.results.background_reduction import MANY, ReductionQueue
from benchmarks import engine as speed
from benchmarks.harness import (
    Cost,
    measured,
    one_more,
    parser_of,
    require_guest,
    run_trials,
    scratch_folder,
)
from testbed.runs.sweep import SweepEvent, TrialFinished
from testbed.scenario.model import Flow, FlowKind, Profile, Scenario
from testbed.scenario.named_networks import LinkSettings, dumbbell
from testbed.scenario.network import Queue

SWEEP_VARIANTS = ("tahoe", "reno", "newreno", "vegas")
LOADS_MBIT = tuple(range(1, 11))  # Mbit/s
TCP_AND_CBR_S = ((5, 0), (0, 5))  # when they start
SWEEP_SEEDS = tuple(range(1, 6))
MAX_FIXED_S = 0.15  # of processor time on a fast day: at most
MAX_MINUTES = 4  # for all 400 on two idle cores: at most
MIN_SCALING = 1.9  # from one worker to two: at least
MIN_OF_N = 0.9  # of n, on n cores: at least
CORES = (2, 4, 8, 16, 32, 64)


def scenario(variant: str, load: float, starts_s: tuple[float, float], seed: int) -> Scenario:
    """One trial: TCP from N1 to N4, CBR from N2 to N3, either five seconds ahead."""
    queue = Queue("pfifo", limit_packets=10)
    tcp_s, cbr_s = starts_s
    tcp = Flow("tcp", FlowKind.TCP, "sender1", "receiver1", variant=variant, start_s=tcp_s)
    cbr = Flow(
        "cbr", FlowKind.CBR, "left", "right", rate_mbit=load, packet_bytes=1000, start_s=cbr_s
    )
    return Scenario(
        experiment="benchmark",
        label=f"{variant}-{load}-{tcp_s}",
        network=dumbbell(
            LinkSettings(10, queue=queue, delay_ms=10),
            access=LinkSettings(delay_ms=10, rate_mbit=10, queue=queue),
        ),
        flows=(tcp, cbr),
        duration_s=60,
        seed=seed,
        profile=Profile.NS2,
    )


def run(scenarios: Sequence[Scenario], jobs: int, expected: int = 0) -> Cost:
    """Run trials in their own folder, reduced and compressed, and return what they cost.

    If many are expected, other processes reduce them, whose time is with the guests'.
    """

    def sweep() -> None:
        def take(event: SweepEvent) -> None:
            if isinstance(event, TrialFinished):
                incoming.add(event.path, is_fresh=event.fresh)

        with ReductionQueue("zstd", trials=expected or len(scenarios)) as incoming:
            run_trials(scenarios, folder, jobs=jobs, watch=take)

    with scratch_folder() as folder:
        return measured(sweep)[1]


def fixed_cost(trials: int = 10) -> None:
    """Print what one more short trial takes, and how much of that captures and samples are."""
    whole = speed.scenario(1, 1)
    kinds = {
        "a trial of 1 s at 1 Mbit/s": whole,
        "without captures": replace(whole, captures=()),
        "without samples": replace(whole, sample_interval_ms=0),
    }
    for name, wanted in kinds.items():
        few, many = (
            run([replace(wanted, seed=seed) for seed in range(count)], 1)
            for count in (2, 2 + trials)
        )
        one = one_more(few, many, trials)
        print(
            f"{name}: {one.processor_s:.3f} s of processor time (at most {MAX_FIXED_S}): "
            f"{one.children_s:.3f} of its guest, {one.own_s:.3f} of the sweep, reduction included",
            flush=True,
        )


def scale(few: Sequence[Scenario]) -> None:
    """Run the same trials by a worker on one processor and by two on two, half of them at a time.

    Where it has a second processor, one worker's trials are reduced there meanwhile.
    """
    half = max(2, len(few) // 2)
    parts = [part for part in (few[:half], few[half:]) if part]
    processors = sorted(os.sched_getaffinity(0))
    took: dict[int, list[Cost]] = {1: [], 2: []}
    for part, jobs in itertools.product(parts, took):
        os.sched_setaffinity(0, processors[:jobs])
        took[jobs].append(run(part, jobs))
    os.sched_setaffinity(0, processors)
    one, two = (sum(each.wall_s for each in costs) for costs in took.values())
    one_busy, two_busy = (sum(each.processor_s for each in costs) for costs in took.values())
    print(
        f"{len(few)} trials: {one:.1f} s by a worker on one processor, {two:.1f} s by two "
        f"on two: {one / two:.2f} times (at least {MIN_SCALING}); two take "
        f"{two_busy / one_busy:.2f} times the processor time of one, and keep "
        f"{two_busy / two:.2f} processors busy",
        flush=True,
    )


def simulated_speed(cores: int, alone_s: float, whole_s: float) -> float:
    """Return a sweep's speed-up on `cores` over one core.

    Each core's trial takes `whole_s`, of which `alone_s` only one at a time may have: a closed
    queue with exponential times, solved exactly by its mean values.
    """
    queue = rate = 0.0
    for count in range(1, cores + 1):
        response_s = alone_s * (1 + queue)
        rate = count / (whole_s - alone_s + response_s)
        queue = rate * response_s
    return rate * whole_s


def many_cores(name: str, scenarios: Sequence[Scenario]) -> None:
    """Print how fast a sweep of such trials would be on many cores, by what is under one lock."""
    more = len(scenarios) // 2
    few, many = (run(part, 1, MANY) for part in (scenarios[: len(scenarios) - more], scenarios))
    one = one_more(few, many, more)
    alone_s, whole_s = one.own_s, one.processor_s
    fast = [n for n in range(1, 1000) if simulated_speed(n, alone_s, whole_s) >= MIN_OF_N * n]
    ratios = ", ".join(f"{n} cores {simulated_speed(n, alone_s, whole_s):.1f}" for n in CORES)
    print(
        f"{name}: {whole_s:.3f} s each, {alone_s:.4f} s of it in the sweep's process; times as "
        f"fast as one core: {ratios}; at least {MIN_OF_N} n up to {max(fast)} cores",
        flush=True,
    )


def main() -> None:
    """Measure and print."""
    parser = parser_of(__doc__)
    parser.add_argument("--trials", type=int, default=40, help="of the 400 (40)")
    parser.add_argument("--scaling", type=int, default=8, help="trials for the scaling (8)")
    options = parser.parse_args()
    require_guest()
    product = itertools.product(SWEEP_VARIANTS, LOADS_MBIT, TCP_AND_CBR_S, SWEEP_SEEDS)
    every = [scenario(*each) for each in product]
    mixed = random.Random(1).sample(every, len(every))
    fixed_cost()
    short = [replace(speed.scenario(1, 1), seed=seed) for seed in range(16)]
    many_cores("trials of 1 s at 1 Mbit/s", short)
    many_cores("trials of 60 s at 10 Mbit/s", mixed[:8])
    scale(mixed[: options.scaling])
    chosen, cores = mixed[: options.trials], len(os.sched_getaffinity(0))
    spent_s = run(chosen, cores).wall_s
    minutes = spent_s / len(chosen) * len(every) / 60
    print(
        f"{len(chosen)} trials of 60 s by {cores} workers: {spent_s / 60:.1f} min; all "
        f"{len(every)}: {minutes:.1f} min extrapolated (at most {MAX_MINUTES})"
    )


if __name__ == "__main__":
    main()
