"""The division of rows into figures and panels, and their names in files, titles and footers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd

from analysis.figures.means import INTERVALS_READ, READING
from analysis.metrics.metric_rows import AXIS, determined, varied_axes
from analysis.results.experiment_results import ExperimentResults
from analysis.statistics.intervals import MIN_SEEDS_OF_A_SPREAD
from analysis.trials.labels import by_number, in_lines

# The papers' own settings, in the order to show them; others follow alphabetically.
FIRST = ("ns2", "small", "cbr-first", "receiver", "bfifo", "droptail", "red")
AXIS_UNITS = {"mbit": "Mbit/s", "ms": "ms", "s": "s", "bytes": "bytes", "packets": "packets"}
AXIS_UNITS |= {"bdp": "BDP", "percent": "%"}
FOOTER_LETTERS = 165  # per line of a footer


def split(
    rows: pd.DataFrame, axes: Sequence[str], shown: Sequence[str] = ()
) -> Iterator[tuple[dict[str, str], pd.DataFrame]]:
    """One group of rows per combination of the axes' values; the papers' own settings first.

    Every other axis that varies divides the rows too, unless the figure shows it: no group has
    rows that differ in anything else.
    """
    named = [name for name in axes if AXIS + name in rows and rows[AXIS + name].notna().any()]
    others = [name for name in varied_axes(rows) if name not in (*named, *shown)]
    columns = [AXIS + name for name in (*named, *others)]
    if not columns:
        yield {}, rows
        return
    groups = rows.groupby(columns, dropna=False)
    for values, members in sorted(groups, key=lambda group: _place(group[0])):
        yield case((*named, *others), values), members


def case(axes: Sequence[str], values: Iterable[Any]) -> dict[str, str]:
    """Map each axis that has a value to its value as text."""
    pairs = zip(axes, values, strict=True)
    return {name: text(value) for name, value in pairs if not pd.isna(value)}


def papers_first(values: Iterable[Any]) -> list[Any]:
    """Sort an axis's values, the papers' own before the others."""
    return sorted(values, key=lambda value: _place([value]))


def _place(values: Sequence[object]) -> list[tuple[object, ...]]:
    return [
        (
            FIRST.index(str(value)) if value in FIRST else len(FIRST),
            float(value) if isinstance(value, Real) else 0.0,
            by_number(str(value)),
        )
        for value in values
    ]


def exemplary(values: Sequence[float], most: int = 3) -> list[float]:
    """Return at most `most` of the sorted values: both ends, and evenly spaced ones between."""
    if len(values) <= most:
        return list(values)
    places = np.linspace(0, len(values) - 1, most).round().astype(int)
    return [values[int(place)] for place in places]


def axis_words(name: str) -> str:
    """Write an axis's name, without its unit, as words; a sysctl's as it is."""
    return name if name.startswith("net.") else name.replace("_", " ").replace(".", " ")


def text(value: object) -> str:
    """Write a value of an axis."""
    if not isinstance(value, float):
        return str(value)
    return f"{value:.0f}" if value.is_integer() else f"{value:g}"


def stem(*parts: str) -> str:
    """Return a name for files and for anchors of the page."""
    joined = "-".join(part for part in parts if part)
    return "".join(c if c.isalnum() or c in "-._" else "-" for c in joined)


def case_words(case: Mapping[str, str]) -> str:
    """`order cbr-first, rate 1 Mbit/s`."""
    return ", ".join(_worded(name, value) for name, value in case.items())


def titled(title: str, case: Mapping[str, str]) -> str:
    """Add the case to a title."""
    return f"{title}: {case_words(case)}" if case else title


def _worded(name: str, value: str) -> str:
    start, _, unit = name.rpartition("_")
    if start and unit in AXIS_UNITS:
        return f"{axis_words(start)} {value} {AXIS_UNITS[unit]}"
    return f"{axis_words(name)} {value}"


def foot(results: ExperimentResults, rows: pd.DataFrame, reading: str = "") -> str:
    """Write the footer: n, engine, profile, and how to read the figure."""
    by = [AXIS + name for name in results.varied(rows)] or ["experiment"]
    per = rows.groupby(by, dropna=False)  # trials of several runs have different axes
    seeds = sorted({int(n) for n in per["seed"].nunique()})
    n = f"n = {seeds[0]}" + (f"–{seeds[-1]}" if len(seeds) > 1 else "")
    parts = [f"{n} seeds per point" if seeds[-1] > 1 else "one seed", f"engine {results.engine}"]
    if "axis_profile" not in rows:
        profiles = sorted({str(trial.scenario.profile) for trial in results.trials})
        parts.append(f"profile {', '.join(profiles)}")
    if reading or seeds[-1] > 1:  # of one trial there is no interval to read
        few = seeds[-1] < MIN_SEEDS_OF_A_SPREAD
        parts.append((reading or READING).replace(INTERVALS_READ if few else "", ""))
    if (rows["verdict"] == "suspect").any():
        parts.append("hollow: includes a suspect trial")
    return in_lines(parts, FOOTER_LETTERS)


def cell_means(rows: pd.DataFrame, series: str, metrics: Sequence[str]) -> pd.DataFrame:
    """Return the means over the seeds, a row per cell, named like `cubic (order cbr-first)`."""
    axes = axes_beside(rows, series)
    means = {}
    groups = rows.groupby([series, *(AXIS + name for name in axes)], sort=False, dropna=False)
    for (name, *values), members in groups:
        label = case_words(case(axes, values))
        means[f"{name} ({label})" if label else str(name)] = members[list(metrics)].mean()
    return pd.DataFrame.from_dict(means, orient="index", columns=list(metrics))


def axes_beside(rows: pd.DataFrame, series: str) -> list[str]:
    """Name the axes that vary within a series, as `variant` does not if a series is a variant."""
    return [name for name in varied_axes(rows) if not determined(rows, AXIS + name, [series])]
