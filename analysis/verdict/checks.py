"""One comparison of a trial: measured, expected, tolerance, verdict, and the reason in one line."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from analysis.verdict.rules import CHECK_RULES

Value = float | str | None

# Reasons for an unknown verdict.
NOT_RECORDED = "not recorded"
NOT_CAPTURED = "not captured"
NOT_SAMPLED = "not sampled"
NEVER_CONNECTED = "it never connected"
NO_ROW = "its discipline has no row in testbed/scenario/queues.py"


class Grade(enum.StrEnum):
    """A check's outcome; `unknown` (not captured, sampled or recorded) spoils no verdict."""

    VALID = "valid"
    SUSPECT = "suspect"
    INVALID = "invalid"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Check:
    """One comparison; `why` is empty if it is valid and there is nothing to explain."""

    name: str  # a row of rules.CHECK_RULES
    subject: str  # the flow, interface or capture
    measured: Value
    expected: Value
    tolerance: float  # in the unit: the deviation up to which it is valid
    unit: str
    verdict: Grade
    why: str = ""


def make_check(
    name: str,
    subject: str,
    virtual_time: bool,
    measured: float,
    expected: float,
    *,
    deviation: float | None = None,
    note: str = "",
) -> Check:
    """Judge numbers by their difference, or by `deviation` where only part of that counts."""
    rule = CHECK_RULES[name]
    scale = abs(expected) if rule.relative else 1.0
    limits = rule.limits(virtual_time)
    off = abs(measured - expected) if deviation is None else deviation
    # 1.001 - 1 is more than 0.001 to a computer
    slack = 1e-9 * max(1.0, abs(expected))
    grade = Grade.VALID
    if off > limits.suspect * scale + slack:
        grade = Grade.SUSPECT if off <= limits.invalid * scale + slack else Grade.INVALID
    tolerance = limits.suspect * scale
    why = note
    if grade is not Grade.VALID:
        numbers = f"{_number(measured)}, expected {_number(expected)} ± {_number(tolerance)}"
        why = _join(f"{name} of {subject}: {numbers} {rule.unit}".rstrip(), note)
    return Check(name, subject, measured, expected, tolerance, rule.unit, grade, why)


def same(name: str, subject: str, measured: str, expected: str, note: str = "") -> Check:
    """Judge texts: they are equal, or the check is invalid, and `note` explains it."""
    grade = Grade.VALID if measured == expected else Grade.INVALID
    why = ""
    if grade is not Grade.VALID:
        why = _join(f"{name} of {subject}: {measured!r}, not {expected!r}", note)
    return Check(name, subject, measured, expected, 0.0, CHECK_RULES[name].unit, grade, why)


def unknown(name: str, subject: str, why: str) -> Check:
    """Return a check that the trial's data cannot answer."""
    return Check(name, subject, None, None, 0.0, CHECK_RULES[name].unit, Grade.UNKNOWN, why)


def unverified(name: str, subject: str, why: str) -> Check:
    """Return a check of what every trial of its kind records, and this one did not: suspect."""
    rule = CHECK_RULES[name]
    statement = f"{name} of {subject} is not known: {why}"
    return Check(name, subject, None, None, 0.0, rule.unit, Grade.SUSPECT, statement)


def _join(*texts: str) -> str:
    return "; ".join(text for text in texts if text)


def _number(value: float) -> str:
    return f"{value:.6g}"
