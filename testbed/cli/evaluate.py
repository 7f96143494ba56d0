"""`testbed evaluate`: all standard evaluations of a congestion control or a queue, as one page."""

from __future__ import annotations

import argparse
import dataclasses
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from testbed.cli import run_output
from testbed.cli.run import print_missing_features
from testbed.guest.engine import GuestEngine
from testbed.host.engine import HostEngine
from testbed.runs.engine_choice import AUTO
from testbed.runs.evaluation import (
    FULL_SEEDS,
    QUICK_SEEDS,
    StandardEvaluation,
    evaluate,
    evaluation_cost,
    standard_evaluation,
)
from testbed.runs.orchestration import RunOptions
from testbed.runs.progress import ConsoleListener, console, errors
from testbed.scenario.realism import real_time_refusal
from testbed.store import REPORT, results_folder

if TYPE_CHECKING:
    from analysis.evaluation.standing import ScoreLine

RUN_OPTIONS = ("engine", "jobs", "cluster", "captures")  # of every run


def run_evaluations(options: argparse.Namespace) -> int:
    """Run `testbed evaluate`, with --realistic both ways, on one engine."""
    if options.realistic:
        if options.engine == HostEngine.name:
            raise real_time_refusal()
        options.engine = GuestEngine.name
    against = tuple(options.against.split(",")) if options.against else ()
    exact = standard_evaluation(options.name, options.queue, against)
    found = _evaluated(options, exact, options.out)
    if options.realistic:
        from analysis.evaluation.standing import changes

        realistic = dataclasses.replace(exact, realistic=True)
        page = options.out and options.out.with_stem(f"{options.out.stem}-realistic")
        for line in changes(found, _evaluated(options, realistic, page)):
            console.print(f"realistic: {line}", soft_wrap=True)
    return 0


def _evaluated(
    options: argparse.Namespace, evaluation: StandardEvaluation, page: Path | None
) -> Sequence[ScoreLine]:
    """Run an evaluation, and write its page."""
    experiments = list(options.experiments.values())
    seeds = options.seeds or (QUICK_SEEDS if options.quick else FULL_SEEDS)
    _print_cost(options, evaluation, seeds)
    given = {name: getattr(options, name) for name in RUN_OPTIONS if getattr(options, name)}
    folders = evaluate(
        evaluation,
        experiments,
        RunOptions(**{"engine": AUTO, **given, "seeds": seeds}),
        ConsoleListener(),
        quick=options.quick,
        command=[word for name, value in given.items() for word in (f"--{name}", str(value))],
        after_each=lambda run, done: print_missing_features(run.choice.engine, done.trials),
    )
    return _report(evaluation, folders, options, page or results_folder(evaluation.name) / REPORT)


def _print_cost(options: argparse.Namespace, evaluation: StandardEvaluation, seeds: int) -> None:
    experiments = options.experiments.values()
    cost = evaluation_cost(evaluation, experiments, seeds, options.quick)
    cores = options.jobs or len(os.sched_getaffinity(0))
    console.print(
        f"{len(evaluation.experiments(experiments))} evaluations, {cost.trials} trials, "
        f"{cost.existing} of them there already; about {cost.seconds / cores / 60:.0f} min on "
        f"{cores} cores. It can be stopped and repeated: complete trials are kept",
        soft_wrap=True,
    )


def _report(
    evaluation: StandardEvaluation, runs: Sequence[Path], options: argparse.Namespace, page: Path
) -> Sequence[ScoreLine]:
    """Write the page with the summary, and print the summary."""
    from analysis.evaluation import standing
    from analysis.report import collect, make_report
    from analysis.report.page import Standings
    from testbed.machine.safe_files import make_folder

    found = collect(runs, options.experiments)
    for text in found.warnings:
        errors.print(f"testbed: warning: {text}", soft_wrap=True)
    lines = standing.standings(found.experiments, evaluation.subject, evaluation.others)
    table = standing.text_table(lines, evaluation.subject, evaluation.others)
    run_output.print_table(table, run_output.Printed("table", None))
    make_folder(page.parent)
    title = f"{evaluation.subject} beside {', '.join(evaluation.others)}"
    title += ", realistic" if evaluation.realistic else ""
    sheet = standing.sheet(lines, evaluation.subject, evaluation.others)
    make_report(found, page, standings=Standings(title, sheet, table.note))
    console.print(f"report: {page}", soft_wrap=True)
    return lines
