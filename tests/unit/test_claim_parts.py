"""Comparisons and the parts of a claim: each by itself, and p among all that belong together."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from analysis.claims.comparisons import RATE, ComparisonOutcome, all_are, contrasts, in_most, within
from analysis.claims.judgement import (
    ClaimPart,
    ClaimVerdict,
    Finding,
    JudgedPart,
    by_definition,
    combine_verdicts,
    judge_parts,
    verdicts_over_all,
)
from analysis.statistics.intervals import holm
from tests import claims_tables as made
from tests.papers import answers

CLOSE = dict(enumerate((1.0, 1.1, 1.2, 1.05))), dict(enumerate((1.3, 1.4, 1.45, 1.5)))
UNCLEAR = dict(enumerate((1.0, 2.0, 0.5, 1.1))), dict(enumerate((1.1, 1.9, 0.7, 1.0)))


def result(part: ClaimPart) -> JudgedPart:
    """The part, if it were all of a claim."""
    return judge_parts((part,), holm(part.p))[0]


def below(*samples: dict[int, float]) -> ClaimPart:
    """One call of `contrasts`, as a claim has many."""
    return all_are(ComparisonOutcome.BELOW, contrasts(RATE, [("a", samples[0], "b", samples[1])]))


def verdicts(parts: Sequence[ClaimPart]) -> list[ClaimVerdict]:
    found = Finding(tuple(parts))
    return [each.verdict for each in judge_parts(found.parts, holm(found.p))]


def test_outcomes() -> None:
    def outcome(a: list[float], b: list[float]) -> ComparisonOutcome:
        first, second = (dict(enumerate(each)) for each in (a, b))
        return contrasts(RATE, [("a", first, "b", second)])[0].outcome

    assert (
        outcome([1.0, 1.001, 0.999], [1.01, 1.009, 1.011]) is ComparisonOutcome.EQUAL
    )  # within 2 %
    assert outcome([1.2, 1.201, 1.199], [1.0, 1.001, 0.999]) is ComparisonOutcome.ABOVE
    assert outcome([1.0, 1.0], [1.5, 1.5]) is ComparisonOutcome.BELOW  # by itself
    assert outcome([1.0, 2.0, 0.5], [1.1, 1.9, 0.7]) is ComparisonOutcome.UNCLEAR
    assert outcome([1.0], [2.0]) is ComparisonOutcome.UNCLEAR


def test_what_one_is_to_several_is_said_at_once() -> None:
    own, more, most = (dict.fromkeys(range(6), value) for value in (1.0, 2.0, 3.0))
    alike = contrasts(RATE, [("a", own, name, own) for name in "bcd"])
    words = result(all_are(ComparisonOutcome.ABOVE, alike)).said
    assert words == "a equal to b, c and d (all 1.000 Mbit/s)"
    below = contrasts(RATE, [("a", own, "b", more), ("a", own, "c", most)])
    said = "a (1.000 Mbit/s) below c (3.000 Mbit/s), b (2.000 Mbit/s)"
    assert result(all_are(ComparisonOutcome.ABOVE, below)).said == said
    many = contrasts(RATE, [(name, own, "z", more) for name in "abcdef"])
    words = result(all_are(ComparisonOutcome.ABOVE, many)).said
    assert (
        words.startswith("of 6 comparisons below in 6; e.g. a below z") and "c below" not in words
    )


def test_holm_is_over_all_comparisons_of_a_claim() -> None:
    """What is clear alone need not be among thirty, in one call or in thirty."""
    assert result(below(*CLOSE)).verdict is ClaimVerdict.SUPPORTED
    many = [below(*CLOSE), *[below(*UNCLEAR) for _ in range(30)]]
    assert verdicts(many)[0] is ClaimVerdict.OPEN
    bounds = [within("x", RATE, UNCLEAR[0], low=1.1) for _ in range(30)]
    assert verdicts([below(*CLOSE), *bounds])[0] is ClaimVerdict.OPEN  # bounds are comparisons, too


def test_constant_numbers_are_no_certainty() -> None:
    """Two equal numbers prove nothing, and twenty are one comparison among the others."""
    for seeds, verdict in ((2, ClaimVerdict.OPEN), (20, ClaimVerdict.SUPPORTED)):
        exact = within("x", RATE, dict.fromkeys(range(seeds), 1.0), low=0.5)
        assert result(exact).verdict is verdict
        assert result(below(*(dict.fromkeys(range(seeds), v) for v in (1.0, 2.0)))).verdict is (
            verdict
        )
    six = within("x", RATE, dict.fromkeys(range(6), 1.0), low=0.5)
    assert result(six).verdict is ClaimVerdict.SUPPORTED
    assert verdicts([six] * 2) == [ClaimVerdict.OPEN] * 2


def test_a_difference_within_the_margin_refutes_no_order() -> None:
    """Not even one that is significant, of either sign."""
    for low, high in ((1.0, 1.01), (1.01, 1.0)):
        samples = ({n: value * (1 + n / 1e4) for n in range(8)} for value in (low, high))
        found = result(below(*samples))
        assert found.verdict is ClaimVerdict.TOO_SMALL and "equal to" in found.said
    assert result(below(CLOSE[1], CLOSE[0])).verdict is ClaimVerdict.CONTRADICTED


def test_that_two_are_equal_is_refuted_only_beyond_the_margin() -> None:
    near = {n: 1.015 + 0.003 * n for n in range(6)}, {n: 1.0 - 0.001 * n for n in range(6)}
    alike = all_are(ComparisonOutcome.EQUAL, contrasts(RATE, [("a", near[0], "b", near[1])]))
    assert result(alike).verdict is ClaimVerdict.OPEN
    far = all_are(ComparisonOutcome.EQUAL, contrasts(RATE, [("a", CLOSE[1], "b", CLOSE[0])]))
    assert result(far).verdict is ClaimVerdict.CONTRADICTED


@pytest.mark.parametrize(
    ("yes", "no", "unknown", "verdict"),
    [
        (16, 4, 0, ClaimVerdict.SUPPORTED),
        (4, 16, 0, ClaimVerdict.CONTRADICTED),
        (12, 8, 0, ClaimVerdict.OPEN),
        (12, 0, 8, ClaimVerdict.OPEN),  # without the unknown ones it would be 12 of 12
        (17, 0, 3, ClaimVerdict.SUPPORTED),
        (0, 17, 3, ClaimVerdict.CONTRADICTED),
        (1, 0, 0, ClaimVerdict.OPEN),
        (0, 0, 0, ClaimVerdict.OPEN),
    ],
)
def test_in_most_seeds(yes: int, no: int, unknown: int, verdict: ClaimVerdict) -> None:
    holds = dict(enumerate([True] * yes + [False] * no + [None] * unknown))
    found = result(in_most("x", holds))
    assert found.verdict is verdict and found.n == yes + no
    assert found.said.startswith(f"x in {yes} of {len(holds)} seeds")


@pytest.mark.parametrize("bounds", [(0.9, 1.3), (1.25, 1.5)])
def test_a_bound_among_many_needs_a_clearer_interval(bounds: tuple[float, float]) -> None:
    alone = within("x", RATE, CLOSE[0], *bounds)
    assert result(alone).verdict is not ClaimVerdict.OPEN
    assert verdicts([alone, *[below(*UNCLEAR) for _ in range(30)]])[0] is ClaimVerdict.OPEN
    assert ", p = " in result(alone).interval


def test_that_two_are_equal_among_many_needs_a_clearer_interval() -> None:
    """Its p is that of a difference as large as the margin."""
    samples = dict(enumerate((1.0, 1.01, 0.99, 1.0))), dict(enumerate((1.0, 0.995, 1.005, 1.0)))
    alike = all_are(ComparisonOutcome.EQUAL, contrasts(RATE, [("a", samples[0], "b", samples[1])]))
    assert result(alike).verdict is ClaimVerdict.SUPPORTED and 0.001 < alike.p[0] < 0.05
    assert verdicts([alike, *[below(*UNCLEAR) for _ in range(30)]])[0] is ClaimVerdict.OPEN


def test_the_ledger_as_a_whole_is_one_family() -> None:
    few, many = Finding((below(*CLOSE),)), Finding(tuple([below(*UNCLEAR)] * 30))
    assert verdicts_over_all([few]) == (ClaimVerdict.SUPPORTED,)
    assert verdicts_over_all([few, many])[0] is ClaimVerdict.OPEN
    table = made.load_metrics("small")
    found = answers({"dumbbell-load": table})
    assert sum(each.comparisons for each in found) > 100
    assert all(each.ledger_verdict in (each.verdict, ClaimVerdict.OPEN) for each in found)
    assert any(each.ledger_verdict is ClaimVerdict.SUPPORTED for each in found)


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


def test_parts_make_an_answer() -> None:
    supported, small, contradicted, unclear, untestable, partly = ClaimVerdict
    for verdicts, whole in (
        ((supported, supported), supported),
        ((supported, unclear), unclear),
        ((supported, small), small),
        ((small, small), small),
        ((supported, small, unclear), unclear),
        ((contradicted, contradicted), contradicted),
        ((contradicted, *[supported] * 15), partly),  # one of sixteen
        ((contradicted, unclear), partly),
        ((partly, supported), partly),
        ((supported, untestable), supported),
        ((untestable,), untestable),
        ((), unclear),
    ):
        assert combine_verdicts(verdicts) is whole

    yes, no = (JudgedPart(v, "said", "test") for v in (supported, contradicted))

    def read(*results: JudgedPart) -> JudgedPart:
        parts = [ClaimPart((), lambda _, at=at: results[at]) for at in (0, 1)]  # type: ignore[misc]
        return result(by_definition("latency", zip(("one", "other"), parts, strict=True)))

    assert read(yes, no).undefined == "latency"
    assert read(no, no).verdict is ClaimVerdict.CONTRADICTED
