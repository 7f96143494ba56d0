"""Statistics against textbooks, against scipy, and at the edges of what data can say."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator

import numpy as np
import pytest
from scipy import stats as scipy_stats

from analysis.metrics.rates import steady_time_s
from analysis.statistics.distributions import coin_tails, fisher_quantile, t_p, t_quantile
from analysis.statistics.estimates import share_interval
from analysis.statistics.intervals import (
    ComparisonKind,
    compare,
    compare_in_settings,
    compare_paired,
    false_discovery,
    half_width,
    holm,
    student_p,
)

NAN = math.nan

# Student's sleep data (Cushny and Peebles 1905): hours of sleep gained, ten patients, two drugs.
# R: t.test gives p = 0.07939 and −3.3655 … 0.2055 (Welch), 0.002833 and −2.4599 … −0.7001 (paired)
DRUG_1 = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0]
DRUG_2 = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4]


@pytest.fixture(autouse=True)
def no_warnings() -> Iterator[None]:
    """Nothing may reach stderr, whatever the data."""
    with warnings.catch_warnings(), np.errstate(all="raise", under="ignore"):
        warnings.simplefilter("error")
        yield


def by_seed(values: list[float]) -> dict[int, float]:
    return dict(enumerate(values))


def test_welch_of_the_sleep_data() -> None:
    found = compare(DRUG_1, DRUG_2)
    assert found.kind is ComparisonKind.TESTED
    assert found.difference == pytest.approx(-1.58)
    assert found.p == pytest.approx(0.07939, abs=1e-5)
    assert (found.low, found.high) == pytest.approx((-3.3654832, 0.2054832), abs=1e-6)


def test_the_papers_test_of_the_sleep_data() -> None:
    """R: t.test(var.equal = TRUE) gives 0.07919 on two tails."""
    assert student_p(DRUG_1, DRUG_2) == pytest.approx(0.07919 / 2, abs=1e-5)
    assert student_p(DRUG_2, DRUG_1) == pytest.approx(0.07919 / 2, abs=1e-5)


def test_paired_t_of_the_sleep_data() -> None:
    found = compare_paired(by_seed(DRUG_1), by_seed(DRUG_2))
    assert found.n_a == 10 and found.p == pytest.approx(0.002833, abs=1e-6)
    assert (found.low, found.high) == pytest.approx((-2.4598858, -0.7001142), abs=1e-6)
    differences = np.subtract(DRUG_1, DRUG_2)
    assert found.cohen_d == pytest.approx(differences.mean() / differences.std(ddof=1))


def test_cohens_d_by_hand() -> None:
    """Both deviations are 1, the means 2 apart."""
    assert compare([4, 5, 6], [2, 3, 4]).cohen_d == pytest.approx(2)


def test_one_setting_is_compared_as_pairs() -> None:
    one = compare_in_settings([by_seed(DRUG_1)], [by_seed(DRUG_2)])
    assert one == compare_paired(by_seed(DRUG_1), by_seed(DRUG_2))


def test_settings_by_hand() -> None:
    """Differences 1, 2, 3 (variance 1) and 5, 7 (variance 2): s.e. √(1/3 + 2/2) / 2."""
    found = compare_in_settings(
        [by_seed([1, 2, 3]), by_seed([5, 7]), by_seed([99])],  # one seed says nothing of the error
        [by_seed([0, 0, 0]), by_seed([0, 0]), by_seed([0])],
    )
    error, freedom = np.sqrt(1 / 3 + 1) / 2, (4 / 3) ** 2 / ((1 / 3) ** 2 / 2 + 1)
    assert (found.difference, found.n_a) == (4, 5)
    assert found.p == pytest.approx(2 * scipy_stats.t.sf(4 / error, freedom))
    half = scipy_stats.t.ppf(0.975, freedom) * error
    assert (found.low, found.high) == pytest.approx((4 - half, 4 + half))


def test_constant_differences_are_as_sure_as_they_are_many() -> None:
    twos, ones = [by_seed([2, 2, 2])] * 4, [by_seed([1, 1, 1])] * 4
    found = compare_in_settings(twos, ones)
    assert found.kind is ComparisonKind.CONSTANT and found.p == 2 / 2**12
    assert compare_in_settings(twos, twos).kind is ComparisonKind.IDENTICAL


@pytest.mark.parametrize("spread", [0.0, 1.5])
def test_settings_that_do_not_differ_are_seldom_called_different(spread: float) -> None:
    """A thousand tables of four settings, as noisy as each other or not, with three seeds."""
    dice = np.random.default_rng(7)
    noise = dice.normal(size=(1000, 4, 3)) * np.exp(spread * dice.normal(size=(1000, 4, 1)))
    zeros = [by_seed([0.0] * 3)] * 4
    p = [compare_in_settings(list(map(by_seed, table)), zeros).p for table in noise]
    assert 0.01 < np.mean(np.array(p) < 0.05) < 0.065
    shifted = [
        compare_in_settings(list(map(by_seed, table)), zeros).p
        for table in dice.normal(3.0, 1.0, size=(200, 4, 3))
    ]
    assert np.mean(np.array(shifted) < 0.05 / 30) > 0.9  # by seed alone: 4 %


def test_holm_of_a_textbook() -> None:
    """R: p.adjust(c(0.01, 0.04, 0.03, 0.005), "holm")."""
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])


def test_holm_leaves_unknown_ones_out_of_the_family() -> None:
    assert holm([0.03, NAN, 0.02]) == pytest.approx([0.04, NAN, 0.04], nan_ok=True)
    assert holm([0.9, 0.8]) == pytest.approx([1, 1])
    assert len(holm([])) == 0


@pytest.mark.parametrize("seed", range(4))
def test_exchanged_samples_change_signs_alone(seed: int) -> None:
    dice = np.random.default_rng(seed)
    a, b = dice.normal(size=6), dice.normal(1, 3, size=9)
    there, back = compare(a, b), compare(b, a)
    assert there.p == pytest.approx(back.p)
    assert student_p(a, b) == pytest.approx(student_p(b, a))
    assert there.cohen_d == pytest.approx(-back.cohen_d)
    assert (there.low, there.high) == pytest.approx((-back.high, -back.low))


@pytest.mark.parametrize("factor", [1e-6, 1e9])
def test_another_unit_changes_no_p_value(factor: float) -> None:
    there = compare(DRUG_1, DRUG_2)
    scaled = compare(np.multiply(DRUG_1, factor), np.multiply(DRUG_2, factor))
    for name in ("p", "cohen_d"):
        assert getattr(scaled, name) == pytest.approx(getattr(there, name))
    for name in ("difference", "low", "high"):
        assert getattr(scaled, name) == pytest.approx(factor * getattr(there, name))


def test_deterministic_cells_that_agree_are_identical() -> None:
    found = compare([0.1] * 3, [0.1] * 4)  # whose means differ in the last digit
    assert found.kind is ComparisonKind.IDENTICAL
    assert (found.difference, found.low, found.high, found.cohen_d) == (0, 0, 0, 0)
    assert found.p == 1 and math.isnan(student_p([0.1] * 3, [0.1] * 4))


def test_deterministic_cells_that_differ_are_as_sure_as_they_are_many() -> None:
    """p is that of a permutation test: 2 of 20 arrangements of six values, 2 of 2^n signs."""
    found = compare([2.0] * 3, [1.0] * 3)
    assert found.kind is ComparisonKind.CONSTANT
    assert (found.difference, found.low, found.high) == (1, 1, 1)
    assert math.isnan(student_p([2.0] * 3, [1.0] * 3)) and math.isnan(found.cohen_d)
    assert found.p == pytest.approx(0.1)
    many = dict.fromkeys(range(20), 2.0), dict.fromkeys(range(20), 1.0)
    assert compare_paired(*many).p == pytest.approx(2 / 2**20)


def test_the_share_of_networks_by_hand() -> None:
    """Clopper and Pearson's, of which that of none of nine is 0 to 1 − 0.025^(1/9)."""
    assert share_interval(16, 20) == pytest.approx((0.5634, 0.9427), abs=1e-4)
    assert share_interval(0, 9) == pytest.approx((0, 1 - 0.025 ** (1 / 9)))
    assert share_interval(9, 9) == pytest.approx((0.025 ** (1 / 9), 1))


