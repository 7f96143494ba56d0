"""JSON into the dataclasses that declare its form: every fault at once, each with its place."""

from __future__ import annotations

import dataclasses
import enum
import functools
import json
import math
import types
import typing
from collections.abc import Mapping
from typing import Any

from testbed.errors import MOST_FAULTS, UsageError, listed, place, quoted

LONGEST_BYTES = 4 << 20  # a hundred flows with a thousand drops each are 2 MB
HINT = "every trial's folder holds a scenario, complete, as an example"
LONGEST_INTEGER = 19  # digits; what is longer becomes a float, which no integer's field takes


def read(kind: Any, text: str | bytes, name: str) -> Any:
    """The value of that dataclass that the text holds; `name` begins the places of its faults."""
    faults: list[str] = []
    value = _read(kind, _parse(text, name), name, faults)
    if faults:
        raise UsageError(listed(faults), "correct these fields")
    return value


def _parse(text: str | bytes, name: str) -> Any:
    """JSON's own types. Python would take integers of any length, and every key any number of
    times."""
    if len(text) > LONGEST_BYTES:
        raise UsageError(f"{name}: longer than {LONGEST_BYTES >> 20} MB: not a {name}", HINT)
    try:
        if isinstance(text, bytes):
            text = text.decode()
        return json.loads(text, parse_int=_integer, object_pairs_hook=_object)
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise UsageError(f"{name}: line {line}: not UTF-8: {error.reason}", HINT) from error
    except json.JSONDecodeError as error:
        raise UsageError(f"{name}: not JSON: {error}", HINT) from error
    except RecursionError as error:
        raise UsageError(
            f"{name}: not a {name}: lists or objects nested too deeply", HINT
        ) from error
    except _Twice as error:
        raise UsageError(f"{name}: {error} is given twice in one object", HINT) from error


class _Twice(Exception):
    """A key that an object has twice."""


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise _Twice(quoted(key))
        found[key] = value
    return found


def _integer(digits: str) -> int | float:
    return int(digits) if len(digits) <= LONGEST_INTEGER else float(digits)


def _read(kind: Any, data: Any, where: str, faults: list[str]) -> Any:
    """Turn JSON data into the type that a field declares, noting every fault."""
    origin = typing.get_origin(kind)
    if origin is types.UnionType:
        inner = [a for a in typing.get_args(kind) if a is not type(None)]
        if data is None and len(inner) < len(typing.get_args(kind)):
            return None
        return _read(max(inner, key=lambda each: _likeness(each, data)), data, where, faults)
    if dataclasses.is_dataclass(kind):
        return _read_dataclass(kind, data, where, faults)
    if origin is tuple:
        if not isinstance(data, list):
            return _wrong(faults, where, "a list", data)
        item = typing.get_args(kind)[0]
        return tuple(_read(item, each, f"{where}[{i}]", faults) for i, each in enumerate(data))
    if origin is Mapping:
        if not isinstance(data, dict):
            return _wrong(faults, where, "an object", data)
        value = typing.get_args(kind)[1]
        return {key: _read(value, each, place(where, key), faults) for key, each in data.items()}
    return _read_scalar(kind, data, where, faults)


def _likeness(kind: Any, data: Any) -> int:
    """How many of a dataclass's fields an object has: of several forms, which one is meant."""
    if not (dataclasses.is_dataclass(kind) and isinstance(data, dict)):
        return 0
    return len({f.name for f in dataclasses.fields(kind)} & data.keys())


_type_hints = functools.cache(typing.get_type_hints)  # slow, and asked for a thousand trials


def _read_dataclass(kind: Any, data: Any, where: str, faults: list[str]) -> Any:
    if not isinstance(data, dict):
        return _wrong(faults, where, "an object", data)
    hints = _type_hints(kind)
    fields = {f.name: f for f in dataclasses.fields(kind)}
    for name in data.keys() - fields.keys():
        _fault(faults, f"{place(where, name)}: unknown field")
    required = {
        name
        for name, f in fields.items()
        if f.default is dataclasses.MISSING and f.default_factory is dataclasses.MISSING
    }
    absent = sorted(required - data.keys())
    for name in absent:
        _fault(faults, f"{where}.{name}: missing")
    values = {
        name: _read(hints[name], data[name], f"{where}.{name}", faults)
        for name in fields
        if name in data
    }
    return None if absent else kind(**values)


def _read_scalar(kind: Any, data: Any, where: str, faults: list[str]) -> Any:
    if isinstance(kind, type) and issubclass(kind, enum.StrEnum):
        names = [str(member) for member in kind]
        return kind(data) if data in names else _wrong(faults, where, " or ".join(names), data)
    number = isinstance(data, int | float) and not isinstance(data, bool)
    if kind is float and number and math.isfinite(data):
        return float(data)
    if kind is not float and isinstance(data, kind) and (kind is bool) == isinstance(data, bool):
        return data
    wanted = {float: "a number", int: "an integer", str: "a text", bool: "true or false"}
    return _wrong(faults, where, wanted[kind], data)


def _wrong(faults: list[str], where: str, wanted: str, got: Any) -> None:
    _fault(faults, f"{where}: expected {wanted}, got {quoted(got)}")


def _fault(faults: list[str], fault: str) -> None:
    if len(faults) <= MOST_FAULTS:  # one more than is shown, so that it is known that there are
        faults.append(fault)
