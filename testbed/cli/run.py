"""`testbed run`: runs trials and prints their results; with `--watch`, on a page meanwhile."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from testbed.cli import run_output
from testbed.engine import Engine, what_lacks
from testbed.errors import UsageError
from testbed.machine.atomic import replace
from testbed.runs.console import console, errors
from testbed.runs.experiment_file import save_figures
from testbed.runs.orchestration import (
    PlannedRun,
    RunListener,
    RunOptions,
    carry_out,
    invalid_trials,
    plan_run,
)
from testbed.runs.progress import ConsoleListener
from testbed.runs.results_folders import claimed
from testbed.runs.selection import RunSelection, parse_settings, select, select_topo
from testbed.runs.sweep import (
    SweepEvent,
    TrialFinished,
    TrialStarted,
    Watcher,
    WorkerRejected,
)
from testbed.scenario.experiment import Experiment
from testbed.scenario.model import Scenario
from testbed.scenario.variations import KERNEL_AXIS
from testbed.store.names import FIGURES, LATEST, METRICS_CSV, REPORT
from testbed.store.reading import open_trial, readable, trial_paths
from testbed.store.records import Status

if TYPE_CHECKING:
    import pandas as pd  # loaded where it is needed

    from analysis.report.live.loopback_server import LoopbackServer
    from analysis.report.live.run_progress import RunProgress
    from analysis.statistics.expected import ExpectedMetric
    from analysis.statistics.text_tables import TextTable

Expectations = tuple["tuple[ExpectedMetric, ...]", "pd.DataFrame | None"]

TOPO_SECONDS = 30.0
TOPO_EXAMPLE = "--topo tree,2,2 --link bw=10,delay=5ms --flow h1,h4"


def run_experiment(options: argparse.Namespace) -> int:
    """Run `testbed run`; the exit status is 1 if a trial did not run or is invalid."""
    printed, expectations = run_output.parse(options), _expectations(options)
    run_options = _run_options(options)
    run = plan_run(selected(options), run_options, ConsoleListener())
    command = shlex.join(("testbed", *options.arguments))
    with claimed(run.out, ConsoleListener().warn), _listener(options, run) as listener:
        done = carry_out(run, command, listener)
        status = _show_results(run, done.folder, done.trials, printed)
        status = max(status, _check_expectations(expectations, done.folder, options.junit))
        if isinstance(listener, LivePage):
            listener.finish(done.folder)
        return status


def _expectations(options: argparse.Namespace) -> Expectations:
    """Read what is expected, before anything runs."""
    if not (options.expect or options.baseline or options.junit):
        return (), None
    from analysis.statistics.expected import EXPECTATION_HINT, parse_expected, read_baseline

    if not options.expect:
        name = "baseline" if options.baseline else "junit"
        raise UsageError(f"--{name}: nothing is expected: add --expect", EXPECTATION_HINT)
    baseline = read_baseline(options.baseline) if options.baseline else None
    return tuple(map(parse_expected, options.expect)), baseline


def _check_expectations(expectations: Expectations, run: Path, junit: Path | None) -> int:
    """Print what is not as expected, and write all of it for others' tools."""
    expected, baseline = expectations
    if not expected:
        return 0
    from analysis.results.tables import write_metrics
    from analysis.statistics.expected import check_expected

    metrics = write_metrics(run)
    checked = [cell for each in expected for cell in check_expected(each, metrics, baseline)]
    failed = [cell for cell in checked if not cell.is_met]
    for cell in failed:
        errors.print(f"testbed: {cell.words}", soft_wrap=True)
    console.print(f"expected: {len(checked) - len(failed)} of {len(checked)} are as expected")
    if junit:
        cases = [
            run_output.JunitCase(cell.expected.text, cell.cell, "" if cell.is_met else cell.words)
            for cell in checked
        ]
        replace(junit, lambda path: path.write_text(run_output.junit({run.name: cases})))
    return 1 if failed or not checked else 0


@contextmanager
def _listener(options: argparse.Namespace, run: PlannedRun) -> Iterator[RunListener]:
    """Give the terminal, and with --watch a page in the browser."""
    if not options.watch:
        yield ConsoleListener()
        return
    experiment = run.tasks[0].scenario.experiment
    with live_page(experiment, run.selection, run.out) as page:
        yield page


def _run_options(options: argparse.Namespace) -> RunOptions:
    """Return the options of a run, which have the names of the command line's."""
    values = {field.name: getattr(options, field.name) for field in dataclasses.fields(RunOptions)}
    return RunOptions(**values | {"order": _parse_order(options.order)})


