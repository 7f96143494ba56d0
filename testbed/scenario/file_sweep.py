"""A scenario's file as a sweep: every field can have several values, named by its place.

A place is the keys that lead to the field, with dots between: `topology.bottleneck.rate_mbit`,
`network.links.0.forward.rate_mbit`. In a list it is the number from 0 or, of flows, the name:
`flows.0.variant`, `flows.tcp.variant`; `flows.*.variant` is that of all flows which have one. What
people vary most has a short name besides (`common_axes.py`).
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, is_dataclass
from typing import Any, TypeVar

from testbed.errors import UsageError, nearest, quoted
from testbed.faults import Fault, Keys, collected, of_axes, usage_error
from testbed.scenario.common_axes import COMMON_AXES, NetworkForm
from testbed.scenario.experiment import refuse_too_many
from testbed.scenario.limits import MAX_NAME
from testbed.scenario.model import Scenario
from testbed.scenario.network import Graph
from testbed.scenario.reading import TOPOLOGY_KEY, ScenarioDocument, field_faults
from testbed.scenario.trace import TRACE_FIELD, trace_summary, traces_by_name

JSON_CONSTANTS = {"true": True, "false": False, "null": None}
EVERY = "*"  # in a place: every one of a list
SYSCTLS_FIELD = "sysctls"  # whose keys have dots themselves
OPEN_OBJECTS = ("options", SYSCTLS_FIELD)  # whose fields a file need not have
NOT_AN_AXIS = {  # fields that are not an axis, and what to do instead
    "kernel": "--set kernel=… names kernels",
    "seed": "--seeds N makes N trials with seeds of their own",
    "label": "values that are set become part of it",
    "axes": "values that are set become axes",
}

_T = TypeVar("_T")


@dataclass(frozen=True)
class FieldAxis:
    """A field of the file, or of several alike, with the values that it takes in turn."""

    name: str  # in tables and figures
    fields: tuple[Keys, ...]  # none: a common axis
    values: tuple[str, ...]
    contents: Mapping[str, str] = field(default_factory=dict)  # of traces, by their names
    holds_text: bool = False

    def value(self, text: str) -> Any:
        """Return what the field holds for one of the values."""
        if not self.fields:
            return COMMON_AXES[self.name].value(self.name, text)
        if text in self.contents:
            return self.contents[text]
        return text if self.holds_text and text != "null" else parsed(text)


def sweep(
    document: ScenarioDocument, settings: Mapping[str, Sequence[str]], seeds: int
) -> list[Scenario]:
    """Return all combinations of the values, in the order of the fields, repeat by repeat.

    Without any values it is the file's scenario.
    """
    axes = _axes(document, settings)
    points = list(itertools.product(*(dict.fromkeys(axis.values) for axis in axes)))
    refuse_too_many(len(points), seeds)
    faults, scenarios = list[Fault](), list[Scenario]()
    for point in points:
        with collected(faults):
            scenarios.append(_scenario(document, axes, point))
    if faults:
        raise usage_error(list(dict.fromkeys(faults)), "--set")
    return [
        dataclasses.replace(each, seed=document.scenario.seed + repeat)
        for repeat in range(seeds)
        for each in scenarios
    ]


def fields(document: ScenarioDocument) -> Mapping[str, str]:
    """Return every field that can be set, by its place, with its value in the file."""
    return {
        place: trace_summary(value) if value and place.endswith(f".{TRACE_FIELD}") else _text(value)
        for place, value in _leaves(document.data, "")
        if _first(place) not in NOT_AN_AXIS
    }


def is_default(document: ScenarioDocument, place: str) -> bool:
    """Return whether a field has the value that it has where a file says nothing."""
    ((first, *rest),) = _find(document.data, place)
    at: Any = document.scenario
    if first == TOPOLOGY_KEY:
        first, *rest = rest
        at = document.named
    for key in rest:
        at = getattr(at, str(first)) if is_dataclass(at) else at[first]
        first = key
    fields = {each.name: each for each in dataclasses.fields(at)} if is_dataclass(at) else {}
    last = fields.get(str(first))
    return last is not None and bool(getattr(at, last.name) == last.default)


def values(
    document: ScenarioDocument, settings: Mapping[str, Sequence[str]], scenario: Scenario
) -> Mapping[str, str]:
    """Return every field by its place, with its value in one of the sweep's scenarios."""
    changed = {
        ".".join(map(str, keys)): scenario.axes[axis.name]
        for axis in _axes(document, settings)
        for keys in axis.fields or ((axis.name,),)
    }
    return {**fields(document), **changed}


