"""Judges of claims about the dumbbell, which both papers share."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import pandas as pd

from analysis.claims.comparisons import (
    MEASURES,
    RATIO,
    SHARE,
    ComparisonOutcome,
    Contrast,
    Sample,
    all_are,
    contrasts,
    mean,
    relative,
    spread,
    within,
)
from analysis.claims.judgement import ClaimPart, Finding, NumberRow
from analysis.claims.samples import Group, Reference, sample, samples, sweeps
from analysis.metrics.digest import NotMeasured
from analysis.trials.labels import variant_key

METRICS = {
    "throughput_mbps": "throughput_mbps",
    "goodput_mbps": "goodput_mbps",
    "drop_rate": "drop_rate",
    "owd_mean_ms": "oneway_ms",
    "srtt_mean_ms": "rtt_ms",
    "recovery_latency_mean_ms": "recovery_latency_ms",
}
VARIANT_WORDS = {
    "tahoe": "Tahoe",
    "reno": "Reno",
    "newreno": "Newreno",
    "vegas": "Vegas",
    "sack": "Sack1",
}
QUEUE_WORDS = {"droptail": "DropTail", "red": "RED"}
NS2_SETTINGS = {"small": "w20rand", "large": "w1000rand"}  # by window; CBR is jittered, as ours is


def ns2_load(
    reference: Reference,
    variant: str,
    metric: str,
    loads: Collection[float],
    window: str,
    order: str = "",
) -> float:
    """Return ns-2's metric of one TCP flow beside CBR: the mean over the loads."""
    rows = _rows(reference, "exp1_raw.csv", window, "tcp1")
    if rows.empty:
        return math.nan
    rows = rows[(rows["variant"] == VARIANT_WORDS.get(variant)) & rows["cbr_mbps"].isin(loads)]
    if order:
        rows = rows[rows["order"] == order.replace("-", "_")]
    return _mean(rows, METRICS[metric])


def ns2_sweep(
    reference: Reference, variant: str, metric: str, window: str, order: str
) -> list[float]:
    """Return ns-2's metric of one TCP flow beside CBR, at each load."""
    rows = _rows(reference, "exp1_raw.csv", window, "tcp1")
    if rows.empty:
        return []
    chosen = (rows["variant"] == VARIANT_WORDS.get(variant)) & (
        rows["order"] == order.replace("-", "_")
    )
    means = rows[chosen].groupby("cbr_mbps")[METRICS[metric]].mean()
    return [float(each) for each in means]


def ns2_share(reference: Reference, pair: str, loads: Collection[float], window: str) -> float:
    """Return the first flow's share of both TCP flows' throughput in ns-2: the loads' mean."""
    name = "/".join(VARIANT_WORDS.get(each, each) for each in pair.split("/"))
    rates = []
    for flow in ("tcp1", "tcp2"):
        rows = _rows(reference, "exp2_rand_raw.csv", window, flow)
        if rows.empty:
            return math.nan
        own = rows[(rows["pair"] == name) & rows["cbr_mbps"].isin(loads)]
        rates.append(own.groupby("cbr_mbps")["throughput_mbps"].mean())
    return float((rates[0] / (rates[0] + rates[1])).mean())


def ns2_queue(reference: Reference, variant: str, queue: str, metric: str) -> float:
    """Return ns-2's metric of a TCP flow that CBR joins for a while, over its lifetime."""
    rows = _rows(reference, "exp3_raw.csv", "large", "tcp1")
    if rows.empty:
        return math.nan
    chosen = (rows["variant"] == VARIANT_WORDS.get(variant)) & (
        rows["queue"] == QUEUE_WORDS.get(queue)
    )
    return _mean(rows[chosen], METRICS[metric])


def _rows(reference: Reference, name: str, window: str, flow: str) -> pd.DataFrame:
    table = reference.table(name)
    if table.empty:
        return table
    return table[(table["setting"] == NS2_SETTINGS[window or "large"]) & (table["flow"] == flow)]


def _mean(rows: pd.DataFrame, name: str) -> float:
    """Return a metric's mean, or NaN where the table has no such column."""
    return float(rows[name].mean()) if name in rows else math.nan


