"""Guo, Yuan, Sheng 2.1: throughput and delay, idle and under load, of each variant."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

from analysis.figures.general import general_figures
from analysis.figures.papers.guo_yuan_sheng import bottleneck_over_time
from analysis.figures.plotting import cases, error_bars, figure_layout, style
from analysis.figures.plotting.error_bars import Measure
from analysis.figures.plotting.named_figure import AnyFigure, NamedFigure
from analysis.metrics.metric_rows import AXIS
from analysis.results.experiment_results import ExperimentResults
from analysis.trials.labels import variant_key

MEASURES = (
    Measure("throughput_mbps", "throughput (Mbit/s)", zero=False),
    Measure("rtt_min_ms", "smallest RTT: idle path (ms)"),
    Measure("rtt_mean_ms", "mean RTT: under load (ms)"),
)


def draw(results: ExperimentResults) -> Iterator[AnyFigure]:
    """The flows over time; one figure per path and rate, one colour per queue; then the plane and
    the distributions."""
    yield from bottleneck_over_time.draw(results)
    if not results.tcp.empty and f"{AXIS}queue" in results.tcp:
        for case, rows in cases.split(results.tcp, ("path",), ("queue", "variant")):
            yield _figure(results, case, rows)
    yield from general_figures.planes(results)
    yield from general_figures.distributions(results)


def _figure(results: ExperimentResults, case: dict[str, str], rows: pd.DataFrame) -> NamedFigure:
    variants = sorted(set(rows["variant"]), key=variant_key)
    known = dict(zip(dict.fromkeys(rows[f"{AXIS}queue"]), style.QUEUE_STYLES, strict=False))
    figure, [line] = figure_layout.grid(1, len(MEASURES), panel=0.3 * len(variants) + 0.7)
    tables = []
    for axes, measure in zip(line, MEASURES, strict=True):
        table = error_bars.summary(rows, ["variant", f"{AXIS}queue"], measure)
        tables.append(table.assign(measure=measure.label))
        for number, (queue, look) in enumerate(known.items()):
            shift = 0.24 * (number - (len(known) - 1) / 2)
            for _, cell in table[table[f"{AXIS}queue"] == queue].iterrows():
                error_bars.point(axes, variants.index(cell["variant"]) + shift, cell, look)
        axes.set_yticks(range(len(variants)), variants if axes is line[0] else [""] * len(variants))
        axes.set_ylim(len(variants) - 0.5, -0.5)
        axes.set_xlabel(measure.label)
        axes.tick_params(axis="y", length=0)
        figure_layout.widen_flat_axes(axes, "x")
        if measure.zero and np.isfinite(table["mean"]).any():
            axes.set_xlim(left=0)
    first = next(trial for trial in results.trials if trial.path.name == rows["trial"].iloc[0])
    rate = first.scenario.topology.bottleneck.rate_mbit
    if rows["throughput_mbps"].between(0.8 * rate, 1.2 * rate).all():
        line[0].axvline(rate, color=style.GREY, linewidth=0.7, linestyle=(0, (4, 2)), zorder=1.5)
    figure_layout.legend(figure, known)
    figure_layout.title_and_foot(
        figure,
        _title(rate, case),
        cases.foot(results, rows),
    )
    return NamedFigure(
        cases.stem(results.key, "variants", *case.values()),
        _caption(rows),
        figure,
        pd.concat(tables, ignore_index=True),
    )


def _title(rate_mbit: float, case: dict[str, str]) -> str:
    way = f"One flow through {rate_mbit:g} Mbit/s"
    if case.get("path") == "router":
        way = f"One flow, of which only the ACKs pass the {rate_mbit:g} Mbit/s"
    return f"{way}: {cases.case_words(case)}" if case else way


def _caption(rows: pd.DataFrame) -> str:
    said = []
    for queue, own in rows.groupby(f"{AXIS}queue", sort=False):
        rates = own.groupby("variant")["throughput_mbps"].mean().dropna()
        loads = own.groupby("variant")["rtt_mean_ms"].mean().dropna()
        if len(rates) > 1 and len(loads) > 1:
            spread = f"throughput from {rates.min():.3g} Mbit/s ({rates.idxmin()}) to "
            spread += f"{rates.max():.3g} ({rates.idxmax()})"
            if rates.max() < 1.01 * rates.min():
                spread = f"each variant's throughput is {rates.min():.3g} Mbit/s"
            said.append(
                f"{queue}: {spread}, mean RTT from "
                f"{loads.min():.3g} ({loads.idxmin()}) to {loads.max():.3g} ms ({loads.idxmax()})"
            )
    text = "; ".join(said)
    return f"With {text}." if said else ""
