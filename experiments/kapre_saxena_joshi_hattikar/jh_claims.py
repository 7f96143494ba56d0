"""The claims of Joshi and Hattikar, what they print, and how each claim is judged."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
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
    Sample,
    all_are,
    contrasts,
    relative,
    spread,
    within,
)
from analysis.claims.judgement import (
    ClaimPart,
    Finding,
    NumberRow,
    by_definition,
    require_all,
)
from analysis.claims.ledger import Claim, Paper, Reading
from analysis.claims.samples import Group, sample, sweeps
from experiments.kapre_saxena_joshi_hattikar import judges
from experiments.kapre_saxena_joshi_hattikar.judges import (
    BEND,
    CASES,
    CONGESTED,
    FOUR,
    HALF,
    LATENCIES,
    LOADS,
    LOW,
    RIVALS,
    STRAIGHT,
    Stretch,
    beside,
    case,
    each_load,
    label,
    load_group,
    load_latency_tables,
    load_table,
    loads_of,
    ns2_queue,
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
    where,
)
from experiments.kapre_saxena_joshi_hattikar.simulated import ns2_metrics

# JH, tables 1 and 2, by variant and queue
JH_DROP_RATES = {
    ("reno", "droptail"): 0.00154448,
    ("reno", "red"): 0.00061112,
    ("sack", "droptail"): 0.00160811,
    ("sack", "red"): 0.000616975,
}
JH_LATENCIES_S = {
    ("reno", "droptail"): 0.0655081,
    ("reno", "red"): 0.065285,
    ("sack", "droptail"): 0.0658671,
    ("sack", "red"): 0.0651426,
}
JH_OSCILLATION_MBPS = (6.0, 10.0)  # TCP beside CBR of 7 Mbit/s


MOST = 0.55  # of ten loads: six


def vegas_above_all(group: Group) -> Finding:
    """Judge whether Vegas is above every other; beside it, at every load, and NewReno next."""
    better = all_are(
        ComparisonOutcome.ABOVE,
        beside(group, "throughput_mbps", "vegas", RIVALS, LOADS),
        "mean of the loads",
    )
    every = all_are(ComparisonOutcome.ABOVE, each_load(group, "throughput_mbps", "vegas", RIVALS))
    second = all_are(
        ComparisonOutcome.ABOVE,
        beside(group, "throughput_mbps", "newreno", ("reno", "tahoe"), LOADS),
        "NewReno next, mean of the loads",
    )
    lines = {"at every CBR rate": every, "NewReno is next": second}
    return Finding((better,), load_table(group, "throughput_mbps"), lines)


def newreno_and_reno(group: Group) -> Finding:
    """Judge whether NewReno is within 5 % of Reno at low CBR, and ahead under congestion."""
    alike = ratio_within(group, "newreno", "reno", LOW, 0.95, 1.05)
    ahead = all_are(
        ComparisonOutcome.ABOVE,
        beside(group, "throughput_mbps", "newreno", ("reno",), CONGESTED),
        where(run_of(group, CONGESTED)),
    )
    rows = (
        *load_table(group, "throughput_mbps", LOW),
        *load_table(group, "throughput_mbps", CONGESTED),
    )
    return Finding((alike, ahead), rows)


def linear_fall(group: Group) -> Finding:
    """Judge whether Vegas's and NewReno's throughput falls linearly; beside it, not Reno's."""
    parts, rows, lines = [], [], {}
    for variant in ("vegas", "newreno", "reno"):
        found = sweeps(load_group(group, LOADS, [variant]).rows, "throughput_mbps", "axis_cbr_mbit")
        fits = {seed: straightness(sweep) for seed, sweep in found.items()}
        straight = {seed: fit[0] for seed, fit in fits.items()}
        bend = {seed: abs(fit[1]) for seed, fit in fits.items()}
        rows.append(
            NumberRow(
                f"{variant}: R² of the line",
                spread(RATIO, straight),
                "linear" * (variant != "reno"),
            )
        )
        rows.append(NumberRow(f"{variant}: bend over the range", spread(RATIO, bend)))
        if variant == "reno":
            crooked = {
                seed: max((1 - straight[seed]) / (1 - STRAIGHT), bend[seed] / BEND) for seed in fits
            }
            what = "reno: deviation from a line over the allowed one"
            lines["Reno's does not"] = within(what, RATIO, crooked, low=1)
        else:
            parts.append(within(f"{variant}: R²", RATIO, straight, low=STRAIGHT))
            parts.append(within(f"{variant}: bend", RATIO, bend, high=BEND))
    return Finding(tuple(parts), tuple(rows), lines)


