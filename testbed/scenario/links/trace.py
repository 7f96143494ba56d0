"""Traces of delivery opportunities, as Mahimahi's: at which ms a link can send 1500 bytes.

A scenario holds a trace as the lines of its file with blanks between, `7*3` for three lines of 7.
"""

from __future__ import annotations

import functools
import itertools
import operator
import re
import struct
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from testbed.errors import UsageError, listed, quoted

OPPORTUNITY_BYTES = 1504  # an IP packet of 1500, and 4 that Mahimahi's tun puts before each
TUN_BYTES = 4
FRAME_BYTES = 1514  # the Ethernet frame of such a packet
MOST_TIMES = 400_000
LONGEST_MS = 24 * 3600 * 1000
CONTENT = re.compile(r"[0-9][0-9* ]*")  # and no name of a file
KEPT = 8  # traces, in each form: a sweep's trials share a few
_LINE = re.compile(r"[0-9]{1,9}")
_NUMBER = re.compile(r"(\d{1,9})(?:\*(\d{1,6}))?")


@dataclass(frozen=True)
class Trace:
    """Opportunities by their time in ms; after the last one's time it begins anew."""

    times: tuple[tuple[int, int], ...]  # ms, opportunities

    @property
    def period_ms(self) -> int:
        """After which it begins anew."""
        return self.times[-1][0]

    @property
    def opportunities(self) -> int:
        """In a period."""
        return sum(count for _, count in self.times)

    @property
    def mean_mbit(self) -> float:
        """The rate of full frames, over a period."""
        return self.opportunities * FRAME_BYTES * 8e-3 / self.period_ms

    @property
    def packed(self) -> bytes:
        """As the kernel is told it: pairs of 32-bit numbers."""
        return struct.pack(f"={2 * len(self.times)}I", *itertools.chain(*self.times))

    @property
    def crc32(self) -> int:
        """By which the kernel's copy is compared with this one."""
        return zlib.crc32(self.packed)

    def longest_ms(self, opportunities: int) -> int:
        """How long so many opportunities take at most."""
        period_ms = self.period_ms
        every = [ms for ms, count in self.times for _ in range(count)]
        rounds, rest = divmod(opportunities, len(every))
        ahead = every[rest:] + [ms + period_ms for ms in every[:rest]]
        rest_ms: int = max(map(operator.sub, ahead, every))
        return rounds * period_ms + rest_ms

    def __str__(self) -> str:
        return f"a trace of {self.period_ms / 1e3:g} s, {self.mean_mbit:.3g} Mbit/s in the mean"


@functools.lru_cache(maxsize=KEPT)
def parse(content: str) -> Trace:
    """The trace that a scenario holds, which has no faults."""
    return Trace(tuple(_times(content)))


def _times(content: str) -> Iterator[tuple[int, int]]:
    for word in content.split():
        ms, _, count = word.partition("*")
        yield int(ms), int(count or 1)


def shown(content: str) -> str:
    """A trace in a few words; a text that is none, as it is."""
    sound = CONTENT.fullmatch(content) and not listed(faults(content, ""))
    return str(parse(content)) if sound else content


@functools.lru_cache(maxsize=KEPT)
def content_of(file: str, where: str) -> str:
    """A file's text as a scenario holds it; the first fault raises, with its line."""
    times: list[int] = []
    for number, line in enumerate(file.splitlines(), start=1):
        text = line.strip()
        if not _LINE.fullmatch(text):
            what = quoted(text) if text else "an empty line"
            raise UsageError(f"{where}: line {number}: {what} is no whole number of ms", _HINT)
        if times and int(text) < times[-1]:
            raise UsageError(
                f"{where}: line {number}: {text} comes after {times[-1]}: times never go back",
                _HINT,
            )
        times.append(int(text))
    content = written(times)
    if found := listed(faults(content, where)):
        raise UsageError(found, _HINT)
    return content


_HINT = "a trace has one whole number of ms on each line: an opportunity to send 1500 bytes"


def written(times: Iterable[int]) -> str:
    """Opportunities' times as a scenario holds them."""
    counts = ((ms, len(list(same))) for ms, same in itertools.groupby(times))
    return " ".join(f"{ms}*{count}" if count > 1 else str(ms) for ms, count in counts)


def faults(content: str, where: str) -> Iterator[str]:
    """What is wrong with a trace that a scenario holds."""
    if fault := _fault(content):
        yield f"{where}: {fault}"


@functools.lru_cache(maxsize=KEPT)
def _fault(content: str) -> str:
    """The first fault; empty if there is none."""
    words = content.split()
    if not words:
        return "an empty trace: no opportunity to send"
    if len(words) > MOST_TIMES:
        return f"opportunities at {len(words)} times; at most {MOST_TIMES}"
    before = -1
    for number, word in enumerate(words, start=1):
        match = _NUMBER.fullmatch(word)
        if not match or (match[2] and not int(match[2])):
            return f"no trace: {quoted(word)} is no time in ms (number {number})"
        if int(match[1]) <= before:
            return f"{match[1]} comes after {before} (number {number}): times never go back"
        before = int(match[1])
    if not 0 < before <= LONGEST_MS:
        return f"lasts {before} ms, and not between 1 and {LONGEST_MS}"
    return ""
