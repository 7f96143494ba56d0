"""What is to run: an experiment with some of its axes changed, or a sweep of scenarios."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from testbed.errors import UsageError, near, nearest, quoted
from testbed.faults import Fault, usage_error
from testbed.own_files import scenario_file
from testbed.own_files.python_file import PYTHON_SUFFIX
from testbed.own_files.scenario_file import JSON_SUFFIX, in_document, in_file
from testbed.runs.experiment_file import ExperimentFile, load
from testbed.scenario import file_sweep
from testbed.scenario.common_axes import COMMON_AXES
from testbed.scenario.experiment import Experiment
from testbed.scenario.model import BASE_KERNEL, Scenario
from testbed.scenario.reading import ScenarioDocument
from testbed.scenario.variations import KERNEL_AXIS, all_realistic, on_kernels, split_kernels
from testbed.stacks.flows import with_stacks

KERNEL_VALUES = "names: `testbed kernel list`"
DEFAULT_METRIC = Experiment.metric  # what `--until` is about, unless an experiment says otherwise

Settings = Mapping[str, Sequence[str]]  # axis or field → values, as `--set` has them


@dataclass(frozen=True)
class SettableAxis:
    """An axis that `--set` can change: its default values, and a description of what it takes."""

    name: str
    default: tuple[str, ...]
    takes: str
    is_usual: bool = False  # a field of a file that has the value that it has without the file


@dataclass(frozen=True)
class RunSelection:
    """The scenarios to run, for any number of seeds, and how their results are shown."""

    name: str  # of the experiment whose figures and tables show the results
    metric: str  # the main one: what `--until` is about
    axes: tuple[SettableAxis, ...]
    scenarios: Callable[[int], list[Scenario]]  # by the number of seeds
    values: Callable[[Scenario], Mapping[str, str]]  # of the axes, in one of the scenarios
    file: ExperimentFile | None = None  # the user's file that the experiment is from
    kernels_named: bool = False
    notes: tuple[str, ...] = ()  # sentences about what was left out of the user's input
    experiment: Experiment | None = None  # None: scenarios without one

    @property
    def definitions(self) -> Mapping[str, Experiment]:
        """Return the experiment by its name, or nothing."""
        return {self.name: self.experiment} if self.experiment else {}

    def made_realistic(self) -> RunSelection:
        """Let links aggregate, and hosts take time to receive, in every trial (`--realistic`)."""
        scenarios = self.scenarios
        return dataclasses.replace(self, scenarios=lambda n: all_realistic(scenarios(n)))


def select(
    what: str, settings: Settings, experiments: Mapping[str, Experiment], *, quick: bool = False
) -> RunSelection:
    """Return the selection for an experiment's name, an experiment's file, or a scenario's file."""
    if what.endswith(JSON_SUFFIX):
        scenario = in_file(Path(what))
        return select_scenarios([scenario], settings, what, quick)
    if what.endswith(PYTHON_SUFFIX):
        file = load(Path(what), experiments)
        return select_experiment(file.experiment, settings, quick=quick, file=file)
    if what not in experiments:
        raise _unknown(what, experiments)
    return select_experiment(experiments[what], settings, quick=quick)


def _unknown(what: str, experiments: Iterable[str]) -> UsageError:
    """Return the error of a name that is no experiment's, and does not end as a file's does."""
    if f"{PYTHON_SUFFIX}:" in what:
        return UsageError(f"unknown experiment {quoted(what)}", f"is it a Topo? --topo {what}")
    path, suffixes = Path(what), (JSON_SUFFIX, PYTHON_SUFFIX)
    files = [str(each) for each in path.parent.glob("*") if each.suffix in suffixes]
    same_stem = next((each for each in files if each.removesuffix(Path(each).suffix) == what), "")
    if close := same_stem or near(what, files):
        return UsageError(f"{quoted(what)}: no such experiment or file", f"did you mean {close!r}?")
    if not path.exists() and not path.suffix and len(path.parts) == 1:
        return UsageError(f"unknown experiment {quoted(what)}", nearest(what, experiments))
    kind = "a folder" if path.is_dir() else "a file of another kind"
    return UsageError(
        f"{quoted(what)}: {kind if path.exists() else 'no such file'}",
        "name an experiment (`testbed list`), a scenario's .json or an experiment's .py",
    )