RIVALS = ("tahoe", "reno", "newreno")
FOUR = (*RIVALS, "vegas")
PROPER = {"tahoe": "Tahoe", "reno": "Reno", "newreno": "NewReno", "vegas": "Vegas"}
LOADS = tuple(range(1, 11))
LOW = tuple(range(1, 7))
CONGESTED = tuple(range(7, 11))
LOAD_CELLS = ("axis_cbr_mbit", "axis_order")
LATENCIES = {
    "recovery latency": "recovery_latency_mean_ms",
    # TCP's own: as in ns-2, it includes the sender's link, behind which packets are captured
    "RTT": "srtt_mean_ms",
    "one-way delay": "owd_mean_ms",
}
NAMES = {
    "throughput_mbps": "throughput",
    "goodput_mbps": "goodput",
    "drop_rate": "drop rate",
    **{metric: name for name, metric in LATENCIES.items()},
}
STEEP = 0.1
STRAIGHT = 0.98
BEND = 0.1


def load_group(group: Group, loads: Sequence[int] = LOADS, variants: Sequence[str] = FOUR) -> Group:
    """Return the TCP flows of these variants, at those of the loads that were run."""
    own = _whole(group.where(flow="tcp")).asked("variant", variants).where(cbr_mbit=loads)
    if own.rows.empty:
        raise NotMeasured(f"no usable trials with {where(loads)}")
    return own


def _whole(group: Group) -> Group:
    """Select the orders of starts that were run at all loads, where there is one."""
    loads = group.values("cbr_mbit")
    orders = [each for each in group.values("order") if _at_all(group.where(order=each), loads)]
    return group.where(order=orders) if orders else group


def _at_all(group: Group, loads: Sequence[object]) -> bool:
    return set(loads) <= set(group.values("cbr_mbit"))


def run_of(group: Group, loads: Sequence[int]) -> tuple[int, ...]:
    """Return the loads that were run with every variant that was run."""
    variants = [each for each in FOUR if each in group.values("variant")]
    there = [set(group.where(variant=each).values("cbr_mbit")) for each in variants]
    return tuple(load for load in loads if all(load in each for each in there))


def where(loads: Sequence[float]) -> str:
    """Write the loads in words."""
    whole = len(loads) > 2 and list(loads) == [loads[0] + step for step in range(len(loads))]
    text = f"{loads[0]:g}–{loads[-1]:g}" if whole else ", ".join(f"{load:g}" for load in loads)
    return f"CBR {text} Mbit/s"


def beside(
    group: Group, metric: str, hero: str, rivals: Sequence[str], loads: Sequence[int]
) -> tuple[Contrast, ...]:
    """Compare one variant with others, averaged over the loads."""
    own = load_group(group, loads, [hero, *rivals])
    found = samples(own.rows, metric, "variant", LOAD_CELLS)
    return contrasts(
        MEASURES[metric],
        [(hero, found.get(hero, {}), each, found.get(each, {})) for each in rivals],
    )


def each_load(
    group: Group, metric: str, hero: str, rivals: Sequence[str], loads: Sequence[int] = LOADS
) -> tuple[Contrast, ...]:
    """Compare one variant with others, load by load."""
    own = load_group(group, loads, [hero, *rivals])
    pairs = []
    for load in own.values("cbr_mbit"):
        found = samples(own.where(cbr_mbit=load).rows, metric, "variant", LOAD_CELLS[1:])
        at = f" at {load:g}"
        pairs += [(hero + at, found.get(hero, {}), each, found.get(each, {})) for each in rivals]
    return contrasts(MEASURES[metric], pairs)


def ratio_within(
    group: Group, hero: str, rival: str, loads: Sequence[int], low: float, high: float
) -> ClaimPart:
    """Judge whether the ratio of two throughputs, averaged over the loads, is within bounds."""
    own = load_group(group, loads, [hero, rival])
    found = samples(own.rows, "throughput_mbps", "variant", LOAD_CELLS)
    ratio = relative(found.get(hero, {}), found.get(rival, {}))
    names = [f"{PROPER.get(each, each)}'s" for each in (hero, rival)]
    what = f"{' to '.join(names)} throughput, {where(run_of(group, loads))},"
    return within(what, RATIO, ratio, low, high)


