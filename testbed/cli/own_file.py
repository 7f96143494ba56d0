"""Experiments in files of the user's own, anywhere: loaded to run, and only read to be listed."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from testbed.errors import TestbedError, UsageError
from testbed.own_files.python_file import SUFFIX, fault, imported
from testbed.scenario.experiment import Experiment
from testbed.scenario.names import checked

if TYPE_CHECKING:
    import pandas as pd  # slow to load
    from matplotlib.figure import Figure

    from analysis.results.experiment_results import ExperimentResults

NAME = "EXPERIMENT"
LONGEST_BYTES = 1 << 20
HINT = "`testbed new NAME` writes one that runs"

Figures = Callable[["pd.DataFrame"], Iterable[tuple[str, "Figure"]]]


@dataclass(frozen=True)
class OwnFile:
    """The experiment in a file, and the function that draws its figures, if it has one."""

    path: Path
    experiment: Experiment
    figures: Figures | None


def load(path: Path, taken: Mapping[str, Experiment]) -> OwnFile:
    """Run a file, and take the experiment that it makes; the names of ours are `taken`."""
    if not path.is_file():
        raise UsageError(f"{path}: {'not a file' if path.exists() else 'no such file'}", HINT)
    module = imported(path)
    experiment = getattr(module, NAME, None)
    if not isinstance(experiment, Experiment):
        raise UsageError(f"{path}: has no {NAME} = Experiment(…)", HINT)
    if experiment.name in taken:
        raise UsageError(
            f"{path}: the name {experiment.name!r} is that of an experiment of the testbed's",
            "give it another, or its results would lie among the others",
        )
    return OwnFile(path, experiment, getattr(module, "figures", None))


@dataclass(frozen=True)
class Listed:
    """What a file says of its experiment, as it stands there."""

    path: Path
    about: str


def listed(folder: Path) -> Iterator[Listed]:
    """The files in a folder that make an experiment; none of them is run for that."""
    for path in sorted(folder.glob(f"*{SUFFIX}")):
        try:
            if path.stat().st_size <= LONGEST_BYTES:
                tree = ast.parse(path.read_bytes())
                yield from (Listed(path, about) for about in _abouts(tree))
        except (OSError, SyntaxError, ValueError, RecursionError):
            continue


def _abouts(tree: ast.Module) -> Iterator[str]:
    """The `about` of each `EXPERIMENT = Experiment(…)`."""
    for node in tree.body:
        match node:
            case ast.Assign(
                targets=[ast.Name(id=target)],
                value=ast.Call(func=ast.Name(id="Experiment"), keywords=keywords),
            ) if target == NAME:
                words = {each.arg: each.value for each in keywords}
                about = words.get("about")
                yield str(about.value) if isinstance(about, ast.Constant) else ""


def save_figures(
    own: OwnFile, all_results: Iterable[ExperimentResults], folder: Path
) -> Iterator[Path]:
    """Write the file's own figures as PNG, SVG and CSV; the PNG files as they are written."""
    from analysis.figures.plotting.named_figure import NamedFigure  # slow to load

    assert own.figures is not None
    for results in all_results:
        stem = f"{own.experiment.name}-{results.engine}"
        try:
            for name, figure in own.figures(results.good):
                yield NamedFigure(checked(f"{stem}-{name}"), "", figure, results.good).save(folder)[
                    0
                ]
        except TestbedError:
            raise
        except Exception as error:
            raise fault(own.path, error) from error
