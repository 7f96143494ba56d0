"""Statistics against textbooks, against scipy, and at the edges of what data can say."""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
from scipy import stats as scipy_stats

from analysis.metrics.columns import CELL
from analysis.metrics.steadiness import steady_time_s
from analysis.statistics import cells, ranks
from analysis.statistics.cells import cell_table, pair_table
from analysis.statistics.intervals import (
    CONFIDENCE,
    Finding,
    Summary,
    compare,
    compare_paired,
    half_width,
    holm,
    summarise,
)
from analysis.statistics.ranks import compare_paired_ranks, compare_ranks

NAN = math.nan

# Student's sleep data (Cushny and Peebles 1905): hours of sleep gained, ten patients, two drugs.
# R: t.test gives p = 0.07939 and −3.3655 … 0.2055 (Welch), 0.002833 and −2.4599 … −0.7001 (paired)
DRUG_1 = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0]
DRUG_2 = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4]
# Hollander and Wolfe 1973, p. 69 f., permeability of the amnion (R's example of wilcox.test):
# one tail p = 0.1272, W = 35
TERM = [0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46]
WEEKS = [1.15, 0.88, 0.90, 0.74, 1.21]


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
    assert found.finding is Finding.TESTED
    assert found.difference == pytest.approx(-1.58)
    assert found.p_welch == pytest.approx(0.07939, abs=1e-5)
    assert (found.low, found.high) == pytest.approx((-3.3654832, 0.2054832), abs=1e-6)


def test_the_papers_test_of_the_sleep_data() -> None:
    """R: t.test(var.equal = TRUE) gives 0.07919 on two tails."""
    assert compare(DRUG_1, DRUG_2).p_student == pytest.approx(0.07919 / 2, abs=1e-5)
    assert compare(DRUG_2, DRUG_1).p_student == pytest.approx(0.07919 / 2, abs=1e-5)


def test_paired_t_of_the_sleep_data() -> None:
    found = compare_paired(by_seed(DRUG_1), by_seed(DRUG_2))
    assert found.n == 10 and found.p_t == pytest.approx(0.002833, abs=1e-6)
    assert (found.low, found.high) == pytest.approx((-2.4598858, -0.7001142), abs=1e-6)
    differences = np.subtract(DRUG_1, DRUG_2)
    assert found.cohen_d == pytest.approx(differences.mean() / differences.std(ddof=1))


def test_mann_whitney_of_the_textbook() -> None:
    assert compare_ranks(TERM, WEEKS).p == pytest.approx(2 * 0.1272, abs=1e-4)


def test_mann_whitney_by_hand() -> None:
    """All of three below all of three: 1 of 20 orders, and its mirror."""
    assert compare_ranks([1, 2, 3], [4, 5, 6]).p == pytest.approx(2 / 20)


@pytest.mark.parametrize(("n", "m"), [(2, 9), (5, 5), (20, 20), (8, 21), (30, 25)])
def test_rank_tests_are_scipys(n: int, m: int) -> None:
    dice = np.random.default_rng(n)
    a, b = dice.normal(size=n), dice.normal(0.5, 2, size=m)
    method = "exact" if max(n, m) <= ranks.EXACT else "asymptotic"
    expected = scipy_stats.mannwhitneyu(a, b, method=method).pvalue
    assert ranks.mann_whitney_p(a, b) == pytest.approx(expected, rel=1e-9)
    method = "exact" if n <= ranks.EXACT else "asymptotic"
    expected = scipy_stats.wilcoxon(a, method=method, correction=n > ranks.EXACT).pvalue
    assert ranks.wilcoxon_p(a) == pytest.approx(expected, rel=1e-9)


def test_rank_tests_with_ties_are_scipys() -> None:
    dice = np.random.default_rng(1)
    a, b = (dice.integers(0, 5, size).astype(float) for size in (9, 12))
    expected = scipy_stats.mannwhitneyu(a, b, method="asymptotic").pvalue
    assert ranks.mann_whitney_p(a, b) == pytest.approx(expected)
    differences = a[:9] - b[:9]
    expected = scipy_stats.wilcoxon(differences, method="asymptotic", correction=True).pvalue
    assert ranks.wilcoxon_p(differences) == pytest.approx(expected)


