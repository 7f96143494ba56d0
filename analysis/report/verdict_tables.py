"""Verdicts as tables: the checks of a trial, of several side by side, and how often each failed."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from analysis.figures.sheet import Cell, Head, Sheet
from analysis.results.reduction import verdict_of
from analysis.statistics.text_tables import NO_VALUE, TextTable
from analysis.verdict.checks import Check, Grade, Value
from analysis.verdict.rules import CHECK_RULES, CheckRule, Limits
from analysis.verdict.verdict import Verdict
from testbed.store.reading import Trial, trials_in

PART_OF = "of the "
CHECK_HEADER = ("check", "of", "measured", "expected", "±", "unit", "verdict", "why")
CHECK_COLUMNS = ("trial", "name", "subject", "measured", "expected", "tolerance", "unit", "verdict")


def checks_table(verdict: Verdict, *, with_valid: bool = True) -> TextTable:
    """One line per check, the worst first; or only those that are not valid."""
    order = (Grade.INVALID, Grade.SUSPECT, Grade.UNKNOWN, Grade.VALID)
    ranked = sorted(verdict.checks, key=lambda check: order.index(check.verdict))
    counts = Counter(check.verdict for check in verdict.checks)
    note = ", ".join(f"{counts[grade]} {grade}" for grade in order if counts[grade])
    shown = [each for each in ranked if with_valid or each.verdict is not Grade.VALID]
    return TextTable(CHECK_HEADER, tuple(map(_line, shown)), note)


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
        return NO_VALUE
    return value if isinstance(value, str) else f"{value:.6g}"


def fidelity_checks(results: Path) -> pd.DataFrame:
    """One row per check of every trial that ran: CHECK_COLUMNS and `why`."""
    rows = [
        {"trial": name, **{each: getattr(check, each) for each in (*CHECK_COLUMNS[1:], "why")}}
        for name, verdict in _verdicts(trials_in(results))
        for check in verdict.checks
    ]
    return pd.DataFrame(rows, columns=[*CHECK_COLUMNS, "why"])


def tolerances() -> TextTable:
    """Every check: what it compares, its tolerance, and the reason for that."""
    rows = tuple(
        (rule.name, rule.measured, rule.expected, tolerance(rule), rule.reason)
        for rule in CHECK_RULES.values()
    )
    return TextTable(("check", "measured", "expected", "valid up to", "because"), rows, "")


def tolerance(rule: CheckRule) -> str:
    """Write the greatest valid deviation in virtual time, and in real time if that differs."""
    virtual, real = (_limit(rule, limits) for limits in (rule.virtual, rule.real))
    return virtual if virtual == real else f"{virtual}; in real time {real}"


def _limit(rule: CheckRule, limits: Limits) -> str:
    if math.isinf(limits.suspect):
        return "not checked"
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
    """The number of trials by the outcome of one check; a trial counts by its worst subject."""

    rule: CheckRule
    trials: Mapping[Grade, int]


def tally(trials: Iterable[Mapping[str, Grade]]) -> list[Tally]:
    """Every check that was made of these trials, in the order of the table of rules."""
    counts: dict[str, Counter[Grade]] = {name: Counter() for name in CHECK_RULES}
    for grades in trials:
        for name, grade in grades.items():
            counts[name][grade] += 1
    return [Tally(CHECK_RULES[name], count) for name, count in counts.items() if count]


def side_by_side(trials: Sequence[Trial]) -> TextTable:
    """Measured and expected values, one line per check and one column per trial."""
    verdicts = dict(_verdicts(trials))
    cells: dict[tuple[str, str], dict[str, str]] = {}
    for name, verdict in verdicts.items():
        for check in verdict.checks:
            unit = f", {check.unit}" if check.unit else ""
            cells.setdefault((check.name + unit, check.subject), {})[name] = _sides(check)
    order = list(CHECK_RULES)
    rows = [
        (*key, *(row.get(name, "") for name in verdicts))
        for key, row in sorted(cells.items(), key=lambda each: order.index(_rule(each[0][0])))
    ]
    counts = Counter(verdict.verdict for verdict in verdicts.values())
    note = ", ".join(f"{counts[grade]} {grade}" for grade in Grade if counts[grade])
    heads = ("check", "of", *_names([trial for trial in trials if trial.path.name in verdicts]))
    return TextTable(heads, tuple(rows), note)


def _rule(heading: str) -> str:
    return heading.partition(", ")[0]


def _sides(check: Check) -> str:
    """`98 = 98`; within the tolerance `9.9996 ~ 10`; beyond it `9.7 != 10`."""
    if check.verdict is Grade.UNKNOWN:
        return NO_VALUE
    measured, expected = _text(check.measured), _text(check.expected)
    if measured == expected:
        return f"{measured} = {expected}"
    return f"{measured} {'≈' if check.verdict is Grade.VALID else '≠'} {expected}"


def _names(trials: Sequence[Trial]) -> Iterator[str]:
    """Return the trials' labels, or their folders where labels are not unique."""
    labels = [trial.scenario.label for trial in trials]
    for trial, label in zip(trials, labels, strict=True):
        yield label if label and labels.count(label) == 1 else trial.path.name


def _verdicts(trials: Iterable[Trial]) -> Iterator[tuple[str, Verdict]]:
    for trial in trials:
        if verdict := verdict_of(trial):
            yield trial.path.name, verdict


CHECK_HEADS = (
    Head("check"),
    Head("measured"),
    Head("expected"),
    Head("valid up to", hint="the tolerance in virtual time; in real time"),
    Head("valid", hint="trials, each by the worst of its flows, queues or captures", number=True),
    Head("suspect", number=True),
    Head("invalid", number=True),
    Head("not known", hint="not captured, not sampled, or too little to tell", number=True),
)
COUNTED_GRADES = (Grade.VALID, Grade.SUSPECT, Grade.INVALID, Grade.UNKNOWN)


def checks_sheet(trials: Iterable[Mapping[str, Grade]]) -> Sheet:
    """Return one row per check that was made of any of the trials."""
    lines = []
    for entry in tally(trials):
        rule = entry.rule
        texts = (rule.name, rule.measured, rule.expected, tolerance(rule))
        counts = (entry.trials.get(grade, 0) for grade in COUNTED_GRADES)
        cells = (Cell(f"{count}", f"{count}", True) for count in counts)
        lines.append((*(Cell(each, each) for each in texts), *cells))
    return Sheet(CHECK_HEADS, tuple(lines))
