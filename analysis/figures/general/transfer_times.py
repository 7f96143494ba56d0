"""How transfers of each size are slowed down: cumulative distributions, a panel for each size."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd

from analysis.figures import cases, style
from analysis.figures.figure import Axis, Curve, Figure, Mark, Panel, PointSeries, legend_entries
from analysis.figures.style import SeriesStyle
from analysis.metrics.metric_rows import varied_axes
from analysis.results.experiment_results import ExperimentResults
from analysis.results.tables import transfers_of
from analysis.transfers.size_classes import CLASSES, by_class
from testbed.scenario.model import FlowKind

SERIES = "series"
MAX_PANEL_ROWS = 4  # rows of panels
MAX_MEDIANS_SAID = 3  # medians that are all said
FRACTIONS = np.concatenate((np.arange(0, 100) / 100, [0.995, 0.999, 1.0]))
TRANSFERS_READING = (
    "all transfers of all seeds; a curve ends at the part that finished; marker: median"
)
Parts = Sequence[tuple[str, pd.DataFrame]]


def draw(results: ExperimentResults) -> Iterator[Figure]:
    """Yield the figure of an experiment with workloads, with a row of panels for each case."""
    flows = results.good[results.good["kind"] == FlowKind.WORKLOAD]
    transfers = transfers_of(results.trials)
    if flows.empty or transfers.empty:
        return
    flows = flows[flows["flow"].isin(transfers["flow"])]  # others load the network only
    several = flows["flow"].nunique() > 1
    series = flows["variant"] + (" (" + flows["flow"] + ")" if several else "")
    flows = flows.assign(**{SERIES: series})
    beside = [name for name in varied_axes(flows) if not _is_series(flows, name)]
    parts: Parts = [
        (cases.case_words(case), _transfers(case_rows, transfers))
        for case, case_rows in list(cases.split(flows, beside, varied_axes(flows)))[:MAX_PANEL_ROWS]
    ]
    looks = style.styles_of(flows, SERIES)
    if 1 < len(parts) <= len(style.SERIES_COLOURS) and len(looks) == 1:
        parts, looks = _over_each_other(parts)  # what is compared is in one panel
    figure = panels(parts, looks)
    how = "The share of transfers that took at most that many times as long as in an empty network"
    yield dataclasses.replace(
        figure,
        stem=cases.stem(results.key, "slowdown-of-transfers"),
        title=_caption(figure.data),
        foot=cases.foot(results, flows, TRANSFERS_READING),
        reading=f"{how}.",
    )


def _over_each_other(parts: Parts) -> tuple[Parts, dict[str, SeriesStyle]]:
    """Return one part whose series are the cases."""
    named = [rows.assign(**{SERIES: label}) for label, rows in parts]
    return [("", pd.concat(named))], style.series_styles([label for label, _ in parts])


def _is_series(flows: pd.DataFrame, axis: str) -> bool:
    """Whether an axis only says what the series' names say."""
    return bool((flows.groupby(f"axis_{axis}")[SERIES].nunique() == 1).all()) and (
        flows[f"axis_{axis}"].nunique() == flows[SERIES].nunique()
    )


def _transfers(flows: pd.DataFrame, transfers: pd.DataFrame) -> pd.DataFrame:
    """Return the transfers of these flows, with their series."""
    return transfers.merge(flows[["trial", "flow", SERIES]], on=["trial", "flow"])


def panels(parts: Parts, looks: dict[str, SeriesStyle]) -> Figure:
    """Return one row of panels per part, one column per size; a size has one axis."""
    every = pd.concat([rows for _, rows in parts])
    sizes = [name for name, _ in by_class(every)]
    columns, tables = [], []
    for size in sizes:
        column, highest = [], 1.0
        for label, rows in parts:
            marks, table = _curves(rows[rows["size_class"] == size], looks)
            tables.append(table.assign(part=label, size=size))
            highest = max(highest, _highest(rows[rows["size_class"] == size]))
            y = Axis("share of transfers (%)" if size == sizes[0] else "", limits=(0, 100))
            title = f"{size}: {CLASSES[size]}"
            column.append(Panel(marks, Axis("slowdown"), y, title=title, title_right=label))
        # from just below 1: no transfer is faster
        x = Axis("slowdown", scale="log", limits=(0.9, max(2.2, 1.1 * highest)))
        columns.append([dataclasses.replace(panel, x=x) for panel in column])
    return Figure(
        stem="",
        title="",
        panels=tuple(zip(*columns, strict=True)),
        legend=legend_entries(looks),
        row_inches=1.75,
        data=pd.concat(tables, ignore_index=True),
    )


def _highest(rows: pd.DataFrame) -> float:
    ends = rows.groupby(SERIES)["slowdown"].quantile(0.999).dropna()
    return float(ends.max()) if len(ends) else 1.0


def _curves(rows: pd.DataFrame, looks: dict[str, SeriesStyle]) -> tuple[list[Mark], pd.DataFrame]:
    columns = [SERIES, "share", "slowdown", "n"]
    tables, marks = [pd.DataFrame(columns=columns)], list[Mark]()
    for name, look in looks.items():
        of_series = rows[rows[SERIES] == name]
        slowdowns = of_series["slowdown"].dropna().to_numpy(dtype=np.float64)
        if not len(slowdowns):
            continue
        values, shares = (
            np.quantile(slowdowns, FRACTIONS),
            FRACTIONS * len(slowdowns) / len(of_series),
        )
        half, middle = 50 * len(slowdowns) / len(of_series), float(np.median(slowdowns))
        marks += [
            Curve(values, 100 * shares, look.colour, dash=look.dashes, series=name),
            PointSeries([middle], [half], look.colour, look.marker, size=3.5, series=name),
        ]
        tables.append(
            pd.DataFrame({SERIES: name, "share": shares, "slowdown": values, "n": len(of_series)})
        )
    return marks, pd.concat(tables[1:] or tables)


def _caption(data: pd.DataFrame) -> str:
    """Say by how much each size is slowed down, at least and at most."""
    sentences = []
    for size, of_size in data.groupby("size", sort=False):
        ends = [each for _, each in of_size.groupby(["part", SERIES], sort=False)]
        middle_rows = ((_middle(each), each.iloc[0]) for each in ends)
        middles = sorted(middle_rows, key=lambda pair: pair[0])
        ratios = [f"{value:.3g} times as long with {_of(row)}" for value, row in middles]
        few = ratios if len(ratios) <= MAX_MEDIANS_SAID else [ratios[0], ratios[-1]]
        sentences.append(f"{size} ones take {', '.join(few)}")
    return (
        f"Of the transfers, half of the {'; half of the '.join(sentences)}, as in an empty network."
    )


def _middle(rows: pd.DataFrame) -> float:
    """Half of those that finished."""
    return float(rows["slowdown"].iloc[int(np.flatnonzero(FRACTIONS == 0.5)[0])])


def _of(row: pd.Series) -> str:
    return ", ".join(filter(None, (str(row[SERIES]), str(row["part"]))))
