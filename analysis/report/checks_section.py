"""The page's table of checks: what each compares, its tolerance, and how the trials came out."""

from __future__ import annotations

from collections.abc import Iterable

from analysis.figures.sheet import Cell, Head, Sheet
from analysis.report.verdict_tables import tally, tolerance
from analysis.results.reduction import stored_verdict
from analysis.verdict.checks import Grade
from testbed.store import Trial

HEADS = (
    Head("check"),
    Head("measured"),
    Head("expected"),
    Head("valid up to", hint="the tolerance in virtual time; in real time"),
    Head("valid", hint="trials, each by the worst of its flows, queues or captures", number=True),
    Head("suspect", number=True),
    Head("invalid", number=True),
    Head("not known", hint="not captured, not sampled, or too little to tell", number=True),
)
GRADES = (Grade.VALID, Grade.SUSPECT, Grade.INVALID, Grade.UNKNOWN)


def checks(trials: Iterable[Trial]) -> Sheet:
    """One row per check that was made of any of the trials, which were judged when reduced."""
    lines = []
    for found in tally(filter(None, map(stored_verdict, trials))):
        rule = found.rule
        words = (rule.name, rule.measured, rule.expected, tolerance(rule))
        counts = (found.trials.get(grade, 0) for grade in GRADES)
        cells = (Cell(f"{count}", f"{count}", True) for count in counts)
        lines.append((*(Cell(each, each) for each in words), *cells))
    return Sheet(HEADS, tuple(lines))
