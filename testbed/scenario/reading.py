"""JSON as a scenario: every fault is reported at once, each with its field.

pydantic reads and checks the types. Here is what JSON leaves open (keys given twice, integers of
any length), the wording of faults, and what a file may say in place of nodes and links: a network
by its name.
"""

from __future__ import annotations

import functools
import json
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from testbed.errors import UsageError, near, quoted
from testbed.faults import FIELD, SPELLING, Fault, Keys, collected, usage_error
from testbed.scenario.limits import BEYOND_LIMIT, Range
from testbed.scenario.losses import LOSS_HINT
from testbed.scenario.model import Scenario, plain
from testbed.scenario.named_networks import LinkSettings, NamedNetwork
from testbed.scenario.network import Graph, Link, Node
from testbed.scenario.omitted_defaults import field_names
from testbed.scenario.setting_units import number_hint, typed_unit

MAX_SCENARIO_BYTES = 4 << 20  # a hundred flows with a thousand drops each are 2 MB
MAX_INTEGER = 19  # digits; what is longer becomes a float, which no integer's field takes
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

SCENARIO_HINT = "every trial's folder holds a scenario, complete, as an example"
_T = TypeVar("_T")
MISSING_HINTS = {
    "name": 'each node and flow has a name: "name": "h1"',
    "ends": 'a link has two ends: "ends": ["h1", "r1"]',
}
UNKNOWN_FIELD_HINTS = {
    "kernel": "all nodes of a trial run one kernel: --set kernel=…",
    "pairs": 'how many pairs a dumbbell has is its "hosts"',
}
CHANNEL_HINT = (
    'one packet in 200, each by itself: "loss": {"to_bad": 0.005, "to_good": 1}; '
    "longer bursts: a smaller to_good"
)
LOSS_HINTS = (CHANNEL_HINT, LOSS_HINT)  # of a link and of a flow
NUMBER_FAULTS = ("float_type", "int_type")
_CONFIGURING = threading.Lock()  # pydantic keeps a configuration at the class


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

    def in_its_words(self, faults: Iterable[Fault]) -> list[Fault]:
        """Return the scenario's faults with the fields that the file has, each once."""
        if self.named is None:
            return list(faults)
        fields = dict(_fields_as_typed(self.named, self.scenario.network))
        return list(dict.fromkeys(_reworded(fault, fields) for fault in faults))


def _fields_as_typed(named: NamedNetwork, graph: Graph) -> Iterator[tuple[Keys, Keys]]:
    """Yield fields of the network, and the fields of the file that they were made of."""
    yield (NETWORK_KEY, "ip"), (TOPOLOGY_KEY, "ip")
    settings: dict[Keys, LinkSettings] = {("bottleneck",): named.bottleneck}
    settings |= {("access",): named.access}
    settings |= {("links", name): each for name, each in named.links.items()}
    for index, link in enumerate(graph.links):
        for side, direction in (("forward", link.forward), ("reverse", link.reverse)):
            for keys, each in settings.items():
                forward, reverse = each.both
                if direction in (forward, reverse):
                    more = () if direction == forward else ("reverse",)
                    yield (NETWORK_KEY, "links", index, side), (TOPOLOGY_KEY, *keys, *more)
                    break


def _reworded(fault: Fault, fields: Mapping[Keys, Keys]) -> Fault:
    for written, typed in fields.items():
        if fault.keys[: len(written)] == written:
            return replace(fault, keys=(*typed, *fault.keys[len(written) :]))
    return fault


def read_scenario(text: str | bytes, name: str = "scenario") -> Scenario:
    """Return the scenario that a text holds; faults begin with `name`."""
    return read_document(parsed(text, name), name).scenario


def read_document(data: Any, name: str = "scenario") -> ScenarioDocument:
    """Return the scenario of JSON's types; faults begin with `name`."""
    document, faults = checked_document(data, name)
    if faults or document is None:
        raise usage_error(faults, name)
    return document


def checked_document(data: Any, name: str) -> tuple[ScenarioDocument | None, list[Fault]]:
    """Return the scenario of JSON's types, and the faults of its single fields.

    A field with a fault has another value there. If too many are wrong, there is no scenario.
    """
    named, faults = None, list[Fault]()
    if isinstance(data, dict):
        data = {key: value for key, value in data.items() if key != SCHEMA_KEY}
        if TOPOLOGY_KEY in data:
            named, graph, faults = _named(data.pop(TOPOLOGY_KEY), name)
            if NETWORK_KEY in data:
                message = f"there is a {NETWORK_KEY}, too: give one of them"
                faults.append(Fault((TOPOLOGY_KEY,), message))
            data[NETWORK_KEY] = plain(graph or ANY_NETWORK)
            if graph is None:
                return None, [*faults, *checked(Scenario, data, name)[1]]
    scenario, more = checked(Scenario, data, name)
    return scenario and ScenarioDocument(scenario, named), [*faults, *more]


