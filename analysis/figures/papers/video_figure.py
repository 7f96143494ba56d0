"""Draws what people waited for: a column for whose congestion control was chosen, a row a measure,
a dot a playback, a dash the median of a network and variant."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import matplotlib as mpl
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import NullFormatter, StrMethodFormatter

from analysis.figures.shared import style
from analysis.metrics.axes import with_axes
from analysis.metrics.valid_trials import SUSPECT, counted
from analysis.trials.labels import variant_key
from testbed.scenario.model import FlowKind

STEM = "video"
MEASURES = {
    "page_s": "page there (s)",
    "loaded_s": "all loaded (s)",
    "stall_s": "stood still (s)",
}
# transport and setting: the words above a column, whose congestion control it is
COLUMNS = {
    ("https", "sender"): "TCP,\nserver's",
    ("https", "receiver"): "TCP,\nlaptop's",
    ("quic", "sender"): "QUIC,\nserver's",
    ("quic", "receiver"): "QUIC,\nlaptop's",
}
NARROW = 0.3  # a column of one network, beside one of all
SPREAD = 0.7  # of a network's place: what its dots take


def draw(results: Path, metrics: pd.DataFrame) -> list[Path]:
    """Of the rule by which most videos were watched; PNG and SVG under figures/."""
    rows = counted(metrics)
    videos = rows[rows["kind"] == FlowKind.VIDEO]
    if videos.empty:
        return []
    table = with_axes(videos)
    table = table[table["axis_rule"] == table["axis_rule"].mode()[0]]
    with mpl.rc_context(fname=style.SHEET):
        return style.save(_figure(table), results / "figures", STEM)


def _figure(table: pd.DataFrame) -> Figure:
    columns = dict(_columns(table))
    widths = [max(NARROW, rows["axis_network"].nunique() / 6) for rows in columns.values()]
    figure = Figure(figsize=(style.WIDTH_INCHES, 5.6), layout="constrained")
    grid = figure.subplots(
        len(MEASURES), len(columns), squeeze=False, sharex="col", sharey="row", width_ratios=widths
    )
    names = sorted(table["axis_variant"].unique(), key=variant_key)
    colours = style.variant_colours(names)
    for place, (words, rows) in enumerate(columns.items()):
        for axes, metric in zip(grid[:, place], MEASURES, strict=True):
            _panel(axes, rows, metric, colours)
        grid[0][place].set_title(words, fontsize=6.5, loc="left")
    for axes, words in zip(grid[:, 0], MEASURES.values(), strict=True):
        axes.set_ylabel(words)
    grid[0][0].set_yscale("log")  # from a part of a second to minutes
    grid[0][0].yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    grid[0][0].yaxis.set_minor_formatter(NullFormatter())
    for axes in grid[1:, 0]:
        axes.set_ylim(bottom=-0.03 * axes.get_ylim()[1])
    dots = [Line2D([], [], marker="o", ls="", ms=3.5, color=colours[n], label=n) for n in names]
    figure.legend(handles=dots, loc="outside lower center", ncols=len(names), fontsize=6.5)
    figure.suptitle(_title(table), fontsize=9)
    return figure


def _columns(table: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    for (transport, setting), words in COLUMNS.items():
        own = (table["axis_transport"] == transport) & (table["axis_setting"] == setting)
        if own.any():
            yield words, table[own]


def _title(table: pd.DataFrame) -> str:
    rule, seeds = table["axis_rule"].iloc[0], table["seed"].nunique()
    medians = f", medians of {seeds} seeds" if seeds > 1 else ""
    return f"{table['experiment'].iloc[0]}: bitrate {rule}, by whose variant it is{medians}"


def _panel(axes: Axes, rows: pd.DataFrame, metric: str, colours: Mapping[str, str]) -> None:
    networks = list(dict.fromkeys(map(str, rows["axis_network"])))
    names = sorted(rows["axis_variant"].unique(), key=variant_key)
    step = SPREAD / len(colours)
    for key, own in rows.groupby(["axis_network", "axis_variant"], sort=False):
        network, name = map(str, key)
        x = networks.index(network) + (names.index(name) - (len(names) - 1) / 2) * step
        _dots(axes, x, step, own, metric, colours[name])
    axes.set_xticks(range(len(networks)), networks, rotation=40, ha="right", fontsize=6)
    axes.set_xlim(-0.6, len(networks) - 0.4)


def _dots(axes: Axes, x: float, step: float, rows: pd.DataFrame, metric: str, colour: str) -> None:
    values = rows[metric].dropna()
    if values.empty:
        return
    for value, verdict in zip(values, rows.loc[values.index, "verdict"], strict=True):
        look = style.marker(verdict == SUSPECT, colour)
        axes.plot(x, value, marker="o", markersize=2.5, alpha=0.4, **look)
    half = 0.55 * step
    axes.hlines(float(values.median()), x - half, x + half, color=colour, linewidth=1.6)
