"""The claims of Kapre and Saxena, what they print, and how each claim is judged."""

from __future__ import annotations

import itertools
import math
from functools import partial

import pandas as pd

from analysis.claims import time_windows
from analysis.claims.comparisons import (
    DELAY,
    DROP_RATE,
    MEASURES,
    RATE,
    RATIO,
    SHARE,
    ComparisonOutcome,
    all_are,
    contrasts,
    relative,
    spread,
    students_p,
    within,
)
from analysis.claims.judgement import ClaimPart, Finding, NumberRow, by_definition, require_all
from analysis.claims.ledger import Claim, Paper
from analysis.claims.samples import Group, sample, sweeps
from analysis.metrics.digest import NotMeasured
from experiments.kapre_saxena_joshi_hattikar import judges
from experiments.kapre_saxena_joshi_hattikar.judges import (
    CASES,
    CONGESTED,
    FOUR,
    LATENCIES,
    LOADS,
    LOW,
    PAIR_CELLS,
    RIVALS,
    STEEP,
    beside,
    case,
    label,
    load_group,
    load_latency_tables,
    load_table,
    ns2_sweep,
    ordered,
    phases,
    queue_latency_tables,
    queue_sample,
    queue_table,
    ratio_within,
    red_below,
    run_of,
    setting_row,
    share_rows,
    shares,
    steps,
    takes_more_part,
    where,
)
from experiments.kapre_saxena_joshi_hattikar.simulated import ns2_metrics

# KS, section 3, CBR first: "t values" of Excel's t-test (equal variance, one tail), Vegas against
KS_P_VALUES = {"tahoe": 0.392, "reno": 0.307, "newreno": 0.464}


def vegas_at_low_load(group: Group) -> Finding:
    """Judge whether Vegas's throughput is the lowest of the four."""
    part = all_are(
        ComparisonOutcome.BELOW,
        beside(group, "throughput_mbps", "vegas", RIVALS, LOW),
        where(run_of(group, LOW)),
    )
    rows = (*load_table(group, "throughput_mbps", LOW), *load_table(group, "goodput_mbps", LOW))
    useful = beside(group, "goodput_mbps", "vegas", RIVALS, LOW)
    equal = sum(each.outcome is ComparisonOutcome.EQUAL for each in useful)
    same = NumberRow(
        "comparisons of goodput in which Vegas's is equal", f"{equal} of {len(useful)}"
    )
    return Finding((part,), (*rows, same))


def sudden_fall(group: Group) -> Finding:
    """Judge whether the others fall suddenly from about CBR 7 on and Vegas is then highest."""
    parts = [_falls(group, variant) for variant in RIVALS]
    parts.append(
        all_are(
            ComparisonOutcome.ABOVE,
            beside(group, "throughput_mbps", "vegas", RIVALS, CONGESTED),
            where(run_of(group, CONGESTED)),
        )
    )
    return Finding(tuple(parts), load_table(group, "throughput_mbps", CONGESTED))


def _falls(group: Group, variant: str) -> ClaimPart:
    found = steps(group, "throughput_mbps", variant)
    ratio: dict[int, float] = {}
    for seed, step in found.items():
        before = max(0.0, float(-step[step.index <= 6].min()))
        after = max(0.0, float(-step[step.index >= 7].min()))
        floor = 0.05  # Mbit/s: 2 % of the throughput with a window of 20 packets
        ratio[seed] = after / max(before, floor)
    what = f"{variant}: largest fall from CBR 6 on over the largest before"
    return within(what, RATIO, ratio, low=2)


def newreno_under_congestion(group: Group) -> Finding:
    """Judge whether NewReno's throughput is above Reno's and Tahoe's."""
    found = beside(group, "throughput_mbps", "newreno", ("reno", "tahoe"), CONGESTED)
    return Finding(
        (all_are(ComparisonOutcome.ABOVE, found, where(run_of(group, CONGESTED))),),
        load_table(group, "throughput_mbps", CONGESTED),
    )


