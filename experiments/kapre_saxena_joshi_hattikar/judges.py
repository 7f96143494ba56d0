"""Judges of claims about the dumbbell, which both papers share."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from analysis.claims.comparisons import (
    MEASURES,
    RATIO,
    SHARE,
    ClaimMeasure,
    ComparisonOutcome,
    Contrast,
    Sample,
    all_are,
    contrasts,
    in_most,
    relative,
    spread,
    within,
)
from analysis.claims.judgement import ClaimPart, Finding, NumberRow
from analysis.claims.samples import Group, sample, samples, sweeps
from analysis.metrics.digest import NotMeasured
from analysis.trials.labels import variant_key
from experiments.kapre_saxena_joshi_hattikar.dumbbell_pairs import PAIR_LOADS
from experiments.kapre_saxena_joshi_hattikar.dumbbell_settings import DUMBBELL_LOADS

RIVALS = ("tahoe", "reno", "newreno")
FOUR = (*RIVALS, "vegas")
LOADS = DUMBBELL_LOADS
LOW = tuple(load for load in LOADS if load < 7)
CONGESTED = tuple(load for load in LOADS if load >= 7)
LOAD_AXIS = "axis_cbr_mbit"
HIGHER, LOWER = ComparisonOutcome.ABOVE, ComparisonOutcome.BELOW
LATENCIES = {
    "recovery latency": "recovery_latency_mean_ms",
    # TCP's own: as in ns-2, it includes the sender's link, behind which packets are captured
    "RTT": "srtt_mean_ms",
    "one-way delay": "owd_mean_ms",
}
HALF_PACKET = ClaimMeasure(
    *("ms", 2),
    absolute=0.4,
    why="half of the time of a packet of 1000 bytes at 10 Mbit/s",
)
DUMBBELL_MEASURES = {**MEASURES, **dict.fromkeys(LATENCIES.values(), HALF_PACKET)}
NAMES = {
    "throughput_mbps": "throughput",
    "goodput_mbps": "goodput",
    "drop_rate": "drop rate",
    **{metric: name for name, metric in LATENCIES.items()},
}


def where(loads: Sequence[float]) -> str:
    """Write the loads in words."""
    run = [load for load in LOADS if loads[0] <= load <= loads[-1]]
    is_run = len(loads) > 2 and list(loads) == run
    ends = f"{loads[0]:g}–{loads[-1]:g}"
    return f"CBR {ends if is_run else ', '.join(f'{load:g}' for load in loads)} Mbit/s"


AT_PAIR_LOADS = where(PAIR_LOADS)


def at_loads(group: Group, loads: Sequence[float], variants: Collection[str]) -> Group:
    """Return the TCP flows of these variants, at those of the loads that were run."""
    at_load = group.where(flow="tcp").asked("variant", variants).where(cbr_mbit=loads)
    if at_load.rows.empty:
        raise NotMeasured(f"no usable trials with {where(loads)}")
    return at_load


def load_samples(
    group: Group, metric: str, loads: Sequence[float], variants: Collection[str] = FOUR
) -> dict[str, Sample]:
    """Return each variant's mean over the loads, by seed."""
    return samples(at_loads(group, loads, variants).rows, metric, "variant", (LOAD_AXIS,))


def load_sweeps(group: Group, metric: str, variant: str) -> dict[int, pd.Series[float]]:
    """Return a variant's metric over all loads, by seed."""
    by_network = sweeps(at_loads(group, LOADS, [variant]).rows, metric, "axis_cbr_mbit")
    if by_network and len(next(iter(by_network.values()))) < len(LOADS):
        raise NotMeasured("the sweep of CBR from 2 to 10 Mbit/s is incomplete")
    return by_network


def steps(group: Group, metric: str, variant: str) -> dict[int, pd.Series[float]]:
    """Return by seed how the metric changes from one load to the next (named by the latter)."""
    sweeps_of_networks = load_sweeps(group, metric, variant)
    return {seed: sweep.diff().dropna() for seed, sweep in sweeps_of_networks.items()}


