"""Rows of metrics: those that count, and their places on the axes of their experiment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd

from testbed.scenario.model import BASE_KERNEL
from testbed.scenario.variations import KERNEL_AXIS, REALISTIC_AXIS

AXES_SEPARATOR = "; "
AXIS = "axis_"  # before an axis's name in a column's


def write_axes(axes: Mapping[str, str]) -> str:
    """`cbr_mbit=7; order=cbr-first`."""
    return AXES_SEPARATOR.join(f"{name}={value}" for name, value in axes.items())


def read_axes(text: str) -> dict[str, str]:
    """Read the text of `write_axes`."""
    pairs = (part.partition("=") for part in text.split(AXES_SEPARATOR) if part)
    return {name: value for name, _, value in pairs}


def all_axes(metrics: pd.DataFrame) -> list[dict[str, str]]:
    """Return every row's place on the axes.

    Where some rows name their kernel, the others have the base kernel; where some are realistic,
    the others are not.
    """
    rows = [read_axes(text) for text in metrics["axes"].astype(str)]
    for axis, usual in ((KERNEL_AXIS, BASE_KERNEL), (REALISTIC_AXIS, "false")):
        if any(axis in row for row in rows):
            rows = [{axis: usual, **row} for row in rows]
    return rows


def with_axes(metrics: pd.DataFrame) -> pd.DataFrame:
    """Add a column `axis_NAME` for each axis; numbers if all values are."""
    table = pd.DataFrame(all_axes(metrics), index=metrics.index)
    columns = {f"{AXIS}{name}": _values(table[name]) for name in table.columns}
    return metrics.assign(**columns)


def _values(texts: pd.Series[str]) -> pd.Series[float] | pd.Series[str]:
    return texts if texts.name == KERNEL_AXIS else _numbers(texts)  # 6.10 is not 6.1


def _numbers(texts: pd.Series[str]) -> pd.Series[float] | pd.Series[str]:
    numbers = pd.to_numeric(texts, errors="coerce")
    return numbers if numbers.notna().equals(texts.notna()) else texts


INVALID = "invalid"  # analysis.verdict.checks.Grade
SUSPECT = "suspect"


def invalid(metrics: pd.DataFrame) -> pd.Series[bool]:
    """Return a mask of the rows of invalid trials; a table without verdicts has none."""
    if "verdict" not in metrics:
        return pd.Series(False, index=metrics.index)
    return metrics["verdict"] == INVALID


def counted(metrics: pd.DataFrame) -> pd.DataFrame:
    """Select the rows of trials that ran and are not invalid."""
    return metrics[(metrics["status"] == "ok") & ~invalid(metrics)]


LENGTH_AXES = ("duration_s",)  # left out where another axis decides how long a trial is
# what may tell settings apart that share their place on all axes, in this order
OTHER_DISTINCTIONS = ("label", "variants", "queue", "topology", "setting")
SETTING_DIGITS = 6  # of a hash


def varied_axes(rows: pd.DataFrame) -> list[str]:
    """Return the axes with more than one value among the rows."""
    columns = [name for name in rows.columns if str(name).startswith(AXIS)]
    varied = [name for name in columns if rows[name].nunique(dropna=False) > 1]
    lengths = [AXIS + name for name in LENGTH_AXES if AXIS + name in varied]
    others = [name for name in varied if name not in lengths]
    kept = [name for name in lengths if not determined(rows, name, others)]
    return [name.removeprefix(AXIS) for name in varied if name in others or name in kept]


def determined(rows: pd.DataFrame, column: str, by: Sequence[str]) -> bool:
    """Say whether rows that agree in the other columns agree in this one."""
    if not by:
        return bool(rows[column].nunique(dropna=False) <= 1)
    groups = rows.groupby(list(by), dropna=False)[column]
    return bool(groups.nunique(dropna=False).max() <= 1)


def joined_by_trial(trials: pd.Series[str], texts: pd.Series[str]) -> pd.Series[str]:
    """Return for each row the joined texts of all rows of its trial."""
    by_trial: dict[str, list[str]] = {}  # pandas' groups would take a while
    for trial, text in zip(trials, texts, strict=True):
        by_trial.setdefault(trial, []).append(str(text))
    joined = {trial: "+".join(parts) for trial, parts in by_trial.items()}
    return trials.map(joined).astype("str")  # of an empty table, too


def tell_settings_apart(rows: pd.DataFrame) -> pd.DataFrame:
    """Add axes where flows of one name and variant share a place but not a setting.

    Such are the trials of several scenario files, which have no axes.
    """
    variants = joined_by_trial(rows["trial"], rows["variant"])
    first = rows.groupby("trial", sort=False)["setting"].transform("first")
    setting = first.str[:SETTING_DIGITS]
    known = rows.assign(variants=variants, setting_digits=rows["setting"], setting=setting)
    place = [name for name in rows.columns if str(name).startswith(AXIS)] + ["flow", "variant"]
    for name in OTHER_DISTINCTIONS:
        if determined(known, "setting_digits", place):
            break
        column = AXIS + name
        if column not in rows and not determined(known, name, place):
            rows, known = (each.assign(**{column: known[name]}) for each in (rows, known))
            place.append(column)
    return rows
