"""JSON into the dataclasses that declare its form: every fault at once, each with its place.

pydantic reads and checks; here is what JSON leaves open (keys given twice, integers of any length),
and what a fault is called.
"""

from __future__ import annotations

import functools
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from testbed.errors import UsageError, quoted
from testbed.scenario.form.positions import Keys, located, place_of, second

if TYPE_CHECKING:
    from pydantic import TypeAdapter
    from pydantic_core import ErrorDetails

LONGEST_BYTES = 4 << 20  # a hundred flows with a thousand drops each are 2 MB
HINT = "every trial's folder holds a scenario, complete, as an example"
FIELDS_HINT = "correct these fields"
LONGEST_INTEGER = 19  # digits; what is longer becomes a float, which no integer's field takes
SCHEMA = "$schema"  # where editors look for the schema: allowed in a file, and no part of it
MISSING, UNKNOWN = "missing", "unexpected_keyword_argument"  # pydantic's names of these faults
TOLD = {MISSING: "missing", UNKNOWN: "unknown field"}


def read(kind: Any, text: str | bytes, name: str) -> Any:
    """The value of that dataclass that the text holds; faults begin with `name` and their line."""
    text = decoded(text, name)
    return read_data(kind, parsed(text, name), name, text)


def read_data(kind: Any, data: Any, name: str, text: str = "") -> Any:
    """The same of JSON's own types, whose faults have their lines in `text` if they are there."""
    if isinstance(data, dict):
        data = {key: value for key, value in data.items() if key != SCHEMA}
    value, faults = _checked(kind, data, name)
    if faults:
        raise UsageError(located(name, text, faults), FIELDS_HINT)
    return value


def decoded(text: str | bytes, name: str) -> str:
    """As text, if it is not too long for a scenario."""
    if len(text) > LONGEST_BYTES:
        raise UsageError(f"{name}: longer than {LONGEST_BYTES >> 20} MB: not a scenario", HINT)
    try:
        return text.decode() if isinstance(text, bytes) else text
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise UsageError(f"{name}:{line}: not UTF-8: {error.reason}", HINT) from error


def parsed(text: str, name: str) -> Any:
    """JSON's own types. Python would take integers of any length, and every key any number of
    times."""
    try:
        return json.loads(text, parse_int=_integer, object_pairs_hook=_object)
    except json.JSONDecodeError as error:
        where = f"{name}:{error.lineno}:{error.colno}"
        raise UsageError(f"{where}: not JSON: {error.msg}", HINT) from error
    except RecursionError as error:
        raise UsageError(f"{name}: lists or objects nested too deeply", HINT) from error
    except _Twice as error:
        raise UsageError(
            f"{name}:{second(text)}: {error} is given twice in one object", HINT
        ) from error


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


@functools.cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    from pydantic import ConfigDict, TypeAdapter, with_config  # the guest does without it

    strictly = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)
    return TypeAdapter(with_config(strictly)(kind))


def _checked(kind: Any, data: Any, name: str) -> tuple[Any, list[str]]:
    """The value, or its faults, which begin with their fields."""
    from pydantic import ValidationError

    try:
        return _adapter(kind).validate_json(json.dumps(data)), []
    except ValidationError as error:
        details = error.errors(include_url=False)
    if details[0]["type"] == "json_invalid":  # what Python's JSON has and JSON has not
        said = details[0]["ctx"]["error"].partition(" at line ")[0]
        raise UsageError(f"{name}: not JSON: {said}", HINT)
    return None, [fault.text for fault in _of_forms_meant([_fault(each, data) for each in details])]


Form = tuple[Keys, str]  # a field, and one of the dataclasses that it can be


@dataclass(frozen=True)
class _Fault:
    text: str
    forms: frozenset[Form]  # that are assumed
    unlike: bool  # a field too few or too many


def _fault(detail: ErrorDetails, data: Any) -> _Fault:
    """pydantic's error; its way leads through keys and, of fields with several forms, forms."""
    at, keys, forms = data, list[str | int](), set[Form]()
    *way, last = detail["loc"] or ("",)
    if detail["type"] != MISSING:
        way += [last] if detail["loc"] else []
    for step in way:
        if step in at if isinstance(at, dict) else isinstance(step, int):
            keys.append(step)
            at = at[step]
        else:
            forms.add((tuple(keys), str(step)))
    if detail["type"] == MISSING:
        keys.append(last)
    where = f"{place_of(tuple(keys))}: " if keys else ""
    return _Fault(where + _said(detail), frozenset(forms), detail["type"] in TOLD)


def _said(detail: ErrorDetails) -> str:
    if found := TOLD.get(detail["type"]):
        return found
    wanted = detail["msg"].removeprefix("Input should be ")
    return f"expected {wanted}, got {quoted(detail['input'])}"


def _of_forms_meant(faults: Sequence[_Fault]) -> Iterator[_Fault]:
    """Of each field that has several forms only the faults of the one that it is most like."""
    unlike = Counter({form: 0 for fault in faults for form in fault.forms})
    unlike.update(form for fault in faults if fault.unlike for form in fault.forms)
    meant: dict[Keys, Form] = {}
    for form in sorted(unlike, key=lambda each: unlike[each]):
        meant.setdefault(form[0], form)
    chosen = set(meant.values())
    return (each for each in faults if each.forms <= chosen)