def outermost(
    by_name: Mapping[str, Sample], names: Sequence[str], wanted: ComparisonOutcome
) -> Sample:
    """Return the highest of several samples in each network; the lowest for what is below."""
    choose = max if wanted is HIGHER else min
    of_names = [by_name.get(name, {}) for name in names]
    seeds = sorted(set.intersection(*(set(each) for each in of_names)))
    return {seed: choose(each[seed] for each in of_names) for seed in seeds}


def beyond_all(
    measure: ClaimMeasure,
    wanted: ComparisonOutcome,
    hero: str,
    by_name: Mapping[str, Sample],
    rivals: Sequence[str] = RIVALS,
    where: str = "",
) -> ClaimPart:
    """Require that one is above, or below, all others: one other is enough to contradict it.

    It is compared with the highest, or lowest, of the others in each network.
    """
    other = outermost(by_name, rivals, wanted)
    side = "highest" if wanted is HIGHER else "lowest"
    pair = hero, by_name.get(hero, {}), f"the {side} of the others", other
    return all_are(wanted, contrasts(measure, [pair]), where)


def leads(
    group: Group,
    metric: str,
    wanted: ComparisonOutcome,
    loads: Sequence[float],
    hero: str = "vegas",
    rivals: Sequence[str] = RIVALS,
) -> ClaimPart:
    """Require that a variant's mean over the loads is above, or below, that of all others."""
    by_variant = load_samples(group, metric, loads, [hero, *rivals])
    return beyond_all(DUMBBELL_MEASURES[metric], wanted, hero, by_variant, rivals, where(loads))


def in_networks(
    group: Group, metric: str, wanted: ComparisonOutcome, loads: Sequence[float]
) -> dict[int, bool]:
    """Return by seed whether Vegas's mean over the loads is the highest, or lowest, of the four."""
    by_variant = load_samples(group, metric, loads)
    others = outermost(by_variant, RIVALS, wanted)
    sign = 1 if wanted is HIGHER else -1
    vegas = by_variant["vegas"]
    return {seed: sign * (vegas[seed] - other) > 0 for seed, other in others.items()}


def of_all(holds: Mapping[int, bool]) -> str:
    """Write in how many of the networks something holds."""
    return f"{sum(holds.values())} of {len(holds)}"


def at_each_load(
    group: Group, metric: str, wanted: ComparisonOutcome
) -> tuple[ClaimPart, dict[str, ClaimPart], tuple[NumberRow, ...]]:
    """Require that Vegas is the highest, or lowest, at each load in most networks.

    Beside that: at each low load, and under congestion; and by load the number of networks.
    """
    side = "highest" if wanted is HIGHER else "lowest"
    first = {load: in_networks(group, metric, wanted, [load]) for load in LOADS}

    def at(loads: Sequence[float]) -> dict[int, bool]:
        return {seed: all(first[load][seed] for load in loads) for seed in first[loads[0]]}

    def part(loads: Sequence[float]) -> ClaimPart:
        return in_most(f"Vegas {side} at each of {where(loads)}", at(loads))

    counted = {"each of them": at(LOADS)} | {f"CBR {load:g} Mbit/s": first[load] for load in LOADS}
    rows = tuple(
        NumberRow(f"networks in which Vegas is {side} at {load}", of_all(holds))
        for load, holds in counted.items()
    )
    beside = {f"at each of {where(loads)}": part(loads) for loads in (LOW, CONGESTED)}
    return part(LOADS), beside, rows


def ratio_within(
    group: Group, hero: str, rival: str, loads: Sequence[float], low: float, high: float
) -> ClaimPart:
    """Judge whether the ratio of two throughputs, averaged over the loads, is within bounds."""
    by_variant = load_samples(group, "throughput_mbps", loads, [hero, rival])
    ratio = relative(by_variant.get(hero, {}), by_variant.get(rival, {}))
    return within(f"{hero}'s to {rival}'s throughput, {where(loads)},", RATIO, ratio, low, high)


