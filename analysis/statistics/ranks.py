"""Rank statistics of two samples and of pairs: Mann–Whitney, Wilcoxon, Hodges–Lehmann.

Written out here, not taken from scipy.stats, since the intervals of the shifts need the same
distributions, and thousands of comparisons have to take seconds. Tests hold them against scipy.
"""

from __future__ import annotations

import functools
import math

import numpy as np
import numpy.typing as npt
from scipy import special

Floats = npt.NDArray[np.float64]

NAN = float("nan")
EXACT = 20  # values a sample up to which the distribution is counted: C(40, 20) < 2⁵³


@functools.lru_cache(maxsize=512)
def _u_counts(n: int, m: int) -> Floats:
    """In how many orders of n + m values U is 0, 1, …, nm (Gaussian binomial coefficients)."""
    counts = np.zeros(n * m + 1)
    counts[0] = 1
    for i in range(1, n + 1):  # times (1 − q^(m+i)) over (1 − q^i)
        counts[m + i :] -= counts[: len(counts) - m - i].copy()
        for start in range(i):
            counts[start::i] = np.cumsum(counts[start::i])
    return counts


@functools.lru_cache(maxsize=64)
def _signed_counts(n: int) -> Floats:
    """In how many of the 2ⁿ choices of signs the sum of positive ranks is 0, 1, …"""
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


def mann_whitney_p(a: Floats, b: Floats) -> float:
    """Two-sided p: exact up to 20 values a sample without ties, else by the normal
    distribution, corrected for ties and continuity; NaN where all values are one."""
    n, m = len(a), len(b)
    both = np.concatenate((a, b))
    ties = np.unique(both, return_counts=True)[1]
    differences = a[:, None] - b[None, :]
    u = float((differences > 0).sum() + (differences == 0).sum() / 2)
    if len(ties) == n + m and max(n, m) <= EXACT:
        return _two_sided(_u_cumulative(n, m), min(u, n * m - u))
    total = n + m
    variance = n * m / 12 * (total + 1 - float((ties**3 - ties).sum()) / (total * (total - 1)))
    return _normal(abs(u - n * m / 2), variance)


def wilcoxon_p(differences: Floats) -> float:
    """Two-sided p of the signed ranks; differences of 0 are left out (Wilcoxon's own way)."""
    own = differences[differences != 0]
    n = len(own)
    if not n:
        return NAN
    _, place, ties = np.unique(np.abs(own), return_inverse=True, return_counts=True)
    ranks = (np.cumsum(ties) - (ties - 1) / 2)[place]
    total = n * (n + 1) / 2
    positive = float(ranks[own > 0].sum())
    if len(ties) == n and n <= EXACT:
        return _two_sided(_signed_cumulative(n), min(positive, total - positive))
    variance = n * (n + 1) * (2 * n + 1) / 24 - float((ties**3 - ties).sum()) / 48
    return _normal(abs(positive - total / 2), variance)


def _two_sided(cumulative: Floats, least: float) -> float:
    return min(1.0, 2 * float(cumulative[round(least)]))


def _normal(distance: float, variance: float) -> float:
    if variance <= 0:
        return NAN
    return min(1.0, 2 * float(special.ndtr(-max(0.0, distance - 0.5) / math.sqrt(variance))))


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
