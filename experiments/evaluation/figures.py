"""The figures and tables of the standard evaluations."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd

from analysis.evaluation import findings
from analysis.evaluation.outcome_rows import (
    SUBJECT,
    VICTIM,
    judged,
    outcome,
    scores,
    setting_columns,
)
from analysis.evaluation.trial_view import LESS, Score
from analysis.figures import cases, style
from analysis.figures.figure import (
    Axis,
    Boxes,
    Figure,
    Mark,
    Panel,
    PointSeries,
    SegmentSet,
    share_limits,
)
from analysis.figures.general import general_figures, load_sweep, messages, plane, transfer_times
from analysis.figures.means import Measure
from analysis.figures.sheet import Cell, Head, Sheet, number_cell
from analysis.figures.style import SeriesStyle
from analysis.metrics.metric_rows import AXIS
from analysis.results.experiment_results import ExperimentResults
from analysis.results.tables import transfers_of
from analysis.statistics.intervals import half_width
from analysis.statistics.text_tables import TextTable
from analysis.transfers.size_classes import CLASSES, by_class
from analysis.trials.labels import variant_key
from experiments.evaluation import deployability, theory
from experiments.evaluation.scores import DELAY_95, UTILISATION

LOGARITHMIC_RATIO = 8.0  # an axis whose ends are that far apart is logarithmic
MAX_ROWS = 4  # of panels: settings beside the main axis
MAX_PLANES = 9
TITLE_SCORES = 2  # that a title speaks of; its caption speaks of the others
USE_AND_DELAY = plane.Plane(
    DELAY_95.name, UTILISATION.name, x_label=DELAY_95.words, y_label=UTILISATION.words
)


def score_figures(results: ExperimentResults) -> Iterator[Figure]:
    """Draw the scores, then the general figure of throughput over time."""
    table = outcome(results)
    if table.empty:
        return
    yield from _with_scores(results, table)


def _with_scores(results: ExperimentResults, table: pd.DataFrame) -> Iterator[Figure]:
    """Draw the scores and the history; the history first where there is one mean of each score."""
    figures = scored(results, table), general_figures.over_seconds(results)
    alone = table[SUBJECT].nunique() == 1 and not main_axis(table)
    yield from itertools.chain(*(reversed(figures) if alone else figures))


def with_plane(results: ExperimentResults) -> Iterator[Figure]:
    """Draw the scores, then throughput against delay with the regions of the means."""
    table = outcome(results)
    if table.empty:
        return
    yield from _with_scores(results, table)
    title = messages.corner(table, SUBJECT) or "Throughput of all TCP flows against their delay."
    yield _in_plane(results, table, plane.Plane(), title, "All TCP flows together.")


def use_and_delay(results: ExperimentResults) -> Iterator[Figure]:
    """Draw the use of changing links against the 95th percentile of the delay, then the scores.

    Yan and others (Pantheon, 2018) show changing links so.
    """
    table = outcome(results)
    if table.empty:
        return
    subject_scores = scores(results)
    yield from general_figures.over_seconds(results)
    title = findings.sentence(table, subject_scores[:TITLE_SCORES])
    yield _in_plane(results, table, USE_AND_DELAY, title, "Use of the link against delay.")
    yield from scored(results, table)


def _in_plane(
    results: ExperimentResults, table: pd.DataFrame, of: plane.Plane, title: str, caption: str
) -> Figure:
    """Draw one panel per setting, with one mean per subject."""
    return dataclasses.replace(
        plane.figure(_parts(table, SUBJECT, MAX_PLANES), SUBJECT, of=of),
        stem=cases.stem(results.key, "throughput-against-delay"),
        title=title,
        foot=cases.foot(results, judged(results), plane.reading(judged(results))),
        caption=caption,
    )


def scored(results: ExperimentResults, table: pd.DataFrame) -> Iterator[Figure]:
    """Draw one row of panels per case of the other axes, one column per score."""
    subject_scores = scores(results)
    axis = main_axis(table)
    column = AXIS + axis if axis else SUBJECT
    rows = table if axis else table.assign(**{AXIS + SUBJECT: table[SUBJECT]})
    parts = _parts(rows, column)
    measures = [
        Measure(score.name, score.words, zero=_from_zero(rows, score)) for score in subject_scores
    ]
    figure = load_sweep.figure(parts, axis or SUBJECT, measures, SUBJECT)
    panels = [[_spread(panel, rows, AXIS + axis if axis else "") for panel in line if panel]
              for line in figure.panels]  # fmt: skip
    reading = "; ".join(
        f"{score.words}: {findings.better_words(score)}" for score in subject_scores
    )
    yield dataclasses.replace(
        figure,
        stem=cases.stem(results.key, "scores"),
        title=findings.sentence(table, subject_scores[:TITLE_SCORES]),
        caption=findings.sentence(table, subject_scores[TITLE_SCORES:]),
        panels=panels,
        foot=cases.foot(results, judged(results)),
        reading=f"{reading}.",
    )


def main_axis(table: pd.DataFrame) -> str:
    """Return the numeric axis with most values, else the axis of names with most, else nothing."""
    varied = [each for each in setting_columns(table) if table[each].nunique() > 1]
    numbers = [each for each in varied if pd.api.types.is_numeric_dtype(table[each])]
    axis = max(numbers or varied, key=lambda each: table[each].nunique(), default="")
    return axis.removeprefix(AXIS)


def _parts(rows: pd.DataFrame, column: str, most: int = MAX_ROWS) -> list[tuple[str, pd.DataFrame]]:
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
    """Return whether its axis begins at zero: not a share's with all values in the upper half."""
    known = rows[score.name].dropna()
    is_spread = score.better == LESS or known.min() < 0.5 * known.max()
    return bool(known.empty or (known.min() >= 0 and is_spread))


