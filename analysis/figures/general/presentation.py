"""How an experiment's results are shown: its figures, its paper's tables, and a terminal summary.

An experiment says so itself (`testbed.scenario.experiment.Experiment`). One that does not, or that
only its trials tell of, gets the general figures.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from analysis.figures import static_renderer, style
from analysis.figures.figure import Figure
from analysis.figures.general import general_figures
from analysis.figures.sheet import Sheet
from analysis.results.experiment_results import ExperimentResults, collect
from analysis.statistics.text_tables import TextTable
from testbed.errors import TestbedError
from testbed.scenario.experiment import Experiment


def figures(results: ExperimentResults) -> Iterator[Figure]:
    """Yield the experiment's figures, or those that suit any; what is damaged ends them."""
    definition = results.definition
    draw = definition.figures if definition and definition.figures else general_figures.draw
    with style.style_sheet():
        try:
            yield from draw(results)
        except TestbedError as error:  # damaged after the trial had been reduced
            results.not_shown.append(f"{results.experiment}: not all figures: {error.message}")


def tables(results: ExperimentResults) -> Iterator[tuple[str, Sheet]]:
    """Yield a title and a table for each that the experiment's paper prints."""
    definition = results.definition
    if definition and definition.tables and not results.good.empty:
        yield from definition.tables(results)


def of_results(
    results: Path, experiment: str, definitions: Mapping[str, Experiment]
) -> list[ExperimentResults]:
    """Return the experiment's trials in a results folder, by engine."""
    collected = collect([results], definitions)
    return [each for each in collected.experiments if each.experiment == experiment]


def summaries(all_results: list[ExperimentResults]) -> Iterator[TextTable]:
    """Yield the experiment's tables for the terminal, if it has any."""
    for results in all_results:
        if results.definition and results.definition.summary:
            yield results.definition.summary(results)


def save_figures(all_results: list[ExperimentResults], folder: Path) -> Iterator[Path]:
    """Write the figures as PNG, SVG and CSV; yield the PNG files as they are written."""
    for results in all_results:
        for figure in figures(results):
            yield static_renderer.save(figure, folder)[0]
