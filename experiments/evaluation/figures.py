"""The figures and tables of the standard evaluations."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, NullLocator

from analysis.evaluation import findings
from analysis.evaluation.outcome_rows import (
    SUBJECT,
    VICTIM,
    judged,
    outcome,
    scores,
    setting_columns,
)
from analysis.evaluation.seen_trial import Score
from analysis.figures import cases, style
from analysis.figures.general import general_figures, load_sweep, plane, transfer_times
from analysis.figures.plotting import figure_layout
from analysis.figures.plotting.error_bars import Measure
from analysis.figures.plotting.named_figure import AnyFigure, NamedFigure
from analysis.figures.sheet import Cell, Head, Sheet
from analysis.figures.style import SeriesStyle
from analysis.metrics.metric_rows import AXIS
from analysis.results.experiment_results import ExperimentResults
from analysis.results.tables import transfers_of
from analysis.statistics.intervals import half_width
from analysis.statistics.text_tables import TextTable
from analysis.transfers.size_classes import CLASSES, by_class
from analysis.trials.labels import variant_key
from experiments.evaluation import theory
from experiments.evaluation.scores import DELAY_95, UTILISATION

WIDE = 8.0  # an axis whose ends are that far apart is logarithmic
MOST_ROWS = 4  # of panels: settings beside the main axis
MOST_PLANES = 9
USE_AND_DELAY = plane.Plane(
    DELAY_95.name, UTILISATION.name, x_label=DELAY_95.words, y_label=UTILISATION.words
)


def score_figures(results: ExperimentResults) -> Iterator[AnyFigure]:
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
    (Pantheon, 2018) show it; then the scores.
    """
    table = outcome(results)
    if table.empty:
        return
    own = scores(results)
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
    own = scores(results)
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
        yield "Scores by setting", findings.sheet(table, scores(results))
        if laws := theory.laws(results):
            yield "Theory's numbers beside ours", theory.sheet(laws)


def summary(results: ExperimentResults) -> TextTable:
    """The same for the terminal, with the sentence."""
    own: Sequence[Score] = scores(results)
    table = outcome(results)
    if table.empty:
        return TextTable(("subject",), (), "no trial ran well")
    return findings.text_table(table, own)


PERCENTILES = (50, 95, 99)
MARKS = ("|", "o", ">")
MOST_CASES = 4
WIDE_TIMES = 100.0
COMPLETION_READING = (
    "bar: 50th, dot: 95th, triangle: 99th percentile of the finished transfers of all seeds"
)


def completion_figures(results: ExperimentResults) -> Iterator[AnyFigure]:
    """The scores; the percentiles by size; the distributions of the slowdown."""
    table = outcome(results)
    if table.empty:
        return
    yield from scored(results, table)
    found = percentiles(results, table)
    figure = _figure(found, style.styles_of(table, SUBJECT))
    title = f"{results.experiment}: completion time by size"
    figure_layout.title_and_foot(
        figure[0], title, cases.foot(results, judged(results), COMPLETION_READING)
    )
    stem = cases.stem(results.key, "percentiles")
    yield NamedFigure(stem, _caption(found), figure[0], figure[1])
    yield from transfer_times.draw(results)


def percentiles(results: ExperimentResults, table: pd.DataFrame) -> pd.DataFrame:
    """A row per setting, subject and class of sizes, of all seeds: in ms, with their numbers."""
    varied = [name for name in setting_columns(table) if table[name].nunique() > 1]
    beside = table[["trial", SUBJECT, *varied]]
    transfers = transfers_of(results.trials).merge(beside, on="trial")
    rows = []
    for key, own in transfers.groupby([*varied, SUBJECT], sort=True):
        *values, subject = key
        words = cases.case_words(cases.case([name.removeprefix(AXIS) for name in varied], values))
        for size, members in by_class(own):
            took = 1e3 * members["completion_s"]
            rows.append(
                {
                    "case": words,
                    SUBJECT: str(subject),
                    "size": size,
                    "transfers": len(members),
                    "unfinished": int((members["state"] != "finished").sum()),
                    **{f"p{each}_ms": float(took.quantile(each / 100)) for each in PERCENTILES},
                    "slowdown": float(members["slowdown"].mean()),
                }
            )
    return pd.DataFrame(rows).sort_values(
        SUBJECT, key=lambda names: names.map(variant_key), kind="stable"
    )


def _figure(found: pd.DataFrame, looks: dict[str, SeriesStyle]) -> tuple[Figure, pd.DataFrame]:
    """One row of panels per setting, one column per size, one line per subject."""
    names = list(looks)
    settings = list(dict.fromkeys(found.sort_values("case", kind="stable")["case"]))[:MOST_CASES]
    sizes = [size for size in CLASSES if (found["size"] == size).any()]
    height = 0.75 + 0.17 * len(names)
    figure, grid = figure_layout.grid(len(settings), len(sizes), panel=height, head=0.3)
    for words, line in zip(settings, grid, strict=True):
        for axes, size in zip(line, sizes, strict=True):
            own = found[(found["case"] == words) & (found["size"] == size)]
            _panel(axes, own.set_index(SUBJECT), looks)
            figure_layout.panel_title(axes, f"{size}: {CLASSES[size]}")
            axes.set_yticks(range(len(names)), names if axes is line[0] else [""] * len(names))
        line[0].set_ylabel(words.replace(", ", "\n"))
    for axes in grid[-1]:
        axes.set_xlabel("completion time (ms)")
    for column in zip(*grid, strict=True):
        _scale(column)
    return figure, found[found["case"].isin(settings)]


