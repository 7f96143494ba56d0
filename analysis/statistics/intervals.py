"""Statistics of a few repeats: the mean with its interval, and the difference of two samples.

Unknown values (NaN, infinite) are left out and do not count in n. Where the data cannot answer,
the answer is NaN, and the comparison's kind says why. Values that do not vary leave no error to
divide by; how surely they differ then follows from their number alone (`_exact`).

Whether a run has enough seeds (`--until ci=2%`) is said by its widest interval.
"""

from __future__ import annotations

import enum
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from analysis.metrics.columns import CELL_COLUMNS
from analysis.metrics.metric_rows import counted
from analysis.statistics import distributions
from testbed.errors import UsageError

Floats = npt.NDArray[np.float64]

CONFIDENCE = 0.95
ROUNDING = 1e-12  # relative: a spread below it is arithmetic's, not the network's


class ComparisonKind(enum.StrEnum):
    """What could be said of two samples; unknown ones have no p-value."""

    TESTED = "tested"
    IDENTICAL = "identical"  # one and the same value everywhere
    CONSTANT = "constant, different"  # no spread in either sample, or in the differences
    NOT_KNOWN = "not known"  # fewer than two known values in a sample


@dataclass(frozen=True)
class Comparison:
    """Two samples, `a` less `b`, with the interval of the difference of their means."""

    kind: ComparisonKind
    n_a: int
    n_b: int
    difference: float = math.nan
    low: float = math.nan
    high: float = math.nan
    p: float = math.nan  # of no difference, two-sided
    cohen_d: float = math.nan  # of pairs: the mean of their differences over its own deviation


def known(values: Iterable[float]) -> Floats:
    """Return the finite values."""
    array = np.asarray(list(values), dtype=np.float64)
    return array[np.isfinite(array)]


def student_quantile(freedom: float) -> float:
    """Return half of a confidence interval, in standard errors."""
    return distributions.t_quantile(CONFIDENCE, freedom)


def half_width(values: Iterable[float]) -> float:
    """Return half of Student's confidence interval of the mean; NaN if these values allow no ±.

    A single value allows none. Neither do values of two kinds with fewer than five of one kind: a ±
    of those covers the mean in half of the cases.
    """
    array = known(values)
    n = len(array)
    if n < 2 or of_two_kinds(array):
        return math.nan
    return student_quantile(n - 1) * deviation(array) / math.sqrt(n)


MIN_OF_A_KIND = 5  # values: as for the normal approximation of a share
TWO_KINDS_GAP, TWO_KINDS_GAP_OF_THREE = 0.9, 0.99  # of the range, between two neighbours


def of_two_kinds(values: Floats) -> bool:
    """Return whether values are of two kinds, and too few of one to know how frequent it is."""
    n = len(values)
    if n < 3 or not deviation(values):
        return False
    gaps = np.diff(np.sort(values))
    widest = int(gaps.argmax())
    limit = TWO_KINDS_GAP if n > 3 else TWO_KINDS_GAP_OF_THREE
    return bool(
        gaps[widest] > limit * np.ptp(values) and min(widest + 1, n - widest - 1) < MIN_OF_A_KIND
    )


def deviation(values: Floats) -> float:
    """Return the standard deviation (n − 1), exactly 0 where only rounding differs."""
    flat = np.ptp(values) <= ROUNDING * np.abs(values).max()
    return 0.0 if flat else float(values.std(ddof=1))


def compare(first: Iterable[float], second: Iterable[float]) -> Comparison:
    """Compare two independent samples by Welch's t-test."""
    a, b = known(first), known(second)
    difference = _difference(a, b)
    if min(len(a), len(b)) < 2:
        return Comparison(ComparisonKind.NOT_KNOWN, len(a), len(b), difference)
    if not deviation(a) and not deviation(b):
        return _exact(len(a), len(b), difference, math.comb(len(a) + len(b), len(a)))
    of_a, of_b = deviation(a) ** 2 / len(a), deviation(b) ** 2 / len(b)
    freedom = (of_a + of_b) ** 2 / (of_a**2 / (len(a) - 1) + of_b**2 / (len(b) - 1))
    low, high, p = _t_test(difference, math.sqrt(of_a + of_b), freedom)
    kind, cohen_d = ComparisonKind.TESTED, difference / _pooled_deviation(a, b)
    return Comparison(kind, len(a), len(b), difference, low, high, p, cohen_d)


