"""Completion times of short, medium and long transfers: 50th, 95th and 99th percentiles."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from analysis.evaluation.outcome_rows import SUBJECT, judged, outcome, setting_columns
from analysis.figures.evaluation import outcome_figure
from analysis.figures.general import transfer_times
from analysis.figures.plotting import cases, figure_layout, style
from analysis.figures.plotting.named_figure import AnyFigure, NamedFigure
from analysis.figures.plotting.sheet import Cell, Head, Sheet
from analysis.figures.plotting.style import SeriesStyle
from analysis.metrics.metric_rows import AXIS
from analysis.results.experiment_results import ExperimentResults
from analysis.results.tables import transfers_of
from analysis.transfers.size_classes import CLASSES, by_class
from analysis.trials.labels import variant_key

PERCENTILES = (50, 95, 99)
MARKS = ("|", "o", ">")
MOST_CASES = 4
WIDE = 100.0
READING = "bar: 50th, dot: 95th, triangle: 99th percentile of the finished transfers of all seeds"


def draw(results: ExperimentResults) -> Iterator[AnyFigure]:
    """The scores; the percentiles by size; the distributions of the slowdown."""
    table = outcome(results)
    if table.empty:
        return
    yield from outcome_figure.scored(results, table)
    found = percentiles(results, table)
    figure = _figure(found, style.styles_of(table, SUBJECT))
    title = f"{results.experiment}: completion time by size"
    figure_layout.title_and_foot(figure[0], title, cases.foot(results, judged(results), READING))
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
    subs = (1, 2, 5) if high / low < WIDE else (1,)
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


def tables(results: ExperimentResults) -> Iterator[tuple[str, Sheet]]:
    """The percentiles, the scores, and what theory says."""
    table = outcome(results)
    if not table.empty:
        yield "Completion times by size", _sheet(percentiles(results, table))
        yield from outcome_figure.tables(results)


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
