"""A sweep's speed: Kapre and Saxena's first experiment, its scaling, and what is ours of it.

    .venv/bin/python -m benchmarks.sweep [--trials N] [--scaling N]
    .venv/bin/python -m benchmarks.sweep --all FOLDER

The experiment: 4 variants x 10 loads of CBR x 2 orders x 5 seeds of 60 s on the six-node
dumbbell, 400 trials, captures at every point, reduced and compressed as they come. Fewer
`--trials` are a sample of the 400, drawn evenly; the whole is extrapolated and said so.
`--all` runs the 400 in a folder that stays: what ^C or a failure interrupts goes on where it
was with the same command, and the time of every stretch counts. Scaling: the same trials by one
worker and by two, half of them at a time, so that a machine that is busy meanwhile is as busy
for both. Our own share: an engine that does nothing. Fixed cost: what one more trial of 3 s at
1 Mbit/s takes. Statistics: 10,000 rows of metrics to intervals of every cell.
"""

from __future__ import annotations

import argparse
import itertools
import os
import random
import resource
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from analysis.metrics.columns import METRIC_COLUMNS
from analysis.results.reduction import Incoming
from analysis.statistics.text_tables import summary
from benchmarks import engine as speed
from testbed.engine import Engine, Job, Missing, ProcessOutcome
from testbed.guest.engine import GuestEngine
from testbed.plan.plan import Task, tasks
from testbed.plan.requirements import Need
from testbed.runs.engine_choice import Choice
from testbed.runs.sweep import SweepEvent, TrialFinished, run_all
from testbed.scenario.model import Flow, FlowKind, Profile, Scenario
from testbed.scenario.named_networks import LinkSettings, dumbbell
from testbed.scenario.network import Queue
from testbed.store import RECORD, Record, Status, trials_in

SWEEP_VARIANTS = ("tahoe", "reno", "newreno", "vegas")
LOADS_MBIT = tuple(range(1, 11))  # Mbit/s
ORDERS = ("cbr first", "tcp first")
SWEEP_SEEDS = tuple(range(1, 6))
FIXED_S = 0.6  # of processor time, from a short trial's start to its end
LIMIT_MINUTES = 12  # what all 400 may take on two idle cores
SCALING = 1.9  # at least, from one worker to two
STRETCHES = "stretches.csv"  # of an interrupted sweep: seconds, and trials that ran in them


def scenario(variant: str, load: float, order: str, seed: int, duration_s: float = 60) -> Scenario:
    """One trial: TCP from N1 to N4, CBR from N2 to N3, either five seconds ahead."""
    tcp_s, cbr_s = (5, 0) if order == "cbr first" else (0, 5)
    queue = Queue("pfifo", limit_packets=10)
    return Scenario(
        experiment="benchmark",
        label=f"{variant}-{load}-{order.replace(' ', '-')}",
        network=dumbbell(
            LinkSettings(10, queue=queue, delay_ms=10),
            access=LinkSettings(delay_ms=10, rate_mbit=10, queue=queue),
        ),
        flows=(
            Flow("tcp", FlowKind.TCP, "sender1", "receiver1", variant=variant, start_s=tcp_s),
            Flow(
                "cbr",
                FlowKind.CBR,
                "left",
                "right",
                rate_mbit=load,
                packet_bytes=1000,
                start_s=cbr_s,
            ),
        ),
        duration_s=duration_s,
        seed=seed,
        profile=Profile.NS2,
    )


def everything() -> list[Scenario]:
    """All 400."""
    product = itertools.product(SWEEP_VARIANTS, LOADS_MBIT, ORDERS, SWEEP_SEEDS)
    return [scenario(variant, load, order, seed) for variant, load, order, seed in product]


def sample(count: int) -> list[Scenario]:
    """Return a sample of `count` trials, drawn with a fixed seed."""
    whole = everything()
    return whole if count >= len(whole) else random.Random(1).sample(whole, count)


def run_sweep(scenarios: Sequence[Scenario], engine: Engine, jobs: int, out: Path) -> None:
    """Run the trials that are not there yet, reduced and compressed."""
    with Incoming("zstd") as incoming:

        def take(event: SweepEvent) -> None:
            if isinstance(event, TrialFinished):
                assert event.status is Status.OK, event.record.reason
                incoming.add(event.path)

        run_all(tasks(scenarios), Choice(engine, "benchmark"), out, take, jobs)


def timed_sweep(scenarios: Sequence[Scenario], engine: Engine, jobs: int) -> float:
    """Seconds that the trials take in a folder of their own."""
    with tempfile.TemporaryDirectory(prefix="testbed-benchmark-", dir="/var/tmp") as name:
        begun = time.monotonic()
        run_sweep(scenarios, engine, jobs, Path(name) / "out")
        return time.monotonic() - begun


def all_of_them(folder: Path, engine: Engine, jobs: int) -> None:
    """Run those of the 400 trials that are missing, and print the time of all stretches."""
    scenarios, out, kept = everything(), folder / "trials", folder / STRETCHES
    folder.mkdir(parents=True, exist_ok=True)
    begun, before = time.monotonic(), done_in(out)
    try:
        run_sweep(scenarios, engine, jobs, out)
    finally:
        with kept.open("a") as file:
            file.write(f"{time.monotonic() - begun:.1f},{done_in(out) - before}\n")
    stretches = [line.split(",") for line in kept.read_text().splitlines()]
    minutes = sum(float(spent) for spent, _ in stretches) / 60
    emulated = sum(each.duration_s for each in scenarios)
    print(
        f"all {len(scenarios)} trials of 60 s by {jobs} workers: {minutes:.1f} min measured in "
        f"{len(stretches)} stretches ({', '.join(trials for _, trials in stretches)} trials), "
        f"{emulated / minutes / 60:.1f} times real time (at most {LIMIT_MINUTES} min)"
    )