def vegas_best_and_steadiest(group: Group) -> Finding:
    """Judge whether Vegas's mean is highest with CBR first; beside it, its variance lowest."""
    first = _with_cbr_first(group)
    better = all_are(
        ComparisonOutcome.ABOVE,
        beside(first, "throughput_mbps", "vegas", RIVALS, LOADS),
        "mean of the loads",
    )
    spreads = {
        variant: {
            seed: float(sweep.std())
            for seed, sweep in sweeps(
                load_group(first, LOADS, [variant]).rows, "throughput_mbps", "axis_cbr_mbit"
            ).items()
        }
        for variant in FOUR
    }
    steadier = all_are(
        ComparisonOutcome.BELOW,
        contrasts(
            MEASURES["throughput_mbps"],
            [("vegas", spreads["vegas"], each, spreads[each]) for each in RIVALS],
        ),
        "standard deviation over the loads",
    )
    p_values = _papers_t_tests(first)
    rows = (*load_table(first, "throughput_mbps"), *p_values)
    return Finding((better,), rows, {"Vegas has the lowest variance": steadier})


def _with_cbr_first(group: Group) -> Group:
    return group.asked("order", ["cbr-first"]) if group.values("order") else group


def _papers_t_tests(group: Group) -> tuple[NumberRow, ...]:
    """Repeat Excel's t-test: two samples of ten loads, equal variances, one tail."""
    own = load_group(group).rows
    means = own.groupby(["variant", "axis_cbr_mbit"])["throughput_mbps"].mean()
    ns2 = {
        name: ns2_sweep(group.reference, name, "throughput_mbps", group.window, "cbr-first")
        for name in FOUR
    }
    rows = []
    for rival in RIVALS:
        ours = students_p(means["vegas"], means[rival])
        theirs = students_p(ns2["vegas"], ns2[rival])
        rows.append(
            NumberRow(
                f"the papers' t-test over the loads, Vegas/{rival}: p",
                RATIO.write(ours),
                RATIO.write(KS_P_VALUES[rival]),
                RATIO.write(theirs) if math.isfinite(theirs) else "",
            )
        )
    return tuple(rows)


def vegas_latency(group: Group) -> Finding:
    """Judge whether Vegas's latency is lowest; beside it, without a peak, which Reno's has."""
    lowest = by_definition(
        "latency",
        (
            (name, all_are(ComparisonOutcome.BELOW, beside(group, metric, "vegas", RIVALS, LOADS)))
            for name, metric in LATENCIES.items()
        ),
    )
    shape = by_definition(
        "latency", ((name, _shape(group, metric)) for name, metric in LATENCIES.items())
    )
    lines = {"Vegas's never peaks, Reno's rises steeply": shape}
    return Finding((lowest,), load_latency_tables(group), lines)


def _shape(group: Group, metric: str) -> ClaimPart:
    """Judge whether Reno's latency has a steep step from CBR 7 on and Vegas's has none."""
    parts = []
    for variant, since, low, high in (
        ("vegas", 2, -math.inf, STEEP),
        ("reno", 7, STEEP, math.inf),
    ):
        changes = steps(group, metric, variant)
        base = sweeps(load_group(group, LOADS, [variant]).rows, metric, "axis_cbr_mbit")
        largest = {
            seed: float(step[step.index >= since].max() / base[seed].iloc[0])
            for seed, step in changes.items()
        }
        what = f"{variant}'s largest step over its latency at CBR 1"
        parts.append(within(what, RATIO, largest, low, high))
    return require_all(parts)


def vegas_drops(group: Group) -> Finding:
    """Judge whether Vegas's drop rate is lowest on average; beside it, steep at the end.

    It is steep if CBR 8 to 10 adds at least twice as much as CBR 1 to 8.
    """
    lowest = all_are(ComparisonOutcome.BELOW, beside(group, "drop_rate", "vegas", RIVALS, LOADS))
    ratio = {}
    for seed, sweep in sweeps(
        load_group(group, LOADS, ["vegas"]).rows, "drop_rate", "axis_cbr_mbit"
    ).items():
        if not {1, 8, 10} <= set(sweep.index):
            raise NotMeasured("CBR of 1, 8 and 10 Mbit/s is needed")
        before, after = float(sweep[8] - sweep[1]), float(sweep[10] - sweep[8])
        ratio[seed] = after / max(before, 1e-4)
    steep = within("vegas: rise from CBR 8 to 10 over that from 1 to 8", RATIO, ratio, low=2)
    return Finding((lowest,), load_table(group, "drop_rate"), {"it rises steeply": steep})


