"""Comparisons and the parts of a claim: one interval, three regions, and what must all hold."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest

from analysis.claims.comparisons import (
    RATE,
    ClaimMeasure,
    ComparisonOutcome,
    Sample,
    all_are,
    contrasts,
    in_most,
    spread,
    within,
)
from analysis.claims.judgement import (
    ClaimPart,
    ClaimVerdict,
    JudgedPart,
    by_definition,
    combine_verdicts,
    judge_parts,
    not_testable,
    require_all,
)
from analysis.claims.ledger import Sentence
from analysis.statistics.estimates import Estimate, EstimateKind, level_at, networks_needed, spent
from tests import claims_tables as made
from tests.papers import answers

SECONDS = ClaimMeasure("s", 1, absolute=1.0)
SHAPE = (-1.5, -1.0, -0.6, -0.3, 0.0, 0.0, 0.3, 0.6, 1.0, 1.5)  # symmetric, of deviation 0.94


def around(centre: float, scale: float = 1.0, n: int = 10) -> Sample:
    """Networks around a number: differences from nought are as sure as the numbers themselves."""
    return {seed: centre + scale * SHAPE[seed % len(SHAPE)] for seed in range(n)}


def nought(sample: Sample) -> Sample:
    return dict.fromkeys(sample, 0.0)


def result(part: ClaimPart, level: float = 0.05) -> JudgedPart:
    """The part, if it were all of a claim."""
    return judge_parts((part,), level)[0]


def part(
    wanted: ComparisonOutcome, *samples: Sample, printed: tuple[float, float] | None = None
) -> ClaimPart:
    pairs = [("a", each, "b", nought(each)) for each in samples]
    return all_are(wanted, contrasts(SECONDS, pairs, [printed] * len(pairs)))


def verdicts(parts: Sequence[ClaimPart]) -> list[ClaimVerdict]:
    return [each.verdict for each in judge_parts(parts)]


ABOVE, BELOW, EQUAL, UNCLEAR = (
    *(ComparisonOutcome.ABOVE, ComparisonOutcome.BELOW),
    *(ComparisonOutcome.EQUAL, ComparisonOutcome.UNCLEAR),
)


@pytest.mark.parametrize(
    ("centre", "above", "equal"),
    [
        (2.0, ClaimVerdict.SUPPORTED, ClaimVerdict.CONTRADICTED),
        (0.0, ClaimVerdict.TOO_SMALL, ClaimVerdict.SUPPORTED),
        (-2.0, ClaimVerdict.CONTRADICTED, ClaimVerdict.CONTRADICTED),
        (1.0, ClaimVerdict.OPEN, ClaimVerdict.OPEN),
        (-1.0, ClaimVerdict.OPEN, ClaimVerdict.OPEN),
    ],
)
def test_one_interval_has_three_regions(
    centre: float, above: ClaimVerdict, equal: ClaimVerdict
) -> None:
    """The interval reaches 0.67 s to either side; the margin is 1 s."""
    assert result(part(ABOVE, around(centre))).verdict is above
    assert result(part(EQUAL, around(centre))).verdict is equal


def test_an_order_within_the_margin_is_never_supported_however_many_networks_there_are() -> None:
    """Nor does an order beyond it become rarer with more of them."""
    for n in (10, 40, 200):
        assert result(part(ABOVE, around(0.5, n=n))).verdict is not ClaimVerdict.SUPPORTED
        assert result(part(ABOVE, around(2.0, n=n))).verdict is ClaimVerdict.SUPPORTED
    assert result(part(ABOVE, around(0.5, n=200))).verdict is ClaimVerdict.TOO_SMALL


def test_what_the_paper_prints_is_refuted_if_the_difference_is_within_half_of_it() -> None:
    refuted = result(part(BELOW, around(0.0), printed=(109.0, 122.0)))
    assert refuted.verdict is ClaimVerdict.REFUTED
    assert "a equal to b (0.0 s, 0.0 s; the paper: 109.0 s, 122.0 s)" in refuted.said
    assert "margin 6.5 s, half of the difference" in refuted.interval
    assert result(part(BELOW, around(-6.0), printed=(109.0, 122.0))).verdict is ClaimVerdict.OPEN
    assert result(part(BELOW, around(-13.0), printed=(109.0, 122.0))).verdict is (
        ClaimVerdict.SUPPORTED
    )


def test_of_a_relative_measure_half_of_the_papers_ratio_counts() -> None:
    """The paper's 300 and 100 differ by their mean: half of ours is the margin."""
    pairs = [("a", around(120.0), "b", dict.fromkeys(range(10), 80.0))]
    [found] = contrasts(RATE, pairs, [(300.0, 100.0)])
    assert found.margin == pytest.approx(50.0)


def test_parts_that_must_all_hold_are_not_corrected() -> None:
    """An intersection–union test: each is supported by itself, among two or among thirty."""
    near = part(ABOVE, around(1.8))
    p = result(near).p
    assert 0.01 < p < 0.05 / 2
    assert set(verdicts([near] * 30)) == {ClaimVerdict.SUPPORTED}


