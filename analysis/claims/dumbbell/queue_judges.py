"""TCP, joined by CBR of 7 Mbit/s from 40 to 60 s: the tests of the papers' third experiments.

The bounds, chosen beforehand. *About equal* is within 5 %. Printed numbers are *met* within 25 %
(drop rates) and 2 % (latencies).
"""

from __future__ import annotations

import math

from analysis.claims.dumbbell.load_judges import LATENCIES, NAMES
from analysis.claims.dumbbell.ns2_means import ns2_queue
from analysis.claims.engine.answers import Part, Row
from analysis.claims.engine.contrasts import Contrast, Outcome, Sample, all_are, contrasts, spread
from analysis.claims.engine.quantities import MEASURES
from analysis.claims.engine.selection import Group, sample

CASES = tuple((variant, queue) for variant in ("reno", "sack") for queue in ("droptail", "red"))


def case(group: Group, variant: str, queue: str) -> Group:
    """The trials of a variant through a queue."""
    return group.asked("variant", [variant]).asked("queue", [queue])


def tcp(group: Group, metric: str, variant: str, queue: str) -> Sample:
    """The TCP flow's metric, by seed."""
    return sample(case(group, variant, queue).where(flow="tcp").rows, metric)


def label(variant: str, queue: str) -> str:
    """`SACK + RED`."""
    names = {"droptail": "DropTail", "red": "RED", "sack": "SACK", "reno": "Reno"}
    return f"{names.get(variant, variant)} + {names.get(queue, queue)}"


def ordered(
    group: Group, metric: str, *pairs: tuple[tuple[str, str], tuple[str, str]]
) -> tuple[Contrast, ...]:
    """Cases compared in pairs."""
    return contrasts(
        MEASURES[metric],
        [(label(*a), tcp(group, metric, *a), label(*b), tcp(group, metric, *b)) for a, b in pairs],
        paired=True,
    )


def table(group: Group, metric: str, name: str = "") -> tuple[Row, ...]:
    """Every variant and queue that was run."""
    measure = MEASURES[metric]
    rows = []
    cases = group.where(flow="tcp").rows.groupby(["variant", "axis_queue"], sort=False)
    named = [(str(variant), str(queue), own) for (variant, queue), own in cases]
    for variant, queue, own in sorted(named, key=lambda each: _papers_first(each[0], each[1])):
        ns2 = ns2_queue(group.reference, variant, queue, metric)
        rows.append(
            Row(
                f"{name or NAMES[metric]}, {label(variant, queue)}",
                spread(measure, sample(own, metric)),
                ns2=measure.write(ns2) if math.isfinite(ns2) else "",
            )
        )
    return tuple(rows)


def _papers_first(variant: str, queue: str) -> tuple[int, str, str]:
    """The papers' own cases, then the others in alphabetical order."""
    case = (variant, queue)
    return CASES.index(case) if case in CASES else len(CASES), variant, queue


def latency_tables(group: Group) -> tuple[Row, ...]:
    """By all three definitions, over the whole trial."""
    return tuple(row for name, metric in LATENCIES.items() for row in table(group, metric, name))


def red_below(group: Group, metric: str) -> Part:
    """RED below DropTail for both variants."""
    pairs = [((variant, "red"), (variant, "droptail")) for variant in ("reno", "sack")]
    return all_are(Outcome.BELOW, ordered(group, metric, *pairs))


def setting_row(group: Group) -> Row:
    """The settings of DropTail and RED; the papers state neither RED's thresholds nor its unit."""
    pairs = group.where(flow="tcp").rows[["axis_queue", "queue"]].drop_duplicates()
    settings = ", ".join(
        f"{name}: {queue}"
        for name, queue in pairs.itertuples(index=False)
        if name in ("droptail", "red")
    )
    return Row("settings of the papers' queues", settings, "not stated")