def _named(data: Any, name: str) -> tuple[NamedNetwork | None, Graph | None, list[Fault]]:
    """Return a network that is given by its name, as it is given and as a graph."""
    if isinstance(data, dict) and "kind" not in data and "nodes" in data:
        fault = Fault((TOPOLOGY_KEY,), f"nodes and links stand under `{NETWORK_KEY}`")
        return None, None, [fault]
    named, faults = checked(NamedNetwork, data, name)
    faults = [fault.inside(TOPOLOGY_KEY) for fault in faults]
    if named is None:
        return None, None, faults
    with collected(faults, TOPOLOGY_KEY):
        return named, named.graph(), faults
    return None, None, faults


def parsed(text: str | bytes, name: str) -> Any:
    """Return JSON's own types; refuse keys given twice and read long integers as floats.

    Python's reader would take integers of any length, and every key any number of times.
    """
    if len(text) > MAX_SCENARIO_BYTES:
        raise UsageError(
            f"{name}: longer than {MAX_SCENARIO_BYTES >> 20} MB: not a scenario", SCENARIO_HINT
        )
    try:
        text = text.decode("utf-8-sig") if isinstance(text, bytes) else text
        return json.loads(text, parse_int=_integer, object_pairs_hook=_object)
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise UsageError(f"{name}:{line}: not UTF-8: {error.reason}", "save it as UTF-8") from error
    except json.JSONDecodeError as error:
        raise _not_json(error, name) from error
    except RecursionError as error:
        raise UsageError(f"{name}: lists or objects nested too deeply", SCENARIO_HINT) from error
    except _KeyTwice as error:
        raise UsageError(f"{name}: {error} is given twice in one object", SCENARIO_HINT) from error


def _not_json(error: json.JSONDecodeError, name: str) -> UsageError:
    """Return what is wrong at that place, with what to type there."""
    place, message, hint = error.pos, error.msg, SCENARIO_HINT
    before, rest = error.doc[:place].rstrip(), error.doc[place:].strip()
    if not (before or rest):
        message = "the file is empty"
    elif not rest:
        message, hint = "it ends too early", "is the file complete? each { and [ has an end"
    elif before.endswith(",") and rest[0] in "]}":
        place = len(before) - 1
        message, hint = f"a comma before {rest[0]}", "leave the comma out"
    elif rest[0] == "'":
        message, hint = "a text in single quotes", 'JSON has double quotes: "name"'
    line, column = error.doc.count("\n", 0, place) + 1, place - error.doc.rfind("\n", 0, place)
    return UsageError(f"{name}:{line}:{column}: not JSON: {message}", hint)


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
    return int(digits) if len(digits) <= MAX_INTEGER else float(digits)


@functools.cache
def adapter(kind: Any, *, sentences: bool = False) -> Any:
    """Return pydantic's reader of a dataclass; with the fields' sentences for its schema."""
    from pydantic import ConfigDict, TypeAdapter, with_config  # takes a tenth of a second to load

    strictly = ConfigDict(
        extra="forbid",
        strict=True,
        allow_inf_nan=False,
        ser_json_inf_nan="constants",
        use_attribute_docstrings=sentences,
    )
    with _CONFIGURING:
        made = TypeAdapter(with_config(strictly)(kind))
        del kind.__pydantic_config__  # as a part of another class it is read as that one is
    return made


def exact(scenario: Scenario) -> bytes:
    """Return what equal scenarios have alike, in a tenth of the time of the text for people."""
    text: bytes = adapter(Scenario).dump_json(scenario, warnings=False)
    return text


def field_faults(value: _T) -> tuple[_T | None, list[Fault]]:
    """Return a scenario or a network as reading its JSON does, and the faults of its fields."""
    kind: Any = type(value)
    try:
        text = adapter(kind).dump_json(value, warnings=False)
    except ValueError:  # a text has half a character
        text = json.dumps(plain(value, field_names), ensure_ascii=False).encode(errors="replace")
    return _checked(kind, text, kind.__name__)


def checked(kind: Any, data: Any, name: str) -> tuple[Any, list[Fault]]:
    """Return JSON's types as a dataclass, and the faults of its single fields.

    A field with a fault has another value there. If too many are wrong, there is no dataclass.
    """
    return _checked(kind, json.dumps(data), name)


