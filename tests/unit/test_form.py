"""Scenarios as JSON: where a fault is, what editors are told, and what the guest loads."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from experiments.catalogue import EXPERIMENTS
from testbed.errors import UsageError
from testbed.own_files.json_schema import scenario_schema
from testbed.plan.plan import make_plan
from testbed.scenario.form.described import SHARE, is_number
from testbed.scenario.form.positions import located
from testbed.scenario.model import Scenario
from tests.scenarios import dumbbell, router

TEXT = """{
  "label": "a",
  "flows": [ {"name": "x"},
\t{ "kind" : 3} ],
  "axes":{"odd. \\n": 1, "odd": [[], [7]]}
}"""


@pytest.fixture(scope="module")
def schema() -> dict[str, Any]:
    return scenario_schema()


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("label: x", "f:2:3: label: x"),
        ("flows[0].name: x", "f:3:15: flows[0].name: x"),
        ("flows[1].kind: x", "f:4:4: flows[1].kind: x"),
        ("flows[1].loss.events: missing", "f:4:2: flows[1].loss.events: missing"),
        ("axes.odd[1][0]: x", "f:5:38: axes.odd[1][0]: x"),
        (r"axes.'odd. \n': x", r"f:5:11: axes.'odd. \n': x"),
        ("seed: x", "f: seed: x"),
        ("left-eth0: its queue", "f: left-eth0: its queue"),
    ],
)
def test_a_fault_has_its_line_and_column(fault: str, said: str) -> None:
    assert located("f", TEXT, [fault]) == said


def test_faults_of_several_lines_stand_on_one() -> None:
    faults = ["label: x", "seed: y", "axes: z"]
    assert located("f", TEXT, faults) == "f:2:3: label: x; seed: y; 5:3: axes: z"


def test_of_two_forms_the_faults_of_the_one_that_is_meant() -> None:
    data = json.loads(router().to_json())
    data["topology"] = {"nodes": [{"name": "a"}], "links": [{"end": ["a", "b"]}], "rtt_ms": "1"}
    with pytest.raises(UsageError) as caught:
        Scenario.from_data(data)
    assert caught.value.message == (
        "scenario: topology.links[0].ends: missing; topology.links[0].end: unknown field; "
        "topology.rtt_ms: expected a valid number, got '1'"
    )


def test_a_file_may_say_where_its_schema_is() -> None:
    text = router().to_json().replace("{", '{"$schema": "scenario.schema.json",', 1)
    assert Scenario.from_json(text) == router()
    assert "schema" not in Scenario.from_json(text).to_json()


def test_the_schema_allows_every_experiments_scenarios(schema: dict[str, Any]) -> None:
    validator = Draft202012Validator(schema)
    Draft202012Validator.check_schema(schema)
    made = [each.scenarios({}, 1, quick=True)[0] for each in EXPERIMENTS.values()]
    for scenario in (*made, dumbbell()):
        assert not list(validator.iter_errors(json.loads(scenario.to_json())))
        assert Scenario.as_written(scenario.to_json()) == scenario


@pytest.mark.parametrize(
    ("keys", "value", "said"),
    [
        (("topology", "bottleneck", "rate_mbit"), "1", "'1' is not of type 'number'"),
        (("topology", "nodes"), [], "were unexpected"),
        (("topology",), [], "is not of type 'object'"),
        (("flows", 0, "kind"), "sctp", "is not one of"),
        (("topology", "bottleneck", "queue", "discipline"), "bfido", "'bfido' is not one of"),
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
        make_plan(Scenario.from_data(data))


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
    assert told["Topology.rtts_ms"]["description"].endswith(" (ms).")
    assert told["Radio.busy"]["description"].endswith(f" ({SHARE}).")
    assert not is_number(told["Scenario.label"])


def test_the_guest_loads_no_large_library(root: Path) -> None:
    """It would pay for them in every trial, and some are not there on a host."""
    code = "import sys, testbed, testbed.guest.main; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True
    )
    loaded = {name.partition(".")[0] for name in done.stdout.split()}
    large = {"IPython", "analysis", "experiments", "matplotlib", "numpy", "pandas", "pyarrow"}
    assert not loaded & (large | {"pydantic", "pydantic_core", "rich", "scipy"})
