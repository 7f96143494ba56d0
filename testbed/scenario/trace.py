"""Links that change by a file: Mahimahi's traces, and CSV of delays, rates and outages.

A trace has the milliseconds at which a link can send 1500 bytes.
A scenario holds a trace as the lines of its file, separated by blanks; `7*3` stands for three
lines of 7. A scenario's file and `--set` name a trace by its file, which is read here.

A path that changes, such as over low-orbit satellites, is a CSV file. The header has `time_s` and
one or more of `delay_ms` (one way), `rate_mbit` and `up` (0 during an outage). A line holds from
its time on, and an empty field keeps the value before it. The first line is at second 0.
"""

from __future__ import annotations

import csv
import dataclasses
import functools
import itertools
import math
import operator
import re
import struct
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from testbed.errors import UsageError, hint_for, nearest, quoted
from testbed.scenario.network import FRAME_BYTES, MAX_CHANGES, Change

OPPORTUNITY_BYTES = 1504  # an IP packet of 1500, and 4 that Mahimahi's tun puts before each
TUN_BYTES = 4
MAX_TRACE_TIMES = 400_000
MAX_TRACE_MS = 24 * 3600 * 1000
TRACE_CONTENT = re.compile(r"[0-9][0-9* ]*")  # and no name of a file
CACHED_TRACES = 8  # traces, in each form: a sweep's trials share a few
_MILLISECONDS = re.compile(r"[0-9]{1,9}")
_OPPORTUNITY = re.compile(r"(\d{1,9})(?:\*(\d{1,6}))?")


@dataclass(frozen=True)
class Trace:
    """Opportunities by their time in ms; the trace repeats after the last one's time."""

    times: tuple[tuple[int, int], ...]  # ms, opportunities

    @property
    def period_ms(self) -> int:
        """The time after which the trace repeats."""
        return self.times[-1][0]

    @property
    def opportunities(self) -> int:
        """The number of opportunities in a period."""
        return sum(count for _, count in self.times)

    @property
    def mean_mbit(self) -> float:
        """The rate of full frames, over a period."""
        return self.opportunities * FRAME_BYTES * 8e-3 / self.period_ms

    @property
    def packed(self) -> bytes:
        """The trace as the kernel takes it: pairs of 32-bit numbers."""
        return struct.pack(f"={2 * len(self.times)}I", *itertools.chain(*self.times))

    @property
    def crc32(self) -> int:
        """The checksum by which the kernel's copy is compared with this one."""
        return zlib.crc32(self.packed)

    def longest_ms(self, opportunities: int) -> int:
        """Return the longest time that this many opportunities take."""
        period_ms = self.period_ms
        every = [ms for ms, count in self.times for _ in range(count)]
        rounds, rest = divmod(opportunities, len(every))
        ahead = every[rest:] + [ms + period_ms for ms in every[:rest]]
        rest_ms: int = max(map(operator.sub, ahead, every))
        return rounds * period_ms + rest_ms

    def __str__(self) -> str:
        return f"a trace of {self.period_ms / 1e3:g} s, {self.mean_mbit:.3g} Mbit/s in the mean"


@functools.lru_cache(maxsize=CACHED_TRACES)
def parse_trace(content: str) -> Trace:
    """Return the trace of a content that has no faults."""
    return Trace(tuple(_times(content)))


def _times(content: str) -> Iterator[tuple[int, int]]:
    for word in content.split():
        ms, _, count = word.partition("*")
        yield int(ms), int(count or 1)


def trace_summary(content: str) -> str:
    """Return a trace in a few words; a text that is no trace, as it is."""
    sound = TRACE_CONTENT.fullmatch(content) and not trace_fault(content)
    return str(parse_trace(content)) if sound else content


@functools.lru_cache(maxsize=CACHED_TRACES)
def trace_content(file: str, where: str) -> str:
    """Return a file's text as a scenario holds it; raise at the first fault, with its line."""
    times: list[int] = []
    for number, line in enumerate(file.splitlines(), start=1):
        text = line.strip()
        if not _MILLISECONDS.fullmatch(text):
            what = quoted(text) if text else "an empty line"
            raise UsageError(
                f"{where}: line {number}: {what} is not a whole number of ms", _TRACE_HINT
            )
        if times and int(text) < times[-1]:
            raise UsageError(
                f"{where}: line {number}: {text} comes after {times[-1]}: times never go back",
                _TRACE_HINT,
            )
        times.append(int(text))
    content = trace_text(times)
    if message := trace_fault(content):
        raise UsageError(f"{where}: {message}", _TRACE_HINT)
    return content


_TRACE_HINT = "a trace has one whole number of ms on each line: an opportunity to send 1500 bytes"