def _checked(kind: Any, text: str | bytes, name: str) -> tuple[Any, list[Fault]]:
    value, details = _validated(kind, text)
    if not details:
        return value, []
    if details[0]["type"] == "json_invalid":  # what Python's JSON has and JSON has not
        parse_error = details[0]["ctx"]["error"].partition(" at line ")[0]
        raise UsageError(f"{name}: not JSON: {parse_error}", SCENARIO_HINT)
    data = json.loads(text)
    faults = [_fault(detail, data, kind) for detail in details]
    return _mended(kind, data, details), faults


def _validated(kind: Any, text: str | bytes) -> tuple[Any, list[Any]]:
    """Return the dataclass, or pydantic's faults."""
    from pydantic import ValidationError

    try:
        return adapter(kind).validate_json(text), []
    except ValidationError as error:
        return None, error.errors(include_url=False)


def _mended(kind: Any, data: Any, details: Sequence[Any]) -> Any:
    """Return the dataclass without the members that have a fault, for the faults of several fields.

    A number that must be there is between its limits. None if something else is missing.
    """
    limits = {_keys(each, data): each.get("ctx", {}).get("limit") for each in details}
    for keys in limits:
        names = [at for at, key in enumerate(keys) if isinstance(key, str)]
        if names:  # the last one: a list as a whole
            _holder(data, keys[: names[-1] + 1]).pop(keys[names[-1]], None)
    value, missing = _validated(kind, json.dumps(data))
    for detail in missing:
        keys = tuple(detail["loc"])
        if isinstance(limit := limits.get(keys), Range):
            _holder(data, keys)[keys[-1]] = limit.middle
    return _validated(kind, json.dumps(data))[0] if missing else value


def _holder(data: Any, keys: Keys) -> dict[str | int, Any]:
    """Return the object that holds what the keys lead to; an empty one if it is gone."""
    for key in keys[:-1]:
        try:
            data = data[key]
        except (LookupError, TypeError):
            return {}
    return data if isinstance(data, dict) else {}


def _fault(detail: Any, data: Any, kind: Any) -> Fault:
    """Return pydantic's error as a fault of a field."""
    keys, value = _keys(detail, data), detail["input"]
    if detail["type"] == BEYOND_LIMIT:
        return Fault(keys, detail["ctx"]["words"], detail["ctx"]["hint"], value)
    if detail["type"] != UNKNOWN_FIELD:
        return Fault(keys, words_of(detail), _hint(detail, keys), value)
    name = str(keys[-1])
    close = near(name, _field_names(kind) - {name})  # another object may have the field
    hint = SPELLING if close else UNKNOWN_FIELD_HINTS.get(name, "")
    return Fault(keys, words_of(detail) + (f": did you mean {close!r}?" if close else ""), hint)


def _hint(detail: Any, keys: Keys) -> str:
    """Return what to type in place of a value of another type, or where one is missing."""
    name, value = Fault(keys, "").name, detail["input"]
    if detail["type"] == MISSING_FIELD:
        return MISSING_HINTS.get(name, f'add "{name}": …; `testbed schema` says what it takes')
    if detail["type"].startswith("dataclass"):
        return LOSS_HINTS[keys[0] == "flows"] if name == "loss" else SCENARIO_HINT
    if detail["type"] in NUMBER_FAULTS and isinstance(value, str) and typed_unit(value):
        return number_hint(name, value)
    if detail["type"] == "enum":
        first = str(detail["ctx"]["expected"]).split("'")[1]
        return f"choose a known value of {FIELD}, such as {first}"
    return ""


def _keys(detail: Any, data: Any) -> Keys:
    """Return the keys that lead to a fault of pydantic's, whose location names types, too."""
    keys = list[str | int]()
    location = detail["loc"]
    if location[-1:] == ("[key]",):  # of a mapping, and no field
        location = location[:-2]
    for index, step in enumerate(location):
        is_last = index == len(location) - 1 and detail["type"] == MISSING_FIELD
        if is_last or (step in data if isinstance(data, dict) else isinstance(step, int)):
            keys.append(step)
            data = None if is_last else data[step]
    return tuple(keys)


def words_of(detail: Any) -> str:
    """Return what is wrong with a value, from pydantic's error about it."""
    if message := FAULT_WORDS.get(detail["type"]):
        return message
    wanted = detail["msg"].removeprefix("Input should be ")
    return f"expected {wanted}, got {quoted(detail['input'])}"


@functools.cache
def _field_names(kind: Any) -> frozenset[str]:
    """Return the names of all fields in a document of this type."""
    schema = adapter(kind).json_schema()
    parts = (schema, *schema.get("$defs", {}).values())
    return frozenset(name for part in parts for name in part.get("properties", {}))
