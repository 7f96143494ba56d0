"""`run`: run trials from Python as `testbed run` does."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from analysis.results.tables import write_metrics
from experiments.catalogue import EXPERIMENTS
from testbed.api.results import open_results
from testbed.errors import UsageError
from testbed.guest.boot import do_without_confinement
from testbed.machine.process import interruptible
from testbed.own_files import scenario_file
from testbed.own_files.scenario_file import with_topo_graph
from testbed.runs.engine_choice import AUTO
from testbed.runs.orchestration import RunListener, RunOptions, carry_out, plan_run
from testbed.runs.progress import NotebookListener
from testbed.runs.results_folders import claimed
from testbed.runs.selection import RunSelection, select, select_experiment, select_scenarios
from testbed.scenario.experiment import Experiment
from testbed.scenario.model import Scenario, plain
from testbed.scenario.reading import ScenarioDocument

if TYPE_CHECKING:
    import pandas as pd

What = str | Path | Experiment | Scenario | Mapping[str, Any] | Iterable[Scenario]
ACCEPTED = "an experiment's name, a file of yours, an Experiment, a Scenario, several, or a dict"


def run(
    what: What,
    *,
    seeds: int = 1,
    set: Mapping[str, Any] | None = None,
    quick: bool = False,
    engine: str = AUTO,
    out: str | os.PathLike[str] | None = None,
    name: str = "",
    jobs: int | None = None,
    captures: str = "keep",
    rerun: bool = False,
    unconfined: bool = False,
    quiet: bool = False,
) -> pd.DataFrame:
    """Run trials, and return a row for each of their flows, with all columns of metrics.csv.

    `what` is an experiment's name, a file of yours (.py, .json), an Experiment, a Scenario or
    several, or a dict like a scenario's file. `set` has values for axes or fields, each one or a
    list. The others are as in `testbed run`. Trials that exist already do not run again. The rows
    are those of trials that count; a warning names trials that did not run or are invalid. Each
    axis is a column `axis_…`, and `open_results(rows)` leads to flows and queues over time. Faults
    raise TestbedError.
    """
    for word, number in (("seeds", seeds), ("jobs", 1 if jobs is None else jobs)):
        if number < 1:
            raise UsageError(f"{word}: {number} is not a whole number above 0", f"{word}=1")
    if unconfined:
        do_without_confinement()
    options = RunOptions(
        seeds=seeds,
        engine=engine,
        out=None if out is None else Path(out),
        name=name,
        jobs=jobs,
        captures=captures,
        rerun=rerun,
    )
    listener = RunListener() if quiet else NotebookListener()
    planned = plan_run(selected(what, set or {}, quick=quick), options, listener)
    with interruptible(), claimed(planned.out, listener.warn):
        done = carry_out(planned, _call(what, seeds), listener)
    write_metrics(done.folder)
    results = open_results(done.folder)
    results.warn_of_those_left_out()
    return results.rows


def selected(what: What, settings: Mapping[str, Any], *, quick: bool = False) -> RunSelection:
    """Return what Python's values select."""
    texts = {name: _texts(name, values) for name, values in settings.items()}
    if isinstance(what, Experiment):
        return select_experiment(what, texts, quick=quick)
    if isinstance(what, str | Path):
        return select(str(what), texts, EXPERIMENTS, quick=quick)
    documents = _documents(what)
    names = {each.scenario.experiment for each in documents}
    if len(names) != 1:
        several = f"of {len(names)} experiments: {', '.join(sorted(names))}"
        raise UsageError(
            f"the scenarios are {several if names else 'none'}", "give them one `experiment`"
        )
    return select_scenarios(documents, texts, "a scenario", quick)


def _documents(what: Scenario | Mapping[str, Any] | Iterable[Scenario]) -> list[ScenarioDocument]:
    """Return the scenarios, each checked as if it stood in a file."""
    if isinstance(what, Mapping):
        return [_checked_document(what)]
    if not isinstance(what, Scenario | Iterable):
        raise UsageError(f"{type(what).__name__} cannot run", ACCEPTED)
    given = [what] if isinstance(what, Scenario) else list(what)
    for each in given:
        if not isinstance(each, Scenario):
            raise UsageError(f"{type(each).__name__} is not a Scenario", ACCEPTED)
    return [_checked_document(plain(each)) for each in given]


def _checked_document(data: Any) -> ScenarioDocument:
    try:
        document = with_topo_graph(json.loads(json.dumps(data)), Path())
    except (TypeError, ValueError, RecursionError) as error:
        raise UsageError(f"scenario: {error}", "use JSON's types only") from error
    return scenario_file.in_document(document, "scenario")


def _texts(name: str, values: Any) -> tuple[str, ...]:
    """Return values as `--set` has them; numpy's numbers are numbers, too."""
    several = values if isinstance(values, Iterable) and not isinstance(values, str) else [values]
    plain_values = (each.item() if hasattr(each, "item") else each for each in several)
    texts = tuple(each if isinstance(each, str) else json.dumps(each) for each in plain_values)
    if not texts:
        raise UsageError(f"set: {name} has no value", f"for example: set={{{name!r}: [1, 2]}}")
    return texts


def _call(what: What, seeds: int) -> str:
    """Return what `testbed runs` shows as the command."""
    named = repr(str(what)) if isinstance(what, str | Path) else f"<{type(what).__name__}>"
    return f"run({named}, seeds={seeds})"
