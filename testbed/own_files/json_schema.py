"""The JSON Schema of a scenario's file: its types, and what is known of queues and variants."""

from __future__ import annotations

from typing import Any

from pydantic.json_schema import GenerateJsonSchema

from testbed.own_files.topo_document import OfTopo
from testbed.scenario.discipline import Discipline, Option
from testbed.scenario.form.described import described
from testbed.scenario.form.reading import SCHEMA
from testbed.scenario.model import Scenario
from testbed.scenario.queues import DISCIPLINES
from testbed.scenario.variants import VARIANTS

OF_VARIANTS = (("Flow", "variant"), ("Viewing", "viewer_variant"))


def scenario_schema() -> dict[str, Any]:
    """Everything that one field alone can have wrong; what fields must have in common, only the
    testbed knows."""
    schema = described(Scenario)
    forms = schema["$defs"]
    forms["OfTopo"] = _with_fields_of(forms["Graph"], described(OfTopo))
    topology = schema["properties"]["topology"]
    del topology["anyOf"]
    topology |= _told_apart({"topo": "OfTopo", "nodes": "Graph"}, "Topology")
    queue = forms["Queue"]
    queue["properties"]["discipline"]["enum"] = list(DISCIPLINES)
    queue["allOf"] = [_options_of(row) for row in DISCIPLINES.values()]
    for form, field in OF_VARIANTS:
        forms[form]["properties"][field]["examples"] = list(VARIANTS)  # a kernel may have others
    schema["properties"][SCHEMA] = {"type": "string", "description": "Where this schema is."}
    return {SCHEMA: GenerateJsonSchema.schema_dialect, **schema}


def _told_apart(forms: dict[str, str], other: str) -> dict[str, Any]:
    """Each form by a field that only it has, so that faults are those of the form that is meant."""
    found: dict[str, Any] = {"$ref": f"#/$defs/{other}"}
    for field, form in reversed(forms.items()):
        found = {"if": {"required": [field]}, "then": {"$ref": f"#/$defs/{form}"}, "else": found}
    return found


def _with_fields_of(graph: dict[str, Any], topo: dict[str, Any]) -> dict[str, Any]:
    return {**graph, **topo, "properties": {**topo["properties"], **graph["properties"]}}


def _options_of(row: Discipline) -> dict[str, Any]:
    """Of that discipline: its options alone, each within what the kernel takes."""
    known = {name: _option(option) for name, option in row.options.items()}
    return {
        "if": {"properties": {"discipline": {"const": row.name}}},
        "then": {"properties": {"options": {"properties": known, "additionalProperties": False}}},
    }


def _option(option: Option) -> dict[str, Any]:
    unit = f" ({option.unit})" if option.unit else ""
    found = {"type": "number", "minimum": option.least, "maximum": option.highest}
    return {**found, "description": f"tc's {option.keyword}{unit}"}
