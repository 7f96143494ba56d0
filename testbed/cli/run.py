"""`testbed run`: runs trials and prints their results."""

from __future__ import annotations

import argparse
import contextlib
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from testbed.cli import run_output
from testbed.cli.choosing import Chosen, chosen
from testbed.cli.console import Watch, console, errors
from testbed.cli.own_file import OwnFile, save_figures
from testbed.cli.watching.onlookers import Onlookers, watched
from testbed.engines.base import Engine, in_want
from testbed.engines.choice import Choice, choose
from testbed.errors import UsageError
from testbed.machine.process import TOOLS, require
from testbed.plan.plan import make_plan
from testbed.plan.requirements import Need
from testbed.plan.task import Task, tasks
from testbed.runs import estimate, run_sets
from testbed.runs.ready_kernels import with_ready_kernels
from testbed.runs.results_folder import claimed
from testbed.runs.sweep import Event, Finished, Watcher, in_order, run_all
from testbed.scenario.names import checked
from testbed.scenario.variations import is_varied
from testbed.store import (
    FIGURES,
    LATEST,
    METRICS_CSV,
    RUNS,
    Status,
    results_folder,
    trials_in,
)
from testbed.traffic.program.folders import require_files

if TYPE_CHECKING:
    import pandas as pd  # loaded where it is needed

    from analysis.results.reduction import Then
    from analysis.statistics.text_tables import TextTable

DELAYS = "netem"


@dataclass(frozen=True)
class Place:
    """Where trials run, where they are stored, and who looks on."""

    choice: Choice
    out: Path
    onlookers: Onlookers


@dataclass(frozen=True)
class _Prepared:
    """What a command line asks for, planned, and where it runs."""

    choice: Choice
    wanted: Chosen
    planned: Sequence[Task]
    out: Path


def run_experiment(options: argparse.Namespace) -> int:
    """`testbed run`."""
    printed = run_output.parse(options)
    ready = _prepared(options)
    experiment = ready.planned[0].scenario.experiment
    page = watched(options.watch, experiment, ready.wanted.metric, ready.out, _print)
    with claimed(ready.out, _say), page as onlookers:
        done, run = _carried_out(options, ready, onlookers)
        status = _show_results(ready.choice, ready.wanted, run, done, printed)
        onlookers.finish(run)
        return status


def run_and_keep(options: argparse.Namespace) -> Path:
    """The same without its page, tables and figures; returns the run's folder."""
    ready = _prepared(options)
    with claimed(ready.out, _say):
        done, run = _carried_out(options, ready, Onlookers(_print))
    say_what_is_lacking(ready.choice.engine, done)
    return run


def _prepared(options: argparse.Namespace) -> _Prepared:
    if options.name:
        checked(options.name)
    wanted = chosen(options)
    scenarios = wanted.scenarios(_least_seeds(options))
    planned = tasks(scenarios)
    choice = engine_for(planned, options.engine)
    out = options.out or results_folder(scenarios[0].experiment)
    console.print(f"engine: {choice.engine.name} ({choice.reason})")
    planned = with_ready_kernels(choice.engine, planned, _say, named=wanted.kernels_named)
    return _Prepared(choice, wanted, planned, out)


def _carried_out(
    options: argparse.Namespace, ready: _Prepared, onlookers: Onlookers
) -> tuple[list[Finished], Path]:
    """Run what is missing, and note it all as a run."""
    done = _run_in(options, ready.choice, ready.wanted, ready.planned, ready.out, onlookers)
    return done, _keep_run(options, ready.out, [each.path.name for each in done])


def _least_seeds(options: argparse.Namespace) -> int:
    """The seeds to begin with; a slip of the pen in --until is found before anything runs."""
    if options.until:
        from analysis.statistics.summary import LEAST_SEEDS, parse_target

        parse_target(options.until)
        options.seeds = max(options.seeds, LEAST_SEEDS)
    return int(options.seeds)


def _print(line: str) -> None:
    console.print(line, soft_wrap=True)


def _say(sentence: str) -> None:
    errors.print(f"testbed: {sentence}", soft_wrap=True)


def _run_in(
    options: argparse.Namespace,
    choice: Choice,
    wanted: Chosen,
    planned: Sequence[Task],
    out: Path,
    onlookers: Onlookers,
) -> list[Finished]:
    """Run what is missing in a results folder that is ours for now."""
    place = Place(choice, out, onlookers)
    done = _run_trials(options, place, planned, options.rerun)
    if options.until:
        done = _run_more(options, place, wanted, done)
    for _ in range(options.retry_invalid):
        done = _run_invalid_again(options, place, done)
    if not options.cluster:
        learn(choice, done)
    return done


