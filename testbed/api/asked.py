"""What is asked to run, in any of its forms, as scenarios."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from experiments.catalogue import EXPERIMENTS
from testbed.cli.own_file import load
from testbed.errors import UsageError, nearest, quoted
from testbed.own_files import scenario_file
from testbed.own_files.python_file import SUFFIX
from testbed.own_files.topo_document import with_graph
from testbed.scenario import file_sweep
from testbed.scenario.experiment import Experiment
from testbed.scenario.kernel_axis import on_kernels, set_apart
from testbed.scenario.model import Scenario, plain

Settings = Mapping[str, Any]  # an axis or a field, and its value or values
What = str | Path | Experiment | Scenario | Mapping[str, Any] | Iterable[Scenario]
FORMS = "an experiment's name, a file of yours, an Experiment, a Scenario, several, or a dict"


def scenarios_of(what: What, settings: Settings, seeds: int, quick: bool) -> list[Scenario]:
    """All scenarios, repeat by repeat."""
    found = _experiment(what)
    given = {name: _texts(name, values) for name, values in settings.items()}
    kernels, texts = set_apart(given, found.axes if found else ())
    if found is not None:
        return on_kernels(found.scenarios(texts, seeds, quick), kernels)
    if quick:
        raise UsageError("quick: a scenario has no shorter form", "try set={'duration_s': 10}")
    made = [file_sweep.sweep(each, texts, seeds) for each in _given(what)]
    names = {each.experiment for sweep in made for each in sweep}
    if len(names) != 1:
        told = f"of {len(names)} experiments: {', '.join(sorted(names))}" if names else "none"
        raise UsageError(f"the scenarios are {told}", "give them one `experiment`")
    return on_kernels((each for sweep in made for each in sweep), kernels)


def _experiment(what: What) -> Experiment | None:
    if isinstance(what, Experiment):
        return what
    if not isinstance(what, str | Path) or str(what).endswith(scenario_file.SUFFIX):
        return None
    if str(what).endswith(SUFFIX):
        return load(Path(what), EXPERIMENTS).experiment
    if str(what) not in EXPERIMENTS:
        raise UsageError(f"unknown experiment {quoted(str(what))}", nearest(str(what), EXPERIMENTS))
    return EXPERIMENTS[str(what)]


def _given(what: What) -> Sequence[Scenario]:
    """The scenarios themselves, each of which is read as if it stood in a file."""
    if isinstance(what, str | Path):
        return [scenario_file.in_file(Path(what)).scenario]
    if isinstance(what, Mapping):
        return [_sound(what)]
    if isinstance(what, Scenario):
        return [_checked(what)]
    if isinstance(what, Iterable):
        return [_checked(each) for each in what]
    raise UsageError(f"{type(what).__name__} cannot run", FORMS)


def _checked(scenario: Scenario) -> Scenario:
    """A scenario of Python's values, whose types nobody has looked at."""
    if not isinstance(scenario, Scenario):
        raise UsageError(f"{type(scenario).__name__} is no Scenario", FORMS)
    return _sound(plain(scenario))


def _sound(data: Any) -> Scenario:
    try:
        document = with_graph(json.loads(json.dumps(data)), Path())
    except (TypeError, ValueError, RecursionError) as error:
        raise UsageError(
            f"scenario: {error}", "what stands in it must be of JSON's types"
        ) from error
    return scenario_file.in_document(document, "scenario").scenario


def _texts(name: str, values: Any) -> tuple[str, ...]:
    """As `--set` has them."""
    several = values if isinstance(values, Iterable) and not isinstance(values, str) else [values]
    found = tuple(each if isinstance(each, str) else _json(each) for each in several)
    if not found:
        raise UsageError(f"set: {name} has no value", f"for example: set={{{name!r}: [1, 2]}}")
    return found


def _json(value: Any) -> str:
    """Of a number of numpy's, too."""
    return json.dumps(value.item() if hasattr(value, "item") else value)
