"""How often an evaluation finds a difference between a congestion control and itself.

    .venv/bin/python -m benchmarks.self_check OUT [--evaluations 50] [--seeds 3]

Each of many evaluations compares trials of one set of seeds with trials of another set, as `testbed
evaluate` compares two controls: every *better* or *worse* is by chance. Prints in how many of the
evaluations there is one, which the correction keeps to 5 %, and how many of all comparisons are
below 0.05 without it. Trials in OUT are not run again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from analysis.evaluation.outcome_rows import SUBJECT, outcome, scores
from analysis.evaluation.standing import LEVEL, ScoreLine, Standing, corrected, score_lines
from analysis.evaluation.trial_view import Score
from analysis.metrics.metric_rows import AXIS
from analysis.results.experiment_results import collect
from benchmarks.harness import errors_as_exit, parser_of
from experiments.catalogue import EXPERIMENTS
from testbed.runs.orchestration import RunOptions, plan_and_carry_out
from testbed.runs.progress import ConsoleListener
from testbed.runs.selection import select_experiment

SELF_CHECKED = ("latecomer", "intra-protocol", "lossy")  # cheap, and with chance in them
ITSELF = "itself"  # the control of the other set of seeds

EvaluationRows = Mapping[str, tuple[pd.DataFrame, Sequence[Score]]]  # by experiment


def run_control(control: str, seeds: int, out: Path, names: Sequence[str]) -> EvaluationRows:
    """Run a control in the short forms of evaluations; return their rows of scores."""
    rows = {}
    for name in names:
        selection = select_experiment(EXPERIMENTS[name], {"variant": (control,)}, quick=True)
        options = RunOptions(seeds=seeds, out=out / name, name="self-check", captures="drop")
        _, done = plan_and_carry_out(selection, options, "self-check", ConsoleListener())
        (results,) = collect([done.folder], EXPERIMENTS).experiments
        rows[name] = outcome(results), scores(results)
    return rows


def against_itself(
    rows: EvaluationRows, control: str, seeds: int, number: int
) -> tuple[ScoreLine, ...]:
    """Compare two sets of seeds as evaluation `number`, from 0 on; no evaluation shares a seed."""
    first = 1 + 2 * seeds * number
    lines: list[ScoreLine] = []
    for name, (table, definitions) in rows.items():
        one, other = (
            table[table["seed"].between(begin, begin + seeds - 1)]
            for begin in (first, first + seeds)
        )
        renamed: dict[str, Any] = dict.fromkeys((SUBJECT, f"{AXIS}variant"), ITSELF)
        renamed["seed"] = other["seed"] - seeds
        both = pd.concat([one, other.assign(**renamed)])
        lines += score_lines(name, both, definitions, control, [ITSELF])
    return corrected(lines)


def false_findings(evaluations: Sequence[tuple[ScoreLine, ...]]) -> tuple[int, int, int]:
    """Count the evaluations with a finding, all comparisons, and those below the level."""
    compared = [[each for line in lines for each in line.beside] for lines in evaluations]
    with_finding = sum(
        any(each.standing in (Standing.BETTER, Standing.WORSE) for each in comparisons)
        for comparisons in compared
    )
    p_values = [each.found.p for comparisons in compared for each in comparisons]
    return with_finding, len(p_values), sum(p < LEVEL for p in p_values)


def main() -> None:
    """Run the trials, and print the shares."""
    parser = parser_of(__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--control", default="cubic")
    parser.add_argument("--evaluations", type=int, default=50)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--experiments", nargs="+", default=SELF_CHECKED)
    options = parser.parse_args()
    count, seeds = options.evaluations, options.seeds
    with errors_as_exit():
        rows = run_control(options.control, 2 * seeds * count, options.out, options.experiments)
    evaluations = [against_itself(rows, options.control, seeds, number) for number in range(count)]
    wrong, comparisons, below = false_findings(evaluations)
    print(
        f"{options.control} against itself, {count} evaluations of {seeds} seeds by "
        f"{', '.join(options.experiments)}: {wrong} with a finding ({wrong / count:.0%}; at most "
        f"{LEVEL:.0%} are expected); {below} of {comparisons} comparisons below {LEVEL:g} "
        f"({below / comparisons:.1%})"
    )


if __name__ == "__main__":
    main()
