"""The metrics of a run, summed up: one row per cell, with the axes that tell the cells apart."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import pandas as pd

from analysis.metrics.columns import CELL_COLUMNS, number_columns
from analysis.metrics.metric_rows import all_axes, counted, read_axes, write_axes
from analysis.statistics.intervals import half_width
from analysis.trials.labels import variant_key

DIGITS = re.compile("([0-9]+)")
SETTING_HASH_DIGITS = 6  # of a hash


class CellKey(NamedTuple):
    """A key that may tell cells apart: an axis of the experiment, or a column of the metrics."""

    name: str
    axis: bool = False


VARIANT_KEY, FLOW_KEY = FLOW_KEYS = (CellKey("variant"), CellKey("flow"))
# the axes come first, and these in this order, each if it tells more cells apart
COLUMN_KEYS = tuple(
    CellKey(name) for name in ("queue", "topology", "engine", "experiment", "label", "setting")
)


@dataclass(frozen=True)
class CellSummary:
    """A cell: what its trials have in common, and their rows of the metrics."""

    keys: Mapping[CellKey, str]
    rows: pd.DataFrame

    @cached_property
    def counted(self) -> pd.DataFrame:
        """The rows that ran and are not invalid: those that are averaged."""
        return counted(self.rows)

    def mean(self, metric: str) -> float:
        """Return the mean over the seeds; NaN if the metric is not known."""
        return float(self.counted[metric].mean())

    def half_width(self, metric: str) -> float:
        """Return half of the mean's confidence interval; NaN for fewer than two seeds."""
        return half_width(self.counted[metric].dropna())

    @cached_property
    def is_repeated(self) -> bool:
        """Whether its seeds gave the same numbers, so that an interval would mean nothing."""
        numbers = self.counted[number_columns(self.rows)]
        return len(numbers) > 1 and bool(
            numbers.drop(columns="seed").nunique(dropna=False).le(1).all()
        )

    def key_values(self, keys: Iterable[CellKey]) -> tuple[str, ...]:
        """Return the cell's key values as text; empty for an axis that its experiment lacks."""
        return tuple(self.keys.get(key, "") for key in keys)


@dataclass(frozen=True)
class RunSummary:
    """The cells, and the keys that tell them apart."""

    keys: tuple[CellKey, ...]
    cells: tuple[CellSummary, ...]


def sum_up(metrics: pd.DataFrame) -> RunSummary:
    """Group the rows that differ in nothing but the seed."""
    metrics = metrics.assign(axes=[write_axes(axes) for axes in all_axes(metrics)])
    grouped = metrics.groupby(list(CELL_COLUMNS), sort=False, dropna=False)
    cells = _with_own_variants([CellSummary(_cell_keys(rows), rows) for _, rows in grouped])
    keys = _telling_keys(cells)
    return RunSummary(keys, tuple(sorted(cells, key=lambda cell: _order(cell, keys))))


def _cell_keys(rows: pd.DataFrame) -> dict[CellKey, str]:
    first = rows.iloc[0]
    axes = read_axes(str(first["axes"]))
    keys = {CellKey(name, axis=True): value for name, value in axes.items()}
    keys |= {key: str(first[key.name]) for key in (*FLOW_KEYS, *COLUMN_KEYS)}
    return keys | {CellKey("setting"): str(first["setting"])[:SETTING_HASH_DIGITS]}


def _with_own_variants(cells: list[CellSummary]) -> list[CellSummary]:
    """Rename an axis called `variant` that is not of all flows: each row then has its own, too."""
    axis = CellKey(VARIANT_KEY.name, axis=True)
    if all(cell.keys.get(axis) in (None, cell.keys[VARIANT_KEY]) for cell in cells
           if cell.keys[VARIANT_KEY]):  # fmt: skip
        return cells
    renamed = axis._replace(name=f"{axis.name} (axis)")
    return [
        CellSummary({renamed if key == axis else key: v for key, v in cell.keys.items()}, cell.rows)
        for cell in cells
    ]


def _telling_keys(cells: Sequence[CellSummary]) -> tuple[CellKey, ...]:
    """Return the axes that vary, then variant and flow, without keys that tell no more.

    Columns that are no axis are added only while two cells would look the same. The flow is left
    out if it is called like its variant, or if every trial has only this one; the variant where
    an axis of that name says it of all flows.
    """

    def count(keys: Sequence[CellKey]) -> int:
        return len({cell.key_values(keys) for cell in cells})

    axes = dict.fromkeys(key for cell in cells for key in cell.keys if key.axis)
    varying = [key for key in axes if count((key,)) > 1]
    chosen: tuple[CellKey, ...] = FLOW_KEYS
    for key in (*varying, *COLUMN_KEYS):
        if count((*chosen, key)) > count(chosen):
            chosen = (*chosen, key)
    flows = {cell.key_values((FLOW_KEY,)) for cell in cells}
    others = chosen[len(FLOW_KEYS) :]
    variant_is_axis = any(key.name == VARIANT_KEY.name for key in others)
    if variant_is_axis and count((*others, FLOW_KEY)) == count(chosen):
        return (*others, *((FLOW_KEY,) * (len(flows) > 1)))
    named_apart = len(flows) > 1 and any(len(set(cell.key_values(FLOW_KEYS))) > 1 for cell in cells)
    return (*others, VARIANT_KEY, *((FLOW_KEY,) * named_apart))


def _order(cell: CellSummary, keys: Sequence[CellKey]) -> tuple[object, ...]:
    """Order numbers by value, variants in their usual order, the rest as text."""

    def order(key: CellKey, value: str) -> tuple[object, ...]:
        if key.name == VARIANT_KEY.name:
            return (0, variant_key(value))
        try:
            return (0, float(value))
        except ValueError:  # s2 before s10
            return (1, *((0, int(p)) if p.isdigit() else (1, p) for p in DIGITS.split(value) if p))

    return tuple(map(order, keys, cell.key_values(keys)))