def load_table(
    group: Group, metric: str, loads: Sequence[int] = LOADS, *, order: str = "", name: str = ""
) -> tuple[NumberRow, ...]:
    """Tabulate every variant that was run at all of these loads, with ns-2's number beside it."""
    own = group.where(flow="tcp")
    own = own.where(order=order) if order else _whole(own)
    orders = [str(each) for each in own.values("order")]
    order = orders[0] if len(orders) == 1 else ""
    loads = run_of(own, loads)
    own = own.where(cbr_mbit=loads)
    whole = [each for each in own.values("variant") if _at_all(own.where(variant=each), loads)]
    found = samples(own.where(variant=whole).rows, metric, "variant", LOAD_CELLS)
    measure = MEASURES[metric]
    label = name or NAMES.get(metric, metric)
    rows = []
    for variant in sorted(found, key=variant_key):
        ns2 = ns2_load(group.reference, variant, metric, loads, group.window, order)
        rows.append(
            NumberRow(
                f"{label}, {variant}, {where(loads)}",
                spread(measure, found[variant]),
                ns2=measure.write(ns2) if math.isfinite(ns2) else "",
            )
        )
    return tuple(rows)


def load_latency_tables(group: Group, loads: Sequence[int] = LOADS) -> tuple[NumberRow, ...]:
    """Tabulate latency over the loads by all three definitions."""
    return tuple(
        row
        for name, metric in LATENCIES.items()
        for row in load_table(group, metric, loads, name=name)
    )


def steps(group: Group, metric: str, variant: str) -> dict[int, pd.Series[float]]:
    """Return by seed how the metric changes from one load to the next (named by the latter)."""
    own = load_group(group, LOADS, [variant])
    found = sweeps(own.rows, metric, "axis_cbr_mbit")
    if found and len(next(iter(found.values()))) < len(LOADS):
        raise NotMeasured("the sweep of CBR from 1 to 10 Mbit/s is incomplete")
    return {seed: sweep.diff().dropna() for seed, sweep in found.items()}


FAIR = 0.05
HALF = 0.5
PAIR_CELLS = ("axis_cbr_mbit", "position")


def shares(group: Group, first: str, second: str) -> pd.DataFrame:
    """Return one row per trial of the pair, in either position.

    A row has the first variant's `share`, and both drop rates.
    """
    # a pair of the same variant has one position, and its first flow counts as the first
    names = {f"{second}/{first}": ("tcp2", "tcp1")} | {f"{first}/{second}": ("tcp1", "tcp2")}
    if not set(names) & set(group.values("pair")):
        raise NotMeasured(
            f"no usable trials of the pair {first}/{second} (profile {group.profile})",
            f"testbed run {group.experiment}",
        )
    parts = []
    for pair, (one, other) in names.items():
        rows = group.where(pair=pair).rows
        own, others = (rows[rows["flow"] == flow].set_index("trial") for flow in (one, other))
        theirs = others["throughput_mbps"].reindex(own.index)
        parts.append(
            own.assign(
                share=own["throughput_mbps"] / (own["throughput_mbps"] + theirs),
                other_drop_rate=others["drop_rate"].reindex(own.index),
                position=pair,
            ).reset_index()
        )
    found = pd.concat(parts, ignore_index=True)
    return found.assign(imbalance=(found["share"] - HALF).abs())


def fair(group: Group, variant: str) -> Finding:
    """Judge whether two flows of one variant share evenly."""
    found = shares(group, variant, variant)
    own = sample(found, "share", PAIR_CELLS)
    what = f"share of the first {variant} flow, {loads_of(found)},"
    part = within(what, SHARE, own, HALF - FAIR, HALF + FAIR)
    rows = (*share_rows(group, found, variant, variant), _single_runs(found))
    return Finding((part,), rows)


def takes_more(group: Group, winner: str, loser: str) -> Finding:
    """Judge whether the winner has more than half, averaged over the loads."""
    found = shares(group, winner, loser)
    part = takes_more_part(winner, found)
    return Finding((part,), share_rows(group, found, winner, loser))


def takes_more_part(winner: str, found: pd.DataFrame) -> ClaimPart:
    """Compare the winner's share with a half, averaged over the loads."""
    own = sample(found, "share", PAIR_CELLS)
    half = dict.fromkeys(own, HALF)
    return all_are(
        ComparisonOutcome.ABOVE,
        contrasts(SHARE, [(f"{winner}'s share", own, "a half", half)]),
        loads_of(found),
    )


def loads_of(found: pd.DataFrame) -> str:
    """Write the loads that were run: a profile may have fewer than the paper."""
    return where(sorted(found["axis_cbr_mbit"].unique()))


def share_rows(group: Group, found: pd.DataFrame, first: str, second: str) -> tuple[NumberRow, ...]:
    """Tabulate the pair's share: the mean of the loads, then load by load."""
    loads = sorted(found["axis_cbr_mbit"].unique())
    pair = f"{first}/{second}"
    rows = [_share_row(group, pair, f"share of {first} in {pair}, mean of the loads", found, loads)]
    for load in loads:
        at = found[found["axis_cbr_mbit"] == load]
        rows.append(_share_row(group, pair, f"the same at CBR {load:g} Mbit/s", at, [load]))
    return tuple(rows)


