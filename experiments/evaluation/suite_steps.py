"""What suites of test cases share: a step's reading, its verdict, and the tables of both."""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from analysis.statistics.text_tables import TextTable

Seen = TypeVar("Seen")


class StepVerdict(enum.StrEnum):
    """Whether a step is as the text says."""

    MET = "met"
    NOT_MET = "not met"
    OPEN = "not testable"


@dataclass(frozen=True)
class StepReading:
    """What was measured, and whether it is as the text says."""

    said: str
    met: bool


def judged(
    check: Callable[[Seen], StepReading] | str, seen: Seen | None, without: str
) -> tuple[str, StepVerdict]:
    """Return what a check measured, or why nothing was: the check says so, or `without` does."""
    if isinstance(check, str):
        return check, StepVerdict.OPEN
    if seen is None:
        return without, StepVerdict.OPEN
    reading = check(seen)
    return reading.said, StepVerdict.MET if reading.met else StepVerdict.NOT_MET


def suite_summary(
    heads: Sequence[str], rows: Sequence[tuple[str, ...]], what: str, steps: str
) -> TextTable:
    """Tabulate a suite's rows, whose last column is the verdict, for the terminal."""
    tally = ", ".join(f"{sum(row[-1] == each for row in rows)} {each}" for each in StepVerdict)
    return TextTable(tuple(heads), tuple(rows), f"{what}; {steps}: {tally}.")
