"""The parts of a queue discipline's row: what tc is told, and what the kernel must report.

Numbers are compared exactly, in the kernel's own units. Where the kernel stores less than it is
told, `stored` does the same rounding.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

Values = Mapping[str, float]  # a scenario's options by name
Stored = Callable[[float], int]

PER_UNIT = {"": 1, "ms": 1000}  # tc and the kernel exchange times in microseconds
MAX_TC_NUMBER = (1 << 32) - 1  # of either: they have 32 bits
OFF_ON = ("off", "on")
TICKS_PER_MICROSECOND = 1000 / 64  # psched's, in /proc/net/psched
MICROSECOND_TICKS = 16  # so many hold one
_CLOCK_MONOTONIC_COARSE = 6  # linux/time.h: its resolution is the kernel's tick


@dataclass(frozen=True)
class Field:
    """The position of a number in a discipline's options as the kernel reports them (TCA_OPTIONS).

    `path` leads through nested attributes (linux/pkt_sched.h); without one the number is in the
    structure that the options begin with, which is `head` bytes long if attributes follow.
    """

    path: tuple[int, ...] = ()
    offset: int = 0
    form: str = "I"  # of Python's struct
    mask: int = -1
    head: int = 0


@dataclass(frozen=True)
class Setting:
    """One planned number and where the kernel reports it: at the first of `at` that is there."""

    name: str
    at: tuple[Field, ...]
    value: float | None  # in `unit`; None: the kernel must not report any
    unit: str = ""
    per_unit: float = 1.0  # the kernel's units in one of ours
    stored: Stored = int
    slack: int = 0  # in the kernel's units
    words: tuple[str, ...] = ()  # what messages call 0, 1, 2 …

    def difference(self, actual: int | None) -> str:
        """Return how the kernel's number differs from the requested one; empty if it does not."""
        wanted = None if self.value is None else self.stored(self.value * self.per_unit)
        if actual == wanted:
            return ""
        if actual is not None and wanted is not None and abs(actual - wanted) <= self.slack:
            return ""
        texts = self._text(actual), self._planned()
        if texts[0] == texts[1]:
            return f"{self.name} is {actual}, not {wanted}, in the kernel's unit"
        return f"{self.name} is {texts[0]}, not {texts[1]}"

    def _planned(self) -> str:
        if self.value is None or self.words:
            return self._text(None if self.value is None else int(self.value))
        return f"{self.value:.12g} {self.unit}".rstrip()

    def _text(self, kernels_value: int | None) -> str:
        """Return the kernel's number in our unit, as the round number that it was made of."""
        if kernels_value is None:
            return "not set"
        if kernels_value < len(self.words):
            return self.words[kernels_value]
        exact = kernels_value / self.per_unit
        rounded = (round(exact, digits) for digits in (0, 2, 4))
        value = next((r for r in rounded if self.stored(r * self.per_unit) == kernels_value), exact)
        return f"{value:.12g} {self.unit}".rstrip()


def codel_time(microseconds: float) -> int:
    """Return a time as CoDel stores it: in units of 1024 ns (CODEL_SHIFT in net/codel.h)."""
    return (int(microseconds) * 1000 >> 10 << 10) // 1000


def pie_time(microseconds: float) -> int:
    """Return a time as PIE stores it: in ticks of 64 ns (PSCHED_SHIFT in net/pkt_sched.h)."""
    return (int(microseconds) * 1000 >> 6 << 6) // 1000


def whole_microseconds(ticks: float) -> int:
    """Return psched's ticks as tc makes them.

    It first cuts a packet's time on a link to microseconds.
    """
    return int(int(ticks / TICKS_PER_MICROSECOND) * TICKS_PER_MICROSECOND)


