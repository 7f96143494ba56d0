"""`testbed evaluate`: a congestion control or a queue beside others, as one page.

Either by all standard evaluations, or in settings that are drawn from a space.
"""

from __future__ import annotations

import argparse
import dataclasses
import math
import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from testbed.cli import run_output
from testbed.cli.run import print_missing_features
from testbed.errors import UsageError, number_of, require_known
from testbed.evaluate.adversary import AdversaryFinding, AdversarySearch, find_worst
from testbed.evaluate.drawn_settings import DECIDED, StoppingRule, evaluate_space
from testbed.evaluate.evaluation import (
    FULL_SEEDS,
    QUICK_SEEDS,
    StandardEvaluation,
    check_controls,
    check_spelling,
    evaluate,
    evaluation_cost,
    standard_evaluation,
    taking_part,
    usual_incumbent,
    with_settings,
)
from testbed.guest.engine import GuestEngine
from testbed.host.engine import HostEngine
from testbed.indented import indented
from testbed.machine.atomic import replace
from testbed.machine.safe_files import make_folder
from testbed.runs.console import console, print_folded
from testbed.runs.engine_choice import AUTO
from testbed.runs.estimate import budget_s
from testbed.runs.orchestration import RunListener, RunOptions, plan_and_carry_out
from testbed.runs.progress import ConsoleListener, after_a_while
from testbed.runs.selection import Settings, parse_settings, select_experiment
from testbed.scenario.realism import real_time_refusal
from testbed.scenario.variations import KERNEL_AXIS
from testbed.stacks.flows import is_stack
from testbed.store.names import EVALUATION_JSON, REPORT, results_folder
from testbed.store.reading import scenario_text

if TYPE_CHECKING:
    from analysis.evaluation.standing import ScoreLine
    from analysis.figures.sheet import Sheet
    from analysis.results.experiment_results import ExperimentResults, ResultSet
    from analysis.statistics.text_tables import TextTable
    from testbed.scenario.experiment import Experiment
    from testbed.scenario.space import SettingSpace

USUAL_SEARCH = "10min"
RUN_OPTIONS = ("engine", "jobs", "cluster", "captures")  # of every run

_FIXED_CASES = "a suite's test cases are fixed"
_FEWER, _MORE = "fewer settings: --budget 5min", "more settings: --budget 2h"
REFUSED_OPTIONS: Mapping[str, Mapping[str, str]] = {  # the options that one excludes, and a hint
    "suite": {
        "adversary": _FIXED_CASES,
        "budget": f"{_FIXED_CASES}; a first look: --quick",
        "until": _FIXED_CASES,
        "queue": _FIXED_CASES,
        "against": "a suite compares with a text: one run for each control",
        "seeds": f"{_FIXED_CASES}, and run once",
        "realistic": f"{_FIXED_CASES}, on exact links",
    },
    "adversary": {
        "until": "a search ends when its --budget does",
        "quick": "a shorter search: --budget 5min",
        "seeds": "a search runs what it finds with two more seeds",
    },
    "budget": {"quick": _FEWER, "seeds": _MORE},
    "until": {"quick": _FEWER, "seeds": _MORE},
}


def _refuse_combinations(options: argparse.Namespace) -> None:
    """Raise for an option that another one would make ineffective."""
    for name, refused in REFUSED_OPTIONS.items():
        for other, hint in refused.items() if getattr(options, name) else ():
            if getattr(options, other):
                raise UsageError(f"--{other} cannot be combined with --{name}", hint)


def run_evaluations(options: argparse.Namespace) -> int:
    """Run `testbed evaluate`; with --realistic in the guest."""
    _refuse_combinations(options)
    if options.realistic:
        if options.engine == HostEngine.name:
            raise real_time_refusal()
        options.engine = GuestEngine.name
    if options.suite:
        return _run_suite(options)
    if options.adversary:
        return _find_worst(options)
    if options.budget or options.until:
        return _evaluate_space(options)
    return _evaluate_all(options)


