"""CSV files of paths that change over time, such as those over low-orbit satellites.

The header has `time_s` and one or more of `delay_ms` (one way), `rate_mbit` and `up` (0 during an
outage). A line holds from its time on, and an empty field keeps the value before it. The first line
is at second 0.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from testbed.errors import UsageError, hint_for, quoted
from testbed.scenario.network import MAX_CHANGES, Change

PATH_COLUMNS = ("time_s", "delay_ms", "rate_mbit", "up")
PATH_FILE_HINT = "a header time_s,delay_ms,rate_mbit,up, and lines such as 15,32.5,48,1"
UP_WORDS = {"0": False, "1": True}
MAX_PATH_FILE_BYTES = 1 << 20


def read_path_file(path: Path) -> tuple[Change, ...]:
    """Return a path's changes, the first of them at second 0."""
    try:
        with path.open(encoding="ascii") as file:
            text = file.read(MAX_PATH_FILE_BYTES + 1)
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: not a path: not text", PATH_FILE_HINT) from error
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}", hint_for(error) or PATH_FILE_HINT) from error
    if len(text) > MAX_PATH_FILE_BYTES:
        raise UsageError(f"{path}: not a path: longer than 1 MB", PATH_FILE_HINT)
    return path_changes(text, str(path))


def path_changes(text: str, where: str) -> tuple[Change, ...]:
    """Return the changes of a file's text; raise with the line that is wrong."""
    rows = _rows(text, where)
    header = [name.strip() for name in next(rows, [])]
    unknown = [name for name in header if name not in PATH_COLUMNS]
    if "time_s" not in header or len(set(header)) < max(2, len(header)) or unknown:
        raise UsageError(f"{where}: line 1: {quoted(','.join(header))}: not a path", PATH_FILE_HINT)
    changes = tuple(_changes(header, rows, where))
    if not changes or changes[0].at_s != 0:
        raise UsageError(f"{where}: no line is at second 0", PATH_FILE_HINT)
    if len(changes) > MAX_CHANGES:
        raise UsageError(f"{where}: {len(changes)} changes; at most {MAX_CHANGES}", "fewer lines")
    return changes


def _rows(text: str, where: str) -> Iterator[list[str]]:
    reader = csv.reader(text.splitlines())
    try:
        yield from reader
    except csv.Error as error:  # a field that is too long
        place = f"{where}: line {reader.line_num}"
        raise UsageError(f"{place}: {error}", PATH_FILE_HINT) from error


def _changes(header: Sequence[str], rows: Iterator[list[str]], where: str) -> Iterator[Change]:
    before_s = -math.inf
    for line, fields in enumerate(rows, start=2):
        place = f"{where}: line {line}"
        if len(fields) != len(header):
            raise UsageError(f"{place}: {len(fields)} of {len(header)} fields", PATH_FILE_HINT)
        values = {name: field.strip() for name, field in zip(header, fields, strict=True)}
        given = {name: text for name, text in values.items() if text}
        change = Change(
            _number(given, "time_s", place) or 0.0,
            _number(given, "rate_mbit", place),
            _number(given, "delay_ms", place),
            up=_is_up(given, place),
        )
        if change.at_s <= before_s or "time_s" not in given:
            raise UsageError(f"{place}: time_s is not later than the line before", PATH_FILE_HINT)
        before_s = change.at_s
        yield change


def _number(given: Mapping[str, str], name: str, place: str) -> float | None:
    if name not in given:
        return None
    try:
        value = float(given[name])
    except ValueError:
        value = math.nan
    if not 0 <= value < math.inf or (name == "rate_mbit" and not value):
        raise UsageError(f"{place}: {name} {quoted(given[name])}: not valid", PATH_FILE_HINT)
    return value


def _is_up(given: Mapping[str, str], place: str) -> bool | None:
    text = given.get("up")
    if text is not None and text not in UP_WORDS:
        raise UsageError(f"{place}: up {quoted(text)}: not 0 or 1", PATH_FILE_HINT)
    return None if text is None else UP_WORDS[text]