def _spread(panel: Panel, rows: pd.DataFrame, column: str) -> Panel:
    """Make the axis logarithmic where values go up by factors."""
    if not column or not pd.api.types.is_numeric_dtype(rows[column]):
        return panel
    values = np.sort(rows[column].dropna().unique())
    if len(values) < 2 or values[0] <= 0 or values[-1] / values[0] < LOGARITHMIC_RATIO:
        return panel
    x = dataclasses.replace(panel.x, scale="log", ticks=list(values))
    return dataclasses.replace(panel, x=x)


def tables(results: ExperimentResults) -> Iterator[tuple[str, Sheet]]:
    """Tabulate the scores of every setting, and theory's numbers where there are any."""
    table = outcome(results)
    if not table.empty:
        yield "Scores by setting", findings.sheet(table, scores(results))
        if laws := theory.laws(results):
            yield "Theory's numbers beside ours", theory.sheet(laws)


def summary(results: ExperimentResults) -> TextTable:
    """Tabulate the scores for the terminal, with the sentence about them."""
    subject_scores: Sequence[Score] = scores(results)
    table = outcome(results)
    if table.empty:
        return TextTable(("subject",), (), "no trial ran well")
    return findings.text_table(table, subject_scores)


PERCENTILES = (50, 95, 99)
TRIAL_MARKERS = ("|", "o", ">")
MAX_SETTINGS_SHOWN = 4
TIME_MARGIN = 0.1  # of the logarithmic axis's length
COMPLETION_READING = (
    "bar: 50th, dot: 95th, triangle: 99th percentile of the finished transfers of all seeds"
)


def completion_figures(results: ExperimentResults) -> Iterator[Figure]:
    """Draw the scores, the percentiles by size and the distributions of the slowdown."""
    table = outcome(results)
    if table.empty:
        return
    yield from scored(results, table)
    by_size = percentiles(results, table)
    yield dataclasses.replace(
        _percentile_panels(by_size, style.styles_of(table, SUBJECT)),
        stem=cases.stem(results.key, "percentiles"),
        title=f"{results.experiment}: completion time by size",
        foot=cases.foot(results, judged(results), COMPLETION_READING),
        caption=_caption(by_size),
    )
    yield from transfer_times.draw(results)