def _share_row(
    group: Group, pair: str, what: str, found: pd.DataFrame, loads: list[float]
) -> NumberRow:
    ns2 = ns2_share(group.reference, pair, loads, group.window)
    return NumberRow(
        what,
        spread(SHARE, sample(found, "share", PAIR_CELLS)),
        ns2=SHARE.write(ns2) if math.isfinite(ns2) else "",
    )


def _single_runs(found: pd.DataFrame) -> NumberRow:
    """Report the largest share in any single trial, which a mean hides."""
    worst = float((found["imbalance"] + HALF).max())
    typical = mean(sample(found, "imbalance", PAIR_CELLS))
    return NumberRow(
        "single trials: mean distance from a half, largest share",
        f"{SHARE.write(typical)}, {SHARE.write(worst)}",
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


CASES = tuple((variant, queue) for variant in ("reno", "sack") for queue in ("droptail", "red"))


def case(group: Group, variant: str, queue: str) -> Group:
    """Return the trials of a variant through a queue."""
    return group.asked("variant", [variant]).asked("queue", [queue])


def queue_sample(group: Group, metric: str, variant: str, queue: str) -> Sample:
    """Return the TCP flow's metric by seed."""
    return sample(case(group, variant, queue).where(flow="tcp").rows, metric)


def label(variant: str, queue: str) -> str:
    """Name a variant and its queue, as `SACK + RED`."""
    names = {"droptail": "DropTail", "red": "RED", "sack": "SACK", "reno": "Reno"}
    return f"{names.get(variant, variant)} + {names.get(queue, queue)}"


def ordered(
    group: Group,
    metric: str,
    *pairs: tuple[tuple[str, str], tuple[str, str]],
    printed: Sequence[tuple[float, float]] = (),
) -> tuple[Contrast, ...]:
    """Compare cases in pairs, of which the paper may print numbers."""
    return contrasts(
        MEASURES[metric],
        [
            (label(*a), queue_sample(group, metric, *a), label(*b), queue_sample(group, metric, *b))
            for a, b in pairs
        ],
        printed,
    )


def queue_table(group: Group, metric: str, name: str = "") -> tuple[NumberRow, ...]:
    """Tabulate every variant and queue that was run, with ns-2's number beside it."""
    measure = MEASURES[metric]
    rows = []
    cases = group.where(flow="tcp").rows.groupby(["variant", "axis_queue"], sort=False)
    named = [(str(variant), str(queue), own) for (variant, queue), own in cases]
    for variant, queue, own in sorted(named, key=lambda each: _papers_first(each[0], each[1])):
        ns2 = ns2_queue(group.reference, variant, queue, metric)
        rows.append(
            NumberRow(
                f"{name or NAMES[metric]}, {label(variant, queue)}",
                spread(measure, sample(own, metric)),
                ns2=measure.write(ns2) if math.isfinite(ns2) else "",
            )
        )
    return tuple(rows)


def _papers_first(variant: str, queue: str) -> tuple[int, str, str]:
    """Return a sort key: the papers' cases, then the others in alphabetical order."""
    case = (variant, queue)
    return CASES.index(case) if case in CASES else len(CASES), variant, queue


def queue_latency_tables(group: Group) -> tuple[NumberRow, ...]:
    """Tabulate latency by queue by all three definitions, over the whole trial."""
    return tuple(
        row for name, metric in LATENCIES.items() for row in queue_table(group, metric, name)
    )


def red_below(group: Group, metric: str) -> ClaimPart:
    """Judge whether RED is below DropTail for both variants."""
    pairs = [((variant, "red"), (variant, "droptail")) for variant in ("reno", "sack")]
    return all_are(ComparisonOutcome.BELOW, ordered(group, metric, *pairs))


def setting_row(group: Group) -> NumberRow:
    """Report the settings of DropTail and RED: the papers state neither thresholds nor unit."""
    pairs = group.where(flow="tcp").rows[["axis_queue", "queue"]].drop_duplicates()
    settings = ", ".join(
        f"{name}: {queue}"
        for name, queue in pairs.itertuples(index=False)
        if name in ("droptail", "red")
    )
    return NumberRow("settings of the papers' queues", settings, "not stated")
