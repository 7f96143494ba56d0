"""A whole run: build its kernels, run and reduce its trials, add seeds until it is precise.

The command line, the Python API and the standard evaluations stand on this module. What they show
while it works they hear as a `RunListener`.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from testbed.engine import Engine
from testbed.errors import UsageError, quoted
from testbed.guest import kernels
from testbed.guest.boot import require_confined, why_not_confined
from testbed.guest.kernels import build_missing
from testbed.plan.plan import Task, make_plan, tasks
from testbed.runs import estimate
from testbed.runs.engine_choice import AUTO, Choice, choose
from testbed.runs.results_folders import claimed, keep_run, set_latest_link
from testbed.runs.selection import RunSelection
from testbed.runs.sweep import (
    SweepEvent,
    TrialFinished,
    Watcher,
    in_order,
    run_all,
)
from testbed.scenario.limits import NAME_RULE
from testbed.scenario.model import BASE_KERNEL, Scenario
from testbed.scenario.names import is_name
from testbed.scenario.variants import KNOWN_VARIANTS, spelling_hint
from testbed.scenario.variations import KERNEL_AXIS, on_kernels
from testbed.store.names import LATEST, RUNS, results_folder
from testbed.store.records import Status
from testbed.traffic.command_flow import require_files

if TYPE_CHECKING:
    import pandas as pd  # loaded where it is needed

MENTIONED_MB = 1000  # of captures
MANY_TRIALS = 500  # take more than a second to plan
MAX_SEEDS_OF_A_TARGET = 30
ANSWERED = "answered"  # `until` the claims of the experiment are decided


@dataclass(frozen=True)
class RunOptions:
    """The options of a run: engine, results folder, seeds and the like."""

    seeds: int = 1
    engine: str = AUTO
    out: Path | None = None  # results/EXPERIMENT unless given
    name: str = ""  # of the run; by the time unless given
    jobs: int | None = None
    captures: str = "keep"
    order: int | None = 1  # seed of the shuffle; None: as listed
    cluster: str = ""  # the address of a dask scheduler
    rerun: bool = False
    retry_invalid: int = 0  # times
    until: str = ""  # a target as `ci=5%`, or ANSWERED: seeds are added until it is reached
    max_seeds: int | None = None
    budget: str = ""  # of time, for `until`

    def __post_init__(self) -> None:
        if self.name and not is_name(self.name):
            raise UsageError(f"--name {quoted(self.name)}: not a name", f"names are {NAME_RULE}")
        if self.name == LATEST:
            hint = "it is a link to the newest run: choose another name"
            raise UsageError(f"--name {LATEST} is taken", hint)


class RunListener:
    """A listener of what a run says and does; this one ignores all of it."""

    takes_flows = False  # whether `reduced` is called

    def say(self, line: str) -> None:
        """Take a line about the run's progress."""

    def warn(self, sentence: str) -> None:
        """Take a sentence that the user should read."""

    @contextlib.contextmanager
    def watching(self, trials: int) -> Iterator[Watcher]:
        """Give a watcher for the events of a sweep of that many trials."""
        yield lambda _event: None

    def reduced(self, scenario: Scenario, rows: pd.DataFrame) -> None:
        """Take a trial's metrics."""


@dataclass(frozen=True)
class PlannedRun:
    """A selection with its trials planned, and where they run."""

    selection: RunSelection
    options: RunOptions
    choice: Choice
    tasks: Sequence[Task]
    out: Path


@dataclass(frozen=True)
class CompletedRun:
    """The folder of a run, and its trials however they ended."""

    folder: Path
    trials: Sequence[TrialFinished]


