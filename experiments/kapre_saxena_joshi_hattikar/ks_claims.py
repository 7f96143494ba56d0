"""The claims of Kapre and Saxena, what they print, and how each claim is judged."""

from __future__ import annotations

import math
from functools import partial

import pandas as pd

from analysis.claims import time_windows
from analysis.claims.comparisons import (
    DROP_RATE,
    RATE,
    RATIO,
    SHARE,
    all_are,
    contrasts,
    in_most,
    relative,
    spread,
    students_p,
    within,
)
from analysis.claims.judgement import ClaimPart, Finding, NumberRow, by_definition, require_all
from analysis.claims.ledger import Claim, Paper, Sentence
from analysis.claims.samples import Group, sample
from analysis.metrics.digest import NotMeasured
from experiments.kapre_saxena_joshi_hattikar import judges
from experiments.kapre_saxena_joshi_hattikar.dumbbell_pairs import PAIR_LOADS
from experiments.kapre_saxena_joshi_hattikar.judges import (
    AT_PAIR_LOADS,
    CASES,
    CONGESTED,
    FOUR,
    HIGHER,
    LATENCIES,
    LOAD_AXIS,
    LOADS,
    LOW,
    LOWER,
    QUEUE_LATENCIES,
    RIVALS,
)
from experiments.kapre_saxena_joshi_hattikar.simulated import ns2_metrics

# KS, section 3, CBR first: "t values" of Excel's t-test (equal variance, one tail), Vegas against
KS_P_VALUES = {"tahoe": 0.392, "reno": 0.307, "newreno": 0.464}
STEEP = 0.1  # of the latency at CBR 2: 6 ms, most of what a queue of ten packets can hold


def vegas_at_low_load(group: Group) -> Finding:
    """Judge whether Vegas's throughput is the lowest of the four."""
    part = judges.leads(group, "throughput_mbps", LOWER, LOW)
    rows = (judges.load_rows(group, each, LOW) for each in ("throughput_mbps", "goodput_mbps"))
    return Finding((part,), tuple(row for variant_rows in rows for row in variant_rows))


def vegas_under_congestion(group: Group) -> Finding:
    """Judge whether Vegas is highest from CBR 7 on; beside it, whether the others fall suddenly."""
    part = judges.leads(group, "throughput_mbps", HIGHER, CONGESTED)
    fall = require_all(_falls(group, variant) for variant in RIVALS)
    rows = judges.load_rows(group, "throughput_mbps", CONGESTED)
    return Finding((part,), rows, {"the others fall suddenly": fall})


LEAST_FALL_MBPS = 0.05  # 2 % of the throughput with a window of 20 packets


def _falls(group: Group, variant: str) -> ClaimPart:
    ratio: dict[int, float] = {}
    for seed, step in judges.steps(group, "throughput_mbps", variant).items():
        before = max(0.0, float(-step[step.index <= 6].min()))
        after = max(0.0, float(-step[step.index >= 7].min()))
        ratio[seed] = after / max(before, LEAST_FALL_MBPS)
    what = f"{variant}: largest fall from CBR 6 on over the largest before"
    return within(what, RATIO, ratio, low=2)


def newreno_under_congestion(group: Group) -> Finding:
    """Judge whether NewReno's throughput is above Reno's and Tahoe's."""
    part = judges.leads(group, "throughput_mbps", HIGHER, CONGESTED, "newreno", ("reno", "tahoe"))
    return Finding((part,), judges.load_rows(group, "throughput_mbps", CONGESTED))


def vegas_best_and_steadiest(group: Group) -> Finding:
    """Judge whether Vegas's mean is highest; beside it, whether its variance is lowest."""
    better = judges.leads(group, "throughput_mbps", HIGHER, LOADS)
    spreads = {
        variant: {
            seed: float(sweep.std())
            for seed, sweep in judges.load_sweeps(group, "throughput_mbps", variant).items()
        }
        for variant in FOUR
    }
    steadier = judges.beyond_all(
        RATE, LOWER, "vegas", spreads, where="standard deviation over the loads"
    )
    rows = (*judges.load_rows(group, "throughput_mbps"), *_papers_t_tests(group))
    return Finding((better,), rows, {"Vegas has the lowest variance": steadier})


