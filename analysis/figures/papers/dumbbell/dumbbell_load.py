"""Kapre, Saxena 1 and Joshi, Hattikar 1: throughput, drop rate and latency over CBR load."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from analysis.figures.general import general_figures, load_sweep
from analysis.figures.plotting import cases, figure_layout
from analysis.figures.plotting.error_bars import DROPS, LATENCY, THROUGHPUT
from analysis.figures.plotting.named_figure import NamedFigure
from analysis.results.material import AXIS, Material

LOAD = "cbr_mbit"


def draw(material: Material) -> Iterator[NamedFigure]:
    """One figure per profile and window, one row per order; then the general figures."""
    rows = material.tcp
    if not rows.empty and f"{AXIS}{LOAD}" in rows:
        for case, own in cases.split(rows, ("profile", "window")):
            yield _figure(material, case, own)
    yield from general_figures.planes(material)
    yield from general_figures.distributions(material)


def _figure(material: Material, case: dict[str, str], rows: pd.DataFrame) -> NamedFigure:
    parts = [(cases.case_words(part), own) for part, own in cases.split(rows, ("order",))]
    figure, data = load_sweep.panels(parts, LOAD, (THROUGHPUT, DROPS, LATENCY), "variant")
    words = cases.case_words(case)
    figure_layout.title_and_foot(
        figure, f"One TCP flow against CBR: {words}", cases.foot(material, rows)
    )
    stem = cases.stem(material.key, "load", *case.values())
    return NamedFigure(stem, _caption(rows), figure, data)


def _caption(rows: pd.DataFrame) -> str:
    """The leaders at light, middle and heavy load."""
    means = rows.groupby([AXIS + LOAD, "variant"])["throughput_mbps"].mean().unstack()
    said = []
    for load in cases.exemplary(sorted(means.index)):
        own = means.loc[load].dropna()
        if len(own) > 1:
            most, least = str(own.idxmax()), str(own.idxmin())
            words = f"{most} has most ({own[most]:.3g} Mbit/s) and {least} least ({own[least]:.3g})"
            if own[most] < 1.01 * own[least]:
                words = f"each has {own.mean():.3g} Mbit/s"
            said.append(f"at {load:g} Mbit/s of CBR {words}")
    drops = rows.groupby("variant")["drop_rate"].mean().dropna()
    text = "; ".join(said)
    text = f"{text[:1].upper()}{text[1:]}." if said else ""
    if len(drops) > 1:
        text += f" Over all loads {drops.idxmin()} loses least ({100 * drops.min():.2g} %)"
        text += f", {drops.idxmax()} most ({100 * drops.max():.2g} %)."
    return text
