"""Kapre, Saxena 1 and Joshi, Hattikar 1: throughput, drop rate and latency over CBR load."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from analysis.figures.general import general_figures, load_sweep
from analysis.figures.plotting import cases, figure_layout
from analysis.figures.plotting.cell_means import cell_means
from analysis.figures.plotting.error_bars import DROPS, LATENCY, THROUGHPUT
from analysis.figures.plotting.named_figure import AnyFigure, NamedFigure
from analysis.metrics.metric_rows import AXIS
from analysis.results.experiment_results import ExperimentResults

LOAD = "cbr_mbit"


def draw(results: ExperimentResults) -> Iterator[AnyFigure]:
    """One figure per profile and window, one row per order; then the general figures."""
    rows = results.tcp
    if not rows.empty and f"{AXIS}{LOAD}" in rows:
        for case, own in cases.split(rows, ("profile", "window"), (LOAD, "order", "variant")):
            yield _figure(results, case, own)
    yield from general_figures.planes(results)
    yield from general_figures.distributions(results)


def _figure(results: ExperimentResults, case: dict[str, str], rows: pd.DataFrame) -> NamedFigure:
    parts = [
        (cases.case_words(part), own)
        for part, own in cases.split(rows, ("order",), (LOAD, "variant"))
    ]
    figure, data = load_sweep.panels(parts, LOAD, (THROUGHPUT, DROPS, LATENCY), "variant")
    words = cases.case_words(case)
    figure_layout.title_and_foot(
        figure, f"One TCP flow against CBR: {words}", cases.foot(results, rows)
    )
    stem = cases.stem(results.key, "load", *case.values())
    return NamedFigure(stem, _caption(rows), figure, data)


def _caption(rows: pd.DataFrame) -> str:
    """The leaders at light, middle and heavy load."""
    said = []
    for load in cases.exemplary(sorted(rows[AXIS + LOAD].unique())):
        there = rows[rows[AXIS + LOAD] == load]
        own = cell_means(there, "variant", ("throughput_mbps",))["throughput_mbps"].dropna()
        if len(own) > 1:
            most, least = str(own.idxmax()), str(own.idxmin())
            words = f"{most} has most ({own[most]:.3g} Mbit/s) and {least} least ({own[least]:.3g})"
            if own[most] < 1.01 * own[least]:
                words = f"each has {own[least]:.3g} Mbit/s"
            said.append(f"at {load:g} Mbit/s of CBR {words}")
    drops = cell_means(rows, "variant", ("drop_rate",))["drop_rate"].dropna()
    text = "; ".join(said)
    text = f"{text[:1].upper()}{text[1:]}." if said else ""
    if len(drops) > 1:
        text += f" The lowest drop rate is {100 * drops.min():.2g} % of {drops.idxmin()}"
        text += f", the highest {100 * drops.max():.2g} % of {drops.idxmax()}."
    return text