def percentiles(results: ExperimentResults, table: pd.DataFrame) -> pd.DataFrame:
    """Return percentiles in ms over all seeds, a row per setting, subject and class of sizes."""
    varied = [name for name in setting_columns(table) if table[name].nunique() > 1]
    beside = table[["trial", SUBJECT, *varied]]
    transfers = transfers_of(results.trials).merge(beside, on="trial")
    rows = []
    for key, group in transfers.groupby([*varied, SUBJECT], sort=True):
        *values, subject = key
        label = cases.case_words(cases.case([name.removeprefix(AXIS) for name in varied], values))
        for size, members in by_class(group):
            took = 1e3 * members["completion_s"]
            rows.append(
                {
                    "case": label,
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


def _percentile_panels(table: pd.DataFrame, looks: dict[str, SeriesStyle]) -> Figure:
    """Return one row of panels per setting, one column per size, one line per subject."""
    settings = list(dict.fromkeys(table.sort_values("case", kind="stable")["case"]))[
        :MAX_SETTINGS_SHOWN
    ]
    sizes = [size for size in CLASSES if (table["size"] == size).any()]
    columns = []
    for size in sizes:
        column = []
        for setting in settings:
            cell = table[(table["case"] == setting) & (table["size"] == size)].set_index(SUBJECT)
            first, last = size == sizes[0], setting == settings[-1]
            x = Axis("completion time (ms)" if last else "", scale="log", margin=TIME_MARGIN)
            label = setting.replace(", ", "\n") if first else ""
            y = Axis(label, names=list(looks), names_shown=first, grid=False)
            title = f"{size}: {CLASSES[size]}"
            column.append(Panel(_percentile_marks(cell, looks), x, y, title=title))
        columns.append(share_limits(column, "x"))
    return Figure(
        stem="",
        title="",
        panels=tuple(zip(*columns, strict=True)),
        row_inches=0.75 + 0.17 * len(looks),
        data=table[table["case"].isin(settings)],
    )


def _percentile_marks(rows: pd.DataFrame, looks: dict[str, SeriesStyle]) -> list[Mark]:
    marks: list[Mark] = []
    for place, (name, look) in enumerate(looks.items()):
        if name not in rows.index:
            continue
        values = [float(rows[f"p{each}_ms"][name]) for each in PERCENTILES]
        ends = ([min(values)], [place], [max(values)], [place])
        marks.append(SegmentSet(*ends, look.colour, 1.2, opacity=0.6, series=name))
        marks += [
            PointSeries([value], [place], look.colour, mark, size=4.5, series=name)
            for value, mark in zip(values, TRIAL_MARKERS, strict=True)
        ]
    return marks


def _caption(table: pd.DataFrame) -> str:
    """Name the fastest and the slowest: short transfers by 99th percentile, long by median."""
    sentences = []
    for size, column, what in (("short", "p99_ms", "99 %"), ("long", "p50_ms", "median")):
        means = table[table["size"] == size].groupby(SUBJECT)[column].mean().dropna()
        if len(means) > 1:
            best, worst = str(means.idxmin()), str(means.idxmax())
            sentences.append(
                f"{size} ones, {what}: {best} {means[best]:.3g} ms, {worst} {means[worst]:.3g} ms"
            )
    return (f"{'; '.join(sentences)}." if sentences else "").capitalize()


def completion_tables(results: ExperimentResults) -> Iterator[tuple[str, Sheet]]:
    """Tabulate the percentiles, the scores and theory's numbers."""
    table = outcome(results)
    if not table.empty:
        yield "Completion times by size", _sheet(percentiles(results, table))
        yield from tables(results)


def _sheet(table: pd.DataFrame) -> Sheet:
    heads = (
        *(Head(name) for name in ("setting", "subject", "size")),
        *(Head(name, number=True) for name in ("transfers", "unfinished")),
        *(Head(f"{each} %", "ms", number=True) for each in PERCENTILES),
        Head("mean slowdown", number=True),
    )
    return Sheet(heads, tuple(_line(row) for _, row in table.iterrows()))


def _line(row: pd.Series) -> tuple[Cell, ...]:
    names = (row["case"] or "all", row[SUBJECT], row["size"])
    counts = (row["transfers"], row["unfinished"])
    numbers = (*(row[f"p{each}_ms"] for each in PERCENTILES), row["slowdown"])
    return (
        *(Cell(str(name), str(name)) for name in names),
        *(Cell(str(count), str(count), True) for count in counts),
        *(number_cell(number, ".4g") for number in numbers),
    )


def harm_tables(results: ExperimentResults) -> Iterator[tuple[str, Sheet]]:
    """Tabulate who can be deployed beside whom, and the harm of each to each."""
    table, subject_scores = outcome(results), scores(results)
    if not table.empty:
        comparisons = deployability.harm_comparisons(table, subject_scores)
        yield "Harm and deployability", deployability.deployability_sheet(comparisons)
        yield from tables(results)


def harm_summary(results: ExperimentResults) -> TextTable:
    """Tabulate the harm of each to each for the terminal, beside that of each to itself."""
    table = outcome(results)
    if table.empty:
        return summary(results)
    sheet = deployability.deployability_sheet(
        deployability.harm_comparisons(table, scores(results))
    )
    return sheet.as_text(deployability.DEPLOYABILITY_NOTE)


WHITE_TEXT_PERCENT = 60.0  # percent of harm, from which letters on it are white
HARM_READING = (
    "each row does harm to each column, of what the column has alone; "
    "± half of the 95 % interval (Student's t)"
)


def harm_figures(results: ExperimentResults) -> Iterator[Figure]:
    """Draw one panel per kind of harm."""
    table = outcome(results)
    if table.empty:
        return
    subject_scores = scores(results)
    names = sorted(set(table[SUBJECT]) | set(table[VICTIM].astype(str)), key=variant_key)
    panels = [
        _matrix(table, score.name, names, score.words, first=score is subject_scores[0])
        for score in subject_scores
    ]
    columns = [SUBJECT, VICTIM, "seed", "verdict", *(score.name for score in subject_scores)]
    yield Figure(
        stem=cases.stem(results.key, "matrix"),
        title=f"{results.experiment}: of each variant to each other",
        panels=(panels,),
        caption=findings.sentence(table, subject_scores),
        reading="Rows harm columns: 0 means no loss, 100 a total loss, below 0 a gain. Deployable "
        "beside a column is a row that harms it no more than its own kind does (diagonal).",
        foot=cases.foot(results, table, HARM_READING),
        row_inches=0.3 * len(names) + 0.9,
        data=table[columns],
    )


def _matrix(table: pd.DataFrame, metric: str, names: list[str], title: str, first: bool) -> Panel:
    """Show the means as colours and as numbers with their intervals."""
    cells = []
    for row, subject in enumerate(names):
        for column, victim in enumerate(names):
            cell = table[(table[SUBJECT] == subject) & (table[VICTIM] == victim)][metric]
            mean, half = float(cell.mean()), half_width(cell)
            if math.isnan(mean):
                continue
            text = f"{mean:.0f}" + (f"\n±{half:.0f}" if math.isfinite(half) else "")
            colour = style.VERMILLION if mean > 0 else style.BLUE
            shade, ink = float(np.clip(abs(mean) / 100, 0, 1)), "#ffffff"
            cells.append(
                (
                    column,
                    row,
                    colour,
                    shade,
                    text,
                    ink if abs(mean) > WHITE_TEXT_PERCENT else style.BLACK,
                )
            )
    columns, rows, colours, shades, texts, inks = zip(*cells, strict=True) if cells else [()] * 6
    x, y = np.array(columns, dtype=float), np.array(rows, dtype=float)
    boxes = Boxes(x - 0.5, x + 0.5, y - 0.5, y + 0.5, colours, shades, texts=texts,
                  text_colours=inks)  # fmt: skip
    return Panel(
        (boxes,),
        Axis("harmed", names=names, rotation=45, grid=False),
        Axis("harming" if first else "", names=names, names_shown=first, grid=False),
        title=title,
    )
