"""Verdicts as tables: the checks of one trial, and how often each check failed in a folder."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pandas as pd

from analysis.fidelity.checks import Check, Grade, Value
from analysis.fidelity.tolerances import RULES
from analysis.fidelity.verdict import Verdict, cached_verdict
from analysis.tables import UNKNOWN, Table
from testbed.store import trials_in

HEADER = ("check", "of", "measured", "expected", "±", "unit", "verdict", "why")
COLUMNS = ("trial", "name", "subject", "measured", "expected", "tolerance", "unit", "verdict")


def checks_table(verdict: Verdict, everything: bool = True) -> Table:
    """A line a check, the worst ones first; without `everything` only what is not valid."""
    order = (Grade.INVALID, Grade.SUSPECT, Grade.UNKNOWN, Grade.VALID)
    ranked = sorted(verdict.checks, key=lambda check: order.index(check.verdict))
    shown = [each for each in ranked if everything or each.verdict is not Grade.VALID]
    counts = Counter(check.verdict for check in verdict.checks)
    note = ", ".join(f"{counts[grade]} {grade}" for grade in order if counts[grade])
    return Table(HEADER, tuple(_line(each) for each in shown), note)


def _line(check: Check) -> tuple[str, ...]:
    return (
        check.name,
        check.subject,
        _text(check.measured),
        _text(check.expected),
        "" if check.verdict is Grade.UNKNOWN else _text(check.tolerance),
        check.unit,
        str(check.verdict),
        check.why,
    )


def _text(value: Value) -> str:
    if value is None:
        return UNKNOWN
    return value if isinstance(value, str) else f"{value:.6g}"


def fidelity_checks(results: Path) -> pd.DataFrame:
    """Every check of every trial that ran, a row each: COLUMNS and `why`."""
    rows = [
        {"trial": name, **{each: getattr(check, each) for each in (*COLUMNS[1:], "why")}}
        for name, verdict in _verdicts(results)
        for check in verdict.checks
    ]
    return pd.DataFrame(rows, columns=[*COLUMNS, "why"])


def fidelity_table(results: Path) -> Table:
    """A line a check: in how many trials it was valid, suspect, invalid or unknown.

    A trial counts once a check, by the worst of its subjects.
    """
    worst: dict[str, Counter[Grade]] = {name: Counter() for name in RULES}
    trials: Counter[Grade] = Counter()
    for _, verdict in _verdicts(results):
        trials[verdict.verdict] += 1
        by_name: dict[str, list[Grade]] = {}
        for check in verdict.checks:
            by_name.setdefault(check.name, []).append(check.verdict)
        for name, found in by_name.items():
            worst[name][_worst(found)] += 1
    grades = (Grade.VALID, Grade.SUSPECT, Grade.INVALID, Grade.UNKNOWN)
    rows = [
        (name, *(str(counts[grade]) for grade in grades))
        for name, counts in worst.items()
        if counts
    ]
    total = ", ".join(f"{trials[grade]} {grade}" for grade in grades if trials[grade])
    return Table(("check", *map(str, grades)), tuple(rows), f"trials: {total or 'none ran'}")


def _worst(grades: Iterable[Grade]) -> Grade:
    """What is known goes before what is not."""
    order = (Grade.INVALID, Grade.SUSPECT, Grade.VALID, Grade.UNKNOWN)
    return min(grades, key=order.index)


def _verdicts(results: Path) -> Iterable[tuple[str, Verdict]]:
    for trial in trials_in(results):
        if verdict := cached_verdict(trial):
            yield trial.path.name, verdict
