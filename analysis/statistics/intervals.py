"""Statistics of few repeats: the mean of a cell, and the difference of two.

Unknown values (NaN, infinite) are left out and do not count in n. Where the data cannot answer,
the answer is NaN and `finding` says why: a deterministic guest gives the same number for every
seed, and there is nothing to test.

Student's distribution is scipy.special's. The tests are not scipy.stats': importing that takes
longer than most commands, each of its tests a hundred times what these take, `testbed compare`
makes thousands, and it warns on stderr where values hardly differ. Tests hold ours against it.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import special

Floats = npt.NDArray[np.float64]

NAN = float("nan")
CONFIDENCE = 0.95
RESAMPLES = 2000
SEED = 1  # the bootstrap's seed: the same data gives the same interval
# Below it a bootstrap knows too few different resamples (n = 4: 35) for a 95 % interval.
BOOTSTRAP_LEAST = 5
CHUNK = 500  # cells, or resamples, at a time: bounds the memory
ROUNDING = 1e-12  # relative: a spread below it is arithmetic's, not the network's


class Finding(enum.StrEnum):
    """The kind of result of a comparison; only a tested one has p-values."""

    TESTED = "tested"
    IDENTICAL = "identical"  # one and the same value everywhere
    CONSTANT = "constant, different"  # no spread in either cell: the difference is exact
    NOT_KNOWN = "not known"  # fewer than two known values in a cell


@dataclass(frozen=True)
class Summary:
    """Cells with the same n, one element per cell; intervals are of the mean."""

    mean: Floats
    median: Floats
    sd: Floats
    t_low: Floats
    t_high: Floats
    bootstrap_low: Floats
    bootstrap_high: Floats


@dataclass(frozen=True)
class Comparison:
    """Two cells, `a` less `b`. The interval of the difference of means is Welch's."""

    finding: Finding
    n_a: int
    n_b: int
    difference: float = NAN
    low: float = NAN
    high: float = NAN
    p_student: float = NAN  # the papers': equal variances, one tail
    p_welch: float = NAN
    cohen_d: float = NAN


@dataclass(frozen=True)
class Paired:
    """Two cells seed by seed, `a` less `b`."""

    finding: Finding
    n: int
    difference: float = NAN
    low: float = NAN
    high: float = NAN
    p_t: float = NAN
    cohen_d: float = NAN  # of the differences: their mean over their own sd


def known(values: Iterable[float]) -> Floats:
    """The finite values."""
    array = np.asarray(list(values), dtype=np.float64)
    return array[np.isfinite(array)]


def half_width(values: Iterable[float]) -> float:
    """Half of Student's confidence interval of the mean; NaN below two values."""
    array = known(values)
    n = len(array)
    return student_quantile(n - 1) * _sd(array) / math.sqrt(n) if n > 1 else NAN


def summarise(rows: Floats) -> Summary:
    """Summarise cells with the same n: one row per cell, all values known."""
    rows = np.sort(rows, axis=1)  # the order of the seeds must not matter
    n = rows.shape[1]
    mean = rows.mean(axis=1)
    sd = _sds(rows)
    half = student_quantile(n - 1) * sd / math.sqrt(n) if n > 1 else sd
    chunks = [rows[start : start + CHUNK] for start in range(0, len(rows), CHUNK)]
    low, high = np.concatenate([_bca(chunk) for chunk in chunks], axis=1)
    median = np.asarray(np.median(rows, axis=1), dtype=np.float64)
    return Summary(mean, median, sd, mean - half, mean + half, low, high)


def student_quantile(freedom: float) -> float:
    """Half of a confidence interval, in standard errors."""
    return float(special.stdtrit(freedom, (1 + CONFIDENCE) / 2))


def _sds(rows: Floats) -> Floats:
    """Standard deviations (n − 1), exactly 0 where only rounding differs, NaN for n = 1."""
    if rows.shape[1] < 2:
        return np.full(len(rows), NAN)
    flat = np.ptp(rows, axis=1) <= ROUNDING * np.abs(rows).max(axis=1)
    return np.where(flat, 0.0, rows.std(axis=1, ddof=1))


def _sd(values: Floats) -> float:
    return float(_sds(values[None, :])[0])