def engine_for(planned: Sequence[Task], name: str) -> Choice:
    """The engine that runs them, if all that they need is there."""
    needs = dict.fromkeys(need for task in planned for need in task.plan.needs)
    for tool in TOOLS:
        require(tool)
    require_files(flow for task in planned for flow in task.scenario.flows)
    choice = choose(name, needs)
    kernels = dict.fromkeys(task.scenario.kernel for task in planned)
    offered = [choice.engine.with_kernel(each).controls() for each in kernels]
    _refuse_misspelt(choice.engine.controls().union(*offered), needs)
    return choice


def learn(choice: Choice, done: Iterable[Finished]) -> None:
    """Note how long the trials took, for estimates."""
    if choice.engine.virtual_time:
        fresh = [each for each in done if each.fresh and each.status is Status.OK]
        estimate.learn((t.task.plan, t.scenario, t.record.wall_s) for t in fresh)


def _keep_run(options: argparse.Namespace, out: Path, trials: Sequence[str]) -> Path:
    """Note the trials as a run, which latest/ leads to; returns its folder."""
    command = shlex.join(("testbed", *options.arguments))
    run = run_sets.keep_run(out, options.name, command, trials).path
    if options.out is None:
        run_sets.point_at(out.parent / LATEST, f"{out.name}/{RUNS}/{run.name}")
    return run


def _run_trials(
    options: argparse.Namespace, place: Place, planned: Sequence[Task], rerun: bool
) -> list[Finished]:
    """Run the trials that are missing, here or on a cluster, and reduce their captures."""
    ordered = in_order(planned, _order(options.order))
    choice, out, onlookers = place.choice, place.out, place.onlookers
    onlookers.begin(len(planned))
    bar, then = Watch(len(planned)), onlookers.reduced
    with bar, reduced(onlookers.with_them(bar), options.captures, then) as tell:
        if options.cluster:
            from testbed.runs.cluster import run_on_cluster

            return run_on_cluster(options.cluster, ordered, choice, out, tell, rerun)
        return run_all(ordered, choice, out, tell, options.jobs, rerun)


@contextlib.contextmanager
def reduced(watch: Watcher, captures: str, then: Then | None = None) -> Iterator[Watcher]:
    """A watcher that also has the trials reduced as they come in; at its end they all are.

    `then` gets each one's metrics.
    """
    from analysis.results.reduction import Incoming

    with Incoming(captures, then) as incoming:

        def tell(event: Event) -> None:
            watch(event)
            if isinstance(event, Finished) and event.status is Status.OK:
                incoming.add(event.path)

        yield tell


def _run_invalid_again(
    options: argparse.Namespace, place: Place, done: list[Finished]
) -> list[Finished]:
    """Run invalid trials once more, in place of the old ones."""
    from analysis.results.tables import write_metrics

    again = [each for each in done if each.path.name in _invalid(write_metrics(place.out))]
    if not again:
        return done
    console.print(f"{len(again)} invalid: running them again")
    planned = [each.task for each in again]
    fresh = {each.path: each for each in _run_trials(options, place, planned, rerun=True)}
    return [fresh.get(each.path, each) for each in done]


def _invalid(frame: pd.DataFrame) -> set[str]:
    """The names of the invalid trials."""
    from analysis.metrics.valid_trials import invalid

    return set(frame.loc[invalid(frame), "trial"])


def _run_more(
    options: argparse.Namespace, place: Place, wanted: Chosen, done: list[Finished]
) -> list[Finished]:
    """Add seeds until the main metric is precise enough, or --max-seeds have run."""
    from analysis.results.tables import write_metrics
    from analysis.statistics import summary

    target, seeds = summary.parse_target(options.until), options.seeds
    while True:
        names = {each.path.name for each in done}
        frame = write_metrics(place.out)
        found = summary.widest(frame[frame["trial"].isin(names)], wanted.metric)
        console.print(
            f"{seeds} seeds: {wanted.metric} is known to ± {100 * found.relative:.2g} % "
            f"or better ({found.variant})",
        )
        if found.relative <= target or seeds >= options.max_seeds:
            return done
        seeds = summary.seeds_needed(seeds, found.relative, target, options.max_seeds)
        known = {each.scenario.name: each.task for each in done}
        scenarios = wanted.scenarios(seeds)
        planned = [known.get(each.name) or Task(each, make_plan(each)) for each in scenarios]
        planned = with_ready_kernels(place.choice.engine, planned, _say, named=wanted.kernels_named)
        done = _run_trials(options, place, planned, rerun=False)  # the first round is new


def _order(text: str) -> int | None:
    if text == "listed":
        return None
    if not text.isdigit():
        raise UsageError(f"--order {text}: neither a seed nor `listed`", "for example: --order 7")
    return int(text)


def _refuse_misspelt(controls: frozenset[str], needs: Iterable[Need]) -> None:
    """Raise for a congestion control that neither our table nor Linux nor this kernel has."""
    from testbed.scenario.variants import KNOWN, spelling_hint

    for need in needs:
        if need.kind == "congestion control" and need.name not in KNOWN | controls:
            raise UsageError(f"unknown variant {need.name!r}", spelling_hint(need.name))