def _papers_t_tests(group: Group) -> tuple[NumberRow, ...]:
    """Repeat Excel's t-test: two samples of the loads, equal variances, one tail."""
    rows = judges.at_loads(group, LOADS, FOUR).rows
    means = rows.groupby(["variant", LOAD_AXIS])["throughput_mbps"].mean()
    return tuple(
        NumberRow(
            f"the paper's t-test over the loads, Vegas/{rival}: p",
            RATIO.write(students_p(means["vegas"], means[rival])),
            RATIO.write(KS_P_VALUES[rival]),
        )
        for rival in RIVALS
    )


def vegas_latency(group: Group) -> Finding:
    """Judge whether Vegas's latency is lowest; beside it, without a peak, which Reno's has."""
    lowest = by_definition(
        "latency",
        ((name, judges.leads(group, each, LOWER, LOADS)) for name, each in LATENCIES.items()),
    )
    shape = by_definition(
        "latency", ((name, _shape(group, each)) for name, each in LATENCIES.items())
    )
    lines = {"Vegas's never peaks, Reno's rises steeply": shape}
    return Finding((lowest,), judges.load_latency_rows(group), lines)


def _shape(group: Group, metric: str) -> ClaimPart:
    """Judge whether Reno's latency has a steep step from CBR 7 on and Vegas's has none."""
    parts = []
    for variant, since, low, high in (
        ("vegas", 2, -math.inf, STEEP),
        ("reno", 7, STEEP, math.inf),
    ):
        base = judges.load_sweeps(group, metric, variant)
        largest = {
            seed: float(step[step.index >= since].max() / base[seed].iloc[0])
            for seed, step in judges.steps(group, metric, variant).items()
        }
        what = f"{variant}'s largest step over its latency at CBR 2"
        parts.append(within(what, RATIO, largest, low, high))
    return require_all(parts)


def vegas_drops(group: Group) -> Finding:
    """Judge whether Vegas's drop rate is lowest in most networks; beside it, steep at the end.

    It is steep if CBR 8 to 10 adds at least twice as much as CBR 2 to 8.
    """
    holds = judges.in_networks(group, "drop_rate", LOWER, LOADS)
    lowest = in_most("Vegas's drop rate is the lowest of the four", holds)
    ratio = {}
    for seed, sweep in judges.load_sweeps(group, "drop_rate", "vegas").items():
        before, after = float(sweep[8] - sweep[2]), float(sweep[10] - sweep[8])
        ratio[seed] = after / max(before, 1e-4)
    steep = within("vegas: rise from CBR 8 to 10 over that from 2 to 8", RATIO, ratio, low=2)
    networks = NumberRow("networks in which Vegas's drop rate is the lowest", judges.of_all(holds))
    rows = (*judges.load_rows(group, "drop_rate"), networks)
    return Finding((lowest,), rows, {"it rises steeply": steep})


def reno_as_tahoe(group: Group) -> Finding:
    """Judge whether Reno's throughput is within a tenth of Tahoe's under congestion."""
    part = judges.ratio_within(group, "reno", "tahoe", CONGESTED, 0.9, 1.1)
    return Finding((part,), judges.load_rows(group, "throughput_mbps", CONGESTED))


def more_and_drops_more(group: Group, winner: str, loser: str) -> Finding:
    """Judge whether the winner has a larger share; beside it, drops more at high CBR rates."""
    table = judges.shares(group, winner, loser)
    high = table[table[LOAD_AXIS].isin(CONGESTED)]
    if high.empty:
        raise NotMeasured(f"no trials with {judges.where(CONGESTED)}")
    ours, theirs = (sample(high, each, (LOAD_AXIS,)) for each in ("drop_rate", "other_drop_rate"))
    compared = [(f"{winner}'s drop rate", ours, f"{loser}'s", theirs)]
    at = judges.loads_of(high)
    drops = all_are(HIGHER, contrasts(DROP_RATE, compared), at)
    rows = (
        *judges.share_rows(table, f"{winner}/{loser}"),
        NumberRow(f"drop rate of {winner}, {at}", spread(DROP_RATE, ours)),
        NumberRow(f"drop rate of {loser}, {at}", spread(DROP_RATE, theirs)),
    )
    lines = {f"{winner} drops more at high CBR rates": drops}
    return Finding((judges.takes_more_part(winner, table),), rows, lines)