def reno_as_tahoe(group: Group) -> Finding:
    """Judge whether Reno's throughput is within a tenth of Tahoe's under congestion."""
    return Finding(
        (ratio_within(group, "reno", "tahoe", CONGESTED, 0.9, 1.1),),
        load_table(group, "throughput_mbps", CONGESTED),
    )


def more_and_drops_more(group: Group, winner: str, loser: str) -> Finding:
    """Judge whether the winner has a larger share; beside it, drops more at high CBR rates."""
    found = shares(group, winner, loser)
    high = found[found["axis_cbr_mbit"].isin(CONGESTED)]
    if high.empty:
        raise NotMeasured(f"no trials with {where(CONGESTED)}")
    ours, theirs = (
        sample(high, "drop_rate", PAIR_CELLS),
        sample(high, "other_drop_rate", PAIR_CELLS),
    )
    drops = all_are(
        ComparisonOutcome.ABOVE,
        contrasts(DROP_RATE, [(f"{winner}'s drop rate", ours, f"{loser}'s", theirs)]),
        where(CONGESTED),
    )
    more = takes_more_part(winner, found)
    rows = (
        *share_rows(group, found, winner, loser),
        NumberRow(f"drop rate of {winner}, {where(CONGESTED)}", spread(DROP_RATE, ours)),
        NumberRow(f"drop rate of {loser}, {where(CONGESTED)}", spread(DROP_RATE, theirs)),
    )
    return Finding((more,), rows, {f"{winner} drops more at high CBR rates": drops})


def fairer_to_itself(group: Group) -> Finding:
    """Judge whether like pairs are closer to a half than pairs of different variants."""
    like = [shares(group, each, each) for each in ("reno", "vegas")]
    unlike = [shares(group, "newreno", each) for each in ("reno", "vegas")]
    samples = [
        sample(pd.concat(tables).assign(kind=name), "imbalance", ("axis_pair", "axis_cbr_mbit"))
        for name, tables in (("like", like), ("unlike", unlike))
    ]
    found = contrasts(
        SHARE, [("like pairs' distance from a half", samples[0], "unlike", samples[1])]
    )
    rows = tuple(
        NumberRow(f"distance from a half, {name}", spread(SHARE, own))
        for name, own in zip(("like pairs", "unlike pairs"), samples, strict=True)
    )
    return Finding((all_are(ComparisonOutcome.BELOW, found),), rows)


def droptail_slower(group: Group) -> Finding:
    """Judge whether latency is higher with DropTail than with RED, for both variants."""
    part = by_definition(
        "latency", ((name, red_below(group, metric)) for name, metric in LATENCIES.items())
    )
    return Finding((part,), (*queue_latency_tables(group), setting_row(group)))


def ranking(group: Group) -> Finding:
    """Judge the paper's order: SACK + RED, Reno + RED, SACK + DropTail, Reno + DropTail.

    Every throughput is above the next; the first two may be equal (the paper's next claim).
    """
    order = (("sack", "red"), ("reno", "red"), ("sack", "droptail"), ("reno", "droptail"))
    steps = ordered(group, "throughput_mbps", *itertools.pairwise(order))
    parts = (
        all_are(ComparisonOutcome.ABOVE, steps[:1], or_equal=True),
        all_are(ComparisonOutcome.ABOVE, steps[1:]),
    )
    return Finding(parts, (*queue_table(group, "throughput_mbps"), setting_row(group)))