def straightness(sweep: pd.Series[float]) -> tuple[float, float]:
    """Return R² of a straight line, and a parabola's bend from its chord over the range."""
    x = sweep.index.to_numpy(dtype=np.float64)
    y = sweep.to_numpy(dtype=np.float64)
    span = float(np.ptp(y))
    if len(y) < 4 or not span:
        return math.nan, math.nan
    left = y - np.polyval(np.polyfit(x, y, 1), x)
    quadratic = float(np.polyfit(x, y, 2)[0])
    total = float(((y - y.mean()) ** 2).sum())
    return 1 - float((left**2).sum()) / total, quadratic * (float(np.ptp(x)) / 2) ** 2 / span


def vegas_latency_at_most_loads(group: Group) -> Finding:
    """Judge whether Vegas's latency is the lowest of the four at more than half of the loads."""
    parts = []
    for name, metric in LATENCIES.items():
        found = {
            each: sweeps(load_group(group, LOADS, [each]).rows, metric, "axis_cbr_mbit")
            for each in FOUR
        }
        seeds = sorted(set.intersection(*(set(each) for each in found.values())))
        part = {
            seed: float(
                pd.DataFrame({each: found[each][seed] for each in FOUR})
                .dropna()
                .idxmin(axis=1)
                .eq("vegas")
                .mean()
            )
            for seed in seeds
        }
        parts.append(
            (name, within("fraction of the loads with Vegas lowest", RATIO, part, low=MOST))
        )
    return Finding((by_definition("latency", parts),), load_latency_tables(group))


def vegas_drops_everywhere(group: Group) -> Finding:
    """Judge whether Vegas's drop rate is lowest; beside it, at every load, and rises least.

    The rates of the others must rise at least twice as much as Vegas's at CBR 9.
    """
    lowest = all_are(ComparisonOutcome.BELOW, beside(group, "drop_rate", "vegas", RIVALS, LOADS))
    everywhere = all_are(
        ComparisonOutcome.BELOW,
        each_load(group, "drop_rate", "vegas", RIVALS),
        or_equal=True,
    )
    rises = {
        each: {
            seed: float(step.get(9, math.nan))
            for seed, step in steps(group, "drop_rate", each).items()
        }
        for each in FOUR
    }
    twice = {seed: 2 * value for seed, value in rises["vegas"].items()}
    steeper = all_are(
        ComparisonOutcome.ABOVE,
        contrasts(
            MEASURES["drop_rate"],
            [(f"{each}'s rise", rises[each], "twice Vegas's", twice) for each in RIVALS],
        ),
        "from CBR 8 to 9",
    )
    rows = tuple(
        NumberRow(
            f"rise of the drop rate from CBR 8 to 9, {each}",
            spread(MEASURES["drop_rate"], rises[each]),
        )
        for each in FOUR
    )
    lines = {"over the whole range": everywhere, "the others rise more at 9 Mbit/s": steeper}
    return Finding((lowest,), (*load_table(group, "drop_rate"), *rows), lines)


def always_takes_more(group: Group, winner: str, loser: str) -> Finding:
    """Judge whether the winner has the larger share; beside it, at every load."""
    found = shares(group, winner, loser)
    triples = []
    for load, rows in found.groupby("axis_cbr_mbit"):
        own = sample(rows, "share", ("position",))
        half = dict.fromkeys(own, HALF)
        triples.append((f"{winner}'s share at CBR {load:g}", own, "a half", half))
    part = all_are(ComparisonOutcome.ABOVE, contrasts(SHARE, triples), loads_of(found))
    more = judges.takes_more_part(winner, found)
    return Finding((more,), share_rows(group, found, winner, loser), {"at every CBR rate": part})


PAPERS_DROPS = 0.25
PAPERS_LATENCY = 0.02


MAX_VARIATION = 0.1