def plan_run(selection: RunSelection, options: RunOptions, listener: RunListener) -> PlannedRun:
    """Plan a run's trials, choose their engine, and build the kernels that they need."""
    if options.until or options.budget:  # a typing error is reported before anything runs
        least = _least_seeds(selection, options)
        options = dataclasses.replace(options, seeds=max(options.seeds, least))
    for note in selection.notes:
        listener.warn(note)
    planned: Sequence[Task] = planned_trials(selection, options.seeds, listener.say)
    choice = choose_engine(planned, options.engine)
    reason = "" if choice.reason.startswith("--engine") else f" ({choice.reason})"
    listener.say(f"engine: {choice.engine.name}{reason}")
    if choice.engine.virtual_time and not options.cluster:
        _warn_unless_confined(planned, listener)
    out = options.out or results_folder(planned[0].scenario.experiment)
    planned = with_ready_kernels(
        choice.engine, planned, listener.warn, named=selection.kernels_named
    )
    size_mb = sum(estimate.disk_mb(task.plan, task.scenario) for task in planned)
    if options.captures == "keep" and size_mb > MENTIONED_MB:
        listener.say(
            f"captures of all trials: about {size_mb / 1e3:.1f} GB of disk; "
            "--captures zstd or --captures drop takes less"
        )
    return PlannedRun(selection, options, choice, planned, out)


def _least_seeds(selection: RunSelection, options: RunOptions) -> int:
    """Return how many seeds the first round of `--until` needs; raise if it makes no sense."""
    from analysis.statistics.estimates import CLAIM_LOOKS
    from analysis.statistics.intervals import MIN_SEEDS_OF_A_SPREAD, parse_target

    if not options.until:
        raise UsageError("--budget is for --until", "add --until answered, or --until ci=2%")
    if options.budget:
        estimate.budget_s(options.budget)
    if options.until != ANSWERED:
        parse_target(options.until)
        return MIN_SEEDS_OF_A_SPREAD
    if not selection.experiment or not selection.experiment.claims:
        raise UsageError(
            f"--until {ANSWERED}: no claims are about {selection.name}", "e.g. --until ci=2%"
        )
    return CLAIM_LOOKS[0]


def _warn_unless_confined(planned: Sequence[Task], listener: RunListener) -> None:
    """Say so before guests run that this host does not confine; refuse those with programs."""
    if any(task.scenario.runs_programs for task in planned):
        require_confined()
    if why_not := why_not_confined():
        listener.warn(f"the guests are not confined: {why_not}")


def planned_trials(selection: RunSelection, seeds: int, say: Callable[[str], None]) -> list[Task]:
    """Plan all trials of a selection; say so where it takes a while."""
    scenarios = selection.scenarios(seeds)
    if len(scenarios) > MANY_TRIALS:
        say(f"planning {len(scenarios):,} trials")
    return tasks(scenarios)


def carry_out(run: PlannedRun, command: str, listener: RunListener) -> CompletedRun:
    """Run the missing trials in a results folder that the caller has claimed, and record the run.

    `command` is what `testbed runs` shows of it.
    """
    options, begun = run.options, time.monotonic()
    done = _run_round(run, run.tasks, listener, options.rerun)
    if options.until:
        done = _add_seeds(run, done, listener, begun)
    for _ in range(options.retry_invalid):
        done = _retry_invalid(run, done, listener)
    if not options.cluster:
        learn_speed(run.choice, done)
    kept = keep_run(run.out, options.name, command, [each.path.name for each in done])
    if options.out is None:
        set_latest_link(run.out.parent / LATEST, f"{run.out.name}/{RUNS}/{kept.name}")
    return CompletedRun(kept.path, done)


def plan_and_carry_out(
    selection: RunSelection, options: RunOptions, command: str, listener: RunListener
) -> tuple[PlannedRun, CompletedRun]:
    """Plan a run, and carry it out in its results folder."""
    planned = plan_run(selection, options, listener)
    with claimed(planned.out, listener.warn):
        return planned, carry_out(planned, command, listener)


