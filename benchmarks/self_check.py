"""A control against itself in many evaluations: how often a difference is found that is none.

    .venv/bin/python -m benchmarks.self_check OUT [--evaluations 50] [--seeds 3]

Each evaluation compares a control's trials of some seeds with its trials of as many other seeds, as
`testbed evaluate` would compare it with another control: every *better* or *worse* is by chance.
Prints in how many of the evaluations there is one, which Holm's correction keeps to 5 %, and how
many of all comparisons are below 0.05 without it. Trials in OUT are not run again.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from analysis.evaluation.outcome_rows import SUBJECT, outcome, scores
from analysis.evaluation.standing import LEVEL, ScoreLine, Standing, corrected, score_lines
from analysis.evaluation.trial_view import Score
from analysis.metrics.metric_rows import AXIS
from analysis.results.experiment_results import collect
from benchmarks.command import errors_as_exit
from experiments.catalogue import EXPERIMENTS
from testbed.runs.orchestration import RunOptions, plan_and_carry_out
from testbed.runs.progress import ConsoleListener
from testbed.runs.selection import select_experiment

SELF_CHECKED = ("latecomer", "intra-protocol", "lossy")  # cheap, and with chance in them
AGAIN = "itself"

EvaluationRows = Mapping[str, tuple[pd.DataFrame, Sequence[Score]]]  # by experiment


def of_control(control: str, seeds: int, out: Path, names: Sequence[str]) -> EvaluationRows:
    """Run a control in the evaluations' short forms, and return their rows of scores."""
    found = {}
    for name in names:
        selection = select_experiment(EXPERIMENTS[name], {"variant": (control,)}, quick=True)
        options = RunOptions(seeds=seeds, out=out / name, name="self-check", captures="drop")
        _, done = plan_and_carry_out(selection, options, "self-check", ConsoleListener())
        (results,) = collect([done.folder], EXPERIMENTS).experiments
        found[name] = outcome(results), scores(results)
    return found


def against_itself(
    rows: EvaluationRows, control: str, seeds: int, number: int
) -> tuple[ScoreLine, ...]:
    """Return the evaluation of this number, from 0 on: its seeds are in no other one."""
    first = 1 + 2 * seeds * number
    lines: list[ScoreLine] = []
    for name, (table, own_scores) in rows.items():
        one, other = (
            table[table["seed"].between(begin, begin + seeds - 1)]
            for begin in (first, first + seeds)
        )
        renamed: dict[str, Any] = dict.fromkeys((SUBJECT, f"{AXIS}variant"), AGAIN)
        renamed["seed"] = other["seed"] - seeds
        both = pd.concat([one, other.assign(**renamed)])
        lines += score_lines(name, both, own_scores, control, [AGAIN])
    return corrected(lines)


def false_findings(evaluations: Sequence[tuple[ScoreLine, ...]]) -> tuple[int, int, int]:
    """Return how many evaluations have a finding; the comparisons, and those below the level."""
    beside = [[each for line in lines for each in line.beside] for lines in evaluations]
    with_finding = sum(
        any(each.standing in (Standing.BETTER, Standing.WORSE) for each in own) for own in beside
    )
    p_values = [each.found.p for own in beside for each in own]
    return with_finding, len(p_values), sum(p < LEVEL for p in p_values)


def main() -> None:
    """Run the trials, and print the shares."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--control", default="cubic")
    parser.add_argument("--evaluations", type=int, default=50)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--experiments", nargs="+", default=SELF_CHECKED)
    options = parser.parse_args()
    count, seeds = options.evaluations, options.seeds
    with errors_as_exit():
        rows = of_control(options.control, 2 * seeds * count, options.out, options.experiments)
    found = [against_itself(rows, options.control, seeds, number) for number in range(count)]
    wrong, comparisons, below = false_findings(found)
    print(
        f"{options.control} against itself, {count} evaluations of {seeds} seeds by "
        f"{', '.join(options.experiments)}: {wrong} with a finding ({wrong / count:.0%}; at most "
        f"{LEVEL:.0%} are expected); {below} of {comparisons} comparisons below {LEVEL:g} "
        f"({below / comparisons:.1%})"
    )


if __name__ == "__main__":
    main()
