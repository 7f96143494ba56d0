"""KS's third experiment: one function per claim."""

from __future__ import annotations

import itertools

from analysis.claims.dumbbell.load_judges import LATENCIES
from analysis.claims.dumbbell.phase_judges import phases
from analysis.claims.dumbbell.queue_judges import (
    CASES,
    case,
    label,
    latency_tables,
    ordered,
    red_below,
    setting_row,
    table,
    tcp,
)
from analysis.claims.engine import moments
from analysis.claims.engine.answers import Finding, Part, Row, by_definition
from analysis.claims.engine.contrasts import Outcome, all_are, contrasts, relative, spread, within
from analysis.claims.engine.quantities import DELAY, RATE, RATIO
from analysis.claims.engine.selection import Group, sample


def droptail_slower(group: Group) -> Finding:
    """Latency is higher with DropTail than with RED, for both variants."""
    part = by_definition(
        "latency", ((name, red_below(group, metric)) for name, metric in LATENCIES.items())
    )
    return Finding((part,), (*latency_tables(group), setting_row(group)))


def ranking(group: Group) -> Finding:
    """SACK + RED, Reno + RED, SACK + DropTail, Reno + DropTail: each above the next; the first
    two may be equal (the paper's next claim)."""
    order = (("sack", "red"), ("reno", "red"), ("sack", "droptail"), ("reno", "droptail"))
    steps = ordered(group, "throughput_mbps", *itertools.pairwise(order))
    parts = (
        all_are(Outcome.ABOVE, steps[:1], also=(Outcome.EQUAL,)),
        all_are(Outcome.ABOVE, steps[1:]),
    )
    return Finding(parts, (*table(group, "throughput_mbps"), setting_row(group)))


def reno_as_sack(group: Group) -> Finding:
    """With RED, Reno's throughput is within 5 % of SACK's."""
    reno, sack = (tcp(group, "throughput_mbps", each, "red") for each in ("reno", "sack"))
    part = within(
        "ratio of Reno's to SACK's throughput with RED", RATIO, relative(reno, sack), 0.95, 1.05
    )
    return Finding((part,), table(group, "throughput_mbps"))


def cbr_ahead(group: Group) -> Finding:
    """While CBR is running, its one-way delay is below TCP's and its throughput above."""
    parts: list[Part] = []
    rows: list[Row] = []
    for variant, queue in CASES:
        found = moments.seconds(case(group, variant, queue))
        beside = phases(group).beside
        delays = {each: moments.delay(found, each, *beside, "owd") for each in ("cbr", "tcp")}
        rates = {each: moments.rate(found, each, *beside) for each in ("cbr", "tcp")}
        name = label(variant, queue)
        below = [(f"CBR's delay ({name})", delays["cbr"], "TCP's", delays["tcp"])]
        above = [(f"CBR's throughput ({name})", rates["cbr"], "TCP's", rates["tcp"])]
        parts.append(all_are(Outcome.BELOW, contrasts(DELAY, below, paired=True)))
        parts.append(all_are(Outcome.ABOVE, contrasts(RATE, above, paired=True)))
        rows += [
            Row(f"one-way delay of {flow}, {name}", spread(DELAY, delays[flow])) for flow in delays
        ]
        rows += [Row(f"throughput of {flow}, {name}", spread(RATE, rates[flow])) for flow in rates]
    rows += _ways(group.where(queue=[queue for _, queue in CASES]))
    return Finding(tuple(parts), tuple(rows))


def _ways(group: Group) -> list[Row]:
    """Each flow's path, and its mean time in the queue that both share."""
    rows = []
    for flow, own in group.rows.groupby("flow"):
        ends = own[["src", "dst"]].drop_duplicates().agg(" to ".join, axis=1)
        waits = spread(DELAY, sample(own, "queue_mean_ms", ("variant", "axis_queue")))
        rows.append(
            Row(f"path of {flow}; mean time in the bottleneck", f"{', '.join(ends)}; {waits}")
        )
    return rows