def _leaves(data: Any, place: str) -> Iterator[tuple[str, Any]]:
    match data:
        case dict():
            for key, value in data.items():
                yield from _leaves(value, f"{place}.{key}" if place else key)
        case [{}, *_]:
            for number, value in enumerate(data):
                yield from _leaves(value, f"{place}.{number}")
        case list():
            pass
        case _:
            yield place, data


def _axes(
    document: ScenarioDocument, settings: Mapping[str, Sequence[str]]
) -> tuple[FieldAxis, ...]:
    """Return the settings as axes of their fields, each field once, with the shortest names."""
    data, faults = document.data, list[Fault]()
    places: dict[str, tuple[Keys, ...]] = {}
    for place in settings:
        with collected(faults, f"--set {place}"):
            keys_found = () if place in COMMON_AXES and place not in data else _find(data, place)
            for other, taken in places.items():
                if set(taken) & set(keys_found):
                    hint = f"join the values: --set {place}=VALUE,VALUE"
                    raise UsageError(f"the same field as {other}", hint)
            places[place] = keys_found
    if faults:
        raise usage_error(faults)
    firsts = {place: keys_found[0] for place, keys_found in places.items() if keys_found}
    names = dict(zip(firsts, _shortest_names(tuple(firsts.values()), document, data), strict=True))
    return tuple(
        _axis(names.get(place, place), keys_found, settings[place], data)
        for place, keys_found in places.items()
    )


def _axis(name: str, fields: tuple[Keys, ...], values: Sequence[str], data: Any) -> FieldAxis:
    """Return fields with their values; a trace's values are names, for a folder all its files."""
    first = fields[0] if fields else ()
    holds_text = SYSCTLS_FIELD in first or (fields and isinstance(_value_at(data, first), str))
    if not fields or first[-1] != TRACE_FIELD or tuple(values) == ("null",):
        return FieldAxis(name, fields, tuple(values), holds_text=bool(holds_text))
    contents = dict(traces_by_name(values))
    return FieldAxis(name, fields, tuple(contents), contents)


def _find(data: Any, place: str) -> tuple[Keys, ...]:
    """Return the keys that lead to a field that holds one value; with `*` in them, to all such."""
    if hint := NOT_AN_AXIS.get(_first(place)):
        raise UsageError("not a field to set", hint)
    before, star, behind = place.partition(f".{EVERY}.")
    if star and isinstance(listed := _reached(data, before)[1], list):
        places = [_find(data, f"{before}.{at}.{behind}") for at in range(len(listed))]
        all_of = [keys for each in places for keys in each]
        set_ = tuple(keys for keys in all_of if _value_at(data, keys) is not None)
        return set_ or tuple(all_of)
    keys, at = _reached(data, place)
    if isinstance(at, dict | list):
        inner = at if isinstance(at, dict) else map(str, range(len(at)))
        raise UsageError("holds several values", f"name one: {place}.{next(iter(inner), '…')}")
    return (keys,)


def _reached(data: Any, place: str) -> tuple[Keys, Any]:
    """Return the keys of a place, and what is there."""
    at, keys = data, list[str | int]()
    *parts, last = place.partition(f"{SYSCTLS_FIELD}.")
    for part in [*"".join(parts).rstrip(".").split("."), last] if parts[1] else place.split("."):
        if at is None and keys[-1] in OPEN_OBJECTS:
            at = {}
        key = _resolve_key(at, part, place, keys)
        keys.append(key)
        at = at.get(key) if isinstance(at, dict) else at[key]
    return tuple(keys), at


def _resolve_key(at: Any, part: str, place: str, before: Sequence[str | int]) -> str | int:
    where = ".".join(map(str, before)) or "the scenario"
    if isinstance(at, dict):
        if part in at or (before and before[-1] in OPEN_OBJECTS):
            return part
        deeper = (leaf for leaf, _ in _leaves(at, "") if leaf.endswith(f".{place}"))
        full = "" if before else next(deeper, "")
        known = at if before else (*at, *COMMON_AXES)
        hint = f"write its whole place: --set {full}=…" if full else nearest(part, known)
        raise UsageError(f"{where} has no {quoted(part)}", hint)
    if isinstance(at, list):
        numbers = {str(number): number for number in range(len(at))}
        named = [isinstance(each, dict) and "name" in each for each in at]
        numbers |= {at[number]["name"]: number for number, has in enumerate(named) if has}
        if part in numbers:
            return numbers[part]
        raise UsageError(f"{where} has no {quoted(part)}", nearest(part, numbers))
    raise UsageError(
        f"{where} is {'null' if at is None else quoted(at)}, without fields",
        "`testbed plan` with the file alone lists the fields that can be set",
    )