def reno_as_sack(group: Group) -> Finding:
    """Judge whether Reno's throughput is within 5 % of SACK's with RED."""
    reno, sack = (queue_sample(group, "throughput_mbps", each, "red") for each in ("reno", "sack"))
    part = within(
        "ratio of Reno's to SACK's throughput with RED", RATIO, relative(reno, sack), 0.95, 1.05
    )
    return Finding((part,), queue_table(group, "throughput_mbps"))


def cbr_ahead(group: Group) -> Finding:
    """Judge whether CBR has a lower one-way delay and more throughput than TCP beside it."""
    parts: list[ClaimPart] = []
    rows: list[NumberRow] = []
    for variant, queue in CASES:
        found = time_windows.seconds(case(group, variant, queue))
        beside = phases(group).beside
        delays = {each: time_windows.delay(found, each, *beside, "owd") for each in ("cbr", "tcp")}
        rates = {each: time_windows.rate(found, each, *beside) for each in ("cbr", "tcp")}
        name = label(variant, queue)
        below = [(f"CBR's delay ({name})", delays["cbr"], "TCP's", delays["tcp"])]
        above = [(f"CBR's throughput ({name})", rates["cbr"], "TCP's", rates["tcp"])]
        parts.append(all_are(ComparisonOutcome.BELOW, contrasts(DELAY, below)))
        parts.append(all_are(ComparisonOutcome.ABOVE, contrasts(RATE, above)))
        rows += [
            NumberRow(f"one-way delay of {flow}, {name}", spread(DELAY, delays[flow]))
            for flow in delays
        ]
        rows += [
            NumberRow(f"throughput of {flow}, {name}", spread(RATE, rates[flow])) for flow in rates
        ]
    rows += _ways(group.where(queue=[queue for _, queue in CASES]))
    return Finding(tuple(parts), tuple(rows))


def _ways(group: Group) -> list[NumberRow]:
    """Report the path of every flow, and its mean time in the queue that both share."""
    rows = []
    for flow, own in group.rows.groupby("flow"):
        ends = own[["src", "dst"]].drop_duplicates().agg(" to ".join, axis=1)
        waits = spread(DELAY, sample(own, "queue_mean_ms", ("variant", "axis_queue")))
        rows.append(
            NumberRow(f"path of {flow}; mean time in the bottleneck", f"{', '.join(ends)}; {waits}")
        )
    return rows


_load = partial(Claim, experiment="dumbbell-load", window="small")
_pairs = partial(Claim, experiment="dumbbell-pairs", window="small", where={"second": "n5-n6"})
_queues = partial(Claim, experiment="dumbbell-queues", where={"cbr_stop": "at-60"})