def timer_ticks(microseconds: float) -> int:
    """Return a time of PIE's timer, which runs on the kernel's ticks, rounded up to them."""
    tick = round(time.clock_getres(_CLOCK_MONOTONIC_COARSE) * 1e6)
    return -(-int(microseconds) // tick) * tick


@dataclass(frozen=True)
class OptionChoice:
    """One of an option's few values: tc's word, and the number that the kernel reports."""

    word: str
    stored: int


@dataclass(frozen=True)
class Option:
    """An option of a discipline: tc's keyword and unit, and where the kernel reports it.

    It may be from `least` to `most`, which are where tc and the kernel take it as it is.
    """

    keyword: str
    at: Field | None  # None: the kernel reports only what it makes of it (`Discipline.derived`)
    unit: str = ""
    default: float | None = None  # the kernel's; None: it reports nothing unless told
    stored: Stored = int
    least: float = 1
    most: float | None = None  # where 32 bits would hold more
    whole: bool = False
    from_start: bool = False  # the kernel takes it only as it makes the discipline
    unset: str = ""  # what tc is told to remove the setting
    choices: Mapping[float, OptionChoice] = field(default_factory=dict)  # 0 unless chosen
    stored_words: tuple[str, ...] = ()  # what messages call the kernel's 0, 1, 2 … of them

    @property
    def highest(self) -> float:
        """The highest value that the kernel can hold."""
        return MAX_TC_NUMBER / PER_UNIT[self.unit] if self.most is None else self.most

    def faults(self, value: float) -> Iterator[str]:
        """Yield why tc or the kernel would not take the value, or would change it."""
        if self.choices and value not in self.choices:
            known = ", ".join(f"{each:g}" for each in sorted(self.choices))
            yield f"{value:.12g} is not one of {known}"
        elif self.choices:
            return
        elif value < self.least:
            yield f"{value:.12g} is below {self.least:g}, the least that has its effect"
        elif value > self.highest:
            yield f"{value:.12g} is above {self.highest:.10g}, all that the kernel can hold"
        elif self.whole and value != int(value):
            yield f"{value:.12g} is not a whole number"

    def words(self, value: float) -> tuple[str, str]:
        """Return tc's keyword and its value."""
        number = f"{value:.12g}{self.unit}" if self.unit or value < 1 else f"{int(value)}"
        return self.keyword, number

    def settings(self, value: float | None) -> Iterator[Setting]:
        """Yield the number that the kernel must report."""
        if self.at is not None and self.choices:
            stored = self.choices[value or 0].stored
            yield Setting(self.keyword, (self.at,), stored, words=self.stored_words)
        elif self.at is not None:
            per_unit = PER_UNIT[self.unit]
            yield Setting(self.keyword, (self.at,), value, self.unit, per_unit, self.stored)


@dataclass(frozen=True)
class Marking:
    """The way in which a discipline marks packets (ECN), and where it counts them."""

    switch: Field | None = None  # None: it always marks
    on: tuple[str, ...] = ("ecn",)  # tc's words
    off: tuple[str, ...] = ()
    off_again: tuple[str, ...] = ("noecn",)  # where it marked until now
    counted_at: int | None = None  # offset in its statistics (xstats); None: tin by tin, as cake
    step_counted_at: int | None = None  # the same, of marks for waiting longer than a step
    may_drop: bool = False  # a marked packet may still find the queue full
    may_count_twice: bool = False  # a packet that two of its rules mark


@dataclass(frozen=True)
class Limit:
    """A queue's limit in every unit that people use; full frames of 1514 bytes."""

    bytes: int
    packets: int
    ms: float
    bdp: float | None  # None where the path has no delay: every buffer is then infinite BDPs

    def __str__(self) -> str:
        bdp = "no delay, so no BDP" if self.bdp is None else f"{self.bdp:.2f} BDP"
        return f"{self.bytes} B = {self.packets} packets = {self.ms:.1f} ms = {bdp}"


def _as_given(options: Values, _limit: Limit) -> Values:
    return options


def _nothing(*_: object) -> Iterator[Setting]:
    return iter(())


def _no_words(*_: object) -> Iterator[str]:
    return iter(())


@dataclass(frozen=True)
class Discipline:
    """A queue discipline: everything that the rest of the code needs to know about it.

    tc is told the limit, `options` by a scenario's names for them, `rate_keyword` with the link's
    rate, `words`, and whether to mark. `fixed` and `derived` are further numbers that the kernel
    must report: always the same ones, and ones that follow from the options and the rate.
    """

    name: str
    counts: str  # the unit of its limit: "bytes" or "packets"
    limit: Option
    options: Mapping[str, Option] = field(default_factory=dict)
    marking: Marking | None = None
    tail_drop: bool = False  # a plain FIFO: drops when full, and never before
    drops_old: bool = False  # drops what has waited, when it would leave
    polices: bool = False  # holds nothing back: a token bucket, whose size is the limit
    words: tuple[str, ...] = ()
    rate_keyword: str = ""
    fixed: tuple[Setting, ...] = ()
    complete: Callable[[Values, Limit], Values] = _as_given  # writes out what tc would choose
    derived: Callable[[Values, float], Iterator[Setting]] = _nothing  # of options and Mbit/s
    refusals: Callable[[Values, Limit, float], Iterator[str]] = _no_words  # of tc and the kernel
    warnings: Callable[[Values, Limit], Iterator[str]] = _no_words
    kernel: str = ""  # the configuration symbol, if it is not CONFIG_NET_SCH_<NAME>

    @property
    def symbol(self) -> str:
        """The kernel's configuration symbol; the module is sch_<name>."""
        return self.kernel or f"CONFIG_NET_SCH_{self.name.upper()}"

    @property
    def ecn(self) -> bool:
        """Whether it can mark packets."""
        return self.marking is not None
