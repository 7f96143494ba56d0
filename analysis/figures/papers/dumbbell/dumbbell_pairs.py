"""Kapre, Saxena 2 and Joshi, Hattikar 2: two TCP flows and CBR, and every variant against every."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from analysis.figures.general import general_figures, load_sweep
from analysis.figures.plotting import cases, error_bars, figure_layout, style
from analysis.figures.plotting.error_bars import Measure
from analysis.figures.plotting.named_figure import AnyFigure, NamedFigure
from analysis.figures.plotting.style import SeriesStyle
from analysis.metrics.metric_rows import AXIS
from analysis.results.experiment_results import ExperimentResults
from analysis.trials.labels import variant_key

LOAD, PAIR = f"{AXIS}cbr_mbit", f"{AXIS}pair"
PAPERS = ("reno/reno", "newreno/reno", "vegas/vegas", "newreno/vegas")
SHARE = Measure("share_percent", "share of TCP's goodput (%)")
DARK, LIGHT = "#1B1B1B", "#FDFDFD"  # on coloured cells, whatever the page's colours
MIDDLE: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": 5.5}
MAP = "PuOr"  # diverging, and safe for the colour-blind


def draw(results: ExperimentResults) -> Iterator[AnyFigure]:
    """The shares of the papers' pairs over load, the matrix, and the general figures."""
    rows = shares(results.tcp)
    if not rows.empty and LOAD in rows and PAIR in rows:
        for case, own in cases.split(rows, ("profile", "window", "second"), ("pair", "cbr_mbit")):
            yield _over_load(results, case, own)
            if own[PAIR].nunique() > len(PAPERS):  # those are in the figure over load
                yield _matrix(results, case, own)
    if PAIR not in rows or rows[PAIR].nunique() <= 4:  # of 64 pairs nobody could tell the lines
        yield from general_figures.distributions(results)


def shares(rows: pd.DataFrame) -> pd.DataFrame:
    """With each flow's part of what the trial's TCP flows delivered."""
    total = rows.groupby("trial")["goodput_mbps"].transform("sum")
    return rows.assign(share_percent=(100 * rows["goodput_mbps"] / total).where(total > 0))