def _panel(axes: Axes, rows: pd.DataFrame, looks: dict[str, SeriesStyle]) -> None:
    for place, (name, look) in enumerate(looks.items()):
        if name not in rows.index:
            continue
        values = [float(rows[f"p{each}_ms"][name]) for each in PERCENTILES]
        axes.plot(values, [place] * len(values), color=look.colour, linewidth=1.2, alpha=0.6)
        for value, mark in zip(values, MARKS, strict=True):
            axes.plot([value], [place], mark, color=look.colour, markersize=4.5)
    axes.set_ylim(len(looks) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=False, axis="y")


def _scale(column: Sequence[Axes]) -> None:
    """The same logarithmic axis for all settings of a size."""
    ends = [end for axes in column for end in axes.dataLim.intervalx]
    low, high = min(ends) / 1.25, max(ends) * 1.25
    subs = (1, 2, 5) if high / low < WIDE_TIMES else (1,)
    for axes in column:
        axes.set_xscale("log")
        axes.set_xlim(low, high)
        axes.xaxis.set_major_locator(LogLocator(subs=subs))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.xaxis.set_minor_formatter(NullFormatter())


def _caption(found: pd.DataFrame) -> str:
    """Who is fastest and slowest: the short ones' 99th percentile, the long ones' median."""
    said = []
    for size, column, words in (("short", "p99_ms", "99 %"), ("long", "p50_ms", "median")):
        means = found[found["size"] == size].groupby(SUBJECT)[column].mean().dropna()
        if len(means) > 1:
            best, worst = str(means.idxmin()), str(means.idxmax())
            said.append(
                f"{size} ones, {words}: {best} {means[best]:.3g} ms, {worst} {means[worst]:.3g} ms"
            )
    return (f"{'; '.join(said)}." if said else "").capitalize()


def completion_tables(results: ExperimentResults) -> Iterator[tuple[str, Sheet]]:
    """The percentiles, the scores, and what theory says."""
    table = outcome(results)
    if not table.empty:
        yield "Completion times by size", _sheet(percentiles(results, table))
        yield from tables(results)


def _sheet(found: pd.DataFrame) -> Sheet:
    heads = (
        *(Head(name) for name in ("setting", "subject", "size")),
        *(Head(name, number=True) for name in ("transfers", "unfinished")),
        *(Head(f"{each} %", "ms", number=True) for each in PERCENTILES),
        Head("mean slowdown", number=True),
    )
    return Sheet(heads, tuple(_line(row) for _, row in found.iterrows()))


def _line(row: pd.Series) -> tuple[Cell, ...]:
    names = (row["case"] or "all", row[SUBJECT], row["size"])
    counts = (row["transfers"], row["unfinished"])
    numbers = (*(row[f"p{each}_ms"] for each in PERCENTILES), row["slowdown"])
    return (
        *(Cell(str(name), str(name)) for name in names),
        *(Cell(str(count), str(count), True) for count in counts),
        *(
            Cell("–", "", True) if pd.isna(n) else Cell(f"{n:.4g}", f"{n:.9g}", True)
            for n in numbers
        ),
    )


DARK = 60.0  # percent of harm, from which letters on it are white
HARM_READING = (
    "each row does harm to each column, beside what two of the column's own kind have; "
    "± half of the 95 % interval (Student's t)"
)


def harm_figures(results: ExperimentResults) -> Iterator[AnyFigure]:
    """One panel per kind of harm."""
    table = outcome(results)
    if table.empty:
        return
    own = scores(results)
    names = sorted(set(table[SUBJECT]) | set(table[VICTIM].astype(str)), key=variant_key)
    figure, grid = figure_layout.grid(1, len(own), panel=0.3 * len(names) + 0.9, head=0.3)
    for place, (axes, score) in enumerate(zip(grid[0], own, strict=True)):
        _matrix(axes, table, score.name, names, place == 0)
        figure_layout.panel_title(axes, score.words)
    figure_layout.title_and_foot(
        figure, f"{results.experiment}: of each to each", cases.foot(results, table, HARM_READING)
    )
    columns = [SUBJECT, VICTIM, "seed", "verdict", *(score.name for score in own)]
    stem = cases.stem(results.key, "matrix")
    reading = "Rows harm columns: 0 is none, 100 is all, below 0 does the victim good."
    yield NamedFigure(stem, findings.sentence(table, own), figure, table[columns], reading)


def _matrix(axes: Axes, table: pd.DataFrame, metric: str, names: list[str], first: bool) -> None:
    """The means as colours and as numbers with their intervals."""
    for row, subject in enumerate(names):
        for column, victim in enumerate(names):
            own = table[(table[SUBJECT] == subject) & (table[VICTIM] == victim)][metric]
            mean, half = float(own.mean()), half_width(own)
            if math.isnan(mean):
                continue
            shade = float(np.clip(abs(mean) / 100, 0, 1))
            colour = style.VERMILLION if mean > 0 else style.BLUE
            box = (column - 0.5, row - 0.5)
            axes.add_patch(_box(box, colour, shade))
            text = f"{mean:.0f}" + (f"\n±{half:.0f}" if math.isfinite(half) else "")
            axes.text(
                *(column, row, text),
                ha="center",
                va="center",
                fontsize=5.5,
                color=style.PAPER if abs(mean) > DARK else style.BLACK,
            )
    axes.set_xticks(range(len(names)), names, rotation=45, ha="right", fontsize=6)
    axes.set_yticks(range(len(names)), names if first else [""] * len(names), fontsize=6)
    axes.set(xlim=(-0.5, len(names) - 0.5), ylim=(len(names) - 0.5, -0.5), xlabel="harmed")
    axes.tick_params(length=0)
    axes.grid(visible=False)
    if first:
        axes.set_ylabel("harming")


def _box(corner: tuple[float, float], colour: str, shade: float) -> Rectangle:
    return Rectangle(corner, 1, 1, facecolor=colour, alpha=shade, edgecolor="none")