def _evaluate_space(options: argparse.Namespace) -> int:
    """Run settings of the space until the budget is spent or the results are decided."""
    if options.until not in ("", DECIDED):
        raise UsageError(f"--until {options.until}: not {DECIDED}", f"e.g. --until {DECIDED}")
    evaluation, experiment, space = _in_space(options)

    def is_decided(folder: Path) -> bool:
        return all(map(space.decided, run_output.collected([folder], options).experiments))

    effort = StoppingRule(
        budget_s(options.budget) if options.budget else math.inf,
        is_decided if options.until else None,
    )
    folder = evaluate_space(
        evaluation,
        experiment,
        _run_options(options, captures="drop"),
        ConsoleListener(),
        effort=effort,
        command=shlex.join(("testbed", *options.arguments)),
        after_each=lambda run, done: print_missing_features(run.choice.engine, done.trials),
    )
    page = options.out or results_folder(evaluation.name) / REPORT
    _report_space(evaluation, folder, options, page)
    return 0


def _run_suite(options: argparse.Namespace) -> int:
    """Run a suite of test cases, which is an experiment of its own, and write its page."""
    from analysis.figures.general.presentation import summaries
    from analysis.report import make_report

    suites = [name for name, each in options.experiments.items() if each.is_suite]
    require_known("--suite", options.suite, suites)
    settings = dict(_settings(options))
    if options.name and "variant" in settings:
        raise UsageError(f"--set variant: it is {options.name} already", "leave out one of the two")
    settings |= {"variant": (options.name,)} if options.name else {}
    planned, done = plan_and_carry_out(
        select_experiment(options.experiments[options.suite], settings, quick=options.quick),
        _run_options(options, name=f"evaluate-{options.name or options.suite}"),
        shlex.join(("testbed", *options.arguments)),
        ConsoleListener(),
    )
    print_missing_features(planned.choice.engine, done.trials)
    results = run_output.collected([done.folder], options)
    for table in summaries(list(results.experiments)):
        run_output.print_table(table, run_output.Printed("table", None))
    out = options.out or done.folder / REPORT
    [page] = after_a_while("drawing the page", (make_report(each, out) for each in [results]))
    console.print(f"report: {page}", soft_wrap=True)
    return 0


def _in_space(
    options: argparse.Namespace,
) -> tuple[StandardEvaluation, Experiment, SettingSpace]:
    """Return whom to compare in drawn settings, and the experiment with its space."""
    if not options.name:
        raise UsageError(
            "drawn settings need a congestion control", "testbed evaluate bbr --budget 10min"
        )
    against = options.against.split(",") if options.against else (usual_incumbent(options.name),)
    if any(map(is_stack, (options.name, *against))):
        raise UsageError(
            "drawn settings are the kernel's: up to 1,000 flows, up to 10 Gbit/s",
            f"testbed evaluate {options.name} --against {','.join(against)} --quick",
        )
    if set(against) == {options.name}:
        raise UsageError(
            f"--against: nothing but {options.name} itself",
            "drawn settings have the incumbent's second seed beside it anyway",
        )
    ((experiment, space),) = (
        (each, each.space) for each in options.experiments.values() if each.space
    )
    exact = standard_evaluation(options.name, options.queue, against)
    evaluation = dataclasses.replace(
        _with_options(exact, options, [experiment]), realistic=options.realistic
    )
    evaluation.selection(experiment, quick=False).scenarios(1)  # raises for values of --set
    return evaluation, experiment, space


def _find_worst(options: argparse.Namespace) -> int:
    """Search for the subject's worst setting, and write it as a scenario that runs again."""
    evaluation, experiment, space = _in_space(options)
    require_known("--adversary", options.adversary, space.adversaries)
    if len(evaluation.others) > 1:
        raise UsageError("--adversary: --against takes one name here", "e.g. --against cubic")
    adversary = space.adversaries[options.adversary]
    search = AdversarySearch(
        evaluation,
        experiment,
        adversary,
        _run_options(options, captures="drop", name=f"{evaluation.name}-{options.adversary}"),
        RunListener(),
        lambda line: console.print(line, soft_wrap=True),
        shlex.join(("testbed", *options.arguments)),
        lambda folder: run_output.collected([folder], options).experiments[0],
    )
    worst = find_worst(search, budget_s(options.budget or USUAL_SEARCH))
    path = options.out or results_folder(evaluation.name) / f"{options.adversary}.json"
    make_folder(path.parent)
    replace(path, lambda file: file.write_text(scenario_text(worst.scenario, path.parent)))
    for line in finding_lines(worst, evaluation, adversary.about):
        console.print(line, soft_wrap=True)
    console.print(f"scenario: {path}; again: testbed run {path}", soft_wrap=True)
    return 0


