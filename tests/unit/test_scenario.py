"""Scenarios: JSON there and back, names, and faults of form."""

from __future__ import annotations

import dataclasses

import pytest

from testbed.errors import UsageError
from testbed.scenario.model import Scenario
from tests.scenarios import dumbbell, router


@pytest.mark.parametrize("scenario", [router(), dumbbell()], ids=["router", "dumbbell"])
def test_json_there_and_back(scenario: Scenario) -> None:
    assert Scenario.from_json(scenario.to_json()) == scenario


def test_equal_numbers_hash_alike() -> None:
    """60 and 60.0 are the same duration, so they name the same trial."""
    assert router(duration_s=60).name == router(duration_s=60.0).name


def test_every_change_changes_the_name() -> None:
    names = {
        router().name,
        router(seed=2).name,
        router(variant="vegas").name,
        router(rate_mbit=2).name,
        router(sample_interval_ms=0).name,
    }
    assert len(names) == 5


def test_all_faults_of_form_at_once_with_their_fields() -> None:
    text = router().to_json().replace('"rate_mbit": 1,', '"rate_mbit": true,', 1)
    text = text.replace('"seed": 1', '"seed": "one"').replace('"kind": "tcp"', '"kind": "sctp"')
    with pytest.raises(UsageError) as caught:
        Scenario.from_json(text)
    for field in (
        "scenario.topology.bottleneck.rate_mbit",
        "scenario.seed",
        "scenario.flows[0].kind",
    ):
        assert field in caught.value.message


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "not JSON"),
        ("[]", "expected an object"),
        ('{"sede": 1}', "scenario.sede: unknown field"),
        ("{}", "scenario.topology: missing"),
        ('{"seed": NaN}', "scenario.seed"),
    ],
)
def test_wrong_text(text: str, said: str) -> None:
    with pytest.raises(UsageError, match="scenario") as caught:
        Scenario.from_json(text)
    assert said in caught.value.message


def test_a_flow_ends_with_the_trial() -> None:
    scenario = dumbbell()
    assert scenario.stop_s(scenario.flow("two")) == 3
    late = dataclasses.replace(scenario.flow("two"), duration_s=100.0)
    assert scenario.stop_s(late) == 5