def _over_load(results: ExperimentResults, case: dict[str, str], rows: pd.DataFrame) -> NamedFigure:
    there = list(dict.fromkeys(rows[PAIR]))
    pairs = [pair for pair in PAPERS if pair in there] or there[:4]
    figure, grid = figure_layout.grid(
        -(-len(pairs) // 2), min(2, len(pairs)), panel=1.75, head=0.35
    )
    places = [axes for line in grid for axes in line]
    tables, words = [], cases.case_words(case)
    for axes, pair in zip(places, pairs, strict=False):
        own = rows[rows[PAIR] == pair]
        variants = own.drop_duplicates("flow").set_index("flow")["variant"].sort_index()
        known = style.series_styles(list(variants))
        ends: list[tuple[float, str, str]] = []
        for number, (flow, variant) in enumerate(variants.items()):
            table = error_bars.summary(own[own["flow"] == flow], [LOAD], SHARE)
            tables.append(table.assign(pair=pair, flow=flow, variant=variant))
            alike = number and variants.nunique() == 1
            look = known[str(variant)]
            if alike:
                look = SeriesStyle(look.colour, "D", style.DASHES[1])
            error_bars.line_with_band(axes, table, LOAD, look)
            ends.append((float(table.iloc[-1]["mean"]), f"{variant} ({flow})", look.colour))
        axes.axhline(50, color=style.GREY, linewidth=0.7, linestyle=(0, (4, 2)), zorder=1.5)
        axes.set(ylim=(0, 100), xticks=np.sort(own[LOAD].unique()))
        figure_layout.name_line_ends(axes, ends)
        axes.set_title(pair, loc="left", fontweight="bold", fontsize=7)
        axes.set_xlabel(load_sweep.axis_label("cbr_mbit"))
    for line in grid:
        line[0].set_ylabel(SHARE.label)
    for axes in places[len(pairs) :]:
        axes.set_visible(False)
    figure_layout.title_and_foot(
        figure, f"Two TCP flows and CBR: {words}", cases.foot(results, rows)
    )
    return NamedFigure(
        cases.stem(results.key, "shares", *case.values()),
        _caption(rows, pairs),
        figure,
        pd.concat(tables, ignore_index=True),
    )


def _caption(rows: pd.DataFrame, pairs: list[str]) -> str:
    said = []
    for pair in pairs:
        first = rows[(rows[PAIR] == pair) & (rows["flow"] == rows["flow"].min())]
        by = first.groupby(LOAD)["share_percent"].mean().dropna()
        if len(by):
            low, high = f"{by.min():.0f}", f"{by.max():.0f}"
            over = f"{low}–{high} % for the first over the loads"
            said.append(f"{pair}: {over if low != high else f'{low} % for the first'}")
    return "; ".join(said) + ". The dashed line at 50 % is an even split."


def matrix(rows: pd.DataFrame) -> pd.DataFrame:
    """The mean share of the row's variant, as the pair's first, against the column's.

    Of a pair that ran only in the other order, it is what that one leaves.
    """
    wide = rows.pivot_table(
        index=["trial"], columns="flow", values=["variant", "share_percent"], aggfunc="first"
    )
    flows = sorted(rows["flow"].unique())[:2]
    one, other = (wide["variant"][flow] for flow in flows)
    share = wide["share_percent"][flows[0]].astype(float)
    mixed = pd.DataFrame({"row": one, "column": other, "share": share})
    names = sorted({*one, *other}, key=variant_key)
    table: pd.DataFrame = mixed.pivot_table(index="row", columns="column", values="share")
    table = table.reindex(index=names, columns=names)
    return table.where(table.notna(), 100 - table.T)


def widest(rows: pd.DataFrame) -> list[float]:
    """The loads that most pairs were run at: all panels of a matrix have the same rows."""
    pairs = rows.groupby(LOAD)[PAIR].nunique()
    return sorted(float(load) for load in pairs[pairs == pairs.max()].index)


def _matrix(results: ExperimentResults, case: dict[str, str], rows: pd.DataFrame) -> NamedFigure:
    loads = cases.exemplary(widest(rows))
    rows = rows[rows[LOAD].isin(loads)]
    figure, grid = figure_layout.grid(
        1, len(loads), panel=2.75 if len(loads) > 1 else 3.6, head=0.3
    )
    tables = {load: matrix(rows[rows[LOAD] == load]) for load in loads}
    for number, (axes, (load, table)) in enumerate(zip(grid[0], tables.items(), strict=True)):
        axes.pcolormesh(
            table.to_numpy(), cmap=MAP, vmin=0, vmax=100, edgecolors="white", linewidth=0.6
        )
        axes.set(aspect="equal", ylim=(len(table), 0))
        at = np.arange(len(table)) + 0.5
        axes.set_xticks(at, table.columns, rotation=45, ha="left", fontsize=6)
        axes.xaxis.tick_top()
        axes.set_yticks(at, table.index if number == 0 else [""] * len(table), fontsize=6)
        axes.grid(False)
        axes.tick_params(length=0)
        axes.spines[:].set_visible(False)
        axes.set_xlabel(f"{load:g} Mbit/s of CBR", fontweight="bold")
        _numbers(axes, table)
    words = cases.case_words(case)
    figure_layout.title_and_foot(
        figure,
        f"Share (%) of the row's variant against the column's: {words}",
        cases.foot(results, rows, "each cell: mean; 50 is an even split"),
    )
    data = pd.concat(
        [
            table.rename_axis("row")
            .reset_index()
            .melt("row", var_name="column", value_name="share_percent")
            .assign(cbr_mbit=load)
            for load, table in tables.items()
        ],
        ignore_index=True,
    ).dropna()
    stem = cases.stem(results.key, "matrix", *case.values())
    how = "Read along a row: orange is less than an even split, purple is more."
    return NamedFigure(stem, _strongest(data), figure, data, how)


def _numbers(axes: Axes, table: pd.DataFrame) -> None:
    for i, j in np.argwhere(np.isfinite(table.to_numpy())):
        value = float(table.to_numpy()[i, j])
        ink = LIGHT if abs(value - 50) > 33 else DARK
        axes.text(j + 0.5, i + 0.5, f"{value:.0f}", color=ink, **MIDDLE)


def _strongest(data: pd.DataFrame) -> str:
    rest = data[data["row"] != data["column"]]
    if rest.empty:
        return ""
    worst = rest.sort_values("share_percent").iloc[-1]
    return (
        "The most uneven pair is "
        f"{worst['row']} against {worst['column']} "
        f"({worst['share_percent']:.0f} %) at {worst['cbr_mbit']:g} Mbit/s of CBR."
    )
