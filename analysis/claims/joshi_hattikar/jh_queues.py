"""JH's third experiment: one function per claim."""

from __future__ import annotations

import math

import pandas as pd

from analysis.claims.dumbbell.load_judges import LATENCIES
from analysis.claims.dumbbell.ns2_means import ns2_queue
from analysis.claims.dumbbell.phase_judges import Stretch, phases
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
from analysis.claims.engine.answers import Finding, JudgedPart, Part, Row, by_definition, merged
from analysis.claims.engine.contrasts import (
    Outcome,
    Sample,
    all_are,
    contrasts,
    relative,
    spread,
    within,
)
from analysis.claims.engine.quantities import DELAY, DROPS, RATE, RATIO, SHARE
from analysis.claims.engine.selection import Group
from analysis.claims.joshi_hattikar.jh_numbers import (
    JH_DROP_RATES,
    JH_LATENCIES_S,
    JH_OSCILLATION_MBPS,
)

PAPERS_DROPS = 0.25
PAPERS_LATENCY = 0.02


STEADY = 0.1


def printed_drop_rates(group: Group) -> Finding:
    """The paper's four drop rates, each within 25 %."""
    parts, rows = [], []
    found = {each: tcp(group, "drop_rate", *each) for each in CASES}
    for each, theirs in JH_DROP_RATES.items():
        bounds = theirs * (1 - PAPERS_DROPS), theirs * (1 + PAPERS_DROPS)
        parts.append(within(f"drop rate, {label(*each)},", DROPS, found[each], *bounds))
        ns2 = ns2_queue(group.reference, *each, "drop_rate")
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
            ns2_queue(group.reference, variant, each, "drop_rate") for each in ("red", "droptail")
        )
        rows.append(
            Row(
                f"ratio of RED's to DropTail's, {variant}",
                spread(RATIO, ours),
                RATIO.write(theirs),
                RATIO.write(red / droptail) if math.isfinite(red / droptail) else "",
            )
        )
    return Finding(tuple(parts), (*rows, setting_row(group)))


def printed_latencies(group: Group) -> Finding:
    """By one definition, the same for all, the paper's four latencies are met within 2 %."""
    readings: list[Part] = []
    rows: list[Row] = []
    for name, metric in LATENCIES.items():
        parts = []
        for each, theirs_s in JH_LATENCIES_S.items():
            theirs = 1e3 * theirs_s
            bounds = theirs * (1 - PAPERS_LATENCY), theirs * (1 + PAPERS_LATENCY)
            ours = tcp(group, metric, *each)
            parts.append(within(f"{name}, {label(*each)},", DELAY, ours, *bounds))
            ns2 = ns2_queue(group.reference, *each, metric)
            rows.append(
                Row(
                    f"{name}, {label(*each)}",
                    spread(DELAY, ours),
                    DELAY.write(theirs),
                    DELAY.write(ns2) if math.isfinite(ns2) else "",
                )
            )
        readings.append(merged(parts, _worst))
    return Finding((merged(readings, _best),), tuple(rows))


def _worst(results: tuple[JudgedPart, ...]) -> JudgedPart:
    """The one that decides whether all hold."""
    return max(results, key=_place)


def _best(results: tuple[JudgedPart, ...]) -> JudgedPart:
    return min(results, key=_place)


def _place(result: JudgedPart) -> int:
    return ("supported", "open", "contradicted").index(result.verdict)


def red_least(group: Group) -> Finding:
    """With RED the drop rate and the latency are lower for both variants."""
    latency = by_definition(
        "latency", ((name, red_below(group, metric)) for name, metric in LATENCIES.items())
    )
    rows = (*table(group, "drop_rate", "drop rate"), *latency_tables(group))
    return Finding((red_below(group, "drop_rate"), latency), (*rows, setting_row(group)))


def over_time(group: Group) -> Finding:
    """At its maximum before CBR starts; beside CBR between 6 and 10 Mbit/s for more than half of
    the seconds; SACK carries more than Reno in the five seconds from CBR's start."""
    low, high = JH_OSCILLATION_MBPS
    times = phases(group)
    parts: list[Part] = []
    rows: list[Row] = []
    onset: dict[str, Sample] = {}
    for variant in ("reno", "sack"):
        found = moments.seconds(case(group, variant, "droptail"))
        before = moments.rate(found, "tcp", *times.before)
        beside = moments.rate(found, "tcp", *times.beside)
        onset[variant] = moments.rate(found, "tcp", *times.onset)
        falls = [(f"{variant} before CBR", before, "beside it", beside)]
        parts.append(all_are(Outcome.ABOVE, contrasts(RATE, falls, paired=True)))
        part = moments.each_seed(found, lambda t: _between(t, times.beside, low, high))
        what = f"{variant}: fraction of the seconds beside CBR with {low:g} to {high:g} Mbit/s"
        parts.append(within(what, SHARE, part, low=0.5))
        carried = moments.rate(found, "cbr", *times.beside)
        both = {seed: beside[seed] + carried[seed] for seed in beside}
        peak = moments.each_seed(found, lambda t: _most(t, times.beside))
        rows += [
            Row(f"throughput before CBR, {variant}", spread(RATE, before)),
            Row(
                f"throughput beside CBR, {variant}",
                spread(RATE, beside),
                f"{low:g} to {high:g} Mbit/s",
            ),
            Row(f"TCP and CBR together beside CBR, {variant}", spread(RATE, both)),
            Row(f"highest second beside CBR, {variant}", spread(RATE, peak)),
            Row(f"throughput in the first 5 s of CBR, {variant}", spread(RATE, onset[variant])),
        ]
    faster = [("SACK's first 5 s beside CBR", onset["sack"], "Reno's", onset["reno"])]
    parts.append(all_are(Outcome.ABOVE, contrasts(RATE, faster, paired=True)))
    return Finding(tuple(parts), tuple(rows))


def _between(table: pd.DataFrame, during: Stretch, low: float, high: float) -> float:
    return float(moments.phase(table, "tcp", *during).between(low, high).mean())


def _most(table: pd.DataFrame, during: Stretch) -> float:
    return float(moments.phase(table, "tcp", *during).max())


def steady_with_red(group: Group) -> Finding:
    """SACK + RED: steady before CBR and beside it, and above SACK + DropTail."""
    times = phases(group)
    stretches = (("before CBR", times.before), ("beside CBR", times.beside))
    found = moments.seconds(case(group, "sack", "red"))
    parts = [
        within(f"coefficient of variation {name}", RATIO, _variation(found, during), high=STEADY)
        for name, during in stretches
    ]
    above = ordered(group, "throughput_mbps", (("sack", "red"), ("sack", "droptail")))
    parts.append(all_are(Outcome.ABOVE, above))
    other = moments.seconds(case(group, "sack", "droptail"))
    rows = [
        Row(f"coefficient of variation {name}, {queue}", spread(RATIO, _variation(each, during)))
        for queue, each in (("RED", found), ("DropTail", other))
        for name, during in stretches
    ]
    return Finding(tuple(parts), (*table(group, "throughput_mbps"), *rows))


def _variation(found: dict[int, list[pd.DataFrame]], during: Stretch) -> Sample:
    def of(table: pd.DataFrame) -> float:
        own = moments.phase(table, "tcp", *during)
        return float(own.std() / own.mean()) if own.mean() else math.nan

    return moments.each_seed(found, of)