def load_rows(
    group: Group, metric: str, loads: Sequence[float] = LOADS, name: str = ""
) -> tuple[NumberRow, ...]:
    """Tabulate every variant that was run at these loads."""
    chosen = group.where(flow="tcp").where(cbr_mbit=loads)
    samples_by_load = samples(chosen.rows, metric, "variant", (LOAD_AXIS,))
    label, measure = name or NAMES[metric], DUMBBELL_MEASURES[metric]
    return tuple(
        NumberRow(f"{label}, {variant}, {where(loads)}", spread(measure, samples_by_load[variant]))
        for variant in sorted(samples_by_load, key=variant_key)
    )


def load_latency_rows(group: Group) -> tuple[NumberRow, ...]:
    """Tabulate latency over the loads by all three definitions."""
    return tuple(row for metric in LATENCIES.values() for row in load_rows(group, metric))


FAIR = 0.05
HALF = 0.5


def shares(group: Group, first: str, second: str) -> pd.DataFrame:
    """Return one row per trial of the pair: the first flow's `share`, and both drop rates."""
    rows = group.asked("pair", [f"{first}/{second}"]).rows
    flow_rows, others = (rows[rows["flow"] == flow].set_index("trial") for flow in ("tcp1", "tcp2"))
    theirs = others["throughput_mbps"].reindex(flow_rows.index)
    table = flow_rows.assign(
        share=flow_rows["throughput_mbps"] / (flow_rows["throughput_mbps"] + theirs),
        other_drop_rate=others["drop_rate"].reindex(flow_rows.index),
    )
    return table.assign(imbalance=(table["share"] - HALF).abs()).reset_index()


def fair(group: Group, variant: str) -> Finding:
    """Judge whether two flows of one variant share evenly."""
    table = shares(group, variant, variant)
    sample_of_share = sample(table, "share", (LOAD_AXIS,))
    what = f"share of the first {variant} flow, {loads_of(table)},"
    part = within(what, SHARE, sample_of_share, HALF - FAIR, HALF + FAIR)
    single = NumberRow(
        "largest share of a flow in any trial",
        SHARE.write(float((table["imbalance"] + HALF).max())),
    )
    return Finding((part,), (*share_rows(table, f"{variant}/{variant}"), single))


def takes_more(group: Group, winner: str, loser: str) -> Finding:
    """Judge whether the winner has more than half, averaged over the loads."""
    table = shares(group, winner, loser)
    return Finding((takes_more_part(winner, table),), share_rows(table, f"{winner}/{loser}"))


def takes_more_part(winner: str, table: pd.DataFrame) -> ClaimPart:
    """Compare the winner's share with a half, averaged over the loads."""
    compared = [beside_half(f"{winner}'s share", table)]
    return all_are(HIGHER, contrasts(SHARE, compared), loads_of(table))


def beside_half(what: str, table: pd.DataFrame) -> tuple[str, Sample, str, Sample]:
    """Pair the shares, averaged over the loads, with a half."""
    sample_of_share = sample(table, "share", (LOAD_AXIS,))
    return what, sample_of_share, "a half", dict.fromkeys(sample_of_share, HALF)


def loads_of(table: pd.DataFrame) -> str:
    """Write the loads that were run."""
    return where(sorted(table[LOAD_AXIS].unique()))


def share_rows(table: pd.DataFrame, pair: str) -> tuple[NumberRow, ...]:
    """Tabulate the share of the pair's first: the mean of the loads, then load by load."""
    whole = f"share of {pair.partition('/')[0]} in {pair}, mean of the loads"
    parts = {whole: table} | {
        f"the same at CBR {load:g} Mbit/s": rows for load, rows in table.groupby(LOAD_AXIS)
    }
    return tuple(
        NumberRow(what, spread(SHARE, sample(rows, "share", (LOAD_AXIS,))))
        for what, rows in parts.items()
    )


ONSET_S = 5

Stretch = tuple[float, float]


@dataclass(frozen=True)
class Phases:
    """Stretches of a trial, in whole seconds."""

    before: Stretch
    beside: Stretch
    onset: Stretch