def choose_engine(planned: Sequence[Task], name: str) -> Choice:
    """Choose the engine for these trials; raise if a program, file or variant does not exist."""
    needs = dict.fromkeys(need for task in planned for need in task.plan.needs)
    require_files(flow for task in planned for flow in task.scenario.flows)
    names = _kernels_of(planned)
    built = next(filter(kernels.built_folder, names), "")  # the others are built later
    if not built and kernels.built_folder(kernels.default_kernel()) is None:
        built = next(iter(names))  # what is missing is said of a kernel that is named
    choice = choose(name, needs, built)
    refuse_unknown_controls(planned, choice.engine)
    return choice


def _kernels_of(planned: Sequence[Task]) -> list[str]:
    return list(dict.fromkeys(task.scenario.kernel for task in planned))


def refuse_unknown_controls(planned: Sequence[Task], *engines: Engine) -> None:
    """Raise for a congestion control that none of the engines has with any of the kernels."""
    named = [engine.with_kernel(name) for engine in engines for name in _kernels_of(planned)]
    needs = dict.fromkeys(need for task in planned for need in task.plan.needs)
    controls = (need.name for need in needs if need.kind == "congestion control")
    refuse_misspelt(controls, frozenset().union(*(one.controls() for one in (*engines, *named))))


def refuse_misspelt(names: Iterable[str], controls: frozenset[str]) -> None:
    """Raise for a congestion control that neither our table nor Linux nor these kernels have."""
    for name in names:
        if name not in KNOWN_VARIANTS | controls:
            raise UsageError(f"unknown variant {quoted(name)}", spelling_hint(name))


def learn_speed(choice: Choice, done: Iterable[TrialFinished]) -> None:
    """Record how long the trials took, for later estimates."""
    if choice.engine.virtual_time:
        fresh = [each for each in done if each.fresh and each.status is Status.OK]
        estimate.learn((t.task.plan, t.scenario, t.record.wall_s) for t in fresh)


def with_ready_kernels(
    engine: Engine, planned: Sequence[Task], say: Callable[[str], None], *, named: bool
) -> list[Task]:
    """Return the trials with the kernels that they will run on; build those that are not built.

    A machine may not have the source of the first kernel: there, unless kernels were named, what
    would run on it runs on the oldest that the machine has.
    """
    if not engine.virtual_time:
        return list(planned)
    default = kernels.default_kernel()
    if default != BASE_KERNEL and not named and any(map(_names_no_kernel, planned)):
        say(f"this machine has no Linux {BASE_KERNEL}: trials that name no kernel run on {default}")
        planned = [_on_kernel(t, default) if _names_no_kernel(t) else t for t in planned]
    build_missing((task.scenario.kernel for task in planned), say)
    return list(planned)


def _names_no_kernel(task: Task) -> bool:
    return task.scenario.kernel == BASE_KERNEL and KERNEL_AXIS not in task.scenario.axes


def _on_kernel(task: Task, kernel: str) -> Task:
    (scenario,) = on_kernels([task.scenario], [kernel])
    return Task(scenario, make_plan(scenario))


def _run_round(
    run: PlannedRun, planned: Sequence[Task], listener: RunListener, rerun: bool
) -> list[TrialFinished]:
    """Run the trials that are missing, here or on a cluster, and reduce each when it is done."""
    from analysis.results.background_reduction import ReductionQueue

    options, choice, out = run.options, run.choice, run.out
    ordered = in_order(planned, options.order)
    then = listener.reduced if listener.takes_flows else None
    with (
        listener.watching(len(planned)) as watch,
        ReductionQueue(options.captures, then, len(planned)) as incoming,
    ):

        def tell(event: SweepEvent) -> None:
            watch(event)
            if isinstance(event, TrialFinished) and event.status is Status.OK:
                incoming.add(event.path, is_fresh=event.fresh)

        if options.cluster:
            from testbed.runs.cluster import run_on_cluster

            return run_on_cluster(options.cluster, ordered, choice, out, tell, rerun)
        return run_all(ordered, choice, out, tell, options.jobs, rerun)


