"""The line and column of every field in a text that is known to be JSON."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterable, Iterator

from testbed.errors import MOST_FAULTS, listed, place

Keys = tuple[str | int, ...]

_decode = json.JSONDecoder(parse_int=str).raw_decode  # Python makes no integer of 5000 digits
_SPACE = re.compile(r"[ \t\n\r]*")


def place_of(keys: Keys) -> str:
    """What messages call the field that the keys lead to: `flows[0].rate_mbit`."""
    text = ""
    for key in keys:
        text = f"{text}[{key}]" if isinstance(key, int) else place(text, key)
    return text.removeprefix(".")


def located(name: str, text: str, faults: Iterable[str]) -> str:
    """The first faults on one line, each behind the line and column of the field that it begins
    with; of a field that is not there, of the one around it. An empty text has no places."""
    try:
        offsets = {place_of(keys): offset for keys, offset in _fields(text or "null")}
    except RecursionError:
        offsets = {}
    shown = itertools.islice(faults, MOST_FAULTS + 1)
    told = [(_line_and_column(text, _offset(offsets, fault)), fault) for fault in shown]
    first = f":{told[0][0]}" if told[0][0] else ""
    rest = (f"{at}: {fault}" if at else fault for at, fault in told[1:])
    return f"{name}{first}: {listed([told[0][1], *rest])}"


def second(text: str) -> str:
    """Where the first key is that its object has twice, as line and column."""
    seen = set()
    for keys, offset in _fields(text):
        if keys in seen:
            return _line_and_column(text, offset)
        seen.add(keys)
    return ""


def _offset(offsets: dict[str, int], fault: str) -> int | None:
    field = fault.partition(": ")[0]
    while field and field not in offsets:
        field = field[: max(field.rfind("."), field.rfind("["), 0)]
    return offsets.get(field)


def _line_and_column(text: str, offset: int | None) -> str:
    """As compilers write them, both from 1."""
    if offset is None:
        return ""
    return f"{text.count(chr(10), 0, offset) + 1}:{offset - text.rfind(chr(10), 0, offset)}"


def _fields(text: str) -> Iterator[tuple[Keys, int]]:
    """Every member and item with the keys that lead to it, and where it begins."""
    yield from _inside(text, _skip(text, 0), ())


def _inside(text: str, start: int, outer: Keys) -> Iterator[tuple[Keys, int]]:
    if text[start] in "{[":
        for key, begin, value in _entries(text, start):
            yield (*outer, key), begin
            yield from _inside(text, value, (*outer, key))


def _entries(text: str, start: int) -> Iterator[tuple[str | int, int, int]]:
    """What an object or a list holds: its key or number, where that begins, and its value."""
    closing = "}" if text[start] == "{" else "]"
    begin = _skip(text, start + 1)
    for number in itertools.count():
        if text[begin] == closing:
            return
        key: str | int = number
        value = begin
        if closing == "}":
            key, end = _decode(text, begin)
            value = _skip(text, _skip(text, end) + 1)  # behind the colon
        yield key, begin, value
        end = _skip(text, _decode(text, value)[1])
        begin = _skip(text, end + 1) if text[end] == "," else end


def _skip(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at