def phases(group: Group) -> Phases:
    """Divide the trials into stretches by when their CBR ran."""
    cbr = group.where(flow="cbr").rows
    if cbr.empty or cbr["start_s"].isna().all():
        raise NotMeasured("the trials have no CBR flow")
    start = round(float(cbr["start_s"].median()))
    stop = start + round(float(cbr["duration_s"].median()))
    if start < 4 or stop < start + 2:
        raise NotMeasured(
            f"CBR ran from {start} to {stop}  s: too short to separate before from beside"
        )
    return Phases((start / 4, start), (start + 1, stop), (start, min(stop, start + ONSET_S)))


TCPS = ("reno", "sack")
CASES = tuple((variant, queue) for variant in TCPS for queue in ("droptail", "red"))
QUEUE_LATENCIES = {
    "TCP's RTT": ("srtt_mean_ms", "tcp"),
    "TCP's one-way delay": ("owd_mean_ms", "tcp"),
    "CBR's one-way delay": ("owd_mean_ms", "cbr"),
}


def case(group: Group, variant: str, queue: str) -> Group:
    """Return the trials of a variant through a queue."""
    return group.asked("variant", [variant]).asked("queue", [queue])


def queue_samples(group: Group, metric: str, flow: str = "tcp") -> dict[tuple[str, str], Sample]:
    """Return a flow's metric by variant and queue, and by seed."""
    return {each: sample(case(group, *each).where(flow=flow).rows, metric) for each in CASES}


def label(variant: str, queue: str) -> str:
    """Name a variant and its queue, as `SACK + RED`."""
    names = {"droptail": "DropTail", "red": "RED", "sack": "SACK", "reno": "Reno"}
    return f"{names[variant]} + {names[queue]}"


def ordered(
    measure: ClaimMeasure,
    by_place: Mapping[tuple[str, str], Sample],
    *pairs: tuple[tuple[str, str], tuple[str, str]],
    printed: Sequence[tuple[float, float]] = (),
) -> tuple[Contrast, ...]:
    """Compare cases in pairs, of which the paper may print numbers."""
    pairs_of_samples = [(label(*a), by_place[a], label(*b), by_place[b]) for a, b in pairs]
    return contrasts(measure, pairs_of_samples, printed)


RED_AND_DROPTAIL = tuple(((variant, "red"), (variant, "droptail")) for variant in TCPS)


def red_below(
    measure: ClaimMeasure,
    by_place: Mapping[tuple[str, str], Sample],
    printed: Mapping[tuple[str, str], float] | None = None,
) -> ClaimPart:
    """Judge whether RED is below DropTail for both variants, by half of what the paper prints."""
    theirs = [(printed[a], printed[b]) for a, b in RED_AND_DROPTAIL] if printed else []
    compared = ordered(measure, by_place, *RED_AND_DROPTAIL, printed=theirs)
    return all_are(LOWER, compared)


def queue_rows(
    measure: ClaimMeasure,
    name: str,
    by_place: Mapping[tuple[str, str], Sample],
    printed: Mapping[tuple[str, str], float] | None = None,
) -> tuple[NumberRow, ...]:
    """Tabulate the papers' four cases, with what the paper prints."""
    return tuple(
        NumberRow(
            f"{name}, {label(*each)}",
            spread(measure, rates),
            measure.write(printed[each]) if printed else "",
        )
        for each, rates in by_place.items()
    )


def red_latency(
    group: Group,
    names: Collection[str],
    printed_ms: Mapping[tuple[str, str], float] | None = None,
) -> tuple[dict[str, ClaimPart], tuple[NumberRow, ...]]:
    """Judge for several definitions of latency whether it is lower with RED, with the numbers."""
    parts: dict[str, ClaimPart] = {}
    rows: list[NumberRow] = []
    for name in names:
        by_place = queue_samples(group, *QUEUE_LATENCIES[name])
        parts[name] = red_below(HALF_PACKET, by_place, printed_ms)
        rows += queue_rows(HALF_PACKET, name, by_place, printed_ms)
    return parts, tuple(rows)
