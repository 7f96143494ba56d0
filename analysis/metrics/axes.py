"""A trial's place on its experiment's axes, as one text column and as one column per axis."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

BETWEEN = "; "
AXIS = "axis_"  # before an axis's name in a column's


def write_axes(axes: Mapping[str, str]) -> str:
    """`cbr_mbit=7; order=cbr-first`."""
    return BETWEEN.join(f"{name}={value}" for name, value in axes.items())


def read_axes(text: str) -> dict[str, str]:
    """The inverse of `write_axes`."""
    pairs = (part.partition("=") for part in text.split(BETWEEN) if part)
    return {name: value for name, _, value in pairs}


def with_axes(metrics: pd.DataFrame) -> pd.DataFrame:
    """The metrics with one column per axis, named `axis_NAME`; numbers if all values are."""
    rows = [read_axes(text) for text in metrics["axes"]]
    table = pd.DataFrame(rows, index=metrics.index)
    columns = {f"{AXIS}{name}": _numbers(table[name]) for name in table.columns}
    return metrics.assign(**columns)


def _numbers(texts: pd.Series[str]) -> pd.Series[float] | pd.Series[str]:
    numbers = pd.to_numeric(texts, errors="coerce")
    return numbers if numbers.notna().equals(texts.notna()) else texts