def _bca(rows: Floats) -> Floats:
    """Bias-corrected and accelerated bootstrap bounds of the means: low and high.

    BCa rather than plain percentiles: delays and drop rates are skewed, and it allows for
    that at no cost, since the acceleration of a mean has a closed form. All cells with the same n
    share the dice, which scipy.stats.bootstrap cannot do: a thousand cells would take minutes.
    With few values it is still too narrow: quote Student's then.
    """
    count, n = rows.shape
    if n < BOOTSTRAP_LEAST:
        return np.full((2, count), NAN)
    mean = rows.mean(axis=1, keepdims=True)
    centred = rows - mean
    squares = (centred**2).sum(axis=1)
    flat = _sds(rows) == 0
    means = np.sort(_resampled(centred), axis=1)
    tie = ROUNDING * np.abs(rows).max(axis=1, keepdims=True)
    below = ((means < -tie).mean(axis=1) + (means <= tie).mean(axis=1)) / 2
    bias = special.ndtri(np.clip(below, 1 / RESAMPLES, 1 - 1 / RESAMPLES))
    skew = (centred**3).sum(axis=1) / (6 * np.where(flat, 1.0, squares) ** 1.5)
    bounds = []
    for tail in ((1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2):
        z = bias + special.ndtri(tail)
        place = special.ndtr(bias + z / (1 - skew * z)) * (RESAMPLES - 1)
        bounds.append(mean[:, 0] + np.where(flat, 0.0, _interpolated(means, place)))
    return np.asarray(bounds, dtype=np.float64)


def _resampled(rows: Floats) -> Floats:
    """The means of resamples of each row."""
    n = rows.shape[1]
    dice = np.random.default_rng(SEED)
    even = np.full(n, 1 / n)
    sizes = [min(CHUNK, RESAMPLES - start) for start in range(0, RESAMPLES, CHUNK)]
    return np.concatenate([rows @ dice.multinomial(n, even, size).T / n for size in sizes], axis=1)


def _interpolated(ordered: Floats, place: Floats) -> Floats:
    """Each row's value at a place between two of its order statistics."""
    first = np.clip(np.floor(place).astype(np.int64), 0, ordered.shape[1] - 2)
    row = np.arange(len(ordered))
    here, there = ordered[row, first], ordered[row, first + 1]
    return np.asarray(here + (place - first) * (there - here), dtype=np.float64)


def compare(first: Iterable[float], second: Iterable[float]) -> Comparison:
    """Two independent samples."""
    a, b = known(first), known(second)
    n, m = len(a), len(b)
    finding = _finding(a, b)
    difference = _difference(a, b)
    if finding is Finding.NOT_KNOWN:
        return Comparison(finding, n, m, difference)
    if finding is not Finding.TESTED:
        exact = (difference,) * 3
        d = 0.0 if finding is Finding.IDENTICAL else NAN
        return Comparison(finding, n, m, *exact, NAN, NAN, d)
    p_student, d = _student(a, b, difference)
    p_welch, half = _welch(a, b, difference)
    return Comparison(
        finding,
        n,
        m,
        difference,
        difference - half,
        difference + half,
        p_student,
        p_welch,
        d,
    )


def _difference(a: Floats, b: Floats) -> float:
    """The difference of the means; exactly 0 where only rounding differs."""
    if not len(a) or not len(b):
        return NAN
    difference = float(a.mean() - b.mean())
    return (
        0.0 if abs(difference) <= ROUNDING * max(np.abs(a).max(), np.abs(b).max()) else difference
    )


def _finding(a: Floats, b: Floats) -> Finding:
    if min(len(a), len(b)) < 2:
        return Finding.NOT_KNOWN
    if _sd(a) or _sd(b):
        return Finding.TESTED
    return Finding.CONSTANT if _difference(a, b) else Finding.IDENTICAL


def _student(a: Floats, b: Floats, difference: float) -> tuple[float, float]:
    """The papers' t-test, and Cohen's d, which shares its pooled deviation.

    One tail means the tail of the difference that was seen, as spreadsheets have it, so that
    p is never above 0.5: with it KS's "t values" 0.392, 0.307 and 0.464 are p-values.
    """
    n, m = len(a), len(b)
    freedom = n + m - 2
    pooled = math.sqrt(((n - 1) * _sd(a) ** 2 + (m - 1) * _sd(b) ** 2) / freedom)
    t = difference / (pooled * math.sqrt(1 / n + 1 / m))
    return float(special.stdtr(freedom, -abs(t))), difference / pooled


def _welch(a: Floats, b: Floats, difference: float) -> tuple[float, float]:
    """Two-sided p, and half of the interval of the difference."""
    first, second = _sd(a) ** 2 / len(a), _sd(b) ** 2 / len(b)
    error = math.sqrt(first + second)
    # shares, not fourth powers of small numbers, which could underflow
    one, other = first / (first + second), second / (first + second)
    freedom = 1 / (one**2 / (len(a) - 1) + other**2 / (len(b) - 1))
    return 2 * float(special.stdtr(freedom, -abs(difference) / error)), student_quantile(
        freedom
    ) * error


def differences(first: Mapping[int, float], second: Mapping[int, float]) -> Floats:
    """Differences by seed, for seeds known in both; exactly 0 where only rounding differs."""
    seeds = sorted(first.keys() & second.keys())
    pairs = np.asarray([(first[seed], second[seed]) for seed in seeds], dtype=np.float64)
    pairs = pairs.reshape(-1, 2)
    pairs = pairs[np.isfinite(pairs).all(axis=1)]
    found = pairs[:, 0] - pairs[:, 1]
    return np.where(np.abs(found) <= ROUNDING * np.abs(pairs).max(axis=1, initial=0), 0.0, found)


def compare_paired(first: Mapping[int, float], second: Mapping[int, float]) -> Paired:
    """Values by seed; only seeds that are known in both count."""
    found = differences(first, second)
    n = len(found)
    mean = float(found.mean()) if n else NAN
    if n < 2:
        return Paired(Finding.NOT_KNOWN, n, mean)
    sd = _sd(found)
    if not sd:
        finding = Finding.CONSTANT if mean else Finding.IDENTICAL
        return Paired(finding, n, mean, mean, mean, NAN, NAN if mean else 0.0)
    error = sd / math.sqrt(n)
    half = student_quantile(n - 1) * error
    p = 2 * float(special.stdtr(n - 1, -abs(mean) / error))
    return Paired(Finding.TESTED, n, mean, mean - half, mean + half, p, mean / sd)


def holm(p_values: Iterable[float]) -> Floats:
    """p-values corrected for the size of their family, of which unknown ones are no members.

    scipy has false discovery rates, but not Holm's correction.
    """
    p = np.asarray(list(p_values), dtype=np.float64)
    corrected = np.full(len(p), NAN)
    order = [int(i) for i in np.argsort(p, kind="stable") if not math.isnan(p[i])]
    steps = p[order] * np.arange(len(order), 0, -1)
    corrected[order] = np.minimum(1.0, np.maximum.accumulate(steps))
    return corrected
