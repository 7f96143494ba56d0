"""JSON as a scenario: every fault is reported at once, each with its field.

pydantic reads and checks the types. Here is what JSON leaves open (keys given twice, integers of
any length), the wording of faults, and what a file may say in place of nodes and links: a network
by its name.
"""

from __future__ import annotations

import functools
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from testbed.errors import UsageError, listed, near, place, quoted
from testbed.scenario.added_fields import field_names
from testbed.scenario.fault_hints import SCENARIO_HINT, hint_of
from testbed.scenario.model import Scenario, plain
from testbed.scenario.named_networks import LinkSettings, NamedNetwork
from testbed.scenario.network import Graph, Link, Node

LONGEST_SCENARIO_BYTES = 4 << 20  # a hundred flows with a thousand drops each are 2 MB
LONGEST_INTEGER = 19  # digits; what is longer becomes a float, which no integer's field takes
SCHEMA_KEY = "$schema"  # where editors look for the schema: allowed in a file, and no part of it
TOPOLOGY_KEY, NETWORK_KEY = (
    "topology",
    "network",
)  # a network by its name, and one of nodes and links
ANY_NETWORK = Graph((Node("a"), Node("b")), (Link(("a", "b")),))
MISSING_FIELD, UNKNOWN_FIELD = (
    "missing",
    "unexpected_keyword_argument",
)  # pydantic's names of these faults
FAULT_WORDS = {MISSING_FIELD: "missing", UNKNOWN_FIELD: "unknown field"}

Keys = tuple[str | int, ...]


@dataclass(frozen=True)
class ScenarioDocument:
    """A scenario as its file describes it."""

    scenario: Scenario
    named: NamedNetwork | None = None  # what the file says in place of nodes and links
    left_out: tuple[str, ...] = ()  # sentences on what of the user's is not in the scenario

    @property
    def data(self) -> dict[str, Any]:
        """The complete document in JSON's types, with the network as the file describes it."""
        data: dict[str, Any] = plain(self.scenario, field_names)
        if self.named is None:
            return data
        named = {TOPOLOGY_KEY: plain(self.named, field_names)}
        return {
            k: v
            for key in data
            for k, v in (named if key == NETWORK_KEY else {key: data[key]}).items()
        }

    def in_its_words(self, faults: Sequence[str]) -> list[str]:
        """Return the scenario's faults with the fields that the file has, each once."""
        if self.named is None:
            return list(faults)
        fields = dict(_fields_as_typed(self.named, self.scenario.network))
        return list(dict.fromkeys(_reworded(fault, fields) for fault in faults))


def _fields_as_typed(named: NamedNetwork, graph: Graph) -> Iterator[tuple[str, str]]:
    """Yield fields of the network, and the fields of the file that they were made of."""
    yield f"{NETWORK_KEY}.ip", f"{TOPOLOGY_KEY}.ip"
    settings: dict[str, LinkSettings] = {"bottleneck": named.bottleneck, "access": named.access}
    settings |= {f"links.{name}": each for name, each in named.links.items()}
    for index, link in enumerate(graph.links):
        for side, direction in (("forward", link.forward), ("reverse", link.reverse)):
            for name, each in settings.items():
                forward, reverse = each.both
                if direction in (forward, reverse):
                    suffix = "" if direction == forward else ".reverse"
                    yield f"{NETWORK_KEY}.links[{index}].{side}", f"{TOPOLOGY_KEY}.{name}{suffix}"
                    break


def _reworded(fault: str, fields: Mapping[str, str]) -> str:
    for written, typed in fields.items():
        if fault.startswith((f"{written}.", f"{written}:")):
            return typed + fault.removeprefix(written)
    return fault


def read_scenario(text: str | bytes, name: str = "scenario") -> Scenario:
    """Return the scenario that a text holds; faults begin with `name`."""
    return read_document(parsed(text, name), name).scenario


def read_document(data: Any, name: str = "scenario") -> ScenarioDocument:
    """Return the scenario of JSON's types; faults begin with `name`."""
    named, faults = None, list[str]()
    if isinstance(data, dict):
        data = {key: value for key, value in data.items() if key != SCHEMA_KEY}
        if TOPOLOGY_KEY in data:
            named, graph, faults = _named(data.pop(TOPOLOGY_KEY), name)
            if NETWORK_KEY in data:
                faults.append(f"{TOPOLOGY_KEY}: there is a {NETWORK_KEY}, too: give one of them")
            data[NETWORK_KEY] = plain(graph)
    scenario, more = checked(Scenario, data, name)
    if faults or more:
        raise UsageError(f"{name}: {listed([*faults, *more])}", hint_of([*faults, *more]))
    return ScenarioDocument(scenario, named)


def _named(data: Any, name: str) -> tuple[NamedNetwork | None, Graph, list[str]]:
    """Return a network that is given by its name, as it is given and as a graph."""
    if isinstance(data, dict) and "kind" not in data and "nodes" in data:
        fault = f"{TOPOLOGY_KEY}: nodes and links stand under `{NETWORK_KEY}`"
        return None, ANY_NETWORK, [fault]
    named, faults = checked(NamedNetwork, data, name, (TOPOLOGY_KEY,))
    if faults:
        return None, ANY_NETWORK, faults
    try:
        return named, named.graph(), []
    except UsageError as error:
        return None, ANY_NETWORK, [f"{TOPOLOGY_KEY}.{error.message}"]