def compare_paired(first: Mapping[int, float], second: Mapping[int, float]) -> Comparison:
    """Compare values by seed with the paired t-test; only seeds known in both count."""
    seeds = sorted(first.keys() & second.keys())
    pairs = np.asarray([(first[seed], second[seed]) for seed in seeds], dtype=np.float64)
    pairs = pairs.reshape(-1, 2)
    pairs = pairs[np.isfinite(pairs).all(axis=1)]
    n = len(pairs)
    differences = pairs[:, 0] - pairs[:, 1]
    rounding = np.abs(differences) <= ROUNDING * np.abs(pairs).max(axis=1, initial=0)
    differences[rounding] = 0.0
    mean = float(differences.mean()) if n else math.nan
    if n < 2:
        return Comparison(ComparisonKind.NOT_KNOWN, n, n, mean)
    spread = deviation(differences)
    if not spread:
        return _exact(n, n, mean, 2**n)
    low, high, p = _t_test(mean, spread / math.sqrt(n), n - 1)
    return Comparison(ComparisonKind.TESTED, n, n, mean, low, high, p, mean / spread)


def compare_in_settings(
    first: Sequence[Mapping[int, float]], second: Sequence[Mapping[int, float]]
) -> Comparison:
    """Compare values by seed in several settings: the mean over the settings of their differences.

    The settings are given, and seeds are the repeats in each, so that only what varies within a
    setting is the error: differences between settings are not. The t-test's degrees of freedom are
    Satterthwaite's. Settings with fewer than two seeds known in both do not count.
    """
    pairs = [compare_paired(a, b) for a, b in zip(first, second, strict=True)]
    counting = [each for each in pairs if each.kind is not ComparisonKind.NOT_KNOWN]
    if len(counting) < 2:
        known_one = [each for each in pairs if each.n_a]
        return (counting or known_one or [Comparison(ComparisonKind.NOT_KNOWN, 0, 0)])[0]
    settings, n = len(counting), sum(each.n_a for each in counting)
    mean = sum(each.difference for each in counting) / settings
    # of the mean of each setting: the half width over its quantile is its standard error
    squares = [
        ((each.high - each.low) / 2 / student_quantile(each.n_a - 1)) ** 2 for each in counting
    ]
    error = math.sqrt(sum(squares)) / settings
    if error <= ROUNDING * max(abs(each.difference) for each in counting):
        return _exact(n, n, mean, 2**n)
    freedom = sum(squares) ** 2 / sum(
        square**2 / (each.n_a - 1) for square, each in zip(squares, counting, strict=True)
    )
    low, high, p = _t_test(mean, error, freedom)
    return Comparison(ComparisonKind.TESTED, n, n, mean, low, high, p, mean / error / math.sqrt(n))


def student_p(first: Iterable[float], second: Iterable[float]) -> float:
    """Return the p-value of the t-test with equal variances and one tail.

    One tail means the tail of the difference that was observed, as spreadsheets have it, so that
    p is never above 0.5: what some papers print as "t values" is this p.
    """
    a, b = known(first), known(second)
    if compare(a, b).kind is not ComparisonKind.TESTED:
        return math.nan
    error = _pooled_deviation(a, b) * math.sqrt(1 / len(a) + 1 / len(b))
    return _t_test(_difference(a, b), error, len(a) + len(b) - 2)[-1] / 2


def holm(p_values: Iterable[float]) -> Floats:
    """Correct p-values for the size of their family, of which unknown ones are no members."""
    p = np.asarray(list(p_values), dtype=np.float64)
    corrected = np.full(len(p), math.nan)
    order = [int(i) for i in np.argsort(p, kind="stable") if not math.isnan(p[i])]
    steps = p[order] * np.arange(len(order), 0, -1)
    corrected[order] = np.minimum(1.0, np.maximum.accumulate(steps))
    return corrected