def test_cohens_d_by_hand() -> None:
    """Both deviations are 1, the means 2 apart."""
    assert compare([4, 5, 6], [2, 3, 4]).cohen_d == pytest.approx(2)


def test_hodges_lehmann_is_rs() -> None:
    """Against all pairwise differences, ordered: of 50, 8 are left out at each end, as R does."""
    found = compare_ranks(TERM, WEEKS)
    ordered = sorted(a - b for a, b in itertools.product(TERM, WEEKS))
    assert found.shift == pytest.approx(np.median(ordered))
    out = max(k for k in range(50) if _tail(k - 1) <= 0.025)
    assert out > 1
    assert (found.low, found.high) == pytest.approx((ordered[out - 1], ordered[-out]))


def _tail(u: int) -> float:
    """P(U ≤ u) for 10 and 5 values, by counting every order."""
    orders = itertools.combinations(range(15), 5)
    counted = [sum(orders_) - 10 <= u for orders_ in orders]
    return sum(counted) / len(counted)


def test_shift_covers_as_often_as_it_says() -> None:
    dice = np.random.default_rng(5)
    hits = sum(
        low <= 1 <= high
        for _, low, high in (
            ranks.shift(dice.exponential(size=8) + 1, dice.exponential(size=8), CONFIDENCE)
            for _ in range(400)
        )
    )
    assert 0.92 < hits / 400 <= 1


def test_paired_shift_by_hand() -> None:
    """Of 1 to 6 the Walsh averages are 1 … 6; two tails of 1/64 leave out one at each end."""
    found = compare_paired_ranks(by_seed([1, 2, 3, 4, 5, 6.5]), by_seed([0.0] * 6))
    assert found.shift == pytest.approx(3.5)
    assert (found.low, found.high) == (1, 6.5)
    assert found.p == pytest.approx(2 / 64)


def test_small_samples_have_no_interval_of_the_shift() -> None:
    """Three and three: the widest interval has only 90 %."""
    found = compare_ranks([1, 2, 3.5], [4, 5, 7])
    assert found.shift == -3
    assert math.isnan(found.low) and math.isnan(found.high)


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
    for name in ("p_student", "p_welch"):
        assert getattr(there, name) == pytest.approx(getattr(back, name))
    assert there.cohen_d == pytest.approx(-back.cohen_d)
    assert (there.low, there.high) == pytest.approx((-back.high, -back.low))
    ranked, reversed_ = compare_ranks(a, b), compare_ranks(b, a)
    assert ranked.p == pytest.approx(reversed_.p)
    assert (ranked.low, ranked.shift) == pytest.approx((-reversed_.high, -reversed_.shift))


@pytest.mark.parametrize("factor", [1e-6, 1e9])
def test_another_unit_changes_no_p_value(factor: float) -> None:
    there = compare(DRUG_1, DRUG_2)
    scaled = compare(np.multiply(DRUG_1, factor), np.multiply(DRUG_2, factor))
    for name in ("p_student", "p_welch", "cohen_d"):
        assert getattr(scaled, name) == pytest.approx(getattr(there, name))
    for name in ("difference", "low", "high"):
        assert getattr(scaled, name) == pytest.approx(factor * getattr(there, name))
    ranked = compare_ranks(DRUG_1, DRUG_2)
    larger = compare_ranks(np.multiply(DRUG_1, factor), np.multiply(DRUG_2, factor))
    assert larger.p == pytest.approx(ranked.p)
    for name in ("shift", "low"):
        assert getattr(larger, name) == pytest.approx(factor * getattr(ranked, name))


def test_deterministic_cells_that_agree_are_identical() -> None:
    found = compare([0.1] * 3, [0.1] * 4)  # whose means differ in the last digit
    assert found.finding is Finding.IDENTICAL
    assert (found.difference, found.low, found.high, found.cohen_d) == (0, 0, 0, 0)
    assert math.isnan(found.p_student) and math.isnan(compare_ranks([0.1] * 3, [0.1] * 4).p)


def test_deterministic_cells_that_differ_have_no_p_value() -> None:
    found = compare([2.0] * 3, [1.0] * 3)
    assert found.finding is Finding.CONSTANT
    assert (found.difference, found.low, found.high) == (1, 1, 1)
    assert compare_ranks([2.0] * 3, [1.0] * 3).shift == 1
    assert all(map(math.isnan, (found.p_student, found.p_welch)))
    assert math.isnan(found.cohen_d)


