"""The presentation of each experiment: figures, the paper's tables, and a terminal summary.

An experiment without an entry gets the general figures.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from analysis.evaluation.evaluated import SCORES
from analysis.figures import static_renderer
from analysis.figures.evaluation import completion_figure, harm_matrix, outcome_figure
from analysis.figures.figure import Figure
from analysis.figures.general import general_figures
from analysis.figures.own_experiments import player_pairs, players_figure, variants_figure
from analysis.figures.papers.dumbbell import (
    dumbbell_load,
    dumbbell_pairs,
    dumbbell_queues,
    queue_tables,
)
from analysis.figures.papers.fall_floyd import fall_floyd_figure, outcome_table
from analysis.figures.papers.guo_yuan_sheng import router_bottleneck, router_fairness
from analysis.figures.papers.parvez_mahanti_williamson import (
    newreno_background,
    newreno_models,
    newreno_tables,
)
from analysis.figures.papers.rajore_gupta_sikka_jain import access_tables, video_access
from analysis.figures.plotting import style
from analysis.figures.plotting.named_figure import AnyFigure, NamedFigure
from analysis.figures.plotting.sheet import Sheet
from analysis.metrics.metric_rows import AXIS
from analysis.results.experiment_results import ExperimentResults, collect
from analysis.statistics.text_tables import TextTable


def _no_tables(results: ExperimentResults) -> Iterator[tuple[str, Sheet]]:
    return iter(())


@dataclass(frozen=True)
class Entry:
    """An experiment's figures, tables and terminal summary."""

    figures: Callable[[ExperimentResults], Iterator[AnyFigure]] = general_figures.draw
    tables: Callable[[ExperimentResults], Iterator[tuple[str, Sheet]]] = (
        _no_tables  # as the paper prints
    )
    summary: Callable[[ExperimentResults], TextTable] | None = (
        None  # in place of the table of the metrics
    )


EVALUATION = Entry(outcome_figure.draw, outcome_figure.tables, outcome_figure.summary)
IN_PLANE = dataclasses.replace(EVALUATION, figures=outcome_figure.with_plane)
CELLULAR = dataclasses.replace(EVALUATION, figures=outcome_figure.use_and_delay)
COMPLETION = dataclasses.replace(
    EVALUATION, figures=completion_figure.draw, tables=completion_figure.tables
)
HARM = dataclasses.replace(EVALUATION, figures=harm_matrix.draw)

CATALOGUE: Mapping[str, Entry] = {
    **dict.fromkeys(SCORES, EVALUATION),
    "aqm": IN_PLANE,
    "ecn": IN_PLANE,
    "cellular": CELLULAR,
    "completion": COMPLETION,
    "harm": HARM,
    "dumbbell-load": Entry(dumbbell_load.draw),
    "dumbbell-pairs": Entry(dumbbell_pairs.draw),
    "dumbbell-queues": Entry(dumbbell_queues.draw, queue_tables.queue_tables),
    "fall-floyd": Entry(
        fall_floyd_figure.draw, outcome_table.sheets, outcome_table.expected_and_seen
    ),
    "newreno-background": Entry(newreno_background.draw, newreno_tables.table_two),
    "newreno-models": Entry(newreno_models.draw, newreno_tables.model_errors),
    "router-bottleneck": Entry(router_bottleneck.draw),
    "router-fairness": Entry(router_fairness.draw),
    "variants": Entry(variants_figure.draw),
    "video-access": Entry(video_access.draw, access_tables.video_tables),
    "video-players": Entry(players_figure.draw, summary=player_pairs.table),
}


# Each of these experiments has one of them.
MAIN_AXES = ("variant", "queue", "pair", "m", "player")


def figures(results: ExperimentResults) -> Iterator[AnyFigure]:
    """The experiment's own figures, or those that suit any."""
    with style.style_sheet():
        yield from _entry(results).figures(results)


def tables(results: ExperimentResults) -> Iterator[tuple[str, Sheet]]:
    """A title and a table for each that the experiment's paper prints."""
    if not results.good.empty:
        yield from _entry(results).tables(results)


def _entry(results: ExperimentResults) -> Entry:
    """The experiment's own, unless it is a scenario of the user's that has its name only."""
    ours = any(AXIS + axis in results.rows for axis in MAIN_AXES)
    return CATALOGUE.get(results.experiment, Entry()) if ours else Entry()


def of_results(results: Path, experiment: str) -> list[ExperimentResults]:
    """The experiment's trials in a results folder, by engine."""
    return [each for each in collect([results]).experiments if each.experiment == experiment]


def summaries(all_results: list[ExperimentResults]) -> Iterator[TextTable]:
    """The experiment's own tables for the terminal, if it has any."""
    for results in all_results:
        if summary := _entry(results).summary:
            yield summary(results)


def save(figure: NamedFigure | Figure, folder: Path) -> list[Path]:
    """Write a figure as PNG, SVG and CSV."""
    if isinstance(figure, Figure):
        return static_renderer.save(figure, folder)
    return figure.save(folder)


def save_figures(all_results: list[ExperimentResults], folder: Path) -> Iterator[Path]:
    """Write the figures as PNG, SVG and CSV; the PNG files as they are written."""
    for results in all_results:
        for figure in figures(results):
            yield save(figure, folder)[0]