def trace_text(times: Iterable[int]) -> str:
    """Return opportunities' times as a scenario holds them."""
    counts = ((ms, len(list(same))) for ms, same in itertools.groupby(times))
    return " ".join(f"{ms}*{count}" if count > 1 else str(ms) for ms, count in counts)


@functools.lru_cache(maxsize=CACHED_TRACES)
def trace_fault(content: str) -> str:
    """Return what is wrong with a trace that a scenario holds; empty if nothing is."""
    numbers = content.split()
    if not numbers:
        return "an empty trace: no opportunity to send"
    if len(numbers) > MAX_TRACE_TIMES:
        return f"opportunities at {len(numbers)} times; at most {MAX_TRACE_TIMES}"
    before = -1
    for number, word in enumerate(numbers, start=1):
        match = _OPPORTUNITY.fullmatch(word)
        if not match or (match[2] and not int(match[2])):
            return f"not a trace: {quoted(word)} is not a time in ms (number {number})"
        if int(match[1]) <= before:
            return f"{match[1]} comes after {before} (number {number}): times never go back"
        before = int(match[1])
    if not 0 < before <= MAX_TRACE_MS:
        return f"lasts {before} ms, and not between 1 and {MAX_TRACE_MS}"
    return ""


TRACE_FOLDER = Path(__file__).with_name("traces")
TRACE_SUFFIX = ".trace"
TRACE_FIELD = "trace"
MAX_TRACE_BYTES = 16 << 20

_T = TypeVar("_T")


def bundled_traces() -> list[str]:
    """Return the names of the traces that come with the testbed."""
    return sorted(path.stem for path in TRACE_FOLDER.glob(f"*{TRACE_SUFFIX}"))


def read_trace(name: str | Path, folder: Path = Path()) -> str:
    """Return the content of a bundled trace, by its name, or of a file in Mahimahi's format."""
    path = _path(str(name), folder)
    try:
        with path.open("rb") as file:
            data = file.read(MAX_TRACE_BYTES + 1)
        text = data.decode("ascii")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise UsageError(f"{path}: line {line}: not a trace: not text", _trace_hint()) from error
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}", hint_for(error) or _trace_hint()) from error
    if len(data) > MAX_TRACE_BYTES:
        raise UsageError(f"{path}: longer than {MAX_TRACE_BYTES >> 20} MB: no trace", _trace_hint())
    return trace_content(text, str(path))


def _path(name: str, folder: Path) -> Path:
    file = TRACE_FOLDER / f"{name}{TRACE_SUFFIX}"
    if name in bundled_traces():
        return file
    path = folder / name
    if not path.exists():
        raise UsageError(
            f"{quoted(name)}: no such trace: {nearest(name, bundled_traces())}", _trace_hint()
        )
    return path


def _trace_hint() -> str:
    return f"name a file in Mahimahi's format, or one of ours: {', '.join(bundled_traces())}"


def listed_traces(text: str) -> Iterator[tuple[str, str]]:
    """Yield the traces that a value of `--set` names, with their contents; for a folder all."""
    folder = Path(text)
    if text in bundled_traces() or not folder.is_dir():
        yield folder.stem, read_trace(text)
        return
    files = sorted(p for p in folder.iterdir() if p.is_file() and not p.name.startswith("."))
    if not files:
        raise UsageError(f"{folder}: no traces in this folder", _trace_hint())
    yield from ((path.stem, read_trace(path)) for path in files)


def with_traces(value: _T, folder: Path) -> _T:
    """Return a scenario with traces read in place of their names; paths begin at `folder`."""

    def read(name: str, content: object) -> object:
        if name == TRACE_FIELD and isinstance(content, str) and not is_trace(content):
            return read_trace(content, folder)
        return with_traces(content, folder)

    replaced: object = value
    if isinstance(value, tuple):
        replaced = tuple(with_traces(each, folder) for each in value)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        contents = {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
        replaced = dataclasses.replace(
            value, **{name: read(name, contents[name]) for name in contents}
        )
    return replaced  # type: ignore[return-value]


def is_trace(text: str) -> bool:
    """Return whether a text is a trace, and not the name of one."""
    return TRACE_CONTENT.fullmatch(text) is not None


def traces_by_name(values: Sequence[str]) -> list[tuple[str, str]]:
    """Return names and contents of the traces that values of `--set` name."""
    names_of_traces: dict[str, str] = {}
    for value in values:
        for name, content in listed_traces(value):
            if names_of_traces.setdefault(name, content) != content:
                raise UsageError(f"--set: two traces are named {quoted(name)}", "rename one")
    return list(names_of_traces.items())


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