@pytest.mark.parametrize(
    "against",
    [
        part(ABOVE, around(-1.8)),
        part(EQUAL, around(1.8)),
        within("x", SECONDS, around(1.8), high=1.0),
        in_most("x", dict.fromkeys(range(6), False)),
    ],
)
def test_that_one_of_many_is_contradicted_is_corrected(against: ClaimPart) -> None:
    """Also that two are not equal: its p is that of a difference as large as the margin."""
    assert result(against).verdict is ClaimVerdict.CONTRADICTED
    assert set(verdicts([against] * 30)) == {ClaimVerdict.OPEN}


def test_what_is_the_same_in_all_networks_is_answered_by_how_many_they_are() -> None:
    """Without a test of signs, and however many comparisons there are."""
    few, same = (dict.fromkeys(range(n), 2.0) for n in (8, 9))
    assert result(part(ABOVE, few)).verdict is ClaimVerdict.OPEN
    assert verdicts([part(BELOW, same)] * 30)[0] is ClaimVerdict.CONTRADICTED
    found = result(within("x", SECONDS, same, low=1.0))
    assert found.verdict is ClaimVerdict.SUPPORTED
    assert found.interval == "2.0 s in 9 of 9 networks (95 %: in at least 72% of networks)"
    assert result(part(ABOVE, few)).needed == 9


def test_which_interval_is_made_follows_from_the_shape_alone() -> None:
    skewed = {n: math.exp(n / 4) for n in range(12)}
    kinds = {0: 8.1, 1: 8.2, 2: 8.3, 3: 74.6, 4: 8.2}
    for shift in (0.0, 100.0):
        for sample, kind in (
            (around(0.0), EstimateKind.STUDENT),
            (skewed, EstimateKind.RANKS),
            (kinds, EstimateKind.NOT_KNOWN),  # five, of two kinds
            ({0: 1.0, 1: 1.0, 2: 0.0}, EstimateKind.NOT_KNOWN),
            (dict.fromkeys(range(9), 1.0), EstimateKind.CONSTANT),
            ({0: 1.0}, EstimateKind.NOT_KNOWN),
        ):
            assert Estimate(np.array(list(sample.values())) + shift).kind is kind
    assert spread(SECONDS, kinds) == "21.5 s, from 8.1 s to 74.6 s"
    assert spread(SECONDS, skewed).startswith("median 4.0 s (1.6 s to 9.5 s)")


def test_ranks_are_the_exact_interval_of_the_median() -> None:
    """Of ten, the second to the ninth: it misses the median in 2 × 11 of 1024 cases."""
    values = np.array([1.0, 2, 3, 4, 5, 6, 7, 8, 9, 100])
    found = Estimate(values)
    assert found.kind is EstimateKind.RANKS and found.interval() == (2, 9)
    assert found.p_within(2, math.inf) == pytest.approx(22 / 1024)
    assert found.p_within(2.5, math.inf) == pytest.approx(2 * 56 / 1024)
    assert found.interval(1e-9) == (-math.inf, math.inf)


def test_of_many_comparisons_the_number_that_hold_is_said_with_its_interval() -> None:
    found = result(part(ABOVE, *[around(3.0)] * 4, around(0.0), around(1.0)))
    assert found.said.startswith(
        "4 to 5 of 6 hold (95 %, all at once): of 6 comparisons above in 4"
    )
    assert found.verdict is ClaimVerdict.OPEN


def test_what_one_is_to_several_is_said_at_once() -> None:
    own, more, most = (dict.fromkeys(range(9), value) for value in (1.0, 2.0, 3.0))
    alike = contrasts(RATE, [("a", own, name, own) for name in "bcd"])
    words = result(all_are(ABOVE, alike)).said
    assert words == "a equal to b, c and d (all 1.000 Mbit/s)"
    below = contrasts(RATE, [("a", own, "b", more), ("a", own, "c", most)])
    said = "a (1.000 Mbit/s) below c (3.000 Mbit/s), b (2.000 Mbit/s)"
    assert result(all_are(ABOVE, below)).said == said


@pytest.mark.parametrize(
    ("yes", "no", "unknown", "verdict"),
    [
        (16, 4, 0, ClaimVerdict.SUPPORTED),
        (4, 16, 0, ClaimVerdict.CONTRADICTED),
        (12, 8, 0, ClaimVerdict.OPEN),
        (12, 0, 8, ClaimVerdict.OPEN),  # without the unknown ones it would be 12 of 12
        (17, 0, 3, ClaimVerdict.SUPPORTED),
        (0, 17, 3, ClaimVerdict.CONTRADICTED),
        (25, 25, 0, ClaimVerdict.PARTLY),  # in about half, which fifty networks can say
        (1, 0, 0, ClaimVerdict.OPEN),
        (0, 0, 0, ClaimVerdict.OPEN),
    ],
)
def test_in_most_networks(yes: int, no: int, unknown: int, verdict: ClaimVerdict) -> None:
    holds = dict(enumerate([True] * yes + [False] * no + [None] * unknown))
    found = result(in_most("x", holds))
    assert found.verdict is verdict and found.n == yes + no
    assert found.said.startswith(f"x in {yes} of {len(holds)} networks")


