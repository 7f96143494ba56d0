"""The parameters of what was run, and the command that runs it again."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterable, Sequence

from analysis.figures.cases import text
from analysis.metrics.metric_rows import AXIS
from analysis.results.experiment_results import ExperimentResults
from analysis.trials.labels import (
    conditions,
    losses_label,
    path_rtt_ms,
    queue_label,
    rate_label,
    variation_label,
)
from testbed.errors import number_of
from testbed.scenario.model import Scenario
from testbed.scenario.named_networks import described
from testbed.store.names import RUN_FILE, RUNS, SCENARIO
from testbed.store.reading import Trial, listed_trials, run_command

MAX_WRITTEN_VALUES = 8  # values that are written out
MAX_VALUES_OF_AXIS = 16  # the same, of an axis: the command has them all


def values(results: ExperimentResults, axis: str) -> list[str]:
    """Sort an axis's values, numbers by size."""
    values_seen = results.rows[AXIS + axis].dropna().unique().tolist()
    return [
        text(each)
        for each in (sorted(values_seen) if not isinstance(values_seen[0], str) else values_seen)
    ]


def axes(results: ExperimentResults) -> list[tuple[str, str]]:
    """Map each axis to its values."""
    return [(name, _several(values(results, name), MAX_VALUES_OF_AXIS)) for name in results.axes()]


def settings(trials: Sequence[Trial]) -> list[tuple[str, str]]:
    """Return the settings of the trials; where they differ, all values."""
    scenarios = [trial.scenario for trial in trials]
    records = [trial.record for trial in trials]
    networks = [scenario.network for scenario in scenarios]
    versions = dict.fromkeys(
        f"{name.rpartition('/')[2]} {version}"  # a program of a user's is named by its path
        for record in records
        for name, version in record.versions.items()
    )
    rows = (
        ("network", _several(map(described, networks))),
        ("bottleneck", _several(map(_bottleneck, scenarios))),
        ("losses on links", _several(map(losses_label, networks))),
        ("queue", _queues(scenarios)),
        ("path RTT, without sending times", _several(f"{path_rtt_ms(s):g} ms" for s in scenarios)),
        ("profile", _several(str(scenario.profile) for scenario in scenarios)),
        ("length of a trial", _several(f"{scenario.duration_s:g} s" for scenario in scenarios)),
        ("seeds", _several((str(s.seed) for s in scenarios), 12)),
        ("engine", _several(record.engine for record in records if record.engine)),
        ("kernel", _several(" ".join(record.kernel.split()[:2]) for record in records)),
        ("versions", ", ".join(versions)),
    )
    return [(name, text) for name, text in rows if text]


def lead(trials: Sequence[Trial]) -> str:
    """Say in a sentence what was run: the flows, the network and what decides the result."""
    scenarios = [trial.scenario for trial in trials]
    networks = [scenario.network for scenario in scenarios]
    flows = _several((flow.variant or str(flow.kind) for s in scenarios for flow in s.flows), 6)
    parts = [
        _several(_slowest(scenario) for scenario in scenarios),
        *dict.fromkeys(condition for each in scenarios for condition in conditions(each)),
        _queues(scenarios, 3),
        _several(f"path RTT {path_rtt_ms(s):g} ms" for s in scenarios),
        _several(f"{s.duration_s:g} s" for s in scenarios),
    ]
    named = _several(map(described, networks), 3)
    seeds = number_of(len({s.seed for s in scenarios}), "seed")
    known = dict.fromkeys(filter(None, parts))
    return f"{flows} over {named}: {'; '.join(known)}; {seeds}."


def _queues(scenarios: Sequence[Scenario], most: int = MAX_WRITTEN_VALUES) -> str:
    """Name the bottlenecks' queues; none where data take a way with another slowest link."""
    return _several(
        (queue_label(s.network.bottleneck_queue) for s in scenarios if _on_the_way(s)), most
    )


def _on_the_way(scenario: Scenario) -> bool:
    """Tell whether the network's bottleneck is the slowest link on the way of data."""
    return _slowest_mbit(scenario) in {scenario.network.bottleneck_mbit, math.inf}


def _slowest_mbit(scenario: Scenario) -> float:
    """Return the lowest rate on the way of any flow's data."""
    ways = (scenario.network.path(flow.src, flow.dst) for flow in scenario.flows)
    return min((way.rate_mbit for way in ways), default=math.inf)


def _slowest(scenario: Scenario) -> str:
    if _on_the_way(scenario):
        return rate_label(scenario.network.bottleneck_link)
    return f"{_slowest_mbit(scenario):g} Mbit/s"


def _bottleneck(scenario: Scenario) -> str:
    link = scenario.network.bottleneck_link
    varies = variation_label(link) if _on_the_way(scenario) else ""
    return ", ".join(filter(None, (_slowest(scenario), varies)))


def _several(texts: Iterable[str], most: int = MAX_WRITTEN_VALUES) -> str:
    different = [each for each in dict.fromkeys(texts) if each]
    return ", ".join(different[:most]) + (
        f", … ({len(different)})" if len(different) > most else ""
    )


def _given(results: ExperimentResults) -> list[str]:
    """Return the experiment's axes, without those that were added to tell trials apart."""
    given_axes = {name for trial in results.trials for name in trial.scenario.axes}
    return [name for name in results.axes() if name in given_axes]


def _recorded(results: ExperimentResults) -> tuple[list[str], list[Trial]]:
    """Return the commands whose runs together have these trials, and the trials in no run."""
    missing = {trial.path.name for trial in results.trials}
    commands = []
    runs = [path.parent for path in results.trials[0].path.parent.glob(f"{RUNS}/*/{RUN_FILE}")]
    trials = {run: set(listed_trials(run)) for run in runs}
    for run in sorted(runs, key=lambda run: (-len(trials[run] & missing), run.name)):
        text = run_command(run)
        if missing & trials[run] and text:
            commands.append(text)
            missing -= trials[run]
    return commands, [trial for trial in results.trials if trial.path.name in missing]


def command(results: ExperimentResults) -> str:
    """Return the commands that ran these trials, a line each.

    For trials that are in no run: the command of the whole experiment if it is a built-in one, or
    else that which runs the first of them from its scenario.
    """
    commands, others = _recorded(results)
    if not others:
        return "\n".join(commands)
    engine = ["--engine", results.engine or "auto"]
    if not results.definition:
        first = str(others[0].path / SCENARIO)
        return "\n".join([*commands, shlex.join(["testbed", "run", first, *engine])])
    argv = ["testbed", "run", results.experiment]
    for name in _given(results):
        argv += ["--set", f"{name}={','.join(values(results, name))}"]
    seeds = max(trial.scenario.seed for trial in results.trials)
    return shlex.join([*argv, "--seeds", str(seeds), *engine])


def command_note(results: ExperimentResults) -> str:
    """Say how the trials of the commands differ from these, if they do."""
    _commands, others = _recorded(results)
    if not others:
        return ""
    if not results.definition:
        more = len(others) - 1
        return f"and likewise for {number_of(more, 'other trial')} in no run" if more else ""
    seeds = max(trial.scenario.seed for trial in results.trials)
    whole = seeds * math.prod(len(values(results, name)) for name in _given(results))
    here = len(results.trials)
    return f"gives {whole} trials, of which these are {here}" if whole != here else ""
