"""The engine of claims in worlds where the truth is known; `benchmarks.claim_worlds` has more."""

from __future__ import annotations

import math

import pytest

from benchmarks.claim_worlds import (
    NETWORK_NUMBERS,
    ClaimWorld,
    NetworkNumbers,
    coverage,
    engineered,
    worlds,
)

WORLDS_TESTED = 40


@pytest.mark.parametrize(
    "world",
    list(worlds()),
    ids=lambda w: f"{w.claim}, {w.truth}, {w.networks}, {sorted(w.counted)[0]}",
)
def test_answers_are_as_often_wrong_and_right_as_stated(world: ClaimWorld) -> None:
    """Few worlds allow three standard deviations; a rate of zero must be zero."""
    share = world.share(WORLDS_TESTED)
    allowed = 3 * math.sqrt(world.most * (1 - world.most) / WORLDS_TESTED)
    missed = 3 * math.sqrt(world.least * (1 - world.least) / WORLDS_TESTED)
    assert world.least - missed <= share <= world.most + allowed


def test_what_is_false_by_two_margins_is_found_and_what_is_true_is_never_contradicted() -> None:
    found, wrong = engineered(100)
    assert found >= 0.9 and wrong == 0


@pytest.mark.parametrize("where", NETWORK_NUMBERS, ids=lambda each: str(each.name))
@pytest.mark.parametrize("networks", [5, 10, 20])
def test_intervals_cover_what_they_say(where: NetworkNumbers, networks: int) -> None:
    covered, made, _, with_a_half = coverage(where, networks, 300)
    assert covered > 0.95 - 3 * math.sqrt(0.05 * 0.95 / 300 / made)
    if where.name.startswith("two-point") and networks < 10:
        assert with_a_half == 0
