"""The metrics of a run summed up: one line per cell, with the axes that tell the lines apart."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import pandas as pd

from analysis.metrics.axes import all_axes, read_axes, write_axes
from analysis.metrics.columns import CELL
from analysis.metrics.valid_trials import counted
from analysis.statistics.intervals import half_width
from analysis.trials.labels import variant_key


class Key(NamedTuple):
    """What may tell lines apart: an axis of the experiment, or a column of the metrics."""

    name: str
    axis: bool = False


VARIANT, FLOW = ALWAYS = (Key("variant"), Key("flow"))
# the axes come first, and these in this order, each if it tells more lines apart
COLUMNS = tuple(
    Key(name) for name in ("queue", "topology", "engine", "experiment", "label", "setting")
)
SETTING_DIGITS = 6  # of a hash


@dataclass(frozen=True)
class Line:
    """A cell: what its trials have in common, and their rows of the metrics."""

    keys: Mapping[Key, str]
    rows: pd.DataFrame

    @cached_property
    def counted(self) -> pd.DataFrame:
        """The rows that ran and are not invalid: those that are averaged."""
        return counted(self.rows)

    def mean(self, metric: str) -> float:
        """The mean over the seeds; NaN if the metric is not known."""
        return float(self.counted[metric].mean())

    def half_width(self, metric: str) -> float:
        """Half of the mean's confidence interval; NaN for fewer than two seeds."""
        known = self.counted[metric].dropna()
        return half_width(known) if len(known) > 1 else float("nan")

    def write(self, keys: Iterable[Key]) -> tuple[str, ...]:
        """The values of the keys; a trial of another experiment may lack an axis."""
        return tuple(self.keys.get(key, "") for key in keys)


@dataclass(frozen=True)
class Summary:
    """The lines, and the keys that tell them apart."""

    keys: tuple[Key, ...]
    lines: tuple[Line, ...]


def sum_up(metrics: pd.DataFrame) -> Summary:
    """Rows are averaged only where they differ in nothing but the seed."""
    metrics = metrics.assign(axes=[write_axes(axes) for axes in all_axes(metrics)])
    grouped = metrics.groupby(list(CELL), sort=False, dropna=False)
    lines = [Line(_keys(rows), rows) for _, rows in grouped]
    keys = _telling(lines)
    return Summary(keys, tuple(sorted(lines, key=lambda line: _rank(line, keys))))


def _keys(rows: pd.DataFrame) -> dict[Key, str]:
    first = rows.iloc[0]
    axes = read_axes(str(first["axes"]))
    found = {Key(name, axis=True): value for name, value in axes.items()}
    found |= {key: str(first[key.name]) for key in (*ALWAYS, *COLUMNS)}
    return found | {Key("setting"): str(first["setting"])[:SETTING_DIGITS]}


def _telling(lines: Sequence[Line]) -> tuple[Key, ...]:
    """The axes that vary, then variant and flow; a key that tells no more than those is left out.

    Columns that are no axis are added only while two lines would look the same. The flow is left
    out if it is called like its variant, or if every trial has only this one; the variant where
    an axis of that name says it of all flows.
    """
    axes = dict.fromkeys(key for line in lines for key in line.keys if key.axis)
    varying = [key for key in axes if _count(lines, (key,)) > 1]
    chosen: tuple[Key, ...] = ALWAYS
    for key in (*varying, *COLUMNS):
        if _count(lines, (*chosen, key)) > _count(lines, chosen):
            chosen = (*chosen, key)
    flows = {line.write((FLOW,)) for line in lines}
    own = chosen[len(ALWAYS) :]
    said = any(key.name == VARIANT.name for key in own)
    if said and _count(lines, (*own, FLOW)) == _count(lines, chosen):
        return (*own, *((FLOW,) * (len(flows) > 1)))
    named_apart = len(flows) > 1 and any(len(set(line.write(ALWAYS))) > 1 for line in lines)
    return (*own, VARIANT, *((FLOW,) * named_apart))


def _count(lines: Iterable[Line], keys: Sequence[Key]) -> int:
    return len({line.write(keys) for line in lines})


def _rank(line: Line, keys: Sequence[Key]) -> tuple[object, ...]:
    return tuple(map(_key_rank, keys, line.write(keys)))


def _key_rank(key: Key, value: str) -> tuple[object, ...]:
    """Numbers by value, variants in their usual order, the rest as text."""
    if key.name == VARIANT.name:
        return (0, variant_key(value))
    try:
        return (0, float(value))
    except ValueError:
        return (1, value)
