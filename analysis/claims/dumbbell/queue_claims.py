"""TCP that CBR of 7 Mbit/s joins from 40 to 60 s: the tests of the papers' third experiments.

The bounds, chosen beforehand. *About equal* is within 5 %. Printed numbers are *met* within 25 %
(drop rates) and 2 % (latencies).
"""

from __future__ import annotations

import itertools
import math

from analysis.claims.dumbbell.load_claims import LATENCIES, NAMES
from analysis.claims.engine.answers import Finding, Part, Row, by_definition
from analysis.claims.engine.contrasts import (
    DELAY,
    DROPS,
    MEASURES,
    RATIO,
    Contrast,
    Outcome,
    Sample,
    all_are,
    contrasts,
    relative,
    spread,
    within,
)
from analysis.claims.engine.paper_numbers import JH_DROP_RATES, JH_LATENCIES_S
from analysis.claims.engine.selection import Group, sample

CASES = tuple((variant, queue) for variant in ("reno", "sack") for queue in ("droptail", "red"))
PAPERS_DROPS = 0.25
PAPERS_LATENCY = 0.02


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
    """Cases compared two by two."""
    return contrasts(
        MEASURES[metric],
        [(label(*a), tcp(group, metric, *a), label(*b), tcp(group, metric, *b)) for a, b in pairs],
    )


def table(group: Group, metric: str, name: str = "") -> tuple[Row, ...]:
    """Every variant and queue that was run."""
    measure = MEASURES[metric]
    rows = []
    cases = group.where(flow="tcp").rows.groupby(["variant", "axis_queue"], sort=False)
    named = [(str(variant), str(queue), own) for (variant, queue), own in cases]
    for variant, queue, own in sorted(named, key=lambda each: _papers_first(each[0], each[1])):
        ns2 = group.reference.queue(variant, queue, metric)
        rows.append(
            Row(
                f"{name or NAMES[metric]}, {label(variant, queue)}",
                spread(measure, sample(own, metric)),
                ns2=measure.write(ns2) if math.isfinite(ns2) else "",
            )
        )
    return tuple(rows)


def _papers_first(variant: str, queue: str) -> tuple[int, str, str]:
    """The papers' own cases, then the others by the alphabet."""
    case = (variant, queue)
    return CASES.index(case) if case in CASES else len(CASES), variant, queue


def latency_tables(group: Group) -> tuple[Row, ...]:
    """By all three definitions, over the whole trial."""
    return tuple(row for name, metric in LATENCIES.items() for row in table(group, metric, name))


def droptail_slower(group: Group) -> Finding:
    """Latency is higher with DropTail than with RED, for both variants."""
    part = by_definition(
        "latency", ((name, _reds(group, metric)) for name, metric in LATENCIES.items())
    )
    return Finding((part,), latency_tables(group), why_red(group))


def _reds(group: Group, metric: str) -> Part:
    """RED below DropTail for both variants."""
    pairs = [((variant, "red"), (variant, "droptail")) for variant in ("reno", "sack")]
    return all_are(Outcome.BELOW, ordered(group, metric, *pairs))


def why_red(group: Group) -> str:
    """What RED changes, and which RED it was."""
    pairs = group.where(flow="tcp").rows[["axis_queue", "queue"]].drop_duplicates()
    settings = ", ".join(
        f"{name}: {queue}"
        for name, queue in pairs.itertuples(index=False)
        if name in ("droptail", "red")
    )
    return (
        f"The papers state neither RED's thresholds nor its unit; here {settings}. What RED drops "
        "early keeps the queue shorter; each drop halves a window before a path of 78 packets, and "
        "its repair counts in recovery latency and, through the ACKs that wait for it, a little in "
        "RTT, but not in one-way delay."
    )


def ranking(group: Group) -> Finding:
    """SACK + RED, Reno + RED, SACK + DropTail, Reno + DropTail: each above the next; the first
    two may be equal (the paper's next claim)."""
    order = (("sack", "red"), ("reno", "red"), ("sack", "droptail"), ("reno", "droptail"))
    steps = ordered(group, "throughput_mbps", *itertools.pairwise(order))
    parts = (
        all_are(Outcome.ABOVE, steps[:1], also=(Outcome.EQUAL,)),
        all_are(Outcome.ABOVE, steps[1:]),
    )
    return Finding(
        parts,
        table(group, "throughput_mbps"),
        why_red(group)
        + " That costs throughput whatever the variant; what SACK gains is the repair of several "
        "losses of one window.",
    )