def test_one_deterministic_cell_can_be_tested() -> None:
    """Welch's test is then that of the other cell against a number."""
    found = compare([1, 2, 3, 4], [2.0] * 4)
    assert found.finding is Finding.TESTED
    assert found.p_welch == pytest.approx(scipy_stats.ttest_1samp([1, 2, 3, 4], 2).pvalue)


@pytest.mark.parametrize(
    ("a", "b", "difference"),
    [([1.0], [2.0], -1), ([1.0], [2.0, 3.0], -1.5), ([1.0, NAN], [1.0, 1.0], 0), ([], [1.0], NAN)],
)
def test_too_few_values_are_not_known(a: list[float], b: list[float], difference: float) -> None:
    found = compare(a, b)
    assert found.finding is Finding.NOT_KNOWN
    assert found.difference == pytest.approx(difference, nan_ok=True)
    assert all(map(math.isnan, (found.low, found.p_student, found.p_welch, found.cohen_d)))


def test_unknown_values_are_left_out() -> None:
    assert compare([*DRUG_1, NAN, math.inf], DRUG_2) == compare(DRUG_1, DRUG_2)
    without = compare_paired(by_seed([*DRUG_1, NAN]), by_seed([*DRUG_2, 1.0]))
    assert without == compare_paired(by_seed(DRUG_1), by_seed(DRUG_2))


def test_pairs_are_by_seed() -> None:
    found = compare_paired({1: 5.0, 2: 7.0, 3: 9.0, 4: 0.0}, {3: 8.0, 2: 6.5, 1: 3.0, 9: 1.0})
    assert found.n == 3 and found.difference == pytest.approx((2 + 0.5 + 1) / 3)


@pytest.mark.parametrize(
    ("a", "b", "finding"),
    [
        ([1.0, 2.0, 3.0], [1.0, 2.0, 3.0], Finding.IDENTICAL),
        ([1.1, 2.1, 3.1], [1.0, 2.0, 3.0], Finding.CONSTANT),
        ([1.0], [2.0], Finding.NOT_KNOWN),
        ([], [], Finding.NOT_KNOWN),
    ],
)
def test_pairs_without_spread(a: list[float], b: list[float], finding: Finding) -> None:
    found = compare_paired(by_seed(a), by_seed(b))
    assert found.finding is finding
    assert math.isnan(found.p_t) and math.isnan(compare_paired_ranks(by_seed(a), by_seed(b)).p)


def test_summary_by_hand() -> None:
    """Student's t for two degrees of freedom is 4.3027, the standard error 2 / √3."""
    found = summarise(np.array([[8.0, 12.0, 10.0]]))
    half = 4.30265 * 2 / 3**0.5
    assert (found.mean[0], found.median[0], found.sd[0]) == pytest.approx((10, 10, 2))
    assert (found.t_low[0], found.t_high[0]) == pytest.approx((10 - half, 10 + half), rel=1e-5)
    assert half_width([8.0, NAN, 10.0, 12.0]) == pytest.approx(half, rel=1e-5)
    assert math.isnan(half_width([8.0]))


def test_bootstrap_is_scipys_bca() -> None:
    """Of a sample so skewed that neither percentiles nor the bias alone come near."""
    values = np.array([1, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7, 1.8, 1.9, 2, 6])
    found = summarise(values[None, :])
    theirs = scipy_stats.bootstrap((values,), np.mean, n_resamples=50_000, rng=1)
    low, high = theirs.confidence_interval
    assert found.bootstrap_low[0] == pytest.approx(low, abs=0.04 * (high - low))
    assert found.bootstrap_high[0] == pytest.approx(high, abs=0.04 * (high - low))


def test_the_same_data_have_the_same_interval() -> None:
    values = np.random.default_rng(2).normal(size=12)
    once, again = summarise(values[None, :]), summarise(values[None, ::-1])
    beside = summarise(np.array([np.arange(12.0), values]))
    assert once.bootstrap_low[0] == again.bootstrap_low[0]
    assert once.bootstrap_high[0] == pytest.approx(beside.bootstrap_high[1], rel=1e-12)


