"""Experiments in the user's Python files: executed to run them, but only parsed to list them."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from testbed.errors import TestbedError, UsageError
from testbed.machine.safe_files import read_bytes
from testbed.own_files.python_file import PYTHON_SUFFIX, error_in_file, import_file
from testbed.scenario.experiment import Experiment
from testbed.scenario.names import checked_name

if TYPE_CHECKING:
    import pandas as pd  # slow to load
    from matplotlib.figure import Figure

    from analysis.results.experiment_results import ExperimentResults

EXPERIMENT_NAME = "EXPERIMENT"
MAX_FILE_BYTES = 1 << 20
TEMPLATE_HINT = "`testbed new EXPERIMENT_NAME` writes one that runs"

Figures = Callable[["pd.DataFrame"], Iterable[tuple[str, "Figure"]]]


@dataclass(frozen=True)
class ExperimentFile:
    """An experiment from a file, and the function there that draws its figures, if any."""

    path: Path
    experiment: Experiment
    figures: Figures | None


def load(path: Path, taken: Mapping[str, Experiment]) -> ExperimentFile:
    """Execute a file and return its experiment, whose name must not be one of `taken`."""
    if not path.is_file():
        raise UsageError(
            f"{path}: {'not a file' if path.exists() else 'no such file'}", TEMPLATE_HINT
        )
    module = import_file(path)
    experiment = getattr(module, EXPERIMENT_NAME, None)
    if not isinstance(experiment, Experiment):
        raise UsageError(f"{path}: has no {EXPERIMENT_NAME} = Experiment(…)", TEMPLATE_HINT)
    if experiment.name in taken:
        raise UsageError(
            f"{path}: {experiment.name!r} is the name of a built-in experiment",
            "give it another, or its results would lie among the others",
        )
    return ExperimentFile(path, experiment, getattr(module, "figures", None))


def files_with_experiments(folder: Path) -> Iterator[tuple[Path, str]]:
    """Yield the files in a folder that define an experiment, unexecuted, with their `about`."""
    for path in sorted(folder.glob(f"*{PYTHON_SUFFIX}")):
        try:
            tree = ast.parse(read_bytes(path, MAX_FILE_BYTES))
            yield from ((path, purpose) for purpose in _abouts(tree))
        except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
            continue


def _abouts(tree: ast.Module) -> Iterator[str]:
    """Yield the `about` of each `EXPERIMENT = Experiment(…)`."""
    for node in tree.body:
        match node:
            case ast.Assign(
                targets=[ast.Name(id=target)],
                value=ast.Call(func=ast.Name(id="Experiment"), keywords=keywords),
            ) if target == EXPERIMENT_NAME:
                values = {each.arg: each.value for each in keywords}
                purpose = values.get("about")
                yield str(purpose.value) if isinstance(purpose, ast.Constant) else ""


def save_figures(
    file: ExperimentFile, all_results: Iterable[ExperimentResults], folder: Path
) -> Iterator[Path]:
    """Write the file's figures as PNG, SVG and CSV; yield each PNG file once it is written."""
    from analysis.figures.static_renderer import write  # slow to load

    assert file.figures is not None
    for results in all_results:
        stem = f"{file.experiment.name}-{results.engine}"
        try:
            for name, figure in file.figures(results.good):
                yield write(figure, folder, checked_name(f"{stem}-{name}"), results.good)[0]
        except TestbedError:
            raise
        except Exception as error:
            raise error_in_file(file.path, error) from error
