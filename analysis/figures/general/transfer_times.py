"""How transfers of each size are slowed down: cumulative distributions, a panel for each size."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from analysis.figures.plotting import cases, figure_layout, style
from analysis.figures.plotting.named_figure import NamedFigure
from analysis.figures.plotting.style import SeriesStyle
from analysis.results.material import Material
from analysis.results.transfer_table import transfers_of
from analysis.results.varied_axes import varied_axes
from analysis.transfers.size_classes import CLASSES, by_class
from testbed.scenario.model import FlowKind

SERIES = "series"
MOST_CASES = 4  # rows of panels
FRACTIONS = np.concatenate((np.arange(0, 100) / 100, [0.995, 0.999, 1.0]))
WIDE = 100.0  # beyond, only powers of ten are written on an axis
READING = "all transfers of all seeds; a curve ends at the part that finished; marker: median"
Parts = Sequence[tuple[str, pd.DataFrame]]


def draw(material: Material) -> Iterator[NamedFigure]:
    """The figure of an experiment with workloads; its panels' rows are the other axes' cases."""
    flows = material.good[material.good["kind"] == FlowKind.WORKLOAD]
    if flows.empty:
        return
    several = flows["flow"].nunique() > 1
    series = flows["variant"] + (" (" + flows["flow"] + ")" if several else "")
    flows = flows.assign(**{SERIES: series})
    transfers = transfers_of(material.trials)
    beside = [name for name in varied_axes(flows) if not _is_series(flows, name)]
    parts = [
        (cases.case_words(case), _transfers(own, transfers))
        for case, own in list(cases.split(flows, beside, varied_axes(flows)))[:MOST_CASES]
    ]
    figure, data = panels(parts, style.styles_of(flows, SERIES))
    title = f"{material.experiment}: slowdown of transfers by size"
    figure_layout.title_and_foot(figure, title, cases.foot(material, flows, READING))
    how = "The share of transfers that took at most so many times as long as an empty network takes"
    stem = cases.stem(material.key, "transfers")
    yield NamedFigure(stem, _caption(data), figure, data, f"{how}.")


def _is_series(flows: pd.DataFrame, axis: str) -> bool:
    """Whether an axis only says what the series' names say."""
    return bool((flows.groupby(f"axis_{axis}")[SERIES].nunique() == 1).all()) and (
        flows[f"axis_{axis}"].nunique() == flows[SERIES].nunique()
    )


def _transfers(flows: pd.DataFrame, transfers: pd.DataFrame) -> pd.DataFrame:
    """The transfers of these flows, with their series."""
    return transfers.merge(flows[["trial", "flow", SERIES]], on=["trial", "flow"])


def panels(parts: Parts, looks: dict[str, SeriesStyle]) -> tuple[Figure, pd.DataFrame]:
    """One row of panels per part, one column per size."""
    every = pd.concat([rows for _, rows in parts])
    sizes = [name for name, _ in by_class(every)]
    figure, grid = figure_layout.grid(len(parts), len(sizes), panel=1.75)
    tables = []
    for (words, rows), line in zip(parts, grid, strict=True):
        for axes, size in zip(line, sizes, strict=True):
            own = rows[rows["size_class"] == size]
            tables.append(_panel(axes, own, looks).assign(part=words, size=size))
            figure_layout.panel_title(axes, f"{size}: {CLASSES[size]}")
            axes.set_xlabel("slowdown")
        line[0].set_ylabel("\n".join(filter(None, (words, "share of transfers (%)"))))
    for column in zip(*grid, strict=True):
        _scale(column, max(axes.get_xlim()[1] for axes in column))
    figure_layout.legend(figure, looks)
    return figure, pd.concat(tables, ignore_index=True)


def _panel(axes: Axes, rows: pd.DataFrame, looks: dict[str, SeriesStyle]) -> pd.DataFrame:
    tables, highest = [], 1.0
    for name, look in looks.items():
        own = rows[rows[SERIES] == name]
        found = own["slowdown"].dropna().to_numpy(dtype=np.float64)
        if not len(found):
            continue
        values, shares = np.quantile(found, FRACTIONS), FRACTIONS * len(found) / len(own)
        axes.plot(values, 100 * shares, color=look.colour, linewidth=1, linestyle=look.dash)
        middle = float(np.median(found))
        axes.plot([middle], [50 * len(found) / len(own)], look.marker, color=look.colour,
                  markersize=3.5, markeredgewidth=0)  # fmt: skip
        tables.append(
            pd.DataFrame({SERIES: name, "share": shares, "slowdown": values, "n": len(own)})
        )
        highest = max(highest, float(np.quantile(found, 0.999)))
    axes.set_ylim(0, 100)
    axes.set_xlim(1, highest)
    columns = [SERIES, "share", "slowdown", "n"]
    return pd.concat(tables) if tables else pd.DataFrame(columns=columns)


def _scale(column: Sequence[Axes], highest: float) -> None:
    """The logarithmic axis of a size, from just below 1: no transfer is faster."""
    few = (1, 2, 5) if highest < WIDE else (1,)
    for axes in column:
        axes.set_xscale("log")
        axes.set_xlim(0.9, max(2.2, 1.1 * highest))
        axes.xaxis.set_major_locator(LogLocator(subs=few))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.xaxis.set_minor_formatter(NullFormatter())


def _caption(data: pd.DataFrame) -> str:
    """The sizes' lowest and highest medians, and whose they are."""
    said = []
    for size, own in data.groupby("size", sort=False):
        ends = [each for _, each in own.groupby(["part", SERIES], sort=False)]
        found = ((_middle(each), each.iloc[0]) for each in ends)
        middles = sorted(found, key=lambda pair: pair[0])
        words = [f"{value:.3g} ({_of(row)})" for value, row in (middles[0], middles[-1])]
        said.append(f"{size} " + " to ".join(words if len(middles) > 1 else words[:1]))
    return f"Median slowdowns: {', '.join(said)}."


def _middle(rows: pd.DataFrame) -> float:
    """Half of those that finished."""
    return float(rows["slowdown"].iloc[int(np.flatnonzero(FRACTIONS == 0.5)[0])])


def _of(row: pd.Series) -> str:
    return ", ".join(filter(None, (str(row[SERIES]), str(row["part"]))))