def select_topo(
    topo: str, link: str, flows: Sequence[str], duration_s: float, settings: Settings, quick: bool
) -> RunSelection:
    """Return the selection for `--topo`, `--link`, `--flow` and `--duration`."""
    where = f"--topo {topo}"
    scenario = in_document(
        scenario_file.document_from_options(topo, link, flows, duration_s), where
    )
    return select_scenarios([scenario], settings, where, quick)


def select_experiment(
    experiment: Experiment,
    settings: Settings,
    *,
    quick: bool = False,
    file: ExperimentFile | None = None,
) -> RunSelection:
    """Return the selection for an experiment, some of whose axes have other values."""
    kernels, settings = split_kernels(settings, experiment.axes)
    if unknown := [key for key in settings if key not in experiment.axes]:
        axes = (*experiment.axes, KERNEL_AXIS)
        raise usage_error(
            [Fault((f"--set {key}",), "no such axis", nearest(key, axes)) for key in unknown]
        )
    return RunSelection(
        experiment.name,
        experiment.metric,
        (*_axes(experiment), *_kernel_axis(experiment.axes)),
        lambda seeds: [
            with_stacks(each)
            for each in on_kernels(experiment.scenarios(settings, seeds, quick), kernels)
        ],
        lambda scenario: {KERNEL_AXIS: scenario.kernel, **scenario.axes},
        file,
        bool(kernels),
        experiment=experiment,
    )


def select_scenarios(
    documents: Sequence[ScenarioDocument], settings: Settings, where: str, quick: bool
) -> RunSelection:
    """Return the sweep of one or several scenarios of one experiment."""
    if quick:
        raise UsageError(f"--quick: {where} has no shorter form", "try --set duration_s=10")
    first = documents[0]
    kernels, settings = split_kernels(settings, ())
    axes = tuple(
        SettableAxis(name, (text,), "", file_sweep.is_default(first, name))
        for name, text in file_sweep.fields(first).items()
    )
    axes += tuple(
        SettableAxis(name, (), each.about, name not in settings)
        for name, each in COMMON_AXES.items()
    )

    def swept(seeds: int) -> list[Scenario]:
        sweeps = (file_sweep.sweep(each, settings, seeds) for each in documents)
        return on_kernels((with_stacks(each) for sweep in sweeps for each in sweep), kernels)

    return RunSelection(
        first.scenario.experiment,
        DEFAULT_METRIC,
        (*axes, SettableAxis(KERNEL_AXIS, (first.scenario.kernel,), KERNEL_VALUES)),
        swept,
        lambda each: {**file_sweep.values(first, settings, each), KERNEL_AXIS: each.kernel},
        kernels_named=bool(kernels),
        notes=first.left_out,
    )


def _kernel_axis(axes: Iterable[str]) -> Iterator[SettableAxis]:
    if KERNEL_AXIS not in axes:
        yield SettableAxis(KERNEL_AXIS, (BASE_KERNEL,), KERNEL_VALUES)


def _axes(experiment: Experiment) -> list[SettableAxis]:
    return [
        SettableAxis(
            name,
            tuple(value if isinstance(value, str) else f"{value:g}" for value in values),
            "names" if isinstance(values[0], str) else "numbers",
        )
        for name, values in experiment.values().items()
    ]


def parse_settings(texts: Sequence[str], hint: str) -> Settings:
    """Return the values of each key of `KEY=VALUE,…`."""
    settings: dict[str, Sequence[str]] = {}
    for text in texts:
        key, equals, listed = text.partition("=")
        values = [value.strip() for value in listed.split(",")]
        if not (key and equals and all(values)):
            raise UsageError(f"--set {text}: not KEY=VALUE", hint)
        if key in settings:
            joined = ",".join(dict.fromkeys((*settings[key], *values)))
            raise UsageError(f"--set {key}: given twice", f"join the values: --set {key}={joined}")
        settings[key] = values
    return settings
