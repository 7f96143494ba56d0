"""The experiment or the scenario file that the command line names."""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from testbed.cli.console import errors
from testbed.cli.own_file import OwnFile, load
from testbed.errors import UsageError, nearest
from testbed.own_files import topo_document
from testbed.own_files.python_file import SUFFIX
from testbed.own_files.scenario_file import SUFFIX as JSON
from testbed.own_files.scenario_file import Found, in_document, in_file
from testbed.scenario import file_sweep
from testbed.scenario.experiment import Experiment
from testbed.scenario.kernel_axis import AXIS as KERNEL
from testbed.scenario.kernel_axis import on_kernels, set_apart
from testbed.scenario.model import BASE_KERNEL, Scenario
from testbed.scenario.variations import with_variations

ONE_LINE = "--topo tree,2,2 --link bw=10,delay=5ms --flow h1,h4"
KERNELS_ARE = "names: `testbed kernel list`"
METRIC = Experiment.metric  # what `--until` is about, unless an experiment says otherwise


@dataclass(frozen=True)
class Axis:
    """What `--set` can change: its values without it, and what it takes."""

    name: str
    default: tuple[str, ...]
    takes: str


@dataclass(frozen=True)
class Chosen:
    """What is to run: an experiment, or the sweep of a scenario's file."""

    name: str  # of the experiment whose figures and tables show the results
    metric: str
    axes: tuple[Axis, ...]
    scenarios: Callable[[int], list[Scenario]]  # by the number of seeds
    values: Callable[[Scenario], Mapping[str, str]]  # of the axes, in one of the scenarios
    own: OwnFile | None = None  # the file of the user's that it stands in
    kernels_named: bool = False


def chosen(options: argparse.Namespace) -> Chosen:
    """What the command line names, with its settings."""
    found = _chosen(options)
    if not options.sensitivity:
        return found
    return dataclasses.replace(found, scenarios=lambda n: with_variations(found.scenarios(n)))


def _chosen(options: argparse.Namespace) -> Chosen:
    _refuse_mixed(options)
    if options.topo:
        words = (options.topo, options.link, options.flow, options.duration)
        where = f"--topo {options.topo}"
        return _of_scenario(in_document(topo_document.of_words(*words), where), where, options)
    if options.experiment.endswith(JSON):
        return _of_scenario(in_file(Path(options.experiment)), options.experiment, options)
    own = None
    if options.experiment.endswith(SUFFIX):
        own = load(Path(options.experiment), options.experiments)
    experiment = own.experiment if own else _named(options.experiment, options.experiments)
    settings = _settings(options.set, f"axes: {', '.join((*experiment.axes, KERNEL))}")
    kernels, settings = set_apart(settings, experiment.axes)
    if unknown := [key for key in settings if key not in experiment.axes]:
        hint = nearest(unknown[0], (*experiment.axes, KERNEL))
        raise UsageError(f"--set {unknown[0]}: no such axis", hint)
    return Chosen(
        experiment.name,
        experiment.metric,
        (*_axes(experiment), *_kernel_axis(experiment.axes)),
        lambda seeds: on_kernels(experiment.scenarios(settings, seeds, options.quick), kernels),
        lambda scenario: {KERNEL: scenario.kernel, **scenario.axes},
        own,
        bool(kernels),
    )


def _refuse_mixed(options: argparse.Namespace) -> None:
    """A network is named by --topo alone, or is that of an experiment or a file."""
    if not options.experiment and not options.topo:
        raise UsageError(
            "nothing is named to run", f"an experiment (`testbed list`), or {ONE_LINE}"
        )
    if options.experiment and options.topo:
        raise UsageError(
            f"--topo: {options.experiment} has a network already", f"without it: {ONE_LINE}"
        )
    if options.experiment and (options.link or options.flow):
        raise UsageError("--link and --flow belong to --topo", ONE_LINE)


def _of_scenario(found: Found, where: str, options: argparse.Namespace) -> Chosen:
    """The sweep of one scenario."""
    if options.quick:
        raise UsageError(
            "--quick: a scenario's file has no shorter form", "try --set duration_s=10"
        )
    for sentence in found.left_out:
        errors.print(f"testbed: {sentence}", soft_wrap=True)
    scenario = found.scenario
    settings = _settings(options.set, f"testbed plan {where} lists the fields that can be set")
    kernels, settings = set_apart(settings, ())
    fields = file_sweep.fields(dataclasses.replace(scenario, kernel=BASE_KERNEL))
    axes = tuple(Axis(name, (text,), "") for name, text in fields.items())
    return Chosen(
        scenario.experiment,
        METRIC,
        (*axes, Axis(KERNEL, (scenario.kernel,), KERNELS_ARE)),
        lambda seeds: on_kernels(file_sweep.sweep(scenario, settings, seeds), kernels),
        lambda each: {**file_sweep.fields(each), KERNEL: each.kernel},
        kernels_named=bool(kernels),
    )


def _kernel_axis(own: Iterable[str]) -> Iterator[Axis]:
    if KERNEL not in own:
        yield Axis(KERNEL, (BASE_KERNEL,), KERNELS_ARE)


def _axes(experiment: Experiment) -> list[Axis]:
    return [
        Axis(name, tuple(map(_text, values)), "names" if isinstance(values[0], str) else "numbers")
        for name, values in experiment.values().items()
    ]


def _text(value: str | float) -> str:
    return value if isinstance(value, str) else f"{value:g}"


def _named(name: str, experiments: Mapping[str, Experiment]) -> Experiment:
    if name not in experiments:
        raise UsageError(f"unknown experiment {name!r}", nearest(name, experiments))
    return experiments[name]


def _settings(texts: Sequence[str], hint: str) -> Mapping[str, Sequence[str]]:
    """`KEY=VALUE,…` as the values of each key."""
    settings: dict[str, Sequence[str]] = {}
    for text in texts:
        key, equals, listed = text.partition("=")
        values = listed.split(",")
        if not equals or not all(values):
            raise UsageError(f"--set {text}: not KEY=VALUE", hint)
        if key in settings:
            joined = ",".join(dict.fromkeys((*settings[key], *values)))
            raise UsageError(f"--set {key}: given twice", f"join the values: --set {key}={joined}")
        settings[key] = values
    return settings
