"""The comparison of two results folders as text: its table, and the lines below it."""

from __future__ import annotations

import math
from collections.abc import Iterator

from analysis.statistics.comparison import Agreement, ComparedMetric, FolderComparison
from analysis.statistics.text_tables import NO_VALUE, TextTable

LONG_TABLE = 60  # lines
NAMED_TRIALS = 20  # of those that only one side has

COMPARISON_HEADER = (
    *("setting", "flow", "metric", "A", "B", "B − A", "95 % interval", "tolerance"),
    *("n", "verdict"),
)
COMPARISON_NOTE = (
    "difference of the means, by seed where n is one number; ?: the interval reaches over the "
    "tolerance, more seeds would tell"
)


def report_table(comparison: FolderComparison, everything: bool) -> TextTable:
    """Return the compared metrics as text.

    Unless `everything` is wanted, what clearly agrees is left out of a table that would be longer
    than a screen or two.
    """
    clear = (Agreement.EQUAL, Agreement.WITHIN)
    brief = not everything and len(comparison.metrics) > LONG_TABLE
    shown = [each for each in comparison.metrics if not (brief and each.agreement in clear)]
    rows: list[tuple[str, ...]] = []
    before = ("", "")
    for metric in shown:
        here = (metric.setting, metric.flow)
        setting = metric.setting if metric.setting != before[0] else ""
        rows.append((setting, metric.flow if here != before else "", *_texts(metric)))
        before = here
    left = len(comparison.metrics) - len(shown)
    more = f"; {left} lines that agree are left out (--all)" if left else ""
    told = any(each.agreement is not Agreement.IDENTICAL for each in shown)
    return TextTable(COMPARISON_HEADER, tuple(rows), COMPARISON_NOTE + more if told else "")


def _texts(metric: ComparedMetric) -> tuple[str, ...]:
    if metric.agreement is Agreement.IDENTICAL:
        return (metric.metric, "", "", "", "", "", metric.trials, str(metric.agreement))
    bounds = f"{_signed(metric.low)} … {_signed(metric.high)}"
    return (
        metric.metric,
        _number(metric.a),
        _number(metric.b),
        _signed(metric.difference),
        NO_VALUE if math.isnan(metric.low) else bounds,
        str(metric.tolerance),
        metric.trials,
        str(metric.agreement),
    )


def _number(value: float) -> str:
    return NO_VALUE if math.isnan(value) else f"{value:.4g}"


def _signed(value: float) -> str:
    if math.isnan(value) or value == 0:
        return _number(value)
    return f"{value:+.3g}".replace("-", "−")


def closing_lines(comparison: FolderComparison) -> Iterator[str]:
    """Yield the lines below the table.

    They name two kernels if they differ and the trials that were not compared, and conclude.
    """
    one, other = comparison.kernels
    if one != other:
        yield f"A ran on {one}, B on {other}"
    for heading, names in (
        ("ended otherwise", comparison.other_status),
        ("not compared", comparison.not_run),
        ("invalid, left out", comparison.invalid),
    ):
        yield from (f"{heading}: {name}" for name in names)
    yield from _only_in_one(comparison)
    identical = (
        f"{comparison.identical} of {comparison.matched} matching trials have identical captures"
    )
    one_sided = sum(metric.agreement is Agreement.ONE_SIDED for metric in comparison.metrics)
    beyond = sum(not metric.agreement.agrees for metric in comparison.metrics) - one_sided
    disagreements = (
        (beyond, "difference", " beyond tolerance"),
        (len(comparison.other_status), "trial", " that ended otherwise"),
        (one_sided, "number", " known in only one of them"),
    )
    if comparison.agrees:
        where = " in what both have" if comparison.only_a or comparison.only_b else ""
        yield f"A and B agree{where}; {identical}"
    elif not comparison.metrics and not comparison.other_status:
        yield "nothing to compare: no setting ran in both"
    else:
        counts = (f"{n} {what}{'s' * (n != 1)}{how}" for n, what, how in disagreements if n)
        yield f"A and B do not agree: {', '.join(counts)}; {identical}"


def _only_in_one(comparison: FolderComparison) -> Iterator[str]:
    """Yield the trials without a counterpart, which speak neither for nor against agreement."""
    for side, names in (("A", comparison.only_a), ("B", comparison.only_b)):
        yield from (f"only in {side}: {name}" for name in names[:NAMED_TRIALS])
        if len(names) > NAMED_TRIALS:
            yield f"only in {side}: {len(names) - NAMED_TRIALS} more trials"
