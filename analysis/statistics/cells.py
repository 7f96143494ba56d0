"""Statistics of a metrics table: one row per cell, and one row per pair of cells."""

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
from analysis.statistics.ranks import compare_paired_ranks, compare_ranks

NUMBERS = tuple(field.name for field in dataclasses.fields(Summary))
PAIRED = tuple(
    field.name for field in dataclasses.fields(Paired) if field.name not in ("finding", "n")
)
RANKS = ("shift", "shift_low", "shift_high")


def cell_table(metrics: pd.DataFrame, metric: str, by: Sequence[str] = CELL) -> pd.DataFrame:
    """One row per cell, in the order of their first trials: `by`, n, and the fields of `Summary`.

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

    `a` less `b`: the fields of `Comparison`, Mann–Whitney's p, and Hodges–Lehmann's shift. The same
    seed by seed as `paired_…`, where both have at least one seed in common and no seed twice.
    `p_holm` is Welch's p (`p_welch`) corrected over the whole table, which is the family of
    comparisons. Invalid trials are left out.
    """
    metrics = metrics.assign(**{metric: _trusted(metrics, metric)})
    rest = [name for name in by if name != family]
    rows = list(_pairs(metrics[[*rest, family, "seed", metric]], metric, family, rest))
    numbers = [field.name for field in dataclasses.fields(Comparison)]
    numbers += ["p_mann_whitney", *RANKS]
    paired = [f"paired_{name}" for name in (*PAIRED, "p_wilcoxon", *RANKS)]
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
            own, others = ([value for _, value in side] for side in (first, second))
            pairs = compare_paired(*_by_seed(first, second))
            yield (
                *(*group, a, b),
                *dataclasses.astuple(compare(own, others)),
                *dataclasses.astuple(compare_ranks(own, others)),
                pairs.n,
                *(getattr(pairs, name) for name in PAIRED),
                *dataclasses.astuple(compare_paired_ranks(*_by_seed(first, second))),
            )


def _by_seed(
    first: list[tuple[float, float]], second: list[tuple[float, float]]
) -> tuple[dict[int, float], dict[int, float]]:
    """Nothing if a seed has several values: then nothing says which belong together."""
    a, b = ({int(seed): value for seed, value in side} for side in (first, second))
    return (a, b) if (len(a), len(b)) == (len(first), len(second)) else ({}, {})
