"""Draws what a sweep of an axis did to throughput: a line a variant and flow, a panel a setting."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis.figures.shared import style
from analysis.metrics.axes import with_axes
from analysis.metrics.valid_trials import counted
from testbed.scenario.model import FlowKind

COLUMNS = 3  # of panels


def draw(results: Path, metrics: pd.DataFrame, x: str, lines: str) -> list[Path]:
    """Mean throughput of the TCP flows over the axis `x`; PNG and SVG under figures/."""
    rows = counted(metrics)
    ran = rows[rows["kind"] == FlowKind.TCP]
    if ran.empty:
        return []
    table = with_axes(ran)
    table["line"] = table[lines] if lines in table else table[f"axis_{lines}"]
    with mpl.rc_context(fname=style.SHEET):
        return style.save(_figure(table, x), results / "figures", "throughput")


def _figure(table: pd.DataFrame, x: str) -> Figure:
    panels = _panels(table, x)
    columns = min(COLUMNS, len(panels))
    rows = -(-len(panels) // columns)
    figure = Figure(figsize=(style.WIDTH_INCHES, 2.4 * rows + 0.6), layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False, sharey=True)
    for axes, (name, rows_of) in zip(grid.flat, panels.items(), strict=False):
        _draw(axes, rows_of, x)
        axes.set_title(name, fontsize=6.5, loc="left")
        axes.set_xlabel(x)
    for axes in list(grid.flat)[len(panels) :]:
        axes.set_visible(False)
    grid[0][0].set_ylim(0, 1.05 * table["throughput_mbps"].max())
    for first in grid[:, 0]:
        first.set_ylabel("throughput (Mbit/s)")
    seeds = f"means over seeds (n = {table['seed'].nunique()})"
    figure.suptitle(f"{table['experiment'].iloc[0]}: {seeds}", fontsize=9)
    return figure


def _panels(table: pd.DataFrame, x: str) -> dict[str, pd.DataFrame]:
    """The rows by all axes that are neither on the x axis nor a line."""
    own = {f"axis_{x}", *(n for n in table if str(n).startswith("axis_") and _is_line(table, n))}
    others = [n for n in table if str(n).startswith("axis_") and n not in own]
    varying = [name for name in others if table[name].nunique(dropna=False) > 1]
    if not varying:
        return {"": table}
    return {", ".join(map(str, key)): rows for key, rows in table.groupby(varying, dropna=False)}


def _is_line(table: pd.DataFrame, name: Any) -> bool:
    return bool(table[name].astype(str).equals(table["line"].astype(str)))


def _draw(axes: Axes, rows: pd.DataFrame, x: str) -> None:
    means = rows.groupby(["line", "flow", f"axis_{x}"], sort=False)["throughput_mbps"].mean()
    table = means.unstack(f"axis_{x}").sort_index(axis=1)
    # a place where only few were is no line
    table = table[table.notna().sum(axis=1) == table.notna().sum(axis=1).max()]
    colours = style.variant_colours(dict.fromkeys(line for line, _ in table.index))
    flows = list(dict.fromkeys(rows["flow"]))
    for (line, flow), values in table.iterrows():
        label = line if line == flow or len(flows) == 1 else f"{line} {flow}"
        seen = values.dropna()
        marker = "os^D"[flows.index(flow) % 4]
        axes.plot(seen.index, seen, marker=marker, markersize=2.5, color=colours[line], label=label)
    axes.legend(fontsize=5, ncols=2)