def done_in(out: Path) -> int:
    """How many trials a folder has."""
    return sum(1 for _ in trials_in(out)) if out.is_dir() else 0


class _IdleEngine:
    """An engine that does nothing: what is left is our own work."""

    name = "idle"
    virtual_time = False

    def ready(self) -> str:
        return ""

    def with_kernel(self, _name: str) -> _IdleEngine:
        """Itself."""
        return self

    def version(self) -> str:
        return "none"

    def missing(self, needs: Sequence[Need]) -> list[Missing]:
        return []

    def controls(self) -> frozenset[str]:
        return frozenset()

    def try_out(self) -> str:
        """Nothing to try."""
        return ""

    def jobs(self) -> int:
        return 1

    def run(self, folder: Path, _task: Task, job: Job) -> ProcessOutcome:
        (folder / RECORD).write_text(Record(Status.OK, seed=job.seed).to_json())
        return ProcessOutcome(0, 0.0, "")


def overhead(trials: int) -> tuple[float, float]:
    """Milliseconds a trial of an engine that does nothing; memory of this process in MB."""
    scenarios = [scenario("reno", 5, ORDERS[0], seed) for seed in range(trials)]
    with tempfile.TemporaryDirectory(prefix="testbed-benchmark-") as name:
        begun = time.monotonic()
        run_all(
            tasks(scenarios), Choice(_IdleEngine(), ""), Path(name) / "out", lambda _event: None, 1
        )
        spent = time.monotonic() - begun
    return 1e3 * spent / trials, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def fixed_s(trials: int = 10) -> float:
    """Seconds of processor time that one more trial of 3 s takes, its reduction included."""

    def spent_s(count: int) -> float:
        few = [replace(speed.scenario(1, 3), seed=seed) for seed in range(count)]
        before = speed.processor_s()
        timed_sweep(few, GuestEngine(), 1)
        return speed.processor_s() - before

    return (spent_s(2 + trials) - spent_s(2)) / trials


def statistics_s(rows: int) -> float:
    """Seconds from so many rows of metrics to a table of means and intervals."""
    dice = np.random.default_rng(1)
    cells = rows // 100
    frame = pd.DataFrame(index=range(rows), columns=list(METRIC_COLUMNS))
    frame["variant"] = [f"v{row % cells}" for row in range(rows)]
    frame["status"], frame["axes"] = "ok", ""
    for name in ("experiment", "topology", "queue", "engine", "flow"):
        frame[name] = "x"
    for name in ("throughput_mbps", "goodput_mbps", "rtt_mean_ms", "retransmitted"):
        frame[name] = dice.normal(10, 1, rows)
    begun = time.monotonic()
    assert len(summary(frame).rows) == cells
    return time.monotonic() - begun


def scale(engine: Engine, trials: int) -> None:
    """Run the same trials by one worker and by two, half of them at a time.

    What two can be faster by is bounded: one worker has a trial reduced while the next one runs,
    and two at a time share caches and memory, so that each takes more processor time.
    """
    few = sample(trials)
    half = max(2, trials // 2)
    parts = [part for part in (few[:half], few[half:]) if part]
    took = {jobs: [0.0, 0.0] for jobs in (1, 2)}  # seconds, and those of processor time
    for part, jobs in itertools.product(parts, took):
        before = speed.processor_s()
        took[jobs][0] += timed_sweep(part, engine, jobs)
        took[jobs][1] += speed.processor_s() - before
    (alone, alone_s), (together, together_s) = took.values()
    print(
        f"{len(few)} trials: {alone:.1f} s by one worker, {together:.1f} s by two: "
        f"{alone / together:.2f} times (at least {SCALING})\n"
        f"  one worker keeps {alone_s / alone:.2f} cores busy: two cores allow at most "
        f"{2 * alone / alone_s:.2f} times, and {2 * alone / together_s:.2f} with the processor "
        f"time that two at once take ({together_s / alone_s:.2f} times that of one)"
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="How fast a sweep is.")
    parser.add_argument("--trials", type=int, default=40, help="of the 400 (40)")
    parser.add_argument("--scaling", type=int, default=8, help="trials for the scaling (8)")
    parser.add_argument("--all", type=Path, metavar="FOLDER", help="run all 400, or go on")
    options = parser.parse_args()
    engine, cores = GuestEngine(), len(os.sched_getaffinity(0))
    assert not engine.ready(), engine.ready()
    if options.all:
        all_of_them(options.all, engine, cores)
        return

    small = overhead(200)
    large = overhead(2000)
    print(f"our own share: {large[0]:.1f} ms a trial (at most 50)")
    print(f"fixed cost: {fixed_s():.2f} s of processor time a trial (at most {FIXED_S})")
    print(f"memory of the parent: {small[1]:.0f} MB at 200 trials, {large[1]:.0f} MB at 2000")
    print(f"10,000 rows to statistics: {statistics_s(10_000):.2f} s (at most 2)")

    scale(engine, options.scaling)
    chosen = sample(options.trials)
    spent = timed_sweep(chosen, engine, cores)
    emulated = sum(each.duration_s for each in chosen)
    whole = spent / len(chosen) * len(everything()) / 60
    kind = "measured" if len(chosen) == len(everything()) else "extrapolated"
    print(
        f"{len(chosen)} trials of 60 s by {cores} workers: {spent / 60:.1f} min, "
        f"{emulated / spent:.1f} times real time; all {len(everything())}: {whole:.0f} min "
        f"{kind} (at most {LIMIT_MINUTES})"
    )


if __name__ == "__main__":
    main()
