"""The experiment or the scenario file that the command line names."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path

from testbed.errors import UsageError, nearest
from testbed.plan.validate import validate
from testbed.scenario.experiment import Experiment
from testbed.scenario.json_form import LONGEST_BYTES
from testbed.scenario.model import Scenario
from testbed.store import SCENARIO


def chosen(options: argparse.Namespace) -> tuple[Experiment | None, list[Scenario]]:
    """The scenarios that the command line names, and the experiment unless it was a file."""
    if options.experiment.endswith(".json"):
        path = Path(options.experiment)
        if not path.is_file():
            raise UsageError(f"{path}: no such file", f"name an experiment, or a {SCENARIO}")
        if options.set or options.seeds > 1:
            raise UsageError("--set and --seeds need an experiment", "edit the scenario instead")
        return None, [_scenario_in(path)]
    found = _named(options.experiment, options.experiments)
    if getattr(options, "until", None):
        from analysis.statistics.precision import LEAST_SEEDS, parse_target

        parse_target(options.until)  # a slip of the pen is found before anything runs
        options.seeds = max(options.seeds, LEAST_SEEDS)
    return found, found.scenarios(settings_of(options.set, found), options.seeds, options.quick)


def _scenario_in(path: Path) -> Scenario:
    """The scenario in a file, if it is sound: every fault is told with the file's name."""
    try:
        with path.open("rb") as file:
            scenario = Scenario.from_json(file.read(LONGEST_BYTES + 1))
        validate(scenario)
    except UsageError as error:
        raise UsageError(f"{path}: {error.message}", error.hint) from error
    return scenario


def _named(name: str, experiments: Mapping[str, Experiment]) -> Experiment:
    if name not in experiments:
        raise UsageError(f"unknown experiment {name!r}", nearest(name, experiments))
    return experiments[name]


def settings_of(texts: Sequence[str], experiment: Experiment) -> Mapping[str, Sequence[str]]:
    settings: dict[str, Sequence[str]] = {}
    for text in texts:
        key, equals, values = text.partition("=")
        if not equals or not all(values.split(",")):
            raise UsageError(f"--set {text}: not KEY=VALUE", f"axes: {', '.join(experiment.axes)}")
        if key not in experiment.axes:
            raise UsageError(f"--set {key}: no such axis", nearest(key, experiment.axes))
        settings[key] = values.split(",")
    return settings
