"""Rank statistics of two samples and of pairs: Mann–Whitney, Wilcoxon, Hodges–Lehmann.

The p-values are scipy's. The interval of a shift is not in scipy; it needs the distribution of the
statistic, which scipy computes too but does not export.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import special

from analysis.statistics.intervals import (
    CONFIDENCE,
    Comparison,
    Finding,
    Paired,
    compare,
    compare_paired,
    differences,
    known,
)

Floats = npt.NDArray[np.float64]

NAN = float("nan")
EXACT = 20  # values per sample up to which the distribution is counted: C(40, 20) < 2⁵³


@dataclass(frozen=True)
class Ranks:
    """Two-sided p of the ranks, and Hodges–Lehmann's shift with its interval."""

    p: float = NAN
    shift: float = NAN
    low: float = NAN
    high: float = NAN


def compare_ranks(first: Iterable[float], second: Iterable[float]) -> Ranks:
    """Two independent samples: Mann–Whitney."""
    a, b = known(first), known(second)
    found = compare(a, b)
    if found.finding is not Finding.TESTED:
        return _untested(found)
    return Ranks(mann_whitney_p(a, b), *shift(a, b, CONFIDENCE))


def compare_paired_ranks(first: Mapping[int, float], second: Mapping[int, float]) -> Ranks:
    """Values by seed: Wilcoxon's signed ranks."""
    found = compare_paired(first, second)
    if found.finding is not Finding.TESTED:
        return _untested(found)
    own = differences(first, second)
    return Ranks(wilcoxon_p(own), *paired_shift(own, CONFIDENCE))


def _untested(found: Comparison | Paired) -> Ranks:
    """Without any spread the difference is exact, and there is nothing to test."""
    return Ranks() if found.finding is Finding.NOT_KNOWN else Ranks(NAN, *(found.difference,) * 3)


def mann_whitney_p(a: Floats, b: Floats) -> float:
    """Exact up to 20 values per sample without ties, else by the normal distribution, corrected
    for ties and continuity."""
    from scipy import stats  # takes seconds to import

    distinct = len(np.unique(np.concatenate((a, b)))) == len(a) + len(b)
    method = "exact" if distinct and max(len(a), len(b)) <= EXACT else "asymptotic"
    return float(stats.mannwhitneyu(a, b, method=method).pvalue)


def wilcoxon_p(differences: Floats) -> float:
    """Wilcoxon's signed-rank test; differences of 0 are left out, as Wilcoxon did."""
    from scipy import stats

    own = differences[differences != 0]
    exact = len(np.unique(np.abs(own))) == len(own) <= EXACT
    method = "exact" if exact else "asymptotic"
    return float(stats.wilcoxon(own, method=method, correction=not exact).pvalue)


def shift(a: Floats, b: Floats, confidence: float) -> tuple[float, float, float]:
    """Hodges–Lehmann: the median of all a − b, and its interval from Mann–Whitney's
    distribution; NaN bounds where the samples are too small for one."""
    n, m = len(a), len(b)
    sums = np.sort((a[:, None] - b[None, :]).ravel())
    exact = _u_cumulative(n, m) if max(n, m) <= EXACT else None
    return _around_median(sums, exact, n * m * (n + m + 1) / 12, confidence)


def paired_shift(differences: Floats, confidence: float) -> tuple[float, float, float]:
    """Hodges–Lehmann of pairs: the median of the means of all two differences (each with
    itself too), and its interval from Wilcoxon's distribution."""
    n = len(differences)
    first, second = np.triu_indices(n)
    means = np.sort((differences[first] + differences[second]) / 2)
    exact = _signed_cumulative(n) if n <= EXACT else None
    return _around_median(means, exact, n * (n + 1) * (2 * n + 1) / 24, confidence)


def _around_median(
    ordered: Floats, cumulative: Floats | None, variance: float, confidence: float
) -> tuple[float, float, float]:
    """The median and the order statistics that enclose it with this confidence."""
    tail = (1 - confidence) / 2
    if cumulative is not None:  # how many may be left out at each end
        out = int(np.searchsorted(cumulative, tail, side="right"))
    else:
        below = len(ordered) / 2 + float(special.ndtri(tail)) * math.sqrt(variance)
        out = max(0, math.floor(below))
    middle = float(np.median(ordered))
    if out < 1:
        return middle, NAN, NAN
    return middle, float(ordered[out - 1]), float(ordered[-out])


@functools.lru_cache(maxsize=512)
def _u_counts(n: int, m: int) -> Floats:
    """The number of orders of n + m values with U = 0, 1, …, nm: Gaussian binomial coefficients."""
    counts = np.zeros(n * m + 1)
    counts[0] = 1
    for i in range(1, n + 1):  # times (1 − q^(m+i)) over (1 − q^i)
        counts[m + i :] -= counts[: len(counts) - m - i].copy()
        for start in range(i):
            counts[start::i] = np.cumsum(counts[start::i])
    return counts


@functools.lru_cache(maxsize=64)
def _signed_counts(n: int) -> Floats:
    """The number of the 2ⁿ choices of signs whose positive ranks add up to 0, 1, …"""
    counts = np.zeros(n * (n + 1) // 2 + 1)
    counts[0] = 1
    for rank in range(1, n + 1):
        counts[rank:] += counts[:-rank].copy()
    return counts


@functools.lru_cache(maxsize=512)
def _u_cumulative(n: int, m: int) -> Floats:
    return np.asarray(np.cumsum(_u_counts(n, m)) / math.comb(n + m, n), dtype=np.float64)


@functools.lru_cache(maxsize=64)
def _signed_cumulative(n: int) -> Floats:
    return np.asarray(np.cumsum(_signed_counts(n)) / 2.0**n, dtype=np.float64)
