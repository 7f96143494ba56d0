"""Scenarios as JSON, their names, and faults of form."""

from __future__ import annotations

import dataclasses

import pytest

from testbed.errors import UsageError
from testbed.scenario.model import Scenario
from testbed.scenario.reading import read_scenario
from tests.scenarios import dumbbell, router


@pytest.mark.parametrize("scenario", [router(), dumbbell()], ids=["router", "dumbbell"])
def test_json_there_and_back(scenario: Scenario) -> None:
    assert read_scenario(scenario.to_json()) == scenario


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
    text = text.replace('"seed": 1', '"seed": "one"').replace('"modern"', '"old"')
    with pytest.raises(UsageError) as caught:
        read_scenario(text)
    assert caught.value.message == (
        "scenario: network.links[0].reverse.rate_mbit: expected a valid number, got True; "
        "seed: expected a valid integer, got 'one'; "
        "profile: expected 'modern' or 'ns2', got 'old'"
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{\n 1", "scenario:2:2: not JSON"),
        ("[]", "scenario: expected an object, got a list"),
        ('{"topology": []}', "topology: expected an object, got a list"),
        ('{"sede": 1}', "; sede: unknown field"),
        ("{}", "scenario: experiment: missing; network: missing"),
        ('{"seed": NaN}', "; seed: expected a valid integer, got nan"),
        ('{"seed": 1e999}', "seed: expected a valid integer, got a number beyond all bounds"),
        ('{"seed": ' + "9" * 5000 + "}", "got a number beyond all bounds"),
        ('{"duration_s": ' + "9" * 400 + "}", "duration_s: expected a finite number"),
        ('{"seed": 18446744073709551616}', "seed: expected a valid integer, got 1.8446"),
        ('{"seed": 1, "seed": 2}', "scenario: 'seed' is given twice"),
        ("[" * 100_000, "nested too deeply"),
        ('{"label": ' + "[" * 900 + "]" * 900 + "}", "recursion limit exceeded"),
        ('{"label": {}}', "label: expected a valid string, got an object"),
        ('{"\\ud800": 1}', "not JSON: unexpected end of hex escape"),
        ('{"\\n": 1}', r"; '\n': unknown field"),
        ('{"' + "x" * 10**6 + '": 1}', "(1000000 characters): unknown field"),
        ("1" * (5 << 20), "longer than 4 MB"),
        (b'{\n"label": "\xff"}', "scenario:2: not UTF-8"),
        ("{}".encode("utf-16"), "not UTF-8"),
        (b"\xef\xbb\xbf{}", "scenario: experiment: missing; network: missing"),
        (b"", "not JSON: the file is empty"),
        ('{"seed": 1\n,\n\n}', "scenario:2:1: not JSON: a comma before }"),
        ("[1,]", "scenario:1:3: not JSON: a comma before ]"),
        ("{'seed': 1}", "scenario:1:2: not JSON: a text in single quotes"),
        ('{"seed": [1', "scenario:1:12: not JSON: it ends too early"),
        ("{" + ",".join(f'"x{i}": 1' for i in range(1000)) + "}", "; and more"),
    ],
)
def test_wrong_text(text: str | bytes, said: str) -> None:
    with pytest.raises(UsageError, match="scenario") as caught:
        read_scenario(text)
    assert said in caught.value.message
    assert len(caught.value.message) < 2000 and "\n" not in caught.value.message


def test_a_flow_ends_with_the_trial() -> None:
    scenario = dumbbell()
    assert scenario.stop_s(scenario.flow("two")) == 3
    late = dataclasses.replace(scenario.flow("two"), duration_s=100.0)
    assert scenario.stop_s(late) == 5
