"""Traces in Mahimahi's format: the milliseconds at which a link can send 1500 bytes.

A scenario holds a trace as the lines of its file, separated by blanks; `7*3` stands for three
lines of 7. A scenario's file and `--set` name a trace by its file, which is read here.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import operator
import re
import struct
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from testbed.errors import UsageError, hint_for, nearest, quoted
from testbed.scenario.network import FRAME_BYTES

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
    if words := trace_fault(content):
        raise UsageError(f"{where}: {words}", _TRACE_HINT)
    return content


_TRACE_HINT = "a trace has one whole number of ms on each line: an opportunity to send 1500 bytes"


def trace_text(times: Iterable[int]) -> str:
    """Return opportunities' times as a scenario holds them."""
    counts = ((ms, len(list(same))) for ms, same in itertools.groupby(times))
    return " ".join(f"{ms}*{count}" if count > 1 else str(ms) for ms, count in counts)


@functools.lru_cache(maxsize=CACHED_TRACES)
def trace_fault(content: str) -> str:
    """Return what is wrong with a trace that a scenario holds; empty if nothing is."""
    words = content.split()
    if not words:
        return "an empty trace: no opportunity to send"
    if len(words) > MAX_TRACE_TIMES:
        return f"opportunities at {len(words)} times; at most {MAX_TRACE_TIMES}"
    before = -1
    for number, word in enumerate(words, start=1):
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
    own = TRACE_FOLDER / f"{name}{TRACE_SUFFIX}"
    if name in bundled_traces():
        return own
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

    found: object = value
    if isinstance(value, tuple):
        found = tuple(with_traces(each, folder) for each in value)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        contents = {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
        found = dataclasses.replace(
            value, **{name: read(name, contents[name]) for name in contents}
        )
    return found  # type: ignore[return-value]


def is_trace(text: str) -> bool:
    """Return whether a text is a trace, and not the name of one."""
    return TRACE_CONTENT.fullmatch(text) is not None


def traces_by_name(values: Sequence[str]) -> list[tuple[str, str]]:
    """Return names and contents of the traces that values of `--set` name."""
    found: dict[str, str] = {}
    for value in values:
        for name, content in listed_traces(value):
            if found.setdefault(name, content) != content:
                raise UsageError(f"--set: two traces are named {quoted(name)}", "rename one")
    return list(found.items())
