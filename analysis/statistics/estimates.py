"""What the typical network shows: an interval of its number, and how surely bounds hold it.

A network is a seed. Its number is a difference, a ratio or a mean, and the typical network's is the
median of all. How the interval is made follows from the shape of the numbers, of which a shift
changes nothing: it cannot depend on the answer. `benchmarks/claim_worlds.py` measures how often it
covers what it should.
"""

from __future__ import annotations

import enum
import itertools
import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist

import numpy as np

from analysis.statistics.distributions import beta_quantile, coin_tails, t_p, t_quantile
from analysis.statistics.intervals import Floats, deviation, known, of_two_kinds

CLAIM_LEVEL = 0.05  # the probability of an error that a single answer may have
PLANNED_POWER = 0.9
MIN_RANKED = 6  # networks: of fewer, the extremes are no 95 % interval of the median
MIN_CONSTANT = 9  # networks with one number that decide: 95 %, at least 72 % of all have it
# Of normal numbers, three in ten samples are as skewed as the limit, and ranks need more of them.
RANKS_FACTOR = 1.25


class EstimateKind(enum.StrEnum):
    """How an interval was made."""

    STUDENT = "Student's interval over networks"
    RANKS = "interval of the median over networks (ranks)"
    CONSTANT = "one number in all networks (exact binomial bound)"
    NOT_KNOWN = "no interval"


@dataclass(frozen=True, eq=False)
class Estimate:
    """The numbers of networks, whose typical one is to be known."""

    values: Floats

    @property
    def n(self) -> int:
        """The number of networks."""
        return len(self.values)

    @cached_property
    def kind(self) -> EstimateKind:
        """Choose by the shape alone: ranks for what is skewed, or of two kinds."""
        if self.n < 2:
            return EstimateKind.NOT_KNOWN
        if not deviation(self.values):
            return EstimateKind.CONSTANT
        two = of_two_kinds(self.values)
        if self.n < MIN_RANKED:
            return EstimateKind.NOT_KNOWN if two else EstimateKind.STUDENT
        return EstimateKind.RANKS if two or _is_skewed(self.values) else EstimateKind.STUDENT

    @cached_property
    def centre(self) -> float:
        """The mean, or the median where ranks decide."""
        if not self.n:
            return math.nan
        ranked = self.kind is EstimateKind.RANKS
        return float(np.median(self.values) if ranked else self.values.mean())

    @cached_property
    def _error(self) -> float:
        return deviation(self.values) / math.sqrt(self.n)

    def interval(self, level: float = CLAIM_LEVEL) -> tuple[float, float]:
        """Return the interval that misses the typical network's number with this probability."""
        if self.kind is EstimateKind.CONSTANT:
            return self.centre, self.centre
        if self.kind is EstimateKind.STUDENT:
            half = t_quantile(1 - level, self.n - 1) * self._error
            return self.centre - half, self.centre + half
        end = _end_of_median(self.n, level)
        if self.kind is EstimateKind.NOT_KNOWN or end < 0:
            return -math.inf, math.inf
        ordered = np.sort(self.values)
        return float(ordered[end]), float(ordered[self.n - 1 - end])

    def p_within(self, low: float, high: float) -> float:
        """Return the least level at which the interval lies within these bounds, at most 1."""
        if self.kind is EstimateKind.NOT_KNOWN or not low <= self.centre <= high:
            return 1.0
        if self.kind is EstimateKind.CONSTANT:
            return 0.0 if self.n >= MIN_CONSTANT else 1.0
        if self.kind is EstimateKind.STUDENT:
            nearest = min(self.centre - low, high - self.centre) / self._error
            return t_p(nearest, self.n - 1)
        beyond = max(int((self.values < low).sum()), int((self.values > high).sum()))
        return coin_p(beyond, self.n)


def _end_of_median(n: int, level: float) -> int:
    """Return the rank, from 0, of the lower end of the median's interval; -1 if n is too small.

    The interval from place k to the same place from the other end misses the median if at most k
    numbers are on one side of it.
    """
    tails = itertools.islice(coin_tails(n), (n + 1) // 2)
    return sum(2 * each <= level for each in tails) - 1


def coin_p(at_most: int, n: int) -> float:
    """Return the two-sided p of a fair coin that shows one side at most this often in n tosses."""
    return min(1.0, 2 * next(itertools.islice(coin_tails(n), at_most, None)))


def _is_skewed(values: Floats) -> bool:
    """Return whether the skewness is more than one standard error of a normal sample's."""
    n, left = len(values), values - values.mean()
    skewness = float((left**3).mean() / (left**2).mean() ** 1.5)
    return abs(skewness) > math.sqrt(6 * (n - 2) / ((n + 1) * (n + 3)))


def of_values(values: Iterable[float]) -> Estimate:
    """Return the estimate of what these networks show; unknown numbers are left out."""
    return Estimate(known(values))


def share_of_all(n: int) -> float:
    """Return the least share of all networks that have what each of n networks has, at 95 %."""
    return float(CLAIM_LEVEL ** (1 / n)) if n else 0.0


def share_interval(successes: int, n: int, level: float = CLAIM_LEVEL) -> tuple[float, float]:
    """Return the exact interval of a share (Clopper and Pearson)."""
    low = beta_quantile(successes, n - successes + 1, level / 2) if successes else 0.0
    high = n - successes
    return low, beta_quantile(successes + 1, high, 1 - level / 2) if high else 1.0


def networks_needed(
    spread: float, distance: float, *, two_sided: bool = False, most: int = 100_000
) -> int:
    """Return how many networks decide, in nine of ten cases, a number this far from its limit.

    `spread` is the standard deviation over the networks of a pilot; `two_sided` is for a number
    that must stay within a distance on either side. 0 if nothing can be planned; what has no spread
    needs as many as a constant does.
    """
    if not math.isfinite(spread) or not 0 < distance < math.inf:
        return 0
    n = MIN_CONSTANT
    missed = (1 - PLANNED_POWER) / (2 if two_sided else 1)
    while n < most:
        reach = t_quantile(1 - CLAIM_LEVEL, n - 1) + t_quantile(1 - 2 * missed, n - 1)
        enough = math.ceil(RANKS_FACTOR * (reach * spread / distance) ** 2)
        if enough <= n:
            return n
        n = min(most, max(n + 1, min(enough, 2 * n)))
    return most


CLAIM_LOOKS = (10, 20, 40, 80)  # networks after which `--until answered` looks at the claims


def spent(fraction: float) -> float:
    """Return what of the level may be spent when a fraction of the networks was run.

    As O'Brien and Fleming's limits do, in the form of Lan and DeMets: next to nothing early.
    """
    return math.erfc(-NormalDist().inv_cdf(CLAIM_LEVEL / 2) / math.sqrt(2 * fraction))


def level_at(look: int, looks: tuple[int, ...] = CLAIM_LOOKS) -> float:
    """Return the level of one look, counted from 0.

    It is what this look adds to the level that is spent: the sum bounds the error of all looks
    whatever the test, and without the correlation of looks, which would make it slightly more.
    """
    before = spent(looks[look - 1] / looks[-1]) if look else 0.0
    return spent(looks[look] / looks[-1]) - before
