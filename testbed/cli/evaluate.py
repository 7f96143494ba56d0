"""`testbed evaluate`: all standard evaluations of a congestion control or a queue, as one page."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from testbed.cli import run_output
from testbed.cli.choosing import chosen
from testbed.cli.console import console, errors
from testbed.cli.run import run_and_keep
from testbed.errors import UsageError, nearest
from testbed.plan.task import tasks
from testbed.runs import estimate
from testbed.scenario.experiment import Experiment
from testbed.scenario.queues import DISCIPLINES
from testbed.scenario.variants import variant
from testbed.store import REPORT, results_folder

VARIANTS = ("cubic", "bbr", "linux-reno")
QUEUES = ("pfifo", "codel", "fq_codel", "pie")
CARRIER = "cubic"  # the variant with which queues are compared
SEEDS, QUICK_SEEDS = 5, 3
PASSED_ON = ("engine", "jobs", "cluster", "captures")  # to every run


@dataclass(frozen=True)
class Evaluation:
    """What is evaluated, beside what, and the axis that tells them apart."""

    axis: str
    subject: str
    others: tuple[str, ...]
    fixed: tuple[str, ...] = ()  # `--set` of what all have

    @property
    def name(self) -> str:
        """Of its runs, and of the folder with its report."""
        return f"evaluate-{self.subject}"

    def settings(self, experiment: Experiment) -> list[str]:
        """What `--set` says of it to one of the experiments."""
        everyone = ",".join((self.subject, *self.others))
        own = [f"{self.axis}={everyone}", *self.fixed]
        own += [f"victim={everyone}"] if "victim" in experiment.axes else []
        return [text for text in own if text.partition("=")[0] in experiment.axes]


def evaluate(options: argparse.Namespace) -> int:
    """`testbed evaluate`."""
    wanted = _wanted(options)
    experiments = [e for e in options.experiments.values() if wanted.axis in e.compares]
    commands = [_command(options, wanted, each) for each in experiments]
    _say_estimate(commands)
    runs = []
    for number, own in enumerate(commands, start=1):
        console.print(f"evaluation {number} of {len(commands)}: {own.experiment}")
        runs.append(run_and_keep(own))
    return _report(wanted, runs, options.out)


def _wanted(options: argparse.Namespace) -> Evaluation:
    if not options.name and not options.queue:
        raise UsageError("name a congestion control or a queue", "testbed evaluate veno --quick")
    if options.queue and options.queue not in DISCIPLINES:
        raise UsageError(f"unknown queue {options.queue!r}", nearest(options.queue, DISCIPLINES))
    against = tuple(options.against.split(",")) if options.against else ()
    if not options.name:
        others = _without(options.queue, against or QUEUES)
        if unknown := [each for each in others if each not in DISCIPLINES]:
            raise UsageError(f"unknown queue {unknown[0]!r}", nearest(unknown[0], DISCIPLINES))
        return Evaluation("queue", options.queue, others, (f"variant={CARRIER}",))
    others = _without(options.name, against or VARIANTS)
    for each in (options.name, *others):
        variant(each)  # raises for what cannot be one
    fixed = (f"queue={options.queue}",) if options.queue else ()
    return Evaluation("variant", options.name, others, fixed)


def _without(subject: str, others: Sequence[str]) -> tuple[str, ...]:
    """The others, each once; without any there is nothing to compare."""
    found = tuple(dict.fromkeys(each for each in others if each != subject))
    if not found:
        raise UsageError(f"--against: nothing but {subject} itself", "for example: --against cubic")
    return found


def _command(
    options: argparse.Namespace, wanted: Evaluation, experiment: Experiment
) -> argparse.Namespace:
    """The ordinary `testbed run` of one experiment, as its command line."""
    seeds = options.seeds or (QUICK_SEEDS if options.quick else SEEDS)
    words = ["run", experiment.name, "--seeds", str(seeds), "--name", wanted.name]
    words += ["--quick"] if options.quick else []
    words += [word for text in wanted.settings(experiment) for word in ("--set", text)]
    for name in PASSED_ON:
        value = getattr(options, name)
        words += [] if value is None else [f"--{name}", str(value)]
    own: argparse.Namespace = options.parser.parse_args(words)
    own.arguments = words
    return own


def _say_estimate(commands: Sequence[argparse.Namespace]) -> None:
    """How many trials, and about how long those take that are not there yet."""
    planned = [task for own in commands for task in tasks(chosen(own).scenarios(own.seeds))]
    missing = [
        task
        for task in planned
        if not any(results_folder(task.scenario.experiment).glob(f"{task.scenario.name}-*"))
    ]
    seconds = estimate.all_guest_seconds((task.plan, task.scenario) for task in missing)
    cores = commands[0].jobs or len(os.sched_getaffinity(0))
    console.print(
        f"{len(commands)} evaluations, {len(planned)} trials, {len(planned) - len(missing)} of "
        f"them there already; about {seconds / cores / 60:.0f} min on {cores} cores. "
        "It can be stopped and repeated: complete trials are kept",
        soft_wrap=True,
    )


def _report(wanted: Evaluation, runs: Sequence[Path], out: Path | None) -> int:
    """The page with the summary, and the summary in the terminal."""
    from analysis.evaluation import standing
    from analysis.report import collect, make_report
    from analysis.report.page import Standings
    from testbed.machine.safe_files import make_folder

    found = collect(runs)
    for text in found.warnings:
        errors.print(f"testbed: warning: {text}", soft_wrap=True)
    lines = standing.standings(found.experiments, wanted.subject, wanted.others)
    table = standing.text_table(lines, wanted.subject, wanted.others)
    run_output.print_table(table, run_output.Printed("table", None))
    page = out or results_folder(wanted.name) / REPORT
    make_folder(page.parent)
    title = f"{wanted.subject} beside {', '.join(wanted.others)}"
    sheet = standing.sheet(lines, wanted.subject, wanted.others)
    make_report(found, page, standings=Standings(title, sheet, table.note))
    console.print(f"report: {page}", soft_wrap=True)
    return 0
