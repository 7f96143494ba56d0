"""Numbers that a program prints, and how one is made of several: for scenarios and `grade`."""

from __future__ import annotations

import enum
import re
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

from testbed.faults import Fault
from testbed.scenario.limits import Length, Pattern

MEASURED_PREFIX = "measured_"  # of the columns of metrics.csv that have these numbers
MAX_MEASURED_NUMBERS = 20  # of a flow
COLUMN_NAME = Pattern(
    r"[a-z][a-z0-9_]{0,39}",
    "not a column's name: small letters, digits and `_`, at most 40, the unit last: latency_ms",
)


class Take(enum.StrEnum):
    """The way to make one number of several; without a word there has to be one."""

    ONLY = "only"
    FIRST = "first"
    LAST = "last"
    MIN = "min"
    MAX = "max"
    MEAN = "mean"
    SUM = "sum"
    COUNT = "count"


class ProgramRole(enum.StrEnum):
    """Which of a flow's two programs."""

    CLIENT = "client"
    SERVER = "server"


@dataclass(frozen=True)
class ProgramNumber:
    """A number that a program prints: a column of the tables, `measured_NAME`."""

    name: Annotated[str, COLUMN_NAME]
    """The column's name behind `measured_`, its unit last: `latency_ms`."""
    pattern: str = ""
    """A regular expression for one line of what it prints; its group is the number."""
    json: str = ""
    """In place of a pattern, where it prints JSON (one document, or one on each line): the keys
    that lead to the number, such as `end.sum.bits_per_second`."""
    take: Take = Take.ONLY
    """How one number is made of several: first, last, min, max, mean, sum or count."""
    printed_by: ProgramRole = ProgramRole.CLIENT
    """Which program prints it."""

    @property
    def column(self) -> str:
        """Return the name of its column."""
        return f"{MEASURED_PREFIX}{self.name}"


ProgramNumbers = Annotated[tuple[ProgramNumber, ...], Length(0, MAX_MEASURED_NUMBERS, "numbers")]


def number_faults(numbers: Sequence[ProgramNumber]) -> Iterator[Fault]:
    """Yield what is wrong with each number's description."""
    names = [each.name for each in numbers]
    for place, each in enumerate(numbers):
        if names.index(each.name) < place:
            yield Fault((place, "name"), f"two are called {each.name}")
        if bool(each.pattern) == bool(each.json):
            yield Fault((place,), "give a pattern or the keys of JSON")
        yield from (fault.inside(place) for fault in pattern_faults(each.pattern, each.take))


def pattern_faults(pattern: str, take: Take) -> Iterator[Fault]:
    """Yield what is wrong with a regular expression that has a number in it."""
    try:
        with warnings.catch_warnings(action="error"):
            groups = re.compile(pattern).groups
    except (re.error, OverflowError, RecursionError) as error:
        yield Fault(("pattern",), f"{error}")
    except FutureWarning as warning:  # a later Python may read it differently
        message = f"{warning}: put a backslash before a character that means itself"
        yield Fault(("pattern",), message)
    else:
        if pattern and groups != 1 and take is not Take.COUNT:
            message = f"{groups} groups: the number's is the only one, others are (?:…)"
            yield Fault(("pattern",), message)
