"""The JSON Schema of dataclasses, made by pydantic: every field with its sentence and its unit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ConfigDict, TypeAdapter, with_config
from pydantic.json_schema import GenerateJsonSchema

SHARE = "a share, 0 to 1"
UNITS = {  # of a number, by its name or the last word of it
    "per_s": "1/s",
    "bdp": "bandwidth–delay products",
    "bytes": "bytes",
    "dbm": "dBm",
    "mbit": "Mbit/s",
    "ms": "ms",
    "mss": "bytes",
    "packets": "packets",
    "s": "s",
    "spacing": "packets",
    **dict.fromkeys(("bad", "busy", "good", "jitter", "load", "loss"), SHARE),
    **dict.fromkeys(("rate", "reorder", "share"), SHARE),
    **dict.fromkeys(("cdf", "count", "drops", "hosts", "losses", "number", "parallel"), ""),
    **dict.fromkeys(("pool", "port", "scale", "seed", "sessions", "shape", "sigma"), ""),
}


class _Untitled(GenerateJsonSchema):
    """Without titles: pydantic makes them of names, which editors show anyway."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        """For no field."""
        return False


def described(kind: Any) -> dict[str, Any]:
    """What an editor needs to complete and to check the JSON of that dataclass."""
    strictly = ConfigDict(extra="forbid", strict=True, use_attribute_docstrings=True)
    schema = TypeAdapter(with_config(strictly)(kind)).json_schema(schema_generator=_Untitled)
    for each in (schema, *schema.get("$defs", {}).values()):
        for name, field in each.get("properties", {}).items():
            _describe(name, field)
    return schema


def _describe(name: str, field: dict[str, Any]) -> None:
    """On one line, with the unit."""
    sentence = " ".join(field.get("description", "").split())
    if unit := unit_of(name, field):
        sentence = f"{sentence.removesuffix('.')} ({unit})."
    field["description"] = sentence


def unit_of(name: str, field: Mapping[str, Any]) -> str:
    """The unit of a field of a schema; empty of what is no number, or counts."""
    if not is_number(field):
        return ""
    return UNITS[name] if name in UNITS else UNITS[name.rpartition("_")[2]]


def is_number(field: Mapping[str, Any]) -> bool:
    """Whether a field of a schema is a number, or a list of them."""
    inner = [*field.get("anyOf", ()), *filter(None, [field.get("items")])]
    return field.get("type") in ("integer", "number") or any(map(is_number, inner))