def finding_lines(
    finding: AdversaryFinding, evaluation: StandardEvaluation, description: str
) -> Iterator[str]:
    """Yield what an adversary found, as sentences."""
    yield f"searched for: {description}, with {evaluation.subject} less with {evaluation.others[0]}"
    for which, each in (("worst", finding.worst), ("plainest", finding.plain)):
        values = ", ".join(f"{name}={value}" for name, value in each.setting.items())
        yield f"{which} of {finding.tried} settings: {each.effect:+.0f} points: {values}"
    fresh = ", ".join(f"{each:+.0f}" for each in finding.fresh)
    yield f"the plainest one with two seeds that chose nothing: {fresh} points"


def _given(options: argparse.Namespace) -> dict[str, Any]:
    """Return those options of a run that the user has given."""
    return {name: getattr(options, name) for name in RUN_OPTIONS if getattr(options, name)}


def _run_options(options: argparse.Namespace, **usual: Any) -> RunOptions:
    """Return a run's options: those that the user has given, else the usual ones."""
    return RunOptions(**{"engine": AUTO, **usual, **_given(options)})


def _evaluate_all(options: argparse.Namespace) -> int:
    """Run all standard evaluations, with --realistic both ways."""
    exact = evaluation_of(options)
    done = _evaluated(options, exact, options.out)
    if options.realistic:
        from analysis.evaluation.standing import changes

        realistic = dataclasses.replace(exact, realistic=True)
        page = options.out and options.out.with_stem(f"{options.out.stem}-realistic")
        for line in changes(done, _evaluated(options, realistic, page)):
            console.print(f"realistic: {line}", soft_wrap=True)
    return 0


def evaluation_of(options: argparse.Namespace) -> StandardEvaluation:
    """Return whom the options of `evaluate` compare, and under which settings."""
    against = tuple(options.against.split(",")) if options.against else ()
    exact = standard_evaluation(options.name, options.queue, against)
    return _with_options(exact, options, exact.experiments(options.experiments.values()))


def seeds_of(options: argparse.Namespace) -> int:
    """Return how many seeds the options of `evaluate` ask for: a rival's, too, if it is itself."""
    seeds: int = options.seeds or (QUICK_SEEDS if options.quick else FULL_SEEDS)
    subject = options.name or options.queue
    return 2 * seeds if options.against and set(options.against.split(",")) == {subject} else seeds


def _with_options(
    exact: StandardEvaluation, options: argparse.Namespace, experiments: Sequence[Experiment]
) -> StandardEvaluation:
    """Return an evaluation with `--kernel` and `--set` applied; raise for a misspelt variant."""
    evaluation = with_settings(exact, _settings(options), experiments)
    if options.engine == GuestEngine.name or evaluation.kernel:
        check_controls(evaluation)
    else:
        check_spelling(evaluation)
    return evaluation


def _settings(options: argparse.Namespace) -> Settings:
    """Return the values of `--set`, and of `--kernel`, which is short for one of them."""
    kernel = [f"{KERNEL_AXIS}={options.kernel}"] if options.kernel else []
    return parse_settings([*options.set, *kernel], "for example --set kernel=6.12")


