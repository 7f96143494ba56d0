"""The JSON Schema of a scenario's file: its types, and what is known of queues and variants."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic.json_schema import GenerateJsonSchema

from testbed.own_files.scenario_file import TopoReference
from testbed.scenario.discipline import Discipline, Option
from testbed.scenario.model import Scenario
from testbed.scenario.named_networks import LinkSettings, NamedNetwork
from testbed.scenario.network import Direction
from testbed.scenario.queues import DISCIPLINES
from testbed.scenario.reading import NETWORK_KEY, SCHEMA_KEY, TOPOLOGY_KEY, adapter
from testbed.scenario.setting_units import SETTING_UNITS
from testbed.scenario.variants import VARIANTS

OF_VARIANTS = (("Flow", "variant"), ("Viewing", "viewer_variant"))


SHARE_UNIT = "a share, 0 to 1"
FIELD_UNITS = {  # of a number, by its name or the last word of it
    **SETTING_UNITS,
    "drawn_service_times": "service times",
    **dict.fromkeys(("initcwnd", "initrwnd"), "segments"),
    "frames_per_s": "1/s",
    "mb": "MB",
    "mss": "bytes",
    "spacing": "packets",
    **dict.fromkeys(("bad", "busy", "good", "jitter", "load", "loss"), SHARE_UNIT),
    **dict.fromkeys(("rate", "reorder", "share"), SHARE_UNIT),
    **dict.fromkeys(("cdf", "count", "drops", "hosts", "ip", "losses", "number", "parallel"), ""),
    **dict.fromkeys(("pool", "port", "scale", "seed", "sessions", "shape", "sigma"), ""),
}


def scenario_schema() -> dict[str, Any]:
    """Return the schema, which finds every fault that one field can have by itself.

    What several fields must have in common only the testbed knows.
    """
    schema = described(Scenario)
    forms = schema["$defs"]
    for kind in (NamedNetwork, TopoReference):
        form = described(kind)
        forms |= form.pop("$defs", {})
        forms[kind.__name__] = form
    # pydantic finds the sentences of a class's own fields alone
    forms[LinkSettings.__name__]["properties"] |= forms[Direction.__name__]["properties"]
    topo = forms[TopoReference.__name__]
    graph = forms["Graph"]["properties"]  # any of its fields may be given beside a Topo
    topo["properties"] = {**topo["properties"], **graph}
    schema["properties"][TOPOLOGY_KEY] = {
        "description": f"A network by its name, or a Mininet Topo, in place of `{NETWORK_KEY}`.",
        "if": {"required": ["topo"]},
        "then": {"$ref": f"#/$defs/{TopoReference.__name__}"},
        "else": {"$ref": f"#/$defs/{NamedNetwork.__name__}"},
    }
    schema["required"].remove(NETWORK_KEY)
    schema["oneOf"] = [{"required": [NETWORK_KEY]}, {"required": [TOPOLOGY_KEY]}]
    queue = forms["Queue"]
    queue["properties"]["discipline"]["enum"] = list(DISCIPLINES)
    queue["allOf"] = [_options_of(row) for row in DISCIPLINES.values()]
    for form_name, field in OF_VARIANTS:
        forms[form_name]["properties"][field]["examples"] = list(VARIANTS)  # a kernel may have more
    schema["properties"][SCHEMA_KEY] = {"type": "string", "description": "Where this schema is."}
    return {SCHEMA_KEY: GenerateJsonSchema.schema_dialect, **schema}


class _Untitled(GenerateJsonSchema):
    """A schema without titles: pydantic makes them of names, which editors show anyway."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        """Suppress pydantic's titles."""
        return False


def described(kind: Any) -> dict[str, Any]:
    """Return what an editor needs to complete and to check the JSON of that dataclass."""
    schema: dict[str, Any] = adapter(kind, sentences=True).json_schema(schema_generator=_Untitled)
    for each in (schema, *schema.get("$defs", {}).values()):
        for name, field in each.get("properties", {}).items():
            _describe(name, field)
    return schema


def _describe(name: str, field: dict[str, Any]) -> None:
    """Put the field's sentence on one line, with its unit."""
    sentence = " ".join(field.get("description", "").split())
    if unit := unit_of(name, field):
        sentence = f"{sentence.removesuffix('.')} ({unit})."
    field["description"] = sentence


def unit_of(name: str, field: Mapping[str, Any]) -> str:
    """Return the unit of a schema's field; empty for what is no number, or counts."""
    if not is_number(field):
        return ""
    return FIELD_UNITS[name] if name in FIELD_UNITS else FIELD_UNITS[name.rpartition("_")[2]]


def is_number(field: Mapping[str, Any]) -> bool:
    """Return whether a schema's field is a number, or a list of them."""
    inner = [*field.get("anyOf", ()), *filter(None, [field.get("items")])]
    return field.get("type") in ("integer", "number") or any(map(is_number, inner))


def _options_of(row: Discipline) -> dict[str, Any]:
    """Return the schema of a discipline's options, each within what the kernel takes."""
    known = {name: _option(option) for name, option in row.options.items()}
    return {
        "if": {"properties": {"discipline": {"const": row.name}}},
        "then": {"properties": {"options": {"properties": known, "additionalProperties": False}}},
    }


def _option(option: Option) -> dict[str, Any]:
    if option.choices:
        listed = ", ".join(f"{value:g}: {each.word}" for value, each in option.choices.items())
        return {"enum": list(option.choices), "description": f"tc's {listed}"}
    unit = f" ({option.unit})" if option.unit else ""
    schema = {"type": "number", "minimum": option.least, "maximum": option.highest}
    return {**schema, "description": f"tc's {option.keyword}{unit}"}
