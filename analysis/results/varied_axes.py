"""The axes on which trials differ, and an axis more where their settings differ in what is none."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from analysis.metrics.axes import AXIS

LENGTH_AXES = ("duration_s",)  # left out where another axis decides how long a trial is
# what may tell settings apart that share their place on all axes, in this order
OTHERWISE = ("label", "variants", "queue", "topology", "setting")
SETTING_DIGITS = 6  # of a hash


def varied_axes(rows: pd.DataFrame) -> list[str]:
    """The axes with more than one value among the rows."""
    columns = [name for name in rows.columns if str(name).startswith(AXIS)]
    varied = [name for name in columns if rows[name].nunique(dropna=False) > 1]
    lengths = [AXIS + name for name in LENGTH_AXES if AXIS + name in varied]
    others = [name for name in varied if name not in lengths]
    kept = [name for name in lengths if not determined(rows, name, others)]
    return [name.removeprefix(AXIS) for name in varied if name in others or name in kept]


def determined(rows: pd.DataFrame, column: str, by: Sequence[str]) -> bool:
    """True if rows that agree in the other columns agree in this one."""
    if not by:
        return bool(rows[column].nunique(dropna=False) <= 1)
    groups = rows.groupby(list(by), dropna=False)[column]
    return bool(groups.nunique(dropna=False).max() <= 1)


def tell_settings_apart(rows: pd.DataFrame) -> pd.DataFrame:
    """With further axes if flows of one name and variant share a place but not a setting.

    Such are the trials of several scenario files, which have no axes.
    """
    trials = rows.groupby("trial", sort=False)
    variants = trials["variant"].transform(lambda names: "+".join(map(str, names)))
    setting = trials["setting"].transform("first").str[:SETTING_DIGITS]
    known = rows.assign(variants=variants, setting_digits=rows["setting"], setting=setting)
    place = [name for name in rows.columns if str(name).startswith(AXIS)] + ["flow", "variant"]
    for name in OTHERWISE:
        if determined(known, "setting_digits", place):
            break
        column = AXIS + name
        if column not in rows and not determined(known, name, place):
            rows, known = (each.assign(**{column: known[name]}) for each in (rows, known))
            place.append(column)
    return rows
