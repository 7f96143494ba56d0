"""How an experiment's results are shown: its figures, its paper's tables, and a terminal summary.

An experiment says so itself (`testbed.scenario.experiment.Experiment`). One that does not, or that
only its trials tell of, gets the general figures.
For a paper they are one column wide, without title and footer.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from analysis.figures import static_renderer, style
from analysis.figures.figure import Axis, Figure, Panel
from analysis.figures.general import draw_effects, general_figures
from analysis.figures.sheet import Sheet
from analysis.results.experiment_results import ExperimentResults, collect
from analysis.statistics.text_tables import TextTable
from analysis.trials.labels import conditions, in_lines
from testbed.errors import TestbedError
from testbed.scenario.experiment import Experiment

SUBTITLE_LETTERS = 130  # in a line


def figures(results: ExperimentResults) -> Iterator[Figure]:
    """Yield the experiment's figures, or those that suit any; what is damaged ends them."""
    definition = results.definition
    draw = definition.figures if definition and definition.figures else general_figures.draw
    under = _under_titles(results)
    with style.style_sheet():
        try:
            for figure in itertools.chain(draw(results), draw_effects.draw(results)):
                yield figure if figure.subtitle else dataclasses.replace(figure, subtitle=under)
        except TestbedError as error:  # damaged after the trial had been reduced
            results.not_shown.append(f"{results.experiment}: not all figures: {error.message}")


def _under_titles(results: ExperimentResults) -> str:
    """Return what decides the results beside rates and queues, where it is the same in all trials.

    Where it differs it is an axis, which figures name.
    """
    stated = {tuple(conditions(trial.scenario)) for trial in results.trials}
    return in_lines(stated.pop(), SUBTITLE_LETTERS) if len(stated) == 1 else ""


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
    """Write the figures as PNG, SVG and CSV; yield the PNG files as they are written.

    Their names begin with the experiment and the engine only where there are several.
    """
    for results in all_results:
        start = f"{results.key}-" if len(all_results) == 1 else ""
        for figure in figures(results):
            named = dataclasses.replace(figure, stem=figure.stem.removeprefix(start))
            yield static_renderer.save(named, folder)[0]


COLUMN_INCHES = 3.33  # of a page of two columns (IEEE's and ACM's)
PAGE_INCHES = 7.0  # both columns
MAX_STACKED = 4  # panels in a column; a figure of more is as wide as the page
PANEL_INCHES = 1.5


def for_paper(figure: Figure) -> Figure:
    """Return the figure without the words of a caption, its panels stacked if they are few."""
    plain = dataclasses.replace(figure, title="", subtitle="", warning="", foot="")
    if len(figure.all_panels) > MAX_STACKED:
        return dataclasses.replace(plain, width_inches=PAGE_INCHES)
    stacked = [
        (_by_itself(panel, row, figure.panels, place),)
        for row in figure.panels
        for place, panel in enumerate(row)
        if panel is not None
    ]
    return dataclasses.replace(
        plain,
        panels=stacked,
        width_inches=COLUMN_INCHES,
        row_inches=PANEL_INCHES,
        column_widths=(),
    )


def _by_itself(
    panel: Panel, row: Sequence[Panel | None], rows: Sequence[Sequence[Panel | None]], place: int
) -> Panel:
    """Return a panel with the labels and the heading that its row and its column share."""
    column = [line[place] for line in rows if len(line) > place]
    headings = (each.heading for each in column if each)
    return dataclasses.replace(
        panel,
        x=_labelled(panel.x, (each.x for each in reversed(column) if each)),
        y=_labelled(panel.y, (each.y for each in row if each)),
        heading=panel.heading or next(headings, ""),
    )


def _labelled(axis: Axis, shared: Iterable[Axis]) -> Axis:
    label = axis.label or next((each.label for each in shared if each.label), "")
    return dataclasses.replace(axis, label=label, names_shown=True)