def printed_drop_rates(group: Group) -> Finding:
    """Judge whether RED lowers drop rates as printed; beside it, all four within 25 %.

    By at least half of what the paper prints: the rates over a whole flow depend on what it does
    not state (when runs end, TCP's window, RED's thresholds), and the order of the two less.
    """
    parts, rows = [], []
    found = {each: queue_sample(group, "drop_rate", *each) for each in CASES}
    for each, theirs in JH_DROP_RATES.items():
        bounds = theirs * (1 - PAPERS_DROPS), theirs * (1 + PAPERS_DROPS)
        parts.append(within(f"drop rate, {label(*each)},", DROP_RATE, found[each], *bounds))
        ns2 = ns2_queue(group.reference, *each, "drop_rate")
        rows.append(
            NumberRow(
                f"drop rate, {label(*each)}",
                spread(DROP_RATE, found[each]),
                DROP_RATE.write(theirs),
                DROP_RATE.write(ns2) if math.isfinite(ns2) else "",
            )
        )
    for variant in ("reno", "sack"):
        ours = relative(found[variant, "red"], found[variant, "droptail"])
        theirs = JH_DROP_RATES[variant, "red"] / JH_DROP_RATES[variant, "droptail"]
        red, droptail = (
            ns2_queue(group.reference, variant, each, "drop_rate") for each in ("red", "droptail")
        )
        rows.append(
            NumberRow(
                f"ratio of RED's to DropTail's, {variant}",
                spread(RATIO, ours),
                RATIO.write(theirs),
                RATIO.write(red / droptail) if math.isfinite(red / droptail) else "",
            )
        )
    lower = all_are(
        ComparisonOutcome.BELOW,
        ordered(
            group,
            "drop_rate",
            *(((variant, "red"), (variant, "droptail")) for variant in ("reno", "sack")),
            printed=[
                (JH_DROP_RATES[variant, "red"], JH_DROP_RATES[variant, "droptail"])
                for variant in ("reno", "sack")
            ],
        ),
    )
    lines = {"the four rates as printed": require_all(parts)}
    return Finding((lower,), (*rows, setting_row(group)), lines)


def printed_latencies(group: Group) -> Finding:
    """Judge which definitions of latency meet all four printed values within 2 %."""
    readings: dict[str, ClaimPart] = {}
    rows: list[NumberRow] = []
    for name, metric in LATENCIES.items():
        parts = []
        for each, theirs_s in JH_LATENCIES_S.items():
            theirs = 1e3 * theirs_s
            bounds = theirs * (1 - PAPERS_LATENCY), theirs * (1 + PAPERS_LATENCY)
            ours = queue_sample(group, metric, *each)
            parts.append(within(f"{name}, {label(*each)},", DELAY, ours, *bounds))
            ns2 = ns2_queue(group.reference, *each, metric)
            rows.append(
                NumberRow(
                    f"{name}, {label(*each)}",
                    spread(DELAY, ours),
                    DELAY.write(theirs),
                    DELAY.write(ns2) if math.isfinite(ns2) else "",
                )
            )
        readings[name] = require_all(parts)
    return Finding((by_definition("latency", readings.items()),), tuple(rows))


def red_least(group: Group) -> Finding:
    """Judge whether RED's drop rate is lower for both variants; beside it, the latency."""
    latency = by_definition(
        "latency", ((name, red_below(group, metric)) for name, metric in LATENCIES.items())
    )
    rows = (*queue_table(group, "drop_rate", "drop rate"), *queue_latency_tables(group))
    lines = {"latency is lowest with RED": latency}
    return Finding((red_below(group, "drop_rate"),), (*rows, setting_row(group)), lines)


def over_time(group: Group) -> Finding:
    """Judge TCP's throughput through DropTail before CBR, beside it and at its start.

    It is at its maximum before CBR starts, and beside CBR between 6 and 10 Mbit/s for more than
    half of the seconds; SACK carries more than Reno in the five seconds from CBR's start.
    """
    low, high = JH_OSCILLATION_MBPS
    times = phases(group)
    parts: list[ClaimPart] = []
    rows: list[NumberRow] = []
    onset: dict[str, Sample] = {}
    for variant in ("reno", "sack"):
        found = time_windows.seconds(case(group, variant, "droptail"))
        before = time_windows.rate(found, "tcp", *times.before)
        beside = time_windows.rate(found, "tcp", *times.beside)
        onset[variant] = time_windows.rate(found, "tcp", *times.onset)
        falls = [(f"{variant} before CBR", before, "beside it", beside)]
        parts.append(all_are(ComparisonOutcome.ABOVE, contrasts(RATE, falls)))
        part = time_windows.each_seed(found, lambda t: _between(t, times.beside, low, high))
        what = f"{variant}: fraction of the seconds beside CBR with {low:g} to {high:g} Mbit/s"
        parts.append(within(what, SHARE, part, low=0.5))
        carried = time_windows.rate(found, "cbr", *times.beside)
        both = {seed: beside[seed] + carried[seed] for seed in beside}
        peak = time_windows.each_seed(found, lambda t: _most(t, times.beside))
        rows += [
            NumberRow(f"throughput before CBR, {variant}", spread(RATE, before)),
            NumberRow(
                f"throughput beside CBR, {variant}",
                spread(RATE, beside),
                f"{low:g} to {high:g} Mbit/s",
            ),
            NumberRow(f"TCP and CBR together beside CBR, {variant}", spread(RATE, both)),
            NumberRow(f"highest second beside CBR, {variant}", spread(RATE, peak)),
            NumberRow(
                f"throughput in the first 5 s of CBR, {variant}", spread(RATE, onset[variant])
            ),
        ]
    faster = [("SACK's first 5 s beside CBR", onset["sack"], "Reno's", onset["reno"])]
    parts.append(all_are(ComparisonOutcome.ABOVE, contrasts(RATE, faster)))
    return Finding(tuple(parts), tuple(rows))


