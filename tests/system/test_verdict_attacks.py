"""The verdict attacked: faults planted in drawn scenarios are found, and sound trials are valid."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from analysis.verdict.checks import Grade
from benchmarks.planted_faults import PLANTED_FAULTS
from benchmarks.scenario_changes import drawn_scenario
from benchmarks.verdicts import (
    ATTACK_LIMITED,
    ATTACK_SOUND,
    AttackOutcome,
    chosen_faults,
    outcomes,
    table_lines,
    wilson,
)

TRIALS, SEED = 120, 3
# Kinds of which each is found, where it has an effect: what a trial leaves says all of it.
ALWAYS_FOUND = (
    "rate, as planned",
    "queue discipline, as planned",
    "losses, as planned",
    "link's changes, as planned",
    "swapped directions, as planned",
    "control, as planned",
    "connections, as planned",
    "flow's start, as planned",
    "flow's ends swapped, as planned",
    "control",
    "segments' size",
    "CBR's packets",
    "sizes of transfers",
    "setting that stays",
    "datagrams of others",
    "connection of others",
    "a stretch not captured",
    "capture that begins late",
    "swapped captures",
    "file cut afterwards",
)
LEAST_FOUND = 0.85  # of all faults that had an effect


def test_three_trials_with_and_without_faults() -> None:
    sound, *faults = outcomes(1, 9, ["connection of others", "reader that stops"])
    assert (sound.kind, sound.grade, sound.why) == (ATTACK_SOUND, Grade.VALID, "")
    assert [each.is_fault and each.rule for each in faults] == [
        "other connections",
        "iperf3 seconds",
    ]


@pytest.mark.slow
def test_each_kind_that_can_be_known_is_found() -> None:
    done = [
        outcome
        for number, kinds in chosen_faults(SEED, TRIALS, list(PLANTED_FAULTS))
        for outcome in outcomes(SEED, number, kinds)
    ]
    faults = [each for each in done if each.is_fault]
    missed = [each for each in faults if not each.is_found]
    assert [each for each in missed if each.kind in ALWAYS_FOUND] == []
    assert len(missed) < (1 - LEAST_FOUND) * len(faults)
    accused = [each for each in done if each.kind == ATTACK_SOUND and each.is_found]
    assert [each for each in accused if each.rule not in ATTACK_LIMITED] == []


def test_scenarios_and_faults_follow_from_the_seed() -> None:
    assert drawn_scenario(1, 3) == drawn_scenario(1, 3) != drawn_scenario(2, 3)
    kinds = list(PLANTED_FAULTS)
    assert list(chosen_faults(1, 60, kinds)) == list(chosen_faults(1, 60, kinds))


def test_every_kind_can_be_planted_somewhere() -> None:
    """Among a hundred scenarios, which have every kind of traffic and of queue."""
    left = set(PLANTED_FAULTS)
    for number in range(100):
        scenario = drawn_scenario(1, number)
        for kind in sorted(left):
            if PLANTED_FAULTS[kind](random.Random(kind), scenario) is not None:
                left.remove(kind)
    assert not left


def test_a_fault_without_effect_counts_neither_way() -> None:
    kind = next(iter(PLANTED_FAULTS))
    done = [
        AttackOutcome(1, ATTACK_SOUND, Grade.VALID, "", "", is_fault=False),
        AttackOutcome(1, kind, Grade.INVALID, "rate", "x", is_fault=True),
        AttackOutcome(2, kind, Grade.VALID, "", "", is_fault=True),
        AttackOutcome(3, kind, Grade.VALID, "", "", is_fault=False),
    ]
    first, *_, row = table_lines(done)
    assert first.startswith("Of 2 faults 1 were found: 50% ")
    assert row == f"| {kind} | 3 | 1 | 1 | {wilson(1, 2)} | rate 1 |"
    assert Counter(each.is_found for each in done)[True] == 1


def test_an_interval_of_wilsons() -> None:
    """By hand: n = 10, k = 9, z = 1.96."""
    assert wilson(9, 10) == "90% (60% to 98%)"
    assert wilson(0, 0) == ""
