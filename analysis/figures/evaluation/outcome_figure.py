"""An evaluation's figure: its scores over its main axis, a line per subject; and its table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import NullLocator

from analysis.evaluation import findings, theory
from analysis.evaluation.evaluated import DELAY_95, UTILISATION, Score
from analysis.evaluation.outcome_rows import SUBJECT, judged, outcome, scores, setting_columns
from analysis.figures.general import general_figures, load_sweep, plane
from analysis.figures.plotting import cases, figure_layout
from analysis.figures.plotting.error_bars import Measure
from analysis.figures.plotting.named_figure import AnyFigure, NamedFigure
from analysis.figures.plotting.sheet import Sheet
from analysis.metrics.metric_rows import AXIS
from analysis.results.experiment_results import ExperimentResults
from analysis.statistics.text_tables import TextTable

WIDE = 8.0  # an axis whose ends are that far apart is logarithmic
MOST_ROWS = 4  # of panels: settings beside the main axis
MOST_PLANES = 9
USE_AND_DELAY = plane.Plane(
    DELAY_95.name, UTILISATION.name, x_label=DELAY_95.words, y_label=UTILISATION.words
)


def draw(results: ExperimentResults) -> Iterator[AnyFigure]:
    """The scores; then the general figure of throughput over time."""
    table = outcome(results)
    if table.empty:
        return
    yield from scored(results, table)
    yield from general_figures.over_seconds(results)


def with_plane(results: ExperimentResults) -> Iterator[AnyFigure]:
    """The scores; then throughput against delay, with the regions of the means."""
    table = outcome(results)
    if table.empty:
        return
    yield from scored(results, table)
    title = f"{results.experiment}: throughput of all TCP flows against their delay"
    yield _in_plane(results, table, plane.Plane(), title, plane.best(table, SUBJECT))
    yield from general_figures.over_seconds(results)


def use_and_delay(results: ExperimentResults) -> Iterator[AnyFigure]:
    """The use of changing links against the delay of all but 5 % of the packets, as Yan and others
    (Pantheon, 2018) show it; then the scores."""
    table = outcome(results)
    if table.empty:
        return
    own = scores(results.experiment)
    title = f"{results.experiment}: use of the link against delay"
    yield _in_plane(results, table, USE_AND_DELAY, title, findings.sentence(table, own))
    yield from scored(results, table)
    yield from general_figures.over_seconds(results)


def _in_plane(
    results: ExperimentResults, table: pd.DataFrame, of: plane.Plane, title: str, caption: str
) -> NamedFigure:
    """One panel per setting, one mean per subject."""
    figure, data = plane.panels(_parts(table, SUBJECT, MOST_PLANES), SUBJECT, of=of)
    foot = cases.foot(results, judged(results), plane.READING)
    figure_layout.title_and_foot(figure, title, foot)
    return NamedFigure(cases.stem(results.key, "plane"), caption, figure, data)


def scored(results: ExperimentResults, table: pd.DataFrame) -> Iterator[AnyFigure]:
    """One row of panels per case of the other axes, one column per score."""
    own = scores(results.experiment)
    axis = main_axis(table)
    column = AXIS + axis if axis else SUBJECT
    rows = table if axis else table.assign(**{AXIS + SUBJECT: table[SUBJECT]})
    parts = _parts(rows, column)
    measures = [Measure(score.name, score.words, zero=_from_zero(rows, score)) for score in own]
    figure, data = load_sweep.panels(parts, axis or SUBJECT, measures, SUBJECT)
    for panel in figure.axes:
        _spread(panel, rows, AXIS + axis if axis else "")
    reading = "; ".join(f"{score.words}: {findings.better_words(score)}" for score in own)
    figure_layout.title_and_foot(
        figure, f"{results.experiment}: by {axis.replace('_', ' ') or 'variant'}", _foot(results)
    )
    stem = cases.stem(results.key, "scores")
    yield NamedFigure(stem, findings.sentence(table, own), figure, data, f"{reading}.")


def _foot(results: ExperimentResults) -> str:
    return cases.foot(results, judged(results))


def main_axis(table: pd.DataFrame) -> str:
    """The numeric axis with most values, or the name with most; none if nothing varies."""
    varied = [each for each in setting_columns(table) if table[each].nunique() > 1]
    numbers = [each for each in varied if pd.api.types.is_numeric_dtype(table[each])]
    found = max(numbers or varied, key=lambda each: table[each].nunique(), default="")
    return found.removeprefix(AXIS)


def _parts(
    rows: pd.DataFrame, column: str, most: int = MOST_ROWS
) -> list[tuple[str, pd.DataFrame]]:
    others = [
        name.removeprefix(AXIS)
        for name in setting_columns(rows)
        if name != column and rows[name].nunique(dropna=False) > 1
    ]
    shown = [AXIS + name for name in others]
    if not shown:
        return [("", rows)]
    groups = sorted(rows.groupby(shown, dropna=False), key=lambda group: group[0])
    return [(cases.case_words(cases.case(others, values)), members) for values, members in groups][
        :most
    ]


def _from_zero(rows: pd.DataFrame, score: Score) -> bool:
    """Whether the score's axis begins at zero: not if all of it is in the upper half."""
    known = rows[score.name].dropna()
    return bool(known.empty or (known.min() >= 0 and known.min() < 0.5 * known.max()))


def _spread(panel: Axes, rows: pd.DataFrame, column: str) -> None:
    """A logarithmic axis where values go up by factors."""
    if not column or not pd.api.types.is_numeric_dtype(rows[column]):
        return
    values = np.sort(rows[column].dropna().unique())
    if len(values) < 2 or values[0] <= 0 or values[-1] / values[0] < WIDE:
        return
    panel.set_xscale("log")
    panel.set_xticks(values, [f"{value:g}" for value in values])
    panel.xaxis.set_minor_locator(NullLocator())


def tables(results: ExperimentResults) -> Iterator[tuple[str, Sheet]]:
    """The scores of every setting, and what theory says of some."""
    table = outcome(results)
    if not table.empty:
        yield "Scores by setting", findings.sheet(table, scores(results.experiment))
        if laws := theory.laws(results):
            yield "Theory's numbers beside ours", theory.sheet(laws)


def summary(results: ExperimentResults) -> TextTable:
    """The same for the terminal, with the sentence."""
    own: Sequence[Score] = scores(results.experiment)
    table = outcome(results)
    if table.empty:
        return TextTable(("subject",), (), "no trial ran well")
    return findings.text_table(table, own)