CLAIMS: tuple[Claim, ...] = (
    _load(
        id="KS1.1",
        words="At low CBR rates, Vegas's throughput is the lowest of the four.",
        tested="Mean throughput over CBR 1–6 Mbit/s: Vegas's is below Tahoe's, Reno's and "
        "NewReno's by more than 2 %.",
        judge=vegas_at_low_load,
    ),
    _load(
        id="KS1.2",
        words="From CBR of about 7 Mbit/s on, the others fall suddenly and Vegas is highest.",
        tested="For Tahoe, Reno and NewReno, the largest fall from one load to the next at CBR "
        "7–10 is at least twice the largest before (a fall of less than 0.05 Mbit/s is counted as "
        "that much); Vegas's mean throughput over CBR 7–10 is above each of theirs.",
        judge=sudden_fall,
    ),
    _load(
        id="KS1.3",
        words="Under congestion NewReno's throughput is above Reno's and Tahoe's.",
        tested="Mean throughput over CBR 7–10 Mbit/s: NewReno's is above each of the others by "
        "more than 2 %.",
        judge=newreno_under_congestion,
    ),
    _load(
        id="KS1.4",
        words="Vegas has the best mean throughput and the lowest variance (t values with CBR "
        "first: 0.392, 0.307, 0.464).",
        tested="CBR first: Vegas's mean throughput over CBR 1–10 is above that of each other "
        "variant. Beside it: its standard deviation over these loads is below; the paper's "
        "own t-test over the ten loads is shown beside it.",
        judge=vegas_best_and_steadiest,
    ),
    _load(
        id="KS1.5",
        words="Vegas has the lowest average latency, rises a little before congestion and never "
        "peaks; Reno's latency rises steeply just after congestion.",
        tested="By recovery latency, RTT and one-way delay: Vegas's mean over CBR 1–10 is below "
        "that of each other variant. Beside it: its largest step from one load to the next is at "
        "most 10 % of its latency at CBR 1, while Reno's largest step at CBR 7–10 is at least "
        "that.",
        judge=vegas_latency,
    ),
    _load(
        id="KS1.6",
        words="Vegas has the lowest drop rate; it too rises steeply at the end.",
        tested="Mean drop rate over CBR 1–10: Vegas's is below that of each other variant. Beside "
        "it: from CBR 8 to 10 it rises by at least twice as much as from 1 to 8.",
        judge=vegas_drops,
    ),
    _load(
        id="KS1.7",
        words="With several losses in a window, Reno does about as badly as Tahoe.",
        tested="Mean throughput over CBR 7–10 Mbit/s: the ratio of Reno's to Tahoe's lies within "
        "0.9 to 1.1.",
        judge=reno_as_tahoe,
    ),
    _pairs(
        id="KS2.1",
        words="Vegas/Vegas is fair.",
        tested="The first flow's mean share of both flows' throughput lies within 45 to 55 %.",
        judge=partial(judges.fair, variant="vegas"),
    ),
    _pairs(
        id="KS2.2",
        words="Reno/Reno is fair.",
        tested="The first flow's mean share of both flows' throughput lies within 45 to 55 %.",
        judge=partial(judges.fair, variant="reno"),
    ),
    _pairs(
        id="KS2.3",
        words="NewReno takes more than Reno.",
        tested="NewReno's mean share over CBR 1–10 is above a half by more than 1 point.",
        judge=partial(judges.takes_more, winner="newreno", loser="reno"),
    ),
    _pairs(
        id="KS2.4",
        words="NewReno takes more than Vegas; at high CBR rates NewReno drops more than Vegas.",
        tested="NewReno's mean share over CBR 1–10 is above a half by more than 1 point. Beside "
        "it: over CBR 7–10, its drop rate is above that of Vegas in the same trials.",
        judge=partial(more_and_drops_more, winner="newreno", loser="vegas"),
    ),
    _pairs(
        id="KS2.5",
        words="A variant is fairer to itself than to another.",
        tested="The mean distance of the share from a half, trial by trial, is less for Reno/Reno "
        "and Vegas/Vegas than for NewReno/Reno and NewReno/Vegas.",
        judge=fairer_to_itself,
    ),
    _queues(
        id="KS3.1",
        words="CBR has the lower latency and the higher throughput.",
        tested="At 41–60 s, for Reno and SACK with DropTail and RED: CBR's one-way delay is below "
        "TCP's and its throughput above TCP's.",
        judge=cbr_ahead,
    ),
    _queues(
        id="KS3.2",
        words="Latency is higher with DropTail than with RED.",
        tested="For Reno and SACK, over the trial, by each of recovery latency, RTT and one-way "
        "delay: lower with RED.",
        judge=droptail_slower,
    ),
    _queues(
        id="KS3.3",
        words="The ranking by throughput is SACK+RED, Reno+RED, SACK+DropTail, Reno+DropTail.",
        tested="TCP's throughput over the trial: each is above the next by more than 2 %; the "
        "first two may be equal (KS3.4).",
        judge=ranking,
    ),
    _queues(
        id="KS3.4",
        words="With RED, Reno is about equal to SACK.",
        tested="With RED, the ratio of Reno's throughput to SACK's lies within 0.95 to 1.05.",
        judge=reno_as_sack,
    ),
)

PAPER = Paper(
    "KS",
    "Kapre, Saxena",
    "experiments/kapre_saxena_joshi_hattikar/kapre-saxena.md",
    CLAIMS,
    simulated=ns2_metrics,
)
