"""Verdicts as tables: the checks of a trial, of several side by side, and how often each failed."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from analysis.statistics.text_tables import UNKNOWN, Table
from analysis.verdict.checks import Check, Grade, Value
from analysis.verdict.rules import RULES, Limits, Rule
from analysis.verdict.subjects import SUBJECTS
from analysis.verdict.verdict import Verdict, cached_verdict
from testbed.store import Trial, trials_in

PART_OF = "of the "
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
        for name, verdict in _verdicts(trials_in(results))
        for check in verdict.checks
    ]
    return pd.DataFrame(rows, columns=[*COLUMNS, "why"])


def tolerances() -> Table:
    """Every check there is: what it holds against what, how far that may be off, and why."""
    rows = []
    for name, rule in RULES.items():
        subject = SUBJECTS[name]
        rows.append((name, subject.measured, subject.expected, tolerance(rule), rule.reason))
    return Table(("check", "measured", "held against", "valid up to", "because"), tuple(rows), "")


def tolerance(rule: Rule) -> str:
    """Up to which deviation it is valid: in the guest, and on a host where that is another."""
    guest, host = (_limit(rule, limits) for limits in (rule.guest, rule.host))
    return guest if guest == host else f"{guest}; host {host}"


def _limit(rule: Rule, limits: Limits) -> str:
    if math.isinf(limits.suspect):
        return "not asked"
    if not limits.suspect:
        return "equal"
    if rule.relative:
        return f"{limits.suspect * 100:g} %"
    if rule.unit.startswith(PART_OF):
        return f"{limits.suspect * 100:g} % {rule.unit}"
    unit = rule.unit.removesuffix("s") if limits.suspect == 1 and len(rule.unit) > 2 else rule.unit
    return f"{limits.suspect:g} {unit}".rstrip()


@dataclass(frozen=True)
class Tally:
    """Of one check: in how many trials it was what; a trial counts by the worst of its subjects."""

    rule: Rule
    trials: Mapping[Grade, int]


def tally(verdicts: Iterable[Verdict]) -> list[Tally]:
    """Every check that these trials were asked, in the order of the table of tolerances."""
    worst: dict[str, Counter[Grade]] = {name: Counter() for name in RULES}
    for verdict in verdicts:
        by_name: dict[str, list[Grade]] = {}
        for check in verdict.checks:
            by_name.setdefault(check.name, []).append(check.verdict)
        for name, found in by_name.items():
            worst[name][_worst(found)] += 1
    return [Tally(RULES[name], counts) for name, counts in worst.items() if counts]


def _worst(grades: Iterable[Grade]) -> Grade:
    """What is known goes before what is not."""
    order = (Grade.INVALID, Grade.SUSPECT, Grade.VALID, Grade.UNKNOWN)
    return min(grades, key=order.index)


def side_by_side(trials: Sequence[Trial]) -> Table:
    """What was measured and what that was held against, a line a check and a column a trial."""
    verdicts = dict(_verdicts(trials))
    cells: dict[tuple[str, str], dict[str, str]] = {}
    for name, verdict in verdicts.items():
        for check in verdict.checks:
            unit = f", {check.unit}" if check.unit else ""
            cells.setdefault((check.name + unit, check.subject), {})[name] = _sides(check)
    order = list(RULES)
    rows = [
        (*key, *(found.get(name, "") for name in verdicts))
        for key, found in sorted(cells.items(), key=lambda each: order.index(_rule(each[0][0])))
    ]
    counts = Counter(verdict.verdict for verdict in verdicts.values())
    note = ", ".join(f"{counts[grade]} {grade}" for grade in Grade if counts[grade])
    heads = ("check", "of", *_names([trial for trial in trials if trial.path.name in verdicts]))
    return Table(heads, tuple(rows), note)


def _rule(heading: str) -> str:
    return heading.partition(", ")[0]


def _sides(check: Check) -> str:
    """`98 = 98`; within the tolerance `9.9996 ~ 10`; beyond it `9.7 != 10`."""
    if check.verdict is Grade.UNKNOWN:
        return UNKNOWN
    measured, expected = _text(check.measured), _text(check.expected)
    if measured == expected:
        return f"{measured} = {expected}"
    return f"{measured} {'≈' if check.verdict is Grade.VALID else '≠'} {expected}"


def _names(trials: Sequence[Trial]) -> Iterator[str]:
    """What tells them apart: labels, and where those are the same their folders."""
    labels = [trial.scenario.label for trial in trials]
    for trial, label in zip(trials, labels, strict=True):
        yield label if label and labels.count(label) == 1 else trial.path.name


def _verdicts(trials: Iterable[Trial]) -> Iterator[tuple[str, Verdict]]:
    for trial in trials:
        if verdict := cached_verdict(trial):
            yield trial.path.name, verdict