@pytest.mark.parametrize("values", [[8.1, 8.2, 8.3, 74.6], [1.0, 1.0, 0.0], [0.0] * 16 + [1.0] * 4])
def test_a_few_values_of_two_kinds_have_no_half_width(values: list[float]) -> None:
    assert math.isnan(half_width(values))
    assert half_width(5 * values) > 0


def test_one_deterministic_cell_can_be_tested() -> None:
    """Welch's test is then that of the other cell against a number."""
    found = compare([1, 2, 3, 4], [2.0] * 4)
    assert found.kind is ComparisonKind.TESTED
    assert found.p == pytest.approx(scipy_stats.ttest_1samp([1, 2, 3, 4], 2).pvalue)


@pytest.mark.parametrize(
    ("a", "b", "difference"),
    [([1.0], [2.0], -1), ([1.0], [2.0, 3.0], -1.5), ([1.0, NAN], [1.0, 1.0], 0), ([], [1.0], NAN)],
)
def test_too_few_values_are_not_known(a: list[float], b: list[float], difference: float) -> None:
    found = compare(a, b)
    assert found.kind is ComparisonKind.NOT_KNOWN
    assert found.difference == pytest.approx(difference, nan_ok=True)
    assert all(map(math.isnan, (found.low, student_p(a, b), found.p, found.cohen_d)))


def test_unknown_values_are_left_out() -> None:
    assert compare([*DRUG_1, NAN, math.inf], DRUG_2) == compare(DRUG_1, DRUG_2)
    without = compare_paired(by_seed([*DRUG_1, NAN]), by_seed([*DRUG_2, 1.0]))
    assert without == compare_paired(by_seed(DRUG_1), by_seed(DRUG_2))


