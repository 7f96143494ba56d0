"""Scenarios as JSON: where a fault is, what editors are told, and what the guest loads."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from experiments.catalogue import EXPERIMENTS
from testbed.errors import UsageError
from testbed.own_files.json_schema import SHARE_UNIT, is_number, scenario_schema
from testbed.plan.plan import make_plan
from testbed.scenario.reading import read_document, read_scenario
from tests.scenarios import dumbbell, router


@pytest.fixture(scope="module")
def schema() -> dict[str, Any]:
    return scenario_schema()


def test_faults_of_a_link_have_their_place() -> None:
    data = json.loads(router().to_json())
    data["network"] = {"nodes": [{"name": "a"}], "links": [{"end": ["a", "b"]}], "rtt_ms": "1"}
    with pytest.raises(UsageError) as caught:
        read_document(data)
    assert caught.value.message == (
        "scenario: network.links[0].ends: missing; network.links[0].end: unknown field: did you "
        "mean 'ends'?; network.rtt_ms: expected a valid number, got '1'"
    )


def test_a_file_may_say_where_its_schema_is() -> None:
    text = router().to_json().replace("{", '{"$schema": "scenario.schema.json",', 1)
    assert read_scenario(text) == router()
    assert "schema" not in read_scenario(text).to_json()


def test_the_schema_allows_every_experiments_scenarios(schema: dict[str, Any]) -> None:
    validator = Draft202012Validator(schema)
    Draft202012Validator.check_schema(schema)
    made = [each.scenarios({}, 1, quick=True)[0] for each in EXPERIMENTS.values()]
    for scenario in (*made, dumbbell()):
        assert not list(validator.iter_errors(json.loads(scenario.to_json())))
        assert read_scenario(scenario.to_json()) == scenario


@pytest.mark.parametrize(
    ("keys", "value", "said"),
    [
        (("network", "links", 1, "forward", "delay_ms"), "1", "'1' is not of type 'number'"),
        (("network", "knots"), [], "'knots' was unexpected"),
        (("network",), [], "is not of type 'object'"),
        (("topology",), {"kind": "dumbbell"}, "is valid under each of"),
        (("flows", 0, "kind"), "sctp", "is not one of"),
        (
            ("network", "links", 1, "forward", "queue", "discipline"),
            "bfido",
            "is not valid under any of the given schemas",
        ),
        (("sede",), 1, "'sede' was unexpected"),
        (("duration_s",), None, "is not of type 'number'"),
    ],
)
def test_the_schema_refuses(
    schema: dict[str, Any], keys: tuple[str | int, ...], value: object, said: str
) -> None:
    data = json.loads(router().to_json())
    *outer, last = keys
    holder: Any = data
    for key in outer:
        holder = holder[key]
    holder[last] = value
    errors = Draft202012Validator(schema).iter_errors(data)
    assert any(said in error.message for error in errors)
    with pytest.raises(UsageError):
        make_plan(read_document(data).scenario)


def test_an_option_is_its_disciplines(schema: dict[str, Any]) -> None:
    """And within what the kernel takes."""
    queue = Draft202012Validator({"$defs": schema["$defs"], "$ref": "#/$defs/Queue"})
    told = {"discipline": "codel", "limit_packets": 9}
    for options, fits in (({"target_ms": 5}, True), ({"target_ms": 0}, False), ({"x": 1}, False)):
        assert queue.is_valid({**told, "options": options}) == fits


def fields(schema: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for form, each in (("Scenario", schema), *schema["$defs"].items()):
        for name, field in each.get("properties", {}).items():
            yield f"{form}.{name}", field


def test_every_field_has_its_sentence(schema: dict[str, Any]) -> None:
    """A text in quotes below it; a number's unit is its name's last word (`UNITS`)."""
    told = dict(fields(schema))
    assert not {name for name, field in told.items() if not field["description"].endswith(".")}
    assert told["Flow.start_s"]["description"].endswith(" (s).")
    assert told["NamedNetwork.rtts_ms"]["description"].endswith(" (ms).")
    assert told["Radio.busy"]["description"].endswith(f" ({SHARE_UNIT}).")
    assert not is_number(told["Scenario.label"])
