"""A trial's place on its experiment's axes, as one text column and as one column per axis."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from testbed.scenario.kernel_axis import AXIS as KERNEL
from testbed.scenario.model import BASE_KERNEL

BETWEEN = "; "
AXIS = "axis_"  # before an axis's name in a column's


def write_axes(axes: Mapping[str, str]) -> str:
    """`cbr_mbit=7; order=cbr-first`."""
    return BETWEEN.join(f"{name}={value}" for name, value in axes.items())


def read_axes(text: str) -> dict[str, str]:
    """The inverse of `write_axes`."""
    pairs = (part.partition("=") for part in text.split(BETWEEN) if part)
    return {name: value for name, _, value in pairs}


def all_axes(metrics: pd.DataFrame) -> list[dict[str, str]]:
    """Every row's place on the axes. Where some name their kernel, the others have the first one:
    that is what trials are of that do not say it."""
    rows = [read_axes(text) for text in metrics["axes"].astype(str)]
    if any(KERNEL in row for row in rows):
        return [{KERNEL: BASE_KERNEL, **row} for row in rows]
    return rows


def with_axes(metrics: pd.DataFrame) -> pd.DataFrame:
    """The metrics with one column per axis, named `axis_NAME`; numbers if all values are."""
    table = pd.DataFrame(all_axes(metrics), index=metrics.index)
    columns = {f"{AXIS}{name}": _values(table[name]) for name in table.columns}
    return metrics.assign(**columns)


def _values(texts: pd.Series[str]) -> pd.Series[float] | pd.Series[str]:
    return texts if texts.name == KERNEL else _numbers(texts)  # 6.10 is not 6.1


def _numbers(texts: pd.Series[str]) -> pd.Series[float] | pd.Series[str]:
    numbers = pd.to_numeric(texts, errors="coerce")
    return numbers if numbers.notna().equals(texts.notna()) else texts