def _shortest_names(fields: Sequence[Keys], document: ScenarioDocument, data: Any) -> Iterator[str]:
    """Yield for each field the shortest end of its place that is unique.

    It may be the name of an axis of the file only if that axis is the field itself. Of the reverse
    direction it says so: its rate is not what a reader takes for the link's.
    """
    for keys in fields:
        shortest = len(keys) - keys.index("reverse") if "reverse" in keys else 1
        ends = (keys[-length:] for length in range(shortest, len(keys)))
        free = (
            end for end in ends if _is_unambiguous(keys, end, fields, document.scenario.axes, data)
        )
        yield ".".join(map(str, next(free, keys)))


def _is_unambiguous(
    keys: Keys, end: Keys, fields: Sequence[Keys], taken: Mapping[str, str], data: Any
) -> bool:
    if isinstance(end[0], int) or any(o != keys and o[-len(end) :] == end for o in fields):
        return False
    name = ".".join(map(str, end))
    return name not in taken or taken[name] == _text(_value_at(data, keys))


def _value_at(data: Any, keys: Keys) -> Any:
    for key in keys:
        data = data.get(key) if isinstance(data, dict) else data and data[key]
    return data


def _scenario(
    document: ScenarioDocument, axes: Sequence[FieldAxis], point: Sequence[str]
) -> Scenario:
    """Return the file's scenario with these values, which its label and its axes name."""
    scenario = document.scenario
    if not axes:
        return scenario
    named = {axis.name: text for axis, text in zip(axes, point, strict=True)}
    parts = [f"{name.rpartition('.')[2]}-{text}" for name, text in named.items()]
    label = re.sub(r"[^A-Za-z0-9._-]+", "-", "-".join(filter(None, (scenario.label, *parts))))
    scenario = dataclasses.replace(
        scenario, label=label[:MAX_NAME].lstrip("."), axes={**scenario.axes, **named}
    )
    network = document.named
    for axis, text in zip(axes, point, strict=True):
        for keys in axis.fields:
            if network is not None and keys[0] == TOPOLOGY_KEY:
                network = _with(network, keys[1:], axis.value(text))
            else:
                scenario = _with(scenario, keys, axis.value(text))
    form: NetworkForm = network or scenario.network
    for axis, text in zip(axes, point, strict=True):
        if not axis.fields:  # of the whole network, as the fields have made it
            scenario, form = COMMON_AXES[axis.name].set(scenario, form, axis.value(text))
    if isinstance(form, Graph):
        scenario = dataclasses.replace(scenario, network=form)
    elif form != document.named:
        scenario = dataclasses.replace(scenario, network=_sound(form, named).graph())
    return _sound(scenario, named)


def _with(value: Any, keys: Keys, new: Any) -> Any:
    """Return a frozen value with another one where the keys lead to."""
    if not keys:
        return new
    key, rest = keys[0], keys[1:]
    match value:
        case None:
            return {key: new}
        case Mapping():
            return {**value, key: _with(value.get(key), rest, new)}
        case tuple():
            at = int(key)
            return (*value[:at], _with(value[at], rest, new), *value[at + 1 :])
    return dataclasses.replace(value, **{str(key): _with(getattr(value, str(key)), rest, new)})


def _sound(value: _T, axes: Mapping[str, str]) -> _T:
    """Return a value whose fields have their types; raise if one of the axes' values does not fit.

    What several fields must be together is found when the trial is planned.
    """
    read, faults = field_faults(value)
    if faults or read is None:
        raise usage_error(of_axes(faults, axes), "--set")
    return read


def parsed(text: str) -> Any:
    """Return the JSON value that a text stands for: a number, true, false, null, or itself."""
    if text in JSON_CONSTANTS:
        return JSON_CONSTANTS[text]
    for kind in (int, float):
        with contextlib.suppress(ValueError):
            return kind(text)
    return text


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _first(place: str) -> str:
    return place.partition(".")[0]