def say_what_is_lacking(engine: Engine, done: Sequence[Finished]) -> None:
    """Print what the unsupported trials need and this engine lacks, with how many need it."""
    idle = [each for each in done if each.status is Status.UNSUPPORTED]
    needs = Counter(need for each in idle for need in each.task.plan.needs)
    lacks = engine.missing(list(needs))
    if not lacks:  # on a cluster it is another machine's kernel: each trial's record says it
        return
    words = [f"{missing} ({needs[missing.need]} of {len(idle)})" for missing in lacks]
    errors.print(
        f"testbed: unsupported: {in_want(engine, lacks)} has no {', no '.join(words)}",
        soft_wrap=True,
    )
    hints = [missing.mend for missing in lacks]
    if any(missing.need.name == DELAYS for missing in lacks):
        hints.append(f"{DELAYS} makes the delays: a network without any does not need it")
    for hint in dict.fromkeys(hints):
        errors.print(f"    hint: {hint}", soft_wrap=True)


def _show_results(
    choice: Choice,
    wanted: Chosen,
    run: Path,
    done: Sequence[Finished],
    printed: run_output.Printed,
) -> int:
    from analysis.results.tables import write_metrics

    frame = write_metrics(run)
    for warning in frame.attrs["warnings"]:
        errors.print(f"testbed: warning: {warning}", soft_wrap=True)
    counts = {status: sum(each.status is status for each in done) for status in Status}
    if counts[Status.OK]:
        _show_figures(wanted, run, _as_they_are(done, frame), printed)
    console.print(f"results: {run / METRICS_CSV}", soft_wrap=True)
    console.print(", ".join(f"{number} {status}" for status, number in counts.items() if number))
    say_what_is_lacking(choice.engine, done)
    invalid = _invalid(frame)
    for name in sorted(invalid):
        why = frame.loc[frame["trial"] == name, "why"].iloc[0]
        errors.print(f"testbed: {name} is invalid: {why}", soft_wrap=True)
    return 0 if counts[Status.OK] == len(done) and not invalid else 1


def _show_numbers(
    run: Path, rows: pd.DataFrame, own: Sequence[TextTable], printed: run_output.Printed
) -> None:
    """The rows of flows, of links where trials observed several, and of workloads' transfers."""
    from analysis.results.tables import write_links, write_transfers
    from analysis.statistics.text_tables import links_table, transfers_summary

    run_output.print_results(rows, own, printed)
    links, transfers = write_links(run, trials_in(run)), write_transfers(run, trials_in(run))
    if printed.format not in ("table", "md"):
        return
    if len(links):
        run_output.print_table(links_table(links), printed)
    if len(transfers):
        run_output.print_table(transfers_summary(transfers), printed)


def _as_they_are(done: Sequence[Finished], frame: pd.DataFrame) -> pd.DataFrame:
    """Without varied trials, unless there are no others: they are for the papers' claims."""
    varied = [each.path.name for each in done if is_varied(each.scenario)]
    if len(varied) in (0, len(done)):
        return frame
    console.print(f"{len(varied)} varied trials: `testbed report FOLDER --claims` tells them")
    return frame[~frame["trial"].isin(varied)]


def _show_figures(
    wanted: Chosen, run: Path, rows: pd.DataFrame, printed: run_output.Printed
) -> None:
    """Print the results, then the experiment's figures; those that are up to date stay."""
    from analysis.figures import kept_figures

    if wanted.own and wanted.own.figures:
        _show_own(wanted.own, run, rows, printed)
        return
    experiment = wanted.name
    folder, made_of = run / FIGURES, kept_figures.made_of(run)
    kept = kept_figures.read(folder, experiment, made_of)
    if kept and not kept.own_tables:
        _show_numbers(run, rows, (), printed)
        _say_figures(folder / name for name in kept.figures)
        return
    from analysis.figures import figure_catalogue as catalogue  # draws: slow to load

    all_results = catalogue.of_results(run, experiment)
    tables = list(catalogue.summaries(all_results))
    _show_numbers(run, rows, tables, printed)
    if kept:
        _say_figures(folder / name for name in kept.figures)
        return
    drawn = _say_figures(catalogue.save_figures(all_results, folder))
    kept_figures.keep(folder, experiment, made_of, drawn, bool(tables))


def _show_own(own: OwnFile, run: Path, rows: pd.DataFrame, printed: run_output.Printed) -> None:
    """Print the results, then the figures that the file's own function draws, every time."""
    from analysis.figures import figure_catalogue as catalogue  # draws: slow to load

    _show_numbers(run, rows, (), printed)
    all_results = catalogue.of_results(run, own.experiment.name)
    _say_figures(save_figures(own, all_results, run / FIGURES))


def _say_figures(figures: Iterable[Path]) -> list[Path]:
    found = []
    for figure in figures:
        console.print(f"figure: {figure} (.svg, .csv)", soft_wrap=True)
        found.append(figure)
    return found