def test_pairs_are_by_seed() -> None:
    found = compare_paired({1: 5.0, 2: 7.0, 3: 9.0, 4: 0.0}, {3: 8.0, 2: 6.5, 1: 3.0, 9: 1.0})
    assert found.n_a == 3 and found.difference == pytest.approx((2 + 0.5 + 1) / 3)


@pytest.mark.parametrize(
    ("a", "b", "kind", "p"),
    [
        ([1.0, 2.0, 3.0], [1.0, 2.0, 3.0], ComparisonKind.IDENTICAL, 1.0),
        ([1.1, 2.1, 3.1], [1.0, 2.0, 3.0], ComparisonKind.CONSTANT, 0.25),
        ([1.0], [2.0], ComparisonKind.NOT_KNOWN, NAN),
        ([], [], ComparisonKind.NOT_KNOWN, NAN),
    ],
)
def test_pairs_without_spread(
    a: list[float], b: list[float], kind: ComparisonKind, p: float
) -> None:
    found = compare_paired(by_seed(a), by_seed(b))
    assert found.kind is kind
    assert found.p == pytest.approx(p, nan_ok=True)


def test_half_width_by_hand() -> None:
    """Student's t for two degrees of freedom is 4.3027, the standard error 2 / √3."""
    half = 4.30265 * 2 / 3**0.5
    assert half_width([8.0, NAN, 10.0, 12.0]) == pytest.approx(half, rel=1e-5)
    assert math.isnan(half_width([8.0])) and math.isnan(half_width([]))
    assert half_width([0.1] * 6) == 0


MIDDLES = np.arange(20, dtype=np.float64) + 0.5


@pytest.mark.parametrize(
    ("rates", "expected"),
    [
        ([1.0] * 20, 0),
        ([0.1, 0.5, 0.7] + [1.0] * 17, 3),
        ([0.81] + [1.0] * 19, 0),  # within 20 %
        ([0.79] + [1.0] * 19, 1),
        ([1.0] * 5 + [2.0] + [1.0] * 14, 6),  # left again
        ([1.0] * 9 + [2.0] + [1.0] * 10, 10),  # just by the middle
        ([1.0] * 15 + [3.0] + [1.0] * 4, NAN),  # never settles
        ([1.0] * 10 + [0.0] * 10, NAN),  # nothing to settle at
        ([1.0] * 3 + [NAN] + [1.0] * 16, NAN),  # not known
    ],
)
def test_from_when_on_a_rate_is_steady(rates: list[float], expected: float) -> None:
    found = steady_time_s(MIDDLES, np.array(rates), 0, 20)
    assert found == pytest.approx(expected, nan_ok=True)


def test_steady_is_since_the_start_in_bins_of_a_second() -> None:
    """Tenths that swing from 0 to 2 within each second, after two slow seconds from 3 s on."""
    time_s = np.arange(230, dtype=np.float64) / 10 + 0.05
    rate = np.where(np.arange(230) % 10 < 5, 0.0, 2.0)
    rate[30:50] /= 4
    assert steady_time_s(time_s, rate, 3, 23) == 2


def test_a_flow_that_is_too_short_is_not_known_to_be_steady() -> None:
    assert math.isnan(steady_time_s(MIDDLES, np.ones(20), 0, 1.5))
    assert math.isnan(steady_time_s(MIDDLES, np.ones(20), 5, 5))


@pytest.mark.parametrize("freedom", [1, 1.3, 2, 5, 29.7, 400])
def test_students_distribution_is_scipys(freedom: float) -> None:
    for confidence in (0.5, 0.95, 0.9999):
        quantile = scipy_stats.t.ppf((1 + confidence) / 2, freedom)
        assert t_quantile(confidence, freedom) == pytest.approx(quantile, rel=1e-11)
    for t in (0, 0.01, -0.7, 1.5, -12, 3000):
        p = 2 * scipy_stats.t.sf(abs(t), freedom)
        assert t_p(t, freedom) == pytest.approx(p, rel=1e-10)
    assert fisher_quantile(0.95, freedom) == pytest.approx(scipy_stats.f.ppf(0.95, 2, freedom))


@pytest.mark.parametrize(("count", "n"), [(0, 1), (1, 1), (0, 30), (15, 30), (16, 30), (299, 300)])
def test_a_shares_interval_is_scipys(count: int, n: int) -> None:
    expected = scipy_stats.binomtest(count, n)
    assert share_interval(count, n, 0.1) == pytest.approx(expected.proportion_ci(0.9), rel=1e-11)
    tails = scipy_stats.binom.cdf(range(n + 1), n, 0.5)
    assert list(coin_tails(n)) == pytest.approx(list(tails), rel=1e-11)


def test_false_discoveries_are_scipys() -> None:
    p = [0.04, 0.001, NAN, 0.03, 0.04, 0.9, 0.2]
    expected = scipy_stats.false_discovery_control([each for each in p if not math.isnan(each)])
    assert list(false_discovery(p))[3:] == pytest.approx(expected[2:])
    assert math.isnan(false_discovery(p)[2])


def test_unknown_numbers_stay_unknown() -> None:
    assert math.isnan(t_p(NAN, 3)) and math.isnan(t_quantile(0.95, 0))