def _add_seeds(
    run: PlannedRun, done: list[TrialFinished], listener: RunListener, begun: float
) -> list[TrialFinished]:
    """Add seeds until the target is reached, `max_seeds` have run, or the time is spent."""
    from analysis.results.tables import write_metrics

    next_seeds = _until_answered if run.options.until == ANSWERED else _until_precise
    budget_s = estimate.budget_s(run.options.budget) if run.options.budget else math.inf
    seeds = run.options.seeds
    while True:
        names = {each.path.name for each in done}
        frame = write_metrics(run.out)
        more = next_seeds(run, frame[frame["trial"].isin(names)], seeds, listener)
        if more <= seeds:
            return done
        spent_s = time.monotonic() - begun
        if (more - seeds) * spent_s / seeds > estimate.SPENT_PART * (budget_s - spent_s):
            listener.say(f"{more} seeds are not expected to fit into --budget {run.options.budget}")
            return done
        seeds = more
        known_tasks = {each.scenario.name: each.task for each in done}
        scenarios = run.selection.scenarios(seeds)
        planned = [known_tasks.get(each.name) or Task(each, make_plan(each)) for each in scenarios]
        planned = with_ready_kernels(
            run.choice.engine, planned, listener.warn, named=run.selection.kernels_named
        )
        done = _run_round(run, planned, listener, rerun=False)  # --rerun is for the first round


def _until_precise(
    run: PlannedRun, metrics: pd.DataFrame, seeds: int, listener: RunListener
) -> int:
    """Return how many seeds to try next, or as many as there are if that is enough."""
    from analysis.statistics import intervals

    target, most = intervals.parse_target(run.options.until), run.options.max_seeds
    widest = intervals.widest(metrics, run.selection.metric)
    listener.say(
        f"{seeds} seeds: {run.selection.metric} is known to ± {100 * widest.relative:.2g} % "
        f"or better ({widest.variant})"
    )
    if widest.relative <= target:
        return seeds
    limit = most or MAX_SEEDS_OF_A_TARGET
    return intervals.seeds_needed(seeds, widest.relative, target, limit)


def _until_answered(
    run: PlannedRun, metrics: pd.DataFrame, seeds: int, listener: RunListener
) -> int:
    """Return how many seeds the next look at the claims needs, or as many as there are.

    Each look has its part of the error that an answer may have (`estimates.level_at`).
    """
    from analysis.claims.ledger import undecided
    from analysis.statistics.estimates import CLAIM_LOOKS, level_at

    assert run.selection.experiment is not None and run.selection.experiment.claims is not None
    papers, name = run.selection.experiment.claims(), run.selection.name
    look = max((at for at, each in enumerate(CLAIM_LOOKS) if each <= seeds), default=0)
    still_open, out_of = undecided(papers, name, metrics, run.out, level_at(look))
    named = ", ".join(dict.fromkeys(each.id for each in still_open))
    listener.say(
        f"{seeds} seeds: {out_of - len(still_open)} of {out_of} answers are decided"
        + (f"; open: {named}" if named else "")
    )
    if not still_open or look + 1 == len(CLAIM_LOOKS):
        return seeds
    return min(CLAIM_LOOKS[look + 1], run.options.max_seeds or CLAIM_LOOKS[-1])


def _retry_invalid(
    run: PlannedRun, done: list[TrialFinished], listener: RunListener
) -> list[TrialFinished]:
    """Run invalid trials once more, in place of the old ones."""
    from analysis.results.tables import write_metrics

    names = invalid_trials(write_metrics(run.out))
    again = [each for each in done if each.path.name in names]
    if not again:
        return done
    listener.say(f"{len(again)} invalid: running them again")
    planned = [each.task for each in again]
    fresh = {each.path: each for each in _run_round(run, planned, listener, rerun=True)}
    return [fresh.get(each.path, each) for each in done]


def invalid_trials(metrics: pd.DataFrame) -> set[str]:
    """Return the names of the invalid trials among rows of metrics."""
    from analysis.metrics.metric_rows import invalid

    return set(metrics.loc[invalid(metrics), "trial"])