def _parse_order(text: str) -> int | None:
    if text == "listed":
        return None
    if not text.isdigit():
        raise UsageError(f"--order {text}: neither a seed nor `listed`", "for example: --order 7")
    return int(text)


def selected(options: argparse.Namespace) -> RunSelection:
    """Return what the options of `run` and `plan` select."""
    name, topo = options.experiment, options.topo
    if not name and not topo:
        hint = f"an experiment (`testbed list`), or {TOPO_EXAMPLE}"
        raise UsageError("nothing to run: name an experiment", hint)
    if name and topo:
        raise UsageError(f"--topo: {name} has a network already", f"without it: {TOPO_EXAMPLE}")
    if name and (options.link or options.flow):
        raise UsageError("--link and --flow belong to --topo", TOPO_EXAMPLE)
    if name and options.duration is not None:
        hint = f"testbed plan {name} says which field is the duration: --set duration_s=…"
        raise UsageError("--duration belongs to --topo", hint)
    settings = parse_settings(options.set, _settings_hint(options))
    if topo:
        seconds = TOPO_SECONDS if options.duration is None else options.duration
        of_topo = (topo, options.link, options.flow, seconds)
        selection = select_topo(*of_topo, settings, options.quick)
    else:
        selection = select(name, settings, options.experiments, quick=options.quick)
    return selection.made_realistic() if options.realistic else selection


def _settings_hint(options: argparse.Namespace) -> str:
    if options.experiment in options.experiments:
        axes = (*options.experiments[options.experiment].axes, KERNEL_AXIS)
        return f"axes: {', '.join(axes)}"
    where = f"--topo {options.topo}" if options.topo else options.experiment
    return f"testbed plan {where} lists what can be set"


def print_missing_features(engine: Engine, done: Sequence[TrialFinished]) -> None:
    """Print what the unsupported trials need and this engine lacks, and how many need it."""
    idle = [each for each in done if each.status is Status.UNSUPPORTED]
    needs = Counter(need for each in idle for need in each.task.plan.needs)
    lacks = engine.missing(list(needs))
    if not lacks:  # on a cluster it is another machine's kernel: each trial's record says it
        return
    lacking = [f"{missing} ({needs[missing.need]} of {len(idle)})" for missing in lacks]
    errors.print(
        f"testbed: unsupported: {what_lacks(engine, lacks)} has no {', no '.join(lacking)}",
        soft_wrap=True,
    )
    hints = [missing.remedy for missing in lacks]
    if any(missing.need.name == "netem" for missing in lacks):
        hints.append("netem makes the delays: a network without any does not need it")
    for hint in dict.fromkeys(hints):
        errors.print(f"    hint: {hint}", soft_wrap=True)


def _show_results(
    run: PlannedRun,
    folder: Path,
    done: Sequence[TrialFinished],
    printed: run_output.Printed,
) -> int:
    from analysis.results.tables import write_metrics

    frame = write_metrics(folder)
    run_output.print_warnings(frame.attrs["warnings"])
    counts = {status: sum(each.status is status for each in done) for status in Status}
    if counts[Status.OK]:
        _show_figures(run.selection, folder, frame, printed)
    console.print(f"results: {folder / METRICS_CSV}", soft_wrap=True)
    invalid = invalid_trials(frame)
    tallies = [f"{number} {status}" for status, number in counts.items() if number]
    if invalid:
        tallies.append(f"{len(invalid)} of them invalid")
    console.print(", ".join(tallies))
    if counts[Status.OK] and printed.format == "table":
        latest = folder.parent.parent.parent / LATEST  # a link beside the results of experiments
        page = latest if latest.resolve() == folder.resolve() else folder
        console.print(f"next: testbed report {shlex.quote(str(page))}", soft_wrap=True)
    print_missing_features(run.choice.engine, done)
    for name in sorted(invalid):
        why = frame.loc[frame["trial"] == name, "why"].iloc[0]
        errors.print(f"testbed: {name} is invalid: {why}", soft_wrap=True)
    _print_suspects(folder, frame)
    return 0 if counts[Status.OK] == len(done) and not invalid else 1


def _print_suspects(run: Path, frame: pd.DataFrame) -> None:
    """Print how many trials are suspect, and why the first of them is."""
    suspect = frame[frame["verdict"] == "suspect"].drop_duplicates("trial")
    if suspect.empty:
        return
    count, trials = len(suspect), frame["trial"].nunique()
    are = "is" if count == 1 else "are"
    first = suspect.iloc[0]
    errors.print(
        f"testbed: {count} of {trials} trials {are} suspect: {first['why']}", soft_wrap=True
    )
    path = run.parent.parent / str(first["trial"])
    errors.print(f"    hint: testbed report {shlex.quote(str(path))}", soft_wrap=True)