def fairer_to_itself(group: Group) -> Finding:
    """Judge whether like pairs are closer to a half than pairs of different variants."""
    like = [judges.shares(group, each, each) for each in ("reno", "vegas")]
    unlike = [judges.shares(group, "newreno", each) for each in ("reno", "vegas")]
    one, other = (
        sample(pd.concat(tables), "imbalance", ("axis_pair", LOAD_AXIS))
        for tables in (like, unlike)
    )
    compared = [("like pairs' distance from a half", one, "unlike", other)]
    rows = (
        NumberRow("distance from a half, like pairs", spread(SHARE, one)),
        NumberRow("distance from a half, unlike pairs", spread(SHARE, other)),
    )
    return Finding((all_are(LOWER, contrasts(SHARE, compared)),), rows)


def cbr_ahead(group: Group) -> Finding:
    """Judge whether CBR has a lower one-way delay than TCP beside it; and more throughput."""
    below, above = [], []
    rows: list[NumberRow] = []
    late, beside = judges.HALF_PACKET, judges.phases(group).beside
    for each in CASES:
        by_second = time_windows.seconds(judges.case(group, *each))
        delays = {
            flow: time_windows.delay(by_second, flow, *beside, "owd") for flow in ("cbr", "tcp")
        }
        rates = {flow: time_windows.rate(by_second, flow, *beside) for flow in ("cbr", "tcp")}
        name = judges.label(*each)
        below.append((f"CBR's delay ({name})", delays["cbr"], "TCP's", delays["tcp"]))
        above.append((f"CBR's throughput ({name})", rates["cbr"], "TCP's", rates["tcp"]))
        for flow in ("cbr", "tcp"):
            rows.append(NumberRow(f"one-way delay of {flow}, {name}", spread(late, delays[flow])))
            rows.append(NumberRow(f"throughput of {flow}, {name}", spread(RATE, rates[flow])))
    lines = {"CBR has the higher throughput": all_are(HIGHER, contrasts(RATE, above))}
    return Finding((all_are(LOWER, contrasts(late, below)),), tuple(rows), lines)


def droptail_slower(group: Group) -> Finding:
    """Judge whether latency is lower with RED: TCP's, by two definitions, or CBR's."""
    parts, rows = judges.red_latency(group, QUEUE_LATENCIES)
    return Finding((by_definition("latency", parts.items()),), rows)


def ranking(group: Group) -> Finding:
    """Judge whether SACK + RED is above both with DropTail; beside it, the rest of the order.

    The first two are about equal, as the paper says elsewhere (KS3.4).
    """
    samples = judges.queue_samples(group, "throughput_mbps")
    named = {judges.label(*each): rates for each, rates in samples.items()}
    last, *others = (judges.label(v, q) for q in ("droptail", "red") for v in judges.TCPS)
    droptail = (last, others[0])
    head = judges.beyond_all(RATE, HIGHER, judges.label("sack", "red"), named, droptail)
    middle = judges.ordered(RATE, samples, (("reno", "red"), ("sack", "droptail")))
    lines = {
        "Reno + RED is above SACK + DropTail": all_are(HIGHER, middle),
        f"{last} is last": judges.beyond_all(RATE, LOWER, last, named, others),
    }
    return Finding((head,), judges.queue_rows(RATE, "throughput", samples), lines)


def reno_as_sack(group: Group) -> Finding:
    """Judge whether Reno's throughput is within 5 % of SACK's with RED."""
    samples = judges.queue_samples(group, "throughput_mbps")
    ratio = relative(samples["reno", "red"], samples["sack", "red"])
    part = within("ratio of Reno's to SACK's throughput with RED", RATIO, ratio, 0.95, 1.05)
    return Finding((part,), judges.queue_rows(RATE, "throughput", samples))


_load = partial(
    Claim,
    experiment="dumbbell-load",
    networks=44,  # as for any share of networks: the first nine left KS1.5 and KS1.6 open
    window="small",
    where={"order": "cbr-first", "cbr_mbit": LOADS},
)
_pairs = partial(
    Claim,
    experiment="dumbbell-pairs",
    networks=22,  # as many as KS2.5 takes by the spread in the first 13, which left it open
    window="small",
    where={"second": "n5-n6", "cbr_mbit": PAIR_LOADS},
)
_queues = partial(Claim, experiment="dumbbell-queues", where={"cbr_stop": "at-60"})

