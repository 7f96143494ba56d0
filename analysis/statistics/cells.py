"""Statistics of a metrics table: a row a cell, and a row a pair of cells."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pandas as pd

from analysis.metrics.columns import CELL
from analysis.metrics.valid_trials import invalid
from analysis.statistics.intervals import (
    Comparison,
    Paired,
    Summary,
    compare,
    compare_paired,
    holm,
    summarise,
)

NUMBERS = tuple(field.name for field in dataclasses.fields(Summary))
PAIRED = tuple(
    field.name for field in dataclasses.fields(Paired) if field.name not in ("finding", "n")
)


def cell_table(metrics: pd.DataFrame, metric: str, by: Sequence[str] = CELL) -> pd.DataFrame:
    """One row a cell in the order of their first trials: `by`, n, and what `Summary` has.

    n counts the trials in which the metric is known; a cell with none stays, with n = 0.
    Invalid trials are left out, and `invalid` counts them.
    """
    left_out = invalid(metrics).to_numpy()
    values = _trusted(metrics, metric)
    grouped = metrics.groupby(list(by), sort=False, dropna=False)
    keys = metrics.loc[~metrics.duplicated(list(by)), list(by)].reset_index(drop=True)
    cell = grouped.ngroup().to_numpy()
    finite = np.isfinite(values)
    counts = np.bincount(cell[finite], minlength=len(keys))
    ordered = values[finite][np.argsort(cell[finite], kind="stable")]
    starts = np.cumsum(counts) - counts
    numbers = np.full((len(keys), len(NUMBERS)), np.nan)
    for n in np.unique(counts[counts > 0]):
        own = np.flatnonzero(counts == n)
        summary = summarise(ordered[starts[own][:, None] + np.arange(n)])
        numbers[own] = np.column_stack([getattr(summary, name) for name in NUMBERS])
    refused = np.bincount(cell[left_out], minlength=len(keys))
    return keys.assign(n=counts, invalid=refused, **dict(zip(NUMBERS, numbers.T, strict=True)))


def _trusted(metrics: pd.DataFrame, metric: str) -> npt.NDArray[np.float64]:
    """The metric's values; those of invalid trials are not known."""
    values = metrics[metric].to_numpy(dtype=np.float64)
    return np.where(invalid(metrics).to_numpy(), np.nan, values)


def pair_table(
    metrics: pd.DataFrame, metric: str, family: str = "variant", by: Sequence[str] = CELL
) -> pd.DataFrame:
    """All pairs of `family` within cells that are alike in the rest of `by`.

    `a` less `b`, as `Comparison` has it; `paired_…`, as `Paired` has it, where both have at
    least one seed in common and no seed twice. `p_holm` is Welch's p (`p_welch`) corrected
    over the whole table, which is the family of comparisons. Invalid trials are left out.
    """
    metrics = metrics.assign(**{metric: _trusted(metrics, metric)})
    rest = [name for name in by if name != family]
    rows = list(_pairs(metrics[[*rest, family, "seed", metric]], metric, family, rest))
    numbers = [field.name for field in dataclasses.fields(Comparison)]
    paired = [f"paired_{name}" for name in PAIRED]
    table = pd.DataFrame(rows, columns=[*rest, "a", "b", *numbers, "pairs", *paired])
    return table.assign(p_holm=holm(table["p_welch"]))


def _pairs(
    metrics: pd.DataFrame, metric: str, family: str, rest: list[str]
) -> Iterator[tuple[object, ...]]:
    """Rows of the table of pairs."""
    groups: dict[tuple[object, ...], dict[object, list[tuple[float, float]]]] = {}
    for *key, member, seed, value in metrics[[*rest, family, "seed", metric]].itertuples(
        index=False, name=None
    ):
        groups.setdefault(tuple(key), {}).setdefault(member, []).append((seed, value))
    for group, members in groups.items():
        for (a, first), (b, second) in itertools.combinations(members.items(), 2):
            found = compare((v for _, v in first), (v for _, v in second))
            pairs = _paired(first, second)
            numbers = (getattr(pairs, name) for name in PAIRED)
            fields = (getattr(found, field.name) for field in dataclasses.fields(found))
            yield (*group, a, b, *fields, pairs.n, *numbers)


def _paired(first: list[tuple[float, float]], second: list[tuple[float, float]]) -> Paired:
    """By seed, unless a seed stands for several values: then nothing says what belongs together."""
    sides = [{int(seed): value for seed, value in side} for side in (first, second)]
    if [len(side) for side in sides] != [len(first), len(second)]:
        return compare_paired({}, {})
    return compare_paired(*sides)