def _evaluated(
    options: argparse.Namespace, evaluation: StandardEvaluation, page: Path | None
) -> Sequence[ScoreLine]:
    """Run an evaluation, and write its page."""
    experiments, unable = taking_part(evaluation, options.experiments.values())
    if unable:
        print_folded(f"left out, as no stack can send so: {', '.join(unable)}")
    seeds = seeds_of(options)
    _print_cost(options, evaluation, experiments, seeds)
    given = _given(options)
    folders = evaluate(
        evaluation,
        experiments,
        _run_options(options, seeds=seeds),
        ConsoleListener(),
        quick=options.quick,
        command=[word for name, value in given.items() for word in (f"--{name}", str(value))],
        after_each=lambda run, done: print_missing_features(run.choice.engine, done.trials),
    )
    return _report_all(
        evaluation, folders, options, page or results_folder(evaluation.name) / REPORT
    )


def _print_cost(
    options: argparse.Namespace,
    evaluation: StandardEvaluation,
    experiments: Sequence[Experiment],
    seeds: int,
) -> None:
    count = number_of(len(experiments), "evaluation")
    console.print(f"planning {count}")
    cost = evaluation_cost(evaluation, experiments, seeds, options.quick)
    cores = options.jobs or len(os.sched_getaffinity(0))
    print_folded(
        f"{count}, {number_of(cost.trials, 'trial')}, "
        f"{cost.existing} of them there already; about {cost.seconds / cores / 60:.0f} min on "
        f"{number_of(cores, 'core')}. It can be stopped and repeated: complete trials are kept"
    )


def _report_all(
    evaluation: StandardEvaluation, runs: Sequence[Path], options: argparse.Namespace, page: Path
) -> Sequence[ScoreLine]:
    """Write the page of all standard evaluations, and print their summary."""
    from analysis.evaluation import standing

    results = run_output.collected(runs, options)
    lines = standing.standings(results.experiments, evaluation.subject, evaluation.others)
    whom = evaluation.subject, evaluation.others
    table, sheet = standing.text_table(lines, *whom), standing.sheet(lines, *whom)
    _report(evaluation, results, page, table, sheet, standing.screen(lines, *whom))
    return lines


def _report_space(
    evaluation: StandardEvaluation, run: Path, options: argparse.Namespace, page: Path
) -> None:
    """Write the page of the drawn settings, and print their summary."""
    from analysis.figures.general.presentation import summaries
    from analysis.figures.sheet import as_sheet

    results = run_output.collected([run], options)
    for table in summaries(list(results.experiments)):
        _report(evaluation, results, page, table, as_sheet(table.header, table.rows), table)


def _report(
    evaluation: StandardEvaluation,
    results: ResultSet,
    page: Path,
    table: TextTable,
    sheet: Sheet,
    screen: TextTable,
) -> None:
    """Write the page and the JSON beside it, and print what fits a screen, and the conclusions."""
    from analysis.evaluation.findings import evaluation_document
    from analysis.evaluation.standing import rival_names
    from analysis.report import make_report
    from analysis.report.page import Standings

    subject = evaluation.subject
    others = rival_names(subject, evaluation.others)
    if screen.rows:
        run_output.print_table(screen, run_output.Printed("table", None))
    else:  # nothing differs
        console.print(screen.note, soft_wrap=True)
    conclusions = tuple(filter(None, (conclusion(each, subject) for each in results.experiments)))
    for sentence in (each for each in conclusions if each not in table.note):
        console.print(sentence, soft_wrap=True)
    make_folder(page.parent)
    title = f"{subject} beside {', '.join(others)}"
    title += ", realistic" if evaluation.realistic else ""
    note = table.note
    for sentence in conclusions:  # which the page has above the note
        note = note.replace(sentence, "").strip()
    make_report(results, page, standings=Standings(title, conclusions, sheet, note))
    document = evaluation_document(results, subject, others, conclusions, table)
    data = page.with_name(EVALUATION_JSON)
    replace(data, lambda path: path.write_text(indented(document, 2) + "\n"))
    console.print(f"report: {page}, as data: {data}", soft_wrap=True)


def conclusion(results: ExperimentResults, subject: str) -> str:
    """Return what an experiment's results say of the subject, if it says anything."""
    definition = results.definition
    return definition.conclusion(results, subject) if definition and definition.conclusion else ""