def _show_numbers(
    run: Path, rows: pd.DataFrame, tables: Sequence[TextTable], printed: run_output.Printed
) -> None:
    """Print the rows of flows, of links where several were observed, and of transfers."""
    from analysis.results.tables import write_links, write_transfers
    from analysis.statistics.text_tables import links_table, transfers_summary

    run_output.print_results(rows, tables, printed)
    trials, _ = readable(trial_paths(run))
    links, transfers = write_links(run, trials), write_transfers(run, trials)
    if printed.format not in ("table", "md", "latex"):
        return
    if len(links) and (of_links := links_table(links)).rows:  # none of invalid trials
        run_output.print_table(of_links, printed)
    if len(transfers):
        run_output.print_table(transfers_summary(transfers), printed)


def _show_figures(
    selection: RunSelection, run: Path, rows: pd.DataFrame, printed: run_output.Printed
) -> None:
    """Print the results, then the experiment's figures; those that are up to date stay."""
    from analysis.figures import figure_cache

    experiment = selection.name
    if selection.file and selection.file.figures:  # drawn every time
        from analysis.figures.general import presentation

        _show_numbers(run, rows, (), printed)
        all_results = presentation.of_results(run, experiment, {})
        run_output.print_figures(save_figures(selection.file, all_results, run / FIGURES))
        return
    folder, made_of = run / FIGURES, figure_cache.inputs_hash(run)
    kept = figure_cache.read(folder, experiment, made_of)
    if kept and not kept.own_tables:
        _show_numbers(run, rows, (), printed)
        run_output.print_figures(folder / name for name in kept.figures)
        return
    from analysis.figures.general import presentation  # draws: slow to load

    all_results = presentation.of_results(run, experiment, selection.definitions)
    tables = list(presentation.summaries(all_results))
    _show_numbers(run, rows, tables, printed)
    if kept:
        run_output.print_figures(folder / name for name in kept.figures)
        return
    drawn = run_output.print_figures(presentation.save_figures(all_results, folder))
    not_shown = [line for results in all_results for line in results.not_shown]
    run_output.print_warnings(not_shown)
    if not not_shown:
        figure_cache.store(folder, experiment, made_of, drawn, bool(tables))


class LivePage(ConsoleListener):
    """A listener that also forwards what happens to a page in the browser."""

    takes_flows = True

    def __init__(
        self,
        progress: RunProgress,
        server: LoopbackServer,
        definitions: Mapping[str, Experiment],
    ) -> None:
        self._progress, self._server, self._definitions = progress, server, definitions

    @contextlib.contextmanager
    def watching(self, trials: int) -> Iterator[Watcher]:
        """Show a sweep on the terminal and on the page."""
        self._progress.begin(trials)
        with super().watching(trials) as terminal:

            def both(event: SweepEvent) -> None:
                terminal(event)
                self._forward(event)

            yield both

    def _forward(self, event: SweepEvent) -> None:
        if isinstance(event, TrialStarted):
            self._progress.began(event.scenario, event.where)
        elif isinstance(event, TrialFinished):
            self._progress.finished(open_trial(event.path), event.fresh)
        elif isinstance(event, WorkerRejected):
            self._progress.note(f"{event.worker} takes no trials: {event.reason}")
        else:
            self._progress.note(event.reason)

    def reduced(self, scenario: Scenario, rows: pd.DataFrame) -> None:
        """Show a trial's metrics."""
        self._progress.reduced(scenario, rows)

    def finish(self, results: Path, state: str = "complete") -> None:
        """Write the report of these results, and send the reader there."""
        page = None
        if self._progress.ended_well:
            from analysis.report import collect, make_report

            self._progress.end("finishing")
            # without its warnings: the run has printed them
            page = make_report(collect([results], self._definitions), results / REPORT)
            self.say(f"report: {page}")
        self._progress.end(state, page)
        self._server.deliver()


@contextlib.contextmanager
def live_page(experiment: str, selection: RunSelection, out: Path) -> Iterator[LivePage]:
    """Serve the page of a run; if the run is interrupted, report the trials that it has done."""
    from analysis.report.live.run_progress import RunProgress, live_server

    progress = RunProgress(experiment, selection.metric)
    with live_server(progress, experiment) as server:
        page = LivePage(progress, server, selection.definitions)
        page.say(f"watch: {server.url}")
        try:
            yield page
        except KeyboardInterrupt:
            page.finish(out, "interrupted")
            raise