def test_bootstrap_of_few_values_is_not_known() -> None:
    assert math.isnan(summarise(np.array([[1.0, 2.0, 3.0, 4.0]])).bootstrap_low[0])
    assert not math.isnan(summarise(np.array([[1.0, 2.0, 3.0, 4.0, 5.0]])).bootstrap_low[0])


def test_constant_and_single_values() -> None:
    found = summarise(np.array([[0.1] * 6]))
    assert found.sd[0] == 0
    assert found.t_low[0] == found.t_high[0] == found.mean[0]
    assert found.bootstrap_low[0] == found.bootstrap_high[0] == found.mean[0]
    alone = summarise(np.array([[3.0]]))
    assert alone.mean[0] == 3 and math.isnan(alone.sd[0]) and math.isnan(alone.t_low[0])


def metrics(**columns: Sequence[object]) -> pd.DataFrame:
    """A metrics table; cells differ in what is given alone."""
    size = len(next(iter(columns.values())))
    return pd.DataFrame({**{name: ["x"] * size for name in CELL}, "seed": [1] * size, **columns})


def test_table_of_cells() -> None:
    table = cell_table(
        metrics(
            variant=["reno", "bbr", "reno", "vegas", "reno"],
            seed=[1, 1, 2, 1, 3],
            rtt_mean_ms=[8.0, 5.0, 10.0, NAN, 12.0],
        ),
        "rtt_mean_ms",
    )
    assert list(table["variant"]) == ["reno", "bbr", "vegas"]
    assert list(table["n"]) == [3, 1, 0]
    assert list(table["mean"]) == pytest.approx([10, 5, NAN], nan_ok=True)
    assert list(table["sd"]) == pytest.approx([2, NAN, NAN], nan_ok=True)


def test_table_of_pairs() -> None:
    frame = metrics(
        variant=["a"] * 4 + ["b"] * 4 + ["c"] * 4,
        seed=[1, 2, 3, 4] * 3,
        share=[0.5, 0.6, 0.7, 0.9, 0.1, 0.2, 0.35, 0.5, 0.5, 0.6, 0.7, 0.9],
    )
    table = pair_table(frame, "share")
    assert list(zip(table["a"], table["b"], strict=True)) == [("a", "b"), ("a", "c"), ("b", "c")]
    expected = compare(frame["share"][:4], frame["share"][4:8])
    assert table["p_welch"][0] == expected.p_welch
    assert list(table["p_holm"]) == pytest.approx(list(holm(table["p_welch"])))
    assert list(table["pairs"]) == [4, 4, 4]
    assert table["paired_difference"][0] == pytest.approx(expected.difference)
    assert table["paired_p_t"][0] < table["p_welch"][0]  # what the seeds share is taken out


def test_pairs_stay_within_their_cells() -> None:
    frame = metrics(
        variant=["a", "b", "a", "b"], queue=["p", "p", "q", "q"], share=[1.0, 2.0, 3.0, 5.0]
    )
    table = pair_table(frame, "share")
    assert list(table["queue"]) == ["p", "q"] and list(table["difference"]) == [-1, -2]


def test_seeds_that_stand_twice_pair_nothing() -> None:
    frame = metrics(variant=["a", "a", "b"], seed=[1, 1, 1], share=[1.0, 2.0, 3.0])
    assert list(pair_table(frame, "share")["pairs"]) == [0]


def test_tables_of_nothing() -> None:
    empty = metrics(variant=["a"], share=[1.0]).iloc[:0]
    assert cell_table(empty, "share").empty and pair_table(empty, "share").empty


def test_cells_of_one_size_are_summarised_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """One bootstrap for a thousand cells, not one for each."""
    calls: list[tuple[int, ...]] = []

    def counted(rows: npt.NDArray[np.float64]) -> Summary:
        calls.append(rows.shape)
        return summarise(rows)

    monkeypatch.setattr(cells, "summarise", counted)
    sizes = [5] * 1000 + [3] * 100
    numbers = [i for i, size in enumerate(sizes) for _ in range(size)]
    frame = metrics(
        variant=[f"v{i}" for i in numbers],
        seed=list(range(len(numbers))),
        rtt_mean_ms=[float(i) for i in numbers],
    )
    assert len(cell_table(frame, "rtt_mean_ms")) == 1100
    assert sorted(calls) == [(100, 3), (1000, 5)]


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