@pytest.mark.parametrize(
    ("values", "verdict"),
    [
        ([0.5, 0.51, 0.49], ClaimVerdict.SUPPORTED),
        ([0.7, 0.71, 0.69], ClaimVerdict.CONTRADICTED),
        ([0.45, 0.65, 0.5], ClaimVerdict.OPEN),
        ([0.5], ClaimVerdict.OPEN),
    ],
)
def test_within_is_judged_by_the_interval(values: list[float], verdict: ClaimVerdict) -> None:
    assert result(within("x", RATE, dict(enumerate(values)), 0.45, 0.55)).verdict is verdict


def test_the_ledger_as_a_whole_is_one_family() -> None:
    found = answers({"dumbbell-load": made.load_metrics("small")})
    decided = [each for each in found if each.verdict is not ClaimVerdict.OPEN]
    assert sum(each.comparisons for each in found) >= 10
    assert all(each.ledger_verdict in (each.verdict, ClaimVerdict.OPEN) for each in found)
    assert any(each.ledger_verdict is ClaimVerdict.SUPPORTED for each in found)
    assert all(math.isnan(each.p) == (each not in decided) for each in found if each.is_measured)


def test_parts_make_an_answer() -> None:
    supported, small, refuted, contradicted, unclear, untestable, partly, reading = ClaimVerdict
    for verdicts, whole in (
        ((supported, supported), supported),
        ((supported, unclear), unclear),
        ((supported, small), small),
        ((small, small), small),
        ((supported, small, unclear), unclear),
        ((contradicted, contradicted), contradicted),
        ((contradicted, refuted), contradicted),
        ((refuted, supported), partly),
        ((contradicted, *[supported] * 15), partly),  # one of sixteen
        ((contradicted, unclear), partly),
        ((partly, supported), partly),
        ((supported, untestable), supported),
        ((supported, reading), reading),
        ((unclear, reading), unclear),
        ((untestable,), untestable),
        ((), unclear),
    ):
        assert combine_verdicts(verdicts) is whole


def test_readings_of_a_word_are_answered_side_by_side() -> None:
    yes, no, unclear = (part(ABOVE, around(centre)) for centre in (2.0, -2.0, 1.0))

    def read(*parts: ClaimPart) -> JudgedPart:
        return result(by_definition("latency", zip(("RTT", "delay"), parts, strict=True)))

    assert read(yes, no).verdict is ClaimVerdict.BY_READING
    assert read(yes, no).readings == (
        ("RTT", ClaimVerdict.SUPPORTED),
        ("delay", ClaimVerdict.CONTRADICTED),
    )
    assert read(no, no).verdict is ClaimVerdict.CONTRADICTED
    assert read(yes, unclear).verdict is ClaimVerdict.OPEN
    both = require_all((yes, no))
    assert result(both).verdict is ClaimVerdict.PARTLY
    shown = result(not_testable(yes, "that is ns-2's"))
    assert shown.verdict is ClaimVerdict.NOT_TESTABLE and shown.said.endswith(
        ", and that is ns-2's"
    )


def test_the_networks_needed_are_those_of_nine_in_ten() -> None:
    """Of a normal spread as large as the distance: (1.96 + 1.28)² = 10.5, more for t and ranks."""
    assert networks_needed(0.0, 1.0) == 9
    assert 13 <= networks_needed(1.0, 1.0) <= 18
    assert networks_needed(2.0, 1.0) == pytest.approx(1.25 * 4 * 10.5, rel=0.1)
    assert networks_needed(1.0, 1.0, two_sided=True) > networks_needed(1.0, 1.0)
    assert networks_needed(1.0, 0.0) == 0
    assert result(part(ABOVE, around(1.0))).needed == networks_needed(
        float(np.std(SHAPE, ddof=1)), 1.0
    )


def test_looks_spend_no_more_than_the_level() -> None:
    levels = [level_at(look) for look in range(4)]
    assert sum(levels) == pytest.approx(0.05) and levels == sorted(levels)
    assert spent(0.5) == pytest.approx(0.0056, abs=1e-4)  # O'Brien and Fleming's, halfway
    strong, weak = part(ABOVE, around(9.0, n=20)), part(ABOVE, around(1.8, n=20))
    assert result(strong, levels[1]).verdict is ClaimVerdict.SUPPORTED
    assert result(weak, levels[1]).verdict is ClaimVerdict.OPEN
    assert result(weak).verdict is ClaimVerdict.SUPPORTED


def test_a_sentence_has_the_numbers_of_the_rows() -> None:
    sentence = Sentence("modern", "supported", "It has {share of bbr} (the paper: 60 %).")
    for number in (
        *("61.4 % ± 13.7", "median 61.4 % (44.1 % to 75.3 %)", "61.4 %"),
        *("61.4 % in all", "61.4 %, from 44.1 % to 75.3 %"),
    ):
        filled = sentence.filled({"share of bbr": number})
        assert filled == "It has 61.4 % (the paper: 60 %)."
    with pytest.raises(KeyError):
        sentence.filled({})
