"""`run`: what `testbed run` does, for Python."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from analysis.results.tables import write_metrics
from testbed.api.asked import Settings, What, scenarios_of
from testbed.api.opened_results import open_results
from testbed.cli.console import Watch, errors
from testbed.cli.run import engine_for, learn, reduced
from testbed.engines.choice import AUTO
from testbed.errors import UsageError
from testbed.machine.locks import Tell
from testbed.machine.process import interruptible
from testbed.plan.task import tasks
from testbed.runs import run_sets
from testbed.runs.ready_kernels import with_ready_kernels
from testbed.runs.results_folder import claimed
from testbed.runs.sweep import Waiting, Watcher, in_order, run_all
from testbed.scenario.kernel_axis import AXIS as KERNEL
from testbed.scenario.names import checked
from testbed.store import LATEST, RUNS, results_folder

if TYPE_CHECKING:
    import pandas as pd

ORDER = 1  # of the trials: shuffled, as the command line does


def run(
    what: What,
    *,
    seeds: int = 1,
    set: Settings | None = None,
    quick: bool = False,
    engine: str = AUTO,
    out: str | os.PathLike[str] | None = None,
    name: str = "",
    jobs: int | None = None,
    captures: str = "keep",
    rerun: bool = False,
    quiet: bool = False,
) -> pd.DataFrame:
    """Run trials, and give a row for each of their flows, with all columns of metrics.csv.

    `what` is an experiment's name, a file of yours (.py, .json), an Experiment, a Scenario or
    several, or a dict like a scenario's file. `set` has values for axes or fields, each one or a
    list. The others are as in `testbed run`. Trials that are there already do not run again. Rows
    are of trials that count; what did not run or is invalid is warned of. Each axis is a column
    `axis_…`, and `open_results(rows)` leads to flows and queues over time. Faults raise
    TestbedError.
    """
    for word, number in (("seeds", seeds), ("jobs", 1 if jobs is None else jobs)):
        if number < 1:
            raise UsageError(f"{word}: {number} is not a whole number above 0", f"{word}=1")
    if name:
        checked(name)
    planned = tasks(scenarios_of(what, set or {}, seeds, quick))
    choice = engine_for(planned, engine)
    planned = with_ready_kernels(choice.engine, planned, _told(quiet), named=KERNEL in (set or {}))
    folder = results_folder(planned[0].scenario.experiment) if out is None else Path(out)
    with interruptible(), _progress(len(planned), quiet) as watch, claimed(folder, _say(watch)):
        with reduced(watch, captures) as tell:
            done = run_all(in_order(planned, ORDER), choice, folder, tell, jobs, rerun)
        learn(choice, done)
        kept = run_sets.keep_run(folder, name, _call(what, seeds), [t.path.name for t in done])
        if out is None:
            run_sets.point_at(folder.parent / LATEST, f"{folder.name}/{RUNS}/{kept.name}")
    write_metrics(kept.path)
    results = open_results(kept.path)
    results.warn_of_those_left_out()
    return results.rows


@contextlib.contextmanager
def _progress(total: int, quiet: bool) -> Iterator[Watcher]:
    """The command line's own: a bar, in a notebook too; lines where neither is."""
    if quiet:
        yield lambda _event: None
        return
    with Watch(total) as watch:
        yield watch


def _told(quiet: bool) -> Tell:
    return (lambda _line: None) if quiet else errors.print


def _say(watch: Watcher) -> Tell:
    return lambda sentence: watch(Waiting(sentence))


def _call(what: What, seeds: int) -> str:
    """What `testbed runs` shows of it."""
    named = repr(str(what)) if isinstance(what, str | Path) else f"<{type(what).__name__}>"
    return f"run({named}, seeds={seeds})"
