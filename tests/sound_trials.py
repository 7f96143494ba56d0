"""Trials that nothing was done to, drawn from all experiments: their verdicts.

    .venv/bin/python -m tests.sound_trials [--count 500] [--draw WORD] [--quick]

Each runs in the guest as `testbed run` would run it, with `--quick` as for a first look; another
word draws others. Prints how many are valid, suspect and invalid, every fifty trials and at the
end, and what those say that are not valid. The exit status is 1 if one is invalid or did not run.
Half a thousand in full take two cores half an hour. `tests/faults.py` is the opposite:
trials that were broken on purpose.
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
from collections import Counter
from pathlib import Path

from analysis.verdict.checks import Grade
from analysis.verdict.verdict import judge
from experiments.catalogue import EXPERIMENTS
from testbed.plan.plan import Task, tasks
from testbed.runs.engine_choice import choose
from testbed.runs.sweep import SweepEvent, TrialFinished, run_all
from testbed.scenario.model import Scenario
from testbed.store.reading import open_trial

SEEDS = 20  # of each combination, beyond those that the stored tables are made of
FIRST_SEED = 101
EACH = 50  # trials between two lines


def drawn(count: int, word: str, *, quick: bool) -> list[Task]:
    """So many trials, from each experiment as many as from any other."""
    rng = random.Random(word)
    chosen: list[Scenario] = []
    for number, experiment in enumerate(EXPERIMENTS.values()):
        share = count * (number + 1) // len(EXPERIMENTS) - count * number // len(EXPERIMENTS)
        every = experiment.scenarios({}, FIRST_SEED + SEEDS, quick=quick)
        beyond = [scenario for scenario in every if scenario.seed >= FIRST_SEED]
        chosen += rng.sample(beyond, share)
    rng.shuffle(chosen)
    return tasks(chosen)


class Verdicts:
    """What became of the trials; those that were judged are deleted."""

    def __init__(self) -> None:
        self.counts = Counter[str]()

    def __call__(self, event: SweepEvent) -> None:
        """Judge a trial that has finished."""
        if not isinstance(event, TrialFinished):
            return
        trial = open_trial(event.path)
        verdict = judge(trial)
        grade, why = (verdict.verdict, verdict.why) if verdict else ("failed", trial.record.reason)
        self.counts[grade] += 1
        if grade != Grade.VALID:
            print(f"{event.scenario.name}: {grade}: {why}", flush=True)
        shutil.rmtree(event.path)
        if self.counts.total() % EACH == 0:
            print(self, flush=True)

    def __str__(self) -> str:
        told = (f"{count} {grade}" for grade, count in sorted(self.counts.items()))
        return f"{self.counts.total()} trials: {', '.join(told)}"


def main() -> int:
    """Run and judge them."""
    parser = argparse.ArgumentParser(description="The verdicts of sound trials.")
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--draw", default="sound", metavar="WORD")
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    verdicts = Verdicts()
    with tempfile.TemporaryDirectory(prefix="testbed-sound-", dir="/var/tmp") as folder:
        chosen = drawn(options.count, options.draw, quick=options.quick)
        run_all(chosen, choose("guest", ()), Path(folder), verdicts)
    experiments = len({task.scenario.experiment for task in chosen})
    print(f"of {experiments} experiments, {verdicts}")
    bad = verdicts.counts[Grade.INVALID] + verdicts.counts["failed"]
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