CLAIMS: tuple[Claim, ...] = (
    _load(
        id="KS1.1",
        words="At low CBR rates, Vegas's throughput is the lowest of the four.",
        tested="Mean throughput over CBR 2–6 Mbit/s: Vegas's is below the lowest of the others by "
        "more than 2 %.",
        judge=vegas_at_low_load,
        sentences=(
            Sentence(
                "in ns-2",
                "supported",
                "In ns-2 Vegas has {throughput, vegas, CBR 2–6 Mbit/s} and NewReno {throughput, "
                "newreno, CBR 2–6 Mbit/s}, but only because its packets count no headers: of "
                "payload it is {goodput, vegas, CBR 2–6 Mbit/s} and {goodput, newreno, CBR 2–6 "
                "Mbit/s}.",
            ),
            Sentence(
                "ns2",
                "too small to matter",
                "On Linux all four send one window a round trip, {throughput, vegas, CBR 2–6 "
                "Mbit/s}.",
            ),
        ),
    ),
    _load(
        id="KS1.2",
        words="From CBR of about 7 Mbit/s on, the others fall suddenly and Vegas is highest.",
        tested="Mean throughput over CBR 7–10: Vegas's is above the highest of the others by more "
        "than 2 %. Beside it: for Tahoe, Reno and NewReno, the largest fall from one load to the "
        "next at CBR 7–10 is at least twice the largest before (a fall of less than 0.05 Mbit/s is "
        "counted as that much).",
        judge=vegas_under_congestion,
        sentences=(
            Sentence(
                "in ns-2",
                "contradicted",
                "The others do fall suddenly, but Vegas is then behind: in ns-2 it has "
                "{throughput, vegas, CBR 7–10 Mbit/s}, NewReno {throughput, newreno, CBR 7–10 "
                "Mbit/s}.",
            ),
            Sentence(
                "ns2",
                "too small to matter",
                "On Linux the two have {throughput, vegas, CBR 7–10 Mbit/s} and {throughput, "
                "newreno, CBR 7–10 Mbit/s}.",
            ),
        ),
    ),
    _load(
        id="KS1.3",
        words="Under congestion NewReno's throughput is above Reno's and Tahoe's.",
        tested="Mean throughput over CBR 7–10 Mbit/s: NewReno's is above the higher of Reno's and "
        "Tahoe's by more than 2 %.",
        judge=newreno_under_congestion,
        sentences=(
            Sentence(
                "in ns-2",
                "supported",
                "In ns-2 NewReno has {throughput, newreno, CBR 7–10 Mbit/s}, Tahoe {throughput, "
                "tahoe, CBR 7–10 Mbit/s} and Reno {throughput, reno, CBR 7–10 Mbit/s};",
            ),
            Sentence(
                "ns2",
                "supported",
                "on Linux {throughput, newreno, CBR 7–10 Mbit/s}, {throughput, tahoe, CBR 7–10 "
                "Mbit/s} and {throughput, reno, CBR 7–10 Mbit/s}.",
            ),
        ),
    ),
    _load(
        id="KS1.4",
        words="Vegas has the best mean throughput and the lowest variance (t values with CBR "
        "first: 0.392, 0.307, 0.464).",
        tested="CBR first: Vegas's mean throughput over CBR 2–10 is above the highest of the "
        "others. Beside it: its standard deviation over these loads is below the lowest; the "
        "paper's own t-test over these loads is shown.",
        judge=vegas_best_and_steadiest,
        sentences=(
            Sentence(
                "in ns-2",
                "contradicted",
                "In ns-2 Vegas's mean, {throughput, vegas, CBR 2–10 Mbit/s}, is below NewReno's, "
                "{throughput, newreno, CBR 2–10 Mbit/s}; KS's t values are p-values, and none is "
                "significant.",
            ),
            Sentence(
                "ns2",
                "too small to matter",
                "On Linux they are {throughput, vegas, CBR 2–10 Mbit/s} and {throughput, "
                "newreno, CBR 2–10 Mbit/s}.",
            ),
        ),
    ),
    _load(
        id="KS1.5",
        words="Vegas has the lowest average latency, rises a little before congestion and never "
        "peaks; Reno's latency rises steeply just after congestion.",
        tested="By recovery latency, RTT and one-way delay: Vegas's mean over CBR 2–10 is below "
        "the lowest of the others. Beside it: its largest step from one load to the next is at "
        "most 10 % of its latency at CBR 2, while Reno's largest step at CBR 7–10 is at least "
        "that.",
        judge=vegas_latency,
        sentences=(
            Sentence(
                "in ns-2",
                "by recovery latency contradicted, by RTT too small to matter, by one-way delay "
                "too small to matter",
                "By round trip the four are alike, in ns-2 {RTT, vegas, CBR 2–10 Mbit/s} with "
                "Vegas and {RTT, reno, CBR 2–10 Mbit/s} with Reno; with the time of repairs "
                "Vegas's is not the lowest there.",
            ),
            Sentence(
                "ns2",
                "open",
                "On Linux they have {RTT, vegas, CBR 2–10 Mbit/s} and {RTT, reno, CBR 2–10 "
                "Mbit/s}, and with repairs it depends on the network.",
            ),
        ),
    ),
    _load(
        id="KS1.6",
        words="Vegas has the lowest drop rate; it too rises steeply at the end.",
        tested="Mean drop rate over CBR 2–10, which differs more from network to network than from "
        "variant to variant: Vegas's is the lowest of the four in most networks. Beside it: from "
        "CBR 8 to 10 it rises by at least twice as much as from 2 to 8.",
        judge=vegas_drops,
        sentences=(
            Sentence(
                "in ns-2",
                "in part",
                "It depends on the network: in ns-2 Vegas drops least in {networks in which "
                "Vegas's drop rate is the lowest},",
            ),
            Sentence(
                "ns2",
                "open",
                "on Linux in {networks in which Vegas's drop rate is the lowest}.",
            ),
        ),
    ),
    _load(
        id="KS1.7",
        words="With several losses in a window, Reno does about as badly as Tahoe.",
        tested="Mean throughput over CBR 7–10 Mbit/s: the ratio of Reno's to Tahoe's lies within "
        "0.9 to 1.1.",
        judge=reno_as_tahoe,
        sentences=(
            Sentence(
                "in ns-2",
                "supported",
                "In ns-2 Reno has {throughput, reno, CBR 7–10 Mbit/s} and Tahoe {throughput, "
                "tahoe, CBR 7–10 Mbit/s};",
            ),
            Sentence(
                "ns2",
                "supported",
                "on Linux {throughput, reno, CBR 7–10 Mbit/s} and {throughput, tahoe, CBR 7–10 "
                "Mbit/s}.",
            ),
        ),
    ),
    _pairs(
        id="KS2.1",
        words="Vegas/Vegas is fair.",
        tested=f"{AT_PAIR_LOADS}: the first flow's mean share of both flows' throughput lies "
        "within 45 to 55 %.",
        judge=partial(judges.fair, variant="vegas"),
        sentences=(
            Sentence(
                "in ns-2",
                "supported",
                "The first of the two has {share of vegas in vegas/vegas, mean of the loads} in "
                "ns-2",
            ),
            Sentence(
                "ns2",
                "supported",
                "and {share of vegas in vegas/vegas, mean of the loads} on Linux.",
            ),
        ),
    ),
    _pairs(
        id="KS2.2",
        words="Reno/Reno is fair.",
        tested=f"{AT_PAIR_LOADS}: the first flow's mean share of both flows' throughput lies "
        "within 45 to 55 %.",
        judge=partial(judges.fair, variant="reno"),
        sentences=(
            Sentence(
                "in ns-2",
                "supported",
                "The first of the two has {share of reno in reno/reno, mean of the loads} in ns-2",
            ),
            Sentence(
                "ns2",
                "supported",
                "and {share of reno in reno/reno, mean of the loads} on Linux.",
            ),
        ),
    ),
    _pairs(
        id="KS2.3",
        words="NewReno takes more than Reno.",
        tested=f"{AT_PAIR_LOADS}: NewReno's mean share is above a half by more than 1 point.",
        judge=partial(judges.takes_more, winner="newreno", loser="reno"),
        sentences=(
            Sentence(
                "in ns-2",
                "supported",
                "NewReno has {share of newreno in newreno/reno, mean of the loads} of what both "
                "get in ns-2",
            ),
            Sentence(
                "ns2",
                "supported",
                "and {share of newreno in newreno/reno, mean of the loads} on Linux.",
            ),
        ),
    ),
    _pairs(
        id="KS2.4",
        words="NewReno takes more than Vegas; at high CBR rates NewReno drops more than Vegas.",
        tested=f"{AT_PAIR_LOADS}: NewReno's mean share is above a half by more than 1 point. "
        "Beside it: at those of CBR 7–10, its drop rate is above that of Vegas in the same trials.",
        judge=partial(more_and_drops_more, winner="newreno", loser="vegas"),
        networks=39,  # likewise
        sentences=(
            Sentence(
                "in ns-2",
                "open",
                "NewReno has {share of newreno in newreno/vegas, mean of the loads} in ns-2",
            ),
            Sentence(
                "ns2",
                "open",
                "and {share of newreno in newreno/vegas, mean of the loads} on Linux: a window "
                "of 20 packets leaves little to take.",
            ),
        ),
    ),
    _pairs(
        id="KS2.5",
        words="A variant is fairer to itself than to another.",
        tested=f"{AT_PAIR_LOADS}: the mean distance of the share from a half, trial by trial, is "
        "less for Reno/Reno and Vegas/Vegas than for NewReno/Reno and NewReno/Vegas.",
        judge=fairer_to_itself,
        sentences=(
            Sentence(
                "in ns-2",
                "supported",
                "In ns-2 like pairs are {distance from a half, like pairs} from an even split, "
                "unlike ones {distance from a half, unlike pairs};",
            ),
            Sentence(
                "ns2",
                "open",
                "on Linux {distance from a half, like pairs} and {distance from a half, unlike "
                "pairs}.",
            ),
        ),
    ),
    _queues(
        id="KS3.1",
        words="CBR has the lower latency and the higher throughput.",
        tested="At 41–60 s, for Reno and SACK with DropTail and RED: CBR's one-way delay is below "
        "TCP's by more than 0.4 ms. Beside it: its throughput is above TCP's.",
        judge=cbr_ahead,
        sentences=(
            Sentence(
                "ns2",
                "too small to matter",
                "Beside Reno with DropTail CBR's packets arrive after {one-way delay of cbr, "
                "Reno + DropTail}, TCP's after {one-way delay of tcp, Reno + DropTail}; with "
                "SACK and RED the difference is less than half a packet's time. CBR's 7 Mbit/s "
                "are what it was told to send.",
            ),
        ),
    ),
    _queues(
        id="KS3.2",
        words="Latency is higher with DropTail than with RED.",
        tested="For Reno and SACK, over each flow's life, by more than 0.4 ms: lower with RED. KS "
        "plot the latency of CBR as well, so that it is of single packets: TCP's RTT, its one-way "
        "delay, or CBR's.",
        judge=droptail_slower,
        sentences=(
            Sentence(
                "in ns-2",
                "by TCP's RTT too small to matter, by TCP's one-way delay too small to matter, "
                "by CBR's one-way delay supported",
                "What RED shortens is the wait of CBR's packets: beside Reno they arrive after "
                "{CBR's one-way delay, Reno + RED}, with DropTail after {CBR's one-way delay, "
                "Reno + DropTail} in ns-2,",
            ),
            Sentence(
                "ns2",
                "by TCP's RTT too small to matter, by TCP's one-way delay too small to matter, "
                "by CBR's one-way delay supported",
                "on Linux after {CBR's one-way delay, Reno + RED} and {CBR's one-way delay, Reno "
                "+ DropTail}. TCP's round trip is shorter by less than half a packet's time.",
            ),
        ),
    ),
    _queues(
        id="KS3.3",
        words="The ranking by throughput is SACK+RED, Reno+RED, SACK+DropTail, Reno+DropTail.",
        tested="TCP's throughput over the trial: SACK+RED is above the higher of both with "
        "DropTail by more than 2 %; Reno+RED may equal it (KS3.4). Beside it: Reno+RED is above "
        "SACK+DropTail; Reno+DropTail is below the lowest of the others.",
        judge=ranking,
        sentences=(
            Sentence(
                "in ns-2",
                "contradicted",
                "RED carries less, not more: in ns-2 SACK has {throughput, SACK + RED} with RED "
                "and {throughput, SACK + DropTail} with DropTail,",
            ),
            Sentence(
                "ns2",
                "too small to matter",
                "on Linux {throughput, SACK + RED} and {throughput, SACK + DropTail}.",
            ),
        ),
    ),
    _queues(
        id="KS3.4",
        words="With RED, Reno is about equal to SACK.",
        tested="With RED, the ratio of Reno's throughput to SACK's lies within 0.95 to 1.05.",
        judge=reno_as_sack,
        sentences=(
            Sentence(
                "in ns-2",
                "supported",
                "In ns-2 Reno has {throughput, Reno + RED} and SACK {throughput, SACK + RED};",
            ),
            Sentence(
                "ns2",
                "supported",
                "on Linux {throughput, Reno + RED} and {throughput, SACK + RED}.",
            ),
        ),
    ),
)

PAPER = Paper(
    "KS",
    "Kapre, Saxena",
    "experiments/kapre_saxena_joshi_hattikar/kapre-saxena.md",
    CLAIMS,
    simulated=ns2_metrics,
)