def _between(table: pd.DataFrame, during: Stretch, low: float, high: float) -> float:
    return float(time_windows.phase(table, "tcp", *during).between(low, high).mean())


def _most(table: pd.DataFrame, during: Stretch) -> float:
    return float(time_windows.phase(table, "tcp", *during).max())


def steady_with_red(group: Group) -> Finding:
    """Judge whether SACK + RED is steady before and beside CBR; beside it, above DropTail."""
    times = phases(group)
    stretches = (("before CBR", times.before), ("beside CBR", times.beside))
    found = time_windows.seconds(case(group, "sack", "red"))
    parts = [
        within(
            f"coefficient of variation {name}",
            RATIO,
            _variation(found, during),
            high=MAX_VARIATION,
        )
        for name, during in stretches
    ]
    above = ordered(group, "throughput_mbps", (("sack", "red"), ("sack", "droptail")))
    lines = {"above DropTail's": all_are(ComparisonOutcome.ABOVE, above)}
    other = time_windows.seconds(case(group, "sack", "droptail"))
    rows = [
        NumberRow(
            f"coefficient of variation {name}, {queue}", spread(RATIO, _variation(each, during))
        )
        for queue, each in (("RED", found), ("DropTail", other))
        for name, during in stretches
    ]
    return Finding(tuple(parts), (*queue_table(group, "throughput_mbps"), *rows), lines)


def _variation(found: dict[int, list[pd.DataFrame]], during: Stretch) -> Sample:
    def of(table: pd.DataFrame) -> float:
        own = time_windows.phase(table, "tcp", *during)
        return float(own.std() / own.mean()) if own.mean() else math.nan

    return time_windows.each_seed(found, of)


_load = partial(Claim, experiment="dumbbell-load", window="large")
# JH do not state TCP's window, and it decides: with 60 to 80 packets nothing is lost at CBR 1 and 2
BOTH_WINDOWS = (
    Reading("window of 20", "TCP's window is 20 packets.", {"window": "small"}),
    Reading("window of 1000", "TCP's window is 1000 packets.", {"window": "large"}),
)
# JH contradict themselves, or can be taken in two ways
SECOND = (
    Reading(
        "second TCP N5–N6",
        "The second TCP goes from N5 to N6, as in JH's list of nodes.",
        {"second": "n5-n6"},
    ),
    Reading(
        "second TCP N2–N3",
        "The second TCP goes from N2 to N3, as in JH's text.",
        {"second": "n2-n3"},
    ),
)
STOP = (
    Reading(
        "CBR 40–60 s",
        'CBR "is then stopped after 60 seconds": at second 60.',
        {"cbr_stop": "at-60"},
    ),
    Reading(
        "CBR 40–100 s",
        'CBR "is then stopped after 60 seconds": having run for so long.',
        {"cbr_stop": "for-60"},
    ),
)
_pairs = partial(Claim, experiment="dumbbell-pairs", window="large", readings=SECOND)
_queues = partial(Claim, experiment="dumbbell-queues", readings=STOP)

