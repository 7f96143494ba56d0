"""Cumulative distributions of round-trip times and one-way delays, from cached quantiles."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from analysis.figures import style
from analysis.figures.figure import Axis, Curve, Figure, Mark, Panel, PointSeries, legend_entries
from analysis.figures.general import over_time
from analysis.figures.style import SeriesStyle
from analysis.metrics.digest import DELAY_QUANTILES, RTT_QUANTILES

DELAY_KINDS = {RTT_QUANTILES: "round-trip time (ms)", DELAY_QUANTILES: "one-way delay (ms)"}
FAR = 12  # times the least: beyond, a logarithmic axis
DISTRIBUTION_READING = (
    "quantiles over all packets of a trial, averaged over the seeds; marker: median"
)


def figure(parts: Sequence[tuple[str, pd.DataFrame]], digest: pd.DataFrame, series: str) -> Figure:
    """Return one column per part; round-trip times above, one-way delays below."""
    looks = style.styles_of(pd.concat([rows for _, rows in parts]), series)
    tables = [curves(rows, digest, series).assign(part=part) for part, rows in parts]
    grid: list[tuple[Panel, ...]] = []
    for what, label in DELAY_KINDS.items():
        line: list[Panel] = []
        for table, (part, _) in zip(tables, parts, strict=True):
            panel = _panel(table[table["what"] == what], series, looks)
            x = dataclasses.replace(panel.x, label=label)
            y = dataclasses.replace(panel.y, label="" if line else "share of packets (%)")
            line.append(dataclasses.replace(panel, x=x, y=y, title="" if grid else part))
        grid.append(tuple(_alike(line)))
    return Figure(
        stem="",
        title="",
        panels=tuple(grid),
        legend=legend_entries(looks),
        row_inches=1.6,
        data=pd.concat(tables, ignore_index=True),
    )


def curves(rows: pd.DataFrame, digest: pd.DataFrame, series: str) -> pd.DataFrame:
    """Quantiles averaged over the trials of a series: of one after the other, to spare memory."""
    tables = []
    for name, of_series in rows.groupby(series, sort=False):
        for what in (DELAY_QUANTILES, RTT_QUANTILES):
            values = over_time.series_of(of_series, digest, [what]).groupby("x", sort=False)[
                "value"
            ]
            means = values.agg(["mean", "count"]).reset_index()
            tables.append(means.assign(what=what, **{series: name}))
    table = pd.concat(tables, ignore_index=True)[[series, "what", "x", "mean", "count"]]
    return table.rename(columns={"x": "fraction", "mean": "ms", "count": "n"})


def _panel(curve: pd.DataFrame, series: str, looks: Mapping[str, SeriesStyle]) -> Panel:
    ends: list[tuple[float, float]] = []
    marks: list[Mark] = []
    for name, look in looks.items():
        of_series = curve[curve[series] == name]
        if of_series.empty:
            continue
        ms, part = of_series["ms"].to_numpy(), 100 * of_series["fraction"].to_numpy()
        half = float(np.interp(50, part, ms))
        marks += [
            Curve(ms, part, look.colour, dash=look.dashes, series=name),
            PointSeries([half], [50], look.colour, look.marker, size=3.5, series=name),
        ]
        ends.append((float(np.interp(1, part, ms)), float(np.interp(99.5, part, ms))))
    x = Axis(limits=(min(end[0] for end in ends), max(end[1] for end in ends))) if ends else Axis()
    return Panel(marks, x, Axis(limits=(0, 100)))


def _alike(panels: Sequence[Panel]) -> list[Panel]:
    """Give panels that are compared one axis, which begins at 0 or is logarithmic."""
    known = [panel for panel in panels if panel.marks]
    if not known:
        return list(panels)
    low = min(panel.x.limits[0] or 0.0 for panel in known)
    high = max(panel.x.limits[1] or 0.0 for panel in known)
    axis = _delay_axis(low, high)
    return [dataclasses.replace(panel, x=dataclasses.replace(axis, label=panel.x.label))
            for panel in panels]  # fmt: skip


def _delay_axis(low: float, high: float) -> Axis:
    """Return an axis without single stragglers, which are in the table."""
    if low > 0 and high > FAR * low:
        return Axis(scale="log", limits=(low / 1.1, high * 1.1))
    return Axis(limits=(0.0, 1.05 * high or 1.0))
