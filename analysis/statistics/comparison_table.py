"""A comparison as text: the table of its lines, and the lines below it."""

from __future__ import annotations

import math
from collections.abc import Iterator

from analysis.statistics.comparison import Line, Report, Verdict
from analysis.statistics.text_tables import UNKNOWN, Table

LONG = 60  # lines
FEW = 20  # trials of one side that are named

HEADER = (
    *("setting", "flow", "metric", "A", "B", "B − A", "95 % interval", "tolerance"),
    *("n", "verdict"),
)
NOTE = (
    "difference of the means, by seed where n is one number; ?: the interval reaches over the "
    "tolerance, more seeds would tell"
)


def report_table(report: Report, everything: bool) -> Table:
    """The lines as texts; unless `everything` is wanted, what clearly agrees is left out of
    a table that would be longer than a screen or two."""
    clear = (Verdict.EQUAL, Verdict.WITHIN)
    brief = not everything and len(report.lines) > LONG
    shown = [line for line in report.lines if not (brief and line.verdict in clear)]
    rows: list[tuple[str, ...]] = []
    before = ("", "")
    for line in shown:
        here = (line.setting, line.flow)
        setting = line.setting if line.setting != before[0] else ""
        rows.append((setting, line.flow if here != before else "", *_texts(line)))
        before = here
    left = len(report.lines) - len(shown)
    note = f"{NOTE}; {left} lines that agree are left out (--all)" if left else NOTE
    return Table(HEADER, tuple(rows), note if rows else "")


def _texts(line: Line) -> tuple[str, ...]:
    if line.verdict is Verdict.IDENTICAL:
        return (line.metric, "", "", "", "", "", line.trials, str(line.verdict))
    bounds = f"{_signed(line.low)} … {_signed(line.high)}"
    return (
        line.metric,
        _number(line.a),
        _number(line.b),
        _signed(line.difference),
        UNKNOWN if math.isnan(line.low) else bounds,
        str(line.tolerance),
        line.trials,
        str(line.verdict),
    )


def _number(value: float) -> str:
    return UNKNOWN if math.isnan(value) else f"{value:.4g}"


def _signed(value: float) -> str:
    if math.isnan(value) or value == 0:
        return _number(value)
    return f"{value:+.3g}".replace("-", "−")


def closing_lines(report: Report) -> Iterator[str]:
    """The lines below the table: two kernels if they are two, trials that could not be compared,
    then the verdict."""
    one, other = report.kernels
    if one != other:
        yield f"A ran on {one}, B on {other}"
    for heading, names in (
        ("ended otherwise", report.other_status),
        ("not compared", report.not_run),
        ("invalid, left out", report.invalid),
    ):
        yield from (f"{heading}: {name}" for name in names)
    yield from _only_in_one(report)
    identical = f"{report.identical} of {report.matched} matching trials have identical captures"
    one_sided = sum(line.verdict is Verdict.ONE_SIDED for line in report.lines)
    beyond = sum(not line.verdict.agrees for line in report.lines) - one_sided
    found = (
        (beyond, "difference", " beyond tolerance"),
        (len(report.other_status), "trial", " that ended otherwise"),
        (one_sided, "number", " known in only one of them"),
    )
    if report.agrees:
        where = " in what both have" if report.only_a or report.only_b else ""
        yield f"A and B agree{where}; {identical}"
    elif not report.lines and not report.other_status:
        yield "nothing to compare: no setting ran in both"
    else:
        told = (f"{n} {what}{'s' * (n != 1)}{how}" for n, what, how in found if n)
        yield f"A and B do not agree: {', '.join(told)}; {identical}"


def _only_in_one(report: Report) -> Iterator[str]:
    """Trials without a counterpart: no difference between A and B was found in them."""
    for side, names in (("A", report.only_a), ("B", report.only_b)):
        yield from (f"only in {side}: {name}" for name in names[:FEW])
        if len(names) > FEW:
            yield f"only in {side}: {len(names) - FEW} more trials"