def reno_as_sack(group: Group) -> Finding:
    """With RED, Reno's throughput is within 5 % of SACK's."""
    reno, sack = (tcp(group, "throughput_mbps", each, "red") for each in ("reno", "sack"))
    part = within("Reno's over SACK's throughput with RED", RATIO, relative(reno, sack), 0.95, 1.05)
    why = (
        "SACK repairs all losses of a window in a round trip, Reno one: with RED too several "
        "packets of one window are lost, as CBR starts and at the end of slow start."
    )
    return Finding((part,), table(group, "throughput_mbps"), why)


def printed_drop_rates(group: Group) -> Finding:
    """The paper's four drop rates, each within 25 %."""
    parts, rows = [], []
    found = {each: tcp(group, "drop_rate", *each) for each in CASES}
    for each, theirs in JH_DROP_RATES.items():
        bounds = theirs * (1 - PAPERS_DROPS), theirs * (1 + PAPERS_DROPS)
        parts.append(within(f"drop rate, {label(*each)},", DROPS, found[each], *bounds))
        ns2 = group.reference.queue(*each, "drop_rate")
        rows.append(
            Row(
                f"drop rate, {label(*each)}",
                spread(DROPS, found[each]),
                DROPS.write(theirs),
                DROPS.write(ns2) if math.isfinite(ns2) else "",
            )
        )
    for variant in ("reno", "sack"):
        ours = relative(found[variant, "red"], found[variant, "droptail"])
        theirs = JH_DROP_RATES[variant, "red"] / JH_DROP_RATES[variant, "droptail"]
        red, droptail = (
            group.reference.queue(variant, each, "drop_rate") for each in ("red", "droptail")
        )
        rows.append(
            Row(
                f"RED's over DropTail's, {variant}",
                spread(RATIO, ours),
                RATIO.write(theirs),
                RATIO.write(red / droptail) if math.isfinite(red / droptail) else "",
            )
        )
    why = (
        "The rates depend on how long TCP runs, on its window and on RED's thresholds, none of "
        "which the paper states; what can be compared is RED's rate over DropTail's, in the rows: "
        "neither here nor in ns-2 does RED drop the less, let alone 0.4 of it."
    )
    return Finding(tuple(parts), tuple(rows), why)


def printed_latencies(group: Group) -> Finding:
    """By one and the same definition all four of the paper's latencies are met within 2 %."""
    readings: list[Part] = []
    rows: list[Row] = []
    for name, metric in LATENCIES.items():
        parts = []
        for each, theirs_s in JH_LATENCIES_S.items():
            theirs = 1e3 * theirs_s
            bounds = theirs * (1 - PAPERS_LATENCY), theirs * (1 + PAPERS_LATENCY)
            ours = tcp(group, metric, *each)
            parts.append(within(f"{name}, {label(*each)},", DELAY, ours, *bounds))
            ns2 = group.reference.queue(*each, metric)
            rows.append(
                Row(
                    f"{name}, {label(*each)}",
                    spread(DELAY, ours),
                    DELAY.write(theirs),
                    DELAY.write(ns2) if math.isfinite(ns2) else "",
                )
            )
        readings.append(_worst(parts))
    best = min(readings, key=lambda each: ("supported", "open", "contradicted").index(each.verdict))
    why = (
        "The links' delay is not stated either: 10 ms a link was chosen because of this table, so "
        "that only the differences between its cells are a test."
    )
    return Finding((best,), tuple(rows), why)


def _worst(parts: list[Part]) -> Part:
    """The part that decides whether all hold."""
    return max(parts, key=lambda each: ("supported", "open", "contradicted").index(each.verdict))


def red_least(group: Group) -> Finding:
    """With RED the drop rate and the latency are lower for both variants."""
    latency = by_definition(
        "latency", ((name, _reds(group, metric)) for name, metric in LATENCIES.items())
    )
    rows = (*table(group, "drop_rate", "drop rate"), *latency_tables(group))
    return Finding((_reds(group, "drop_rate"), latency), rows, why_red(group))
