"""The figures that every experiment has: the main measures over its main axis, the plane of
throughput and delay, the distributions of delays."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pandas as pd

from analysis.figures.general import distribution, load_sweep, plane
from analysis.figures.plotting import cases, error_bars, figure_layout
from analysis.figures.plotting.error_bars import DROPS, LATENCY, THROUGHPUT
from analysis.figures.plotting.named_figure import NamedFigure
from analysis.metrics.flow_digest import RTTS
from analysis.results.material import AXIS, Material

MOST_CASES = 6  # figures or panels of one kind; the tables have the rest
MOST_DELAYS = 2  # the same, of the distributions, which are large
SERIES = "series"


def draw(material: Material) -> Iterator[NamedFigure]:
    """Sweeps, the plane and the distributions, one per case of the axes that they do not show."""
    yield from sweeps(material)
    yield from planes(material)
    yield from distributions(material)


def named(material: Material) -> pd.DataFrame:
    """The TCP flows, each with the name of its series: the variant, and where a trial has
    several flows of one variant the flow's too."""
    rows = material.tcp
    variant = rows["variant"].where(rows["variant"] != "", rows["flow"])
    several = rows.groupby(["trial", "variant"])["flow"].transform("count") > 1
    return rows.assign(**{SERIES: variant.where(~several, rows["flow"] + " (" + variant + ")")})


def main_axis(material: Material, rows: pd.DataFrame) -> str:
    """The axis to draw over: the number with most values, else the name with most; or none."""
    own = [name for name in material.varied(rows) if name not in ("variant", "pair")]
    numbers = [name for name in own if load_sweep.is_number(rows, name)]
    return max(numbers or own, key=lambda name: rows[AXIS + name].nunique(), default="")


def others(material: Material, rows: pd.DataFrame, *shown: str) -> list[str]:
    """The axes that vary, without those that the figure shows."""
    return [name for name in material.varied(rows) if name not in ("variant", *shown)]


def measures(rows: pd.DataFrame) -> list[error_bars.Measure]:
    """The main measures that this experiment has."""
    return [m for m in (THROUGHPUT, DROPS, LATENCY) if rows[m.metric].notna().any()]


def sweeps(material: Material) -> Iterator[NamedFigure]:
    """Throughput, drops and delay over the main axis; without one, side by side per variant."""
    rows = named(material)
    axis = main_axis(material, rows)
    if rows.empty or not measures(rows):
        return
    if not axis:
        rows, axis = rows.assign(**{f"{AXIS}flows": rows[SERIES]}), "flows"
    for case, own in few_cases(rows, others(material, rows, axis)):
        words = cases.case_words(case)
        figure, data = load_sweep.panels([(words, own)], axis, measures(own), SERIES)
        figure_layout.title_and_foot(
            figure,
            f"{material.experiment}: "
            + ("each variant" if axis == "flows" else f"over {load_sweep.axis_label(axis)}"),
            cases.foot(material, own),
        )
        stem = cases.stem(material.key, "sweep", *case.values())
        yield NamedFigure(stem, extremes(own, SERIES, words), figure, data)


def planes(material: Material) -> Iterator[NamedFigure]:
    """Throughput against delay, as paths along the main axis if it is numeric."""
    rows = named(material).dropna(subset=[plane.X, plane.Y])
    if rows.empty:
        return
    axis = main_axis(material, rows)
    path = axis if axis and load_sweep.is_number(rows, axis) else ""
    parts = [
        (cases.case_words(case), own)
        for case, own in few_cases(rows, others(material, rows, *([path] if path else [])))
    ]
    figure, data = plane.panels(parts, SERIES, path)
    reading = f"lines run along {load_sweep.axis_label(path)}, whose ends are named" if path else ""
    figure_layout.title_and_foot(
        figure,
        f"{material.experiment}: throughput against delay",
        cases.foot(material, rows, reading or plane.READING),
    )
    how = "Throughput and one-way delay at once; up and to the left is better."
    stem = cases.stem(material.key, "plane")
    yield NamedFigure(stem, plane.best(rows, SERIES), figure, data, how)


def distributions(material: Material) -> Iterator[NamedFigure]:
    """Round trips and one-way delays, at up to three values of the main axis."""
    rows = named(material)
    if rows.empty or material.digest.empty:
        return
    axis = main_axis(material, rows)
    for case, own in few_cases(rows, others(material, rows, axis), MOST_DELAYS):
        parts = _parts(own, axis)
        figure, data = distribution.panels(parts, material.digest, SERIES)
        words = cases.case_words(case)
        title = f"{material.experiment}: distributions of delay"
        figure_layout.title_and_foot(
            figure,
            title + (f"; {words}" if words else ""),
            cases.foot(material, own, distribution.READING),
        )
        how = "The share of packets acknowledged (above) and delivered (below) within a given time."
        stem = cases.stem(material.key, "delays", *case.values())
        yield NamedFigure(stem, _medians(data), figure, data, how)


def _parts(rows: pd.DataFrame, axis: str) -> list[tuple[str, pd.DataFrame]]:
    if not axis:
        return [("", rows)]
    column = AXIS + axis
    if load_sweep.is_number(rows, axis):
        values = cases.exemplary(sorted(rows[column].unique()))
    else:
        values = cases.papers_first(rows[column].unique())[:3]
    return [
        (f"{load_sweep.axis_label(axis)}: {cases.text(value)}", rows[rows[column] == value])
        for value in values
    ]


def few_cases(
    rows: pd.DataFrame, axes: Sequence[str], most: int = MOST_CASES
) -> Iterator[tuple[dict[str, str], pd.DataFrame]]:
    """The first cases, so that a report stays readable."""
    for number, case in enumerate(cases.split(rows, axes)):
        if number < most:
            yield case


def extremes(rows: pd.DataFrame, series: str, words: str = "") -> str:
    """A caption: the series with the highest and lowest throughput, and with the lowest delay."""
    means = rows.groupby(series)["throughput_mbps"].mean().dropna()
    start = f"With {words}: " if words else ""
    if len(means) < 2:
        only = f"{means.iloc[0]:.3g} Mbit/s on average" if len(means) else "no throughput known"
        return f"{start}{means.index[0] if len(means) else 'nothing'}: {only}."
    most, least = str(means.idxmax()), str(means.idxmin())
    said = (
        f"{start}{most} has the highest throughput on average ({means[most]:.3g} Mbit/s), "
        f"{least} the lowest ({means[least]:.3g} Mbit/s)."
    )
    delays = rows.groupby(series)["owd_mean_ms"].mean().dropna()
    if len(delays) > 1:
        low, high = str(delays.idxmin()), str(delays.idxmax())
        said += f" Delays are lowest with {low} ({delays[low]:.3g} ms), highest with {high}"
        said += f" ({delays[high]:.3g} ms)."
    return said


def _medians(data: pd.DataFrame) -> str:
    half = data[(data["fraction"] == 0.5) & (data["what"] == RTTS)]
    if half.empty:
        return ""
    ordered = half.sort_values("ms")
    low, high = ordered.iloc[0], ordered.iloc[-1]
    return (
        f"Median round trips lie between {low['ms']:.3g} ms ({low[SERIES]}) "
        f"and {high['ms']:.3g} ms ({high[SERIES]})."
    )