def parsed(text: str | bytes, name: str) -> Any:
    """Return JSON's own types; refuse keys given twice and read long integers as floats.

    Python's reader would take integers of any length, and every key any number of times.
    """
    if len(text) > LONGEST_SCENARIO_BYTES:
        raise UsageError(
            f"{name}: longer than {LONGEST_SCENARIO_BYTES >> 20} MB: not a scenario", SCENARIO_HINT
        )
    try:
        text = text.decode() if isinstance(text, bytes) else text
        return json.loads(text, parse_int=_integer, object_pairs_hook=_object)
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise UsageError(f"{name}:{line}: not UTF-8: {error.reason}", SCENARIO_HINT) from error
    except json.JSONDecodeError as error:
        where = f"{name}:{error.lineno}:{error.colno}"
        raise UsageError(f"{where}: not JSON: {error.msg}", SCENARIO_HINT) from error
    except RecursionError as error:
        raise UsageError(f"{name}: lists or objects nested too deeply", SCENARIO_HINT) from error
    except _KeyTwice as error:
        raise UsageError(f"{name}: {error} is given twice in one object", SCENARIO_HINT) from error


class _KeyTwice(Exception):
    """An object in JSON has a key twice."""


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members: dict[str, Any] = {}
    for key, value in pairs:
        if key in members:
            raise _KeyTwice(quoted(key))
        members[key] = value
    return members


def _integer(digits: str) -> int | float:
    return int(digits) if len(digits) <= LONGEST_INTEGER else float(digits)


@functools.cache
def _adapter(kind: Any) -> Any:
    from pydantic import ConfigDict, TypeAdapter, with_config  # the guest does without it

    strictly = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)
    return TypeAdapter(with_config(strictly)(kind))


def exact(scenario: Scenario) -> bytes:
    """Return what equal scenarios have alike, in a tenth of the time of the text for people."""
    text: bytes = _adapter(Scenario).dump_json(scenario)
    return text


def checked(kind: Any, data: Any, name: str, outer: Keys = ()) -> tuple[Any, list[str]]:
    """Return JSON's types as a dataclass, or the faults, which begin with their fields."""
    from pydantic import ValidationError

    try:
        return _adapter(kind).validate_json(json.dumps(data)), []
    except ValidationError as error:
        details = error.errors(include_url=False)
    if details[0]["type"] == "json_invalid":  # what Python's JSON has and JSON has not
        said = details[0]["ctx"]["error"].partition(" at line ")[0]
        raise UsageError(f"{name}: not JSON: {said}", SCENARIO_HINT)
    faults = [_fault(each, data, outer) for each in details]
    return None, [_with_spelling(fault, kind) for fault in _of_likeliest_types(faults)]


def _with_spelling(fault: _Fault, kind: Any) -> str:
    """Return the fault's text, of an unknown field with the nearest known one."""
    place, _, what = fault.text.partition(": ")
    if what != FAULT_WORDS[UNKNOWN_FIELD]:
        return fault.text
    name = place.rpartition(".")[2]
    close = near(name, _field_names(kind) - {name})  # another object may have the field
    return fault.text + (f": did you mean {close!r}?" if close else "")


@functools.cache
def _field_names(kind: Any) -> frozenset[str]:
    """Return the names of all fields in a document of this type."""
    schema = _adapter(kind).json_schema()
    parts = (schema, *schema.get("$defs", {}).values())
    return frozenset(name for part in parts for name in part.get("properties", {}))


TypeOfField = tuple[Keys, str]  # a field, and one of the dataclasses that it can be


@dataclass(frozen=True)
class _Fault:
    text: str
    types: frozenset[TypeOfField]  # that are assumed
    is_of_names: bool  # a field too few or too many


def _fault(detail: Any, data: Any, outer: Keys) -> _Fault:
    """Return pydantic's error with its field.

    The error's location has keys and, of fields that can be of several types, the types' names.
    """
    at, keys, assumed = data, list[str | int](), set[TypeOfField]()
    *location, last = detail["loc"] or ("",)
    if detail["type"] != MISSING_FIELD:
        location += [last] if detail["loc"] else []
    for step in location:
        if step in at if isinstance(at, dict) else isinstance(step, int):
            keys.append(step)
            at = at[step]
        else:
            assumed.add((tuple(keys), str(step)))
    if detail["type"] == MISSING_FIELD:
        keys.append(last)
    where = f"{field_name((*outer, *keys))}: " if (*outer, *keys) else ""
    return _Fault(where + words_of(detail), frozenset(assumed), detail["type"] in FAULT_WORDS)


def field_name(keys: Keys) -> str:
    """Return what messages call the field that the keys lead to: `flows[0].rate_mbit`."""
    text = ""
    for key in keys:
        text = f"{text}[{key}]" if isinstance(key, int) else place(text, key)
    return text.removeprefix(".")


def words_of(detail: Any) -> str:
    """Return what is wrong with a value, from pydantic's error about it."""
    if words := FAULT_WORDS.get(detail["type"]):
        return words
    wanted = detail["msg"].removeprefix("Input should be ")
    return f"expected {wanted}, got {quoted(detail['input'])}"


def _of_likeliest_types(faults: Sequence[_Fault]) -> Iterator[_Fault]:
    """Keep, of each field that can be of several types, the faults of the one that fits best."""
    unlike = Counter({each: 0 for fault in faults for each in fault.types})
    unlike.update(each for fault in faults if fault.is_of_names for each in fault.types)
    meant: dict[Keys, TypeOfField] = {}
    for each in sorted(unlike, key=lambda one: unlike[one]):
        meant.setdefault(each[0], each)
    likeliest = set(meant.values())
    return (fault for fault in faults if fault.types <= likeliest)
