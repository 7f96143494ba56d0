"""Student's, Fisher's and the binomial distribution: what intervals and tests need of them.

scipy has these, too, but takes a quarter of a second to load, and as much room as pandas and numpy.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator
from statistics import NormalDist

TINY = 1e-300  # in place of a zero that something is divided by
PRECISION = 2.0**-52


def t_p(t: float, freedom: float) -> float:
    """Return the probability of a value as far from 0, on either side."""
    return beta_share(freedom / 2, 0.5, freedom / (freedom + t * t))


@functools.lru_cache(maxsize=4096)
def t_quantile(confidence: float, freedom: float) -> float:
    """Return within how many standard errors of the mean a share of the values lies."""
    if not freedom > 0:
        return math.nan
    scale = math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2)
    t, step = NormalDist().inv_cdf((1 + confidence) / 2), math.inf
    while step > 4 * PRECISION * t:  # by Newton, from below: there the tail is convex
        steepness = 2 * math.exp(scale - (freedom + 1) / 2 * math.log1p(t * t / freedom))
        steepness /= math.sqrt(freedom * math.pi)
        step = (t_p(t, freedom) - (1 - confidence)) / steepness
        t += step
    return t


def fisher_quantile(confidence: float, freedom: float) -> float:
    """Return the quantile of Fisher's F with 2 and `freedom` degrees of freedom."""
    return freedom / 2 * (math.pow(1 - confidence, -2 / freedom) - 1)


def coin_tails(n: int) -> Iterator[float]:
    """Yield the probabilities that a fair coin shows heads at most 0, 1, … times in n throws."""
    ways = itertools.accumulate(math.comb(n, heads) for heads in range(n + 1))
    return (each / (1 << n) for each in ways)


def beta_quantile(a: float, b: float, share: float) -> float:
    """Return where the regularized incomplete beta function reaches a share."""
    low, high = 0.0, 1.0
    while low < (middle := (low + high) / 2) < high:
        low, high = (middle, high) if beta_share(a, b, middle) < share else (low, middle)
    return middle


def beta_share(a: float, b: float, x: float) -> float:
    """Return the regularized incomplete beta function, I_x(a, b)."""
    if not 0 < x < 1:
        return x  # also an unknown one
    if x > (a + 1) / (a + b + 2):  # where the fraction converges slowly
        return 1 - beta_share(b, a, 1 - x)
    scale = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    front = math.exp(scale + a * math.log(x) + b * math.log1p(-x)) / a
    return front / _beta_fraction(a, b, x)


def _beta_fraction(a: float, b: float, x: float) -> float:
    """Return the continued fraction of the incomplete beta function, by Lentz's method."""
    value = c = 1.0
    d = 0.0
    for i in range(1, 10_000):
        m = i // 2
        if i % 2:
            step = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        else:
            step = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        d = 1 / (1 + step * d or TINY)
        c = 1 + step / c or TINY
        value *= c * d
        if abs(c * d - 1) < PRECISION:
            break
    return value