CLAIMS: tuple[Claim, ...] = (
    _load(
        id="JH1.1",
        words="Vegas's throughput is above that of all others at every CBR rate; NewReno is next.",
        tested="Mean throughput over CBR 1–10: Vegas's is above Tahoe's, Reno's and NewReno's by "
        "more than 2 %. Beside it: the same at each load; NewReno's mean is above Reno's and "
        "Tahoe's.",
        judge=vegas_above_all,
    ),
    _load(
        id="JH1.2",
        words="Reno and NewReno are alike at low CBR rates; NewReno is ahead as CBR grows.",
        tested="Mean throughput over CBR 1–6: the ratio of NewReno's to Reno's lies within 0.95 to "
        "1.05; over CBR 7–10, NewReno's is above Reno's by more than 2 %.",
        judge=newreno_and_reno,
        window="",
        readings=BOTH_WINDOWS,
    ),
    _load(
        id="JH1.3",
        words="Vegas's and NewReno's throughput falls linearly with CBR; Reno's does not.",
        tested="A straight line through CBR 1–10: R² at least 0.98 and a bend of at most 10 % of "
        "the range for Vegas and NewReno. Beside it: not both for Reno.",
        judge=linear_fall,
    ),
    _load(
        id="JH1.4",
        words="Vegas's latency is lowest for most CBR rates.",
        tested="By recovery latency, RTT and one-way delay: the fraction of the loads at which "
        "Vegas's is the lowest of the four is above a half (0.55, six of ten).",
        judge=vegas_latency_at_most_loads,
    ),
    _load(
        id="JH1.5",
        words="Vegas's drop rate is lowest over the whole range; at 9 Mbit/s Tahoe, Reno and "
        "NewReno rise a lot and Vegas very little.",
        tested="Mean drop rate over CBR 1–10: Vegas's is below that of each other variant. Beside "
        "it: below or equal at each load; from CBR 8 to 9, the rate of each other variant rises by "
        "more than twice as much as Vegas's.",
        judge=vegas_drops_everywhere,
    ),
    _pairs(
        id="JH2.1",
        words="Vegas/Vegas is fair.",
        tested="The first flow's mean share of both flows' throughput lies within 45 to 55 %.",
        judge=partial(judges.fair, variant="vegas"),
    ),
    _pairs(
        id="JH2.2",
        words="Reno/Reno is fair.",
        tested="The first flow's mean share of both flows' throughput lies within 45 to 55 %.",
        judge=partial(judges.fair, variant="reno"),
    ),
    _pairs(
        id="JH2.3",
        words="NewReno always takes more than Reno.",
        tested="NewReno's mean share over CBR 1–10 is above a half by more than 1 point. Beside "
        "it: at each load.",
        judge=partial(always_takes_more, winner="newreno", loser="reno"),
    ),
    _pairs(
        id="JH2.4",
        words="NewReno takes more than Vegas.",
        tested="NewReno's mean share over CBR 1–10 is above a half by more than 1 point.",
        judge=partial(judges.takes_more, winner="newreno", loser="vegas"),
    ),
    _queues(
        id="JH3.1",
        words="TCP is at its maximum before CBR starts; then it drops and oscillates between 6 and "
        "10 Mbit/s; SACK recovers faster.",
        tested="DropTail, Reno and SACK: throughput at 10–40 s above that beside CBR; more than "
        "half of the seconds beside it between 6 and 10 Mbit/s; at 40–45 s SACK above Reno.",
        judge=over_time,
        not_testable='JH print "between 6000 and 10000" without a unit. Taken as kbit/s it is more '
        "than CBR of 7 Mbit/s leaves of a link of 10; what it counts is not known.",
    ),
    _queues(
        id="JH3.2",
        words="Drop rates: Reno 0.00154448 (DropTail), 0.00061112 (RED); SACK 0.00160811, "
        "0.000616975.",
        tested="TCP's drop rate over the trial is lower with RED than with DropTail, for Reno and "
        "SACK, by at least half of what the paper prints: JH state neither when their runs end, "
        "nor TCP's window, nor RED's thresholds. Beside it: within 25 % of each of the four.",
        judge=printed_drop_rates,
    ),
    _queues(
        id="JH3.3",
        words="Latency: Reno 0.0655081 s (DropTail), 0.065285 s (RED); SACK 0.0658671, 0.0651426.",
        tested="By each of recovery latency, RTT and one-way delay: TCP's mean over the trial lies "
        "within 2 % of each of the four.",
        judge=printed_latencies,
    ),
    _queues(
        id="JH3.4",
        words="Drop rate and latency are lowest with RED for both variants.",
        tested="For Reno and SACK, the drop rate is lower with RED than with DropTail. Beside it: "
        "so is the latency, by each of the three readings.",
        judge=red_least,
    ),
    _queues(
        id="JH3.5",
        words="SACK+RED's throughput is steady and above DropTail's.",
        tested="SACK with RED: the coefficient of variation in bins of 1 s is at most 10 % at "
        "10–40 s and at 41–60 s. Beside it: its throughput over the trial is above SACK's with "
        "DropTail by more than 2 %.",
        judge=steady_with_red,
    ),
)

PAPER = Paper(
    "JH",
    "Joshi, Hattikar",
    "experiments/kapre_saxena_joshi_hattikar/joshi-hattikar.md",
    CLAIMS,
    simulated=ns2_metrics,
)