def false_discovery(p_values: Iterable[float]) -> Floats:
    """Correct p-values so that a level is the share of false ones among those below it.

    That is Benjamini and Hochberg's correction; unknown values are no members of the family.
    """
    p = np.asarray(list(p_values), dtype=np.float64)
    corrected = np.full(len(p), math.nan)
    order = [int(i) for i in np.argsort(-p, kind="stable") if not math.isnan(p[i])]
    steps = p[order] * len(order) / np.arange(len(order), 0, -1)
    corrected[order] = np.minimum(1.0, np.minimum.accumulate(steps))
    return corrected


def _difference(a: Floats, b: Floats) -> float:
    """Return the difference of the means, exactly 0 where only rounding differs."""
    if not len(a) or not len(b):
        return math.nan
    difference = float(a.mean() - b.mean())
    largest = max(np.abs(a).max(), np.abs(b).max())
    return 0.0 if abs(difference) <= ROUNDING * largest else difference


def _exact(n_a: int, n_b: int, difference: float, arrangements: int) -> Comparison:
    """Return the comparison of samples without any spread.

    Its p is a permutation test's: of all arrangements of the values, the observed one and its
    mirror image differ as much. That is all that constant numbers prove: two pairs of them, little.
    """
    kind = ComparisonKind.CONSTANT if difference else ComparisonKind.IDENTICAL
    p, cohen_d = (2 / arrangements, math.nan) if difference else (1.0, 0.0)
    return Comparison(kind, n_a, n_b, difference, difference, difference, p, cohen_d)


def _pooled_deviation(a: Floats, b: Floats) -> float:
    """Return the deviation that two samples have in common, each weighed by its freedom."""
    squares = (len(a) - 1) * deviation(a) ** 2 + (len(b) - 1) * deviation(b) ** 2
    return math.sqrt(squares / (len(a) + len(b) - 2))


def _t_test(difference: float, error: float, freedom: float) -> tuple[float, float, float]:
    """Return a difference's interval, by its standard error, and the p of none, two-sided."""
    half = student_quantile(freedom) * error
    p = distributions.t_p(difference / error, freedom)
    return difference - half, difference + half, p


MIN_SEEDS_OF_A_SPREAD = 3  # fewer say nothing about their spread


@dataclass(frozen=True)
class WidestCell:
    """The cell with the widest confidence interval."""

    variant: str
    relative: float  # half of the 95 % interval over the mean; infinite where not known


def parse_target(text: str) -> float:
    """Read `ci=2%` as 0.02."""
    match = re.fullmatch(r"ci=(\d+\.?\d*|\.\d+)%", text)
    target = float(match[1]) / 100 if match else 0.0
    if target <= 0:
        raise UsageError(f"--until {text}: not ci=N%", "e.g. --until ci=2%")
    return target


def widest(metrics: pd.DataFrame, metric: str) -> WidestCell:
    """Return the cell of TCP flows and videos with the widest interval of the mean."""
    rows = counted(metrics)
    rows = rows[rows["kind"] != "cbr"]
    worst = WidestCell("", math.inf) if rows.empty else WidestCell("", -1.0)
    for _, cell in rows.groupby(list(CELL_COLUMNS), sort=False, dropna=False):
        values = known(cell[metric])
        half = half_width(values)
        relative = half / abs(float(values.mean())) if half else 0.0
        if math.isnan(relative):
            relative = math.inf
        if relative > worst.relative:
            worst = WidestCell(str(cell["variant"].iloc[0]), relative)
    return worst


def seeds_needed(seeds: int, relative: float, target: float, most: int) -> int:
    """Return how many seeds to try next; intervals shrink with the square root of the number.

    At most twice as many as before.
    """
    if not math.isfinite(relative):
        return min(most, 2 * seeds)
    wanted = math.ceil(seeds * (relative / target) ** 2)
    return min(most, max(seeds + 1, min(wanted, 2 * seeds)))
