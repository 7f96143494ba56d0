"""One TCP flow beside CBR of 1 to 10 Mbit/s: the shared tests of the papers' first experiments.

The bounds, chosen beforehand. *Low* is CBR up to 6 Mbit/s and *congested* from 7 on, where KS see
congestion begin. A *steep* rise of latency is a step of 10 % of the latency at CBR 1 from one load
to the next: a full queue of ten packets adds 8.3 ms, 13 % of the idle round trip. *Linear* is a
straight line with R² of at least 0.98 whose quadratic term bends it by at most 10 % of its range.

Variants are compared seed by seed: trials of one seed share its CBR, packet by packet.

An order of starts (CBR or TCP first) that was run only at some of the loads does not count: a sweep
with a different mix of orders at every other load would zigzag.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import pandas as pd

from analysis.claims.dumbbell.ns2_means import ns2_load
from analysis.claims.engine.answers import Part, Row
from analysis.claims.engine.contrasts import Contrast, contrasts, relative, spread, within
from analysis.claims.engine.quantities import MEASURES, RATIO
from analysis.claims.engine.selection import Group, samples, sweeps
from analysis.metrics.digest import NotMeasured
from analysis.trials.labels import variant_key

RIVALS = ("tahoe", "reno", "newreno")
FOUR = (*RIVALS, "vegas")
PROPER = {"tahoe": "Tahoe", "reno": "Reno", "newreno": "NewReno", "vegas": "Vegas"}
LOADS = tuple(range(1, 11))
LOW = tuple(range(1, 7))
CONGESTED = tuple(range(7, 11))
CELLS = ("axis_cbr_mbit", "axis_order")
LATENCIES = {
    "recovery latency": "recovery_latency_mean_ms",
    "RTT": "rtt_mean_ms",
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


def tcp(group: Group, loads: Sequence[int] = LOADS, variants: Sequence[str] = FOUR) -> Group:
    """The TCP flows of these variants, at those of the loads that were run."""
    own = _whole(group.where(flow="tcp")).asked("variant", variants).where(cbr_mbit=loads)
    if own.rows.empty:
        raise NotMeasured(f"no usable trials with {where(loads)}")
    return own


def _whole(group: Group) -> Group:
    """Only orders that were run at all loads, where there is one."""
    loads = group.values("cbr_mbit")
    orders = [each for each in group.values("order") if _at_all(group.where(order=each), loads)]
    return group.where(order=orders) if orders else group


def _at_all(group: Group, loads: Sequence[object]) -> bool:
    return set(loads) <= set(group.values("cbr_mbit"))


def run_of(group: Group, loads: Sequence[int]) -> tuple[int, ...]:
    """The loads that were run with every variant that was run."""
    variants = [each for each in FOUR if each in group.values("variant")]
    there = [set(group.where(variant=each).values("cbr_mbit")) for each in variants]
    return tuple(load for load in loads if all(load in each for each in there))


def where(loads: Sequence[float]) -> str:
    """The loads, in words."""
    whole = len(loads) > 2 and list(loads) == [loads[0] + step for step in range(len(loads))]
    text = f"{loads[0]:g}–{loads[-1]:g}" if whole else ", ".join(f"{load:g}" for load in loads)
    return f"CBR {text} Mbit/s"


def beside(
    group: Group, metric: str, hero: str, rivals: Sequence[str], loads: Sequence[int]
) -> tuple[Contrast, ...]:
    """One variant compared with others, averaged over the loads."""
    own = tcp(group, loads, [hero, *rivals])
    found = samples(own.rows, metric, "variant", CELLS)
    return contrasts(
        MEASURES[metric],
        [(hero, found.get(hero, {}), each, found.get(each, {})) for each in rivals],
        paired=True,
    )


def each_load(
    group: Group, metric: str, hero: str, rivals: Sequence[str], loads: Sequence[int] = LOADS
) -> tuple[Contrast, ...]:
    """The same, load by load."""
    own = tcp(group, loads, [hero, *rivals])
    pairs = []
    for load in own.values("cbr_mbit"):
        found = samples(own.where(cbr_mbit=load).rows, metric, "variant", CELLS[1:])
        at = f" at {load:g}"
        pairs += [(hero + at, found.get(hero, {}), each, found.get(each, {})) for each in rivals]
    return contrasts(MEASURES[metric], pairs, paired=True)


def ratio_within(
    group: Group, hero: str, rival: str, loads: Sequence[int], low: float, high: float
) -> Part:
    """Judge whether the ratio of two throughputs, averaged over the loads, is within bounds."""
    own = tcp(group, loads, [hero, rival])
    found = samples(own.rows, "throughput_mbps", "variant", CELLS)
    ratio = relative(found.get(hero, {}), found.get(rival, {}))
    names = [f"{PROPER.get(each, each)}'s" for each in (hero, rival)]
    what = f"{' to '.join(names)} throughput, {where(run_of(group, loads))},"
    return within(what, RATIO, ratio, low, high)


def table(
    group: Group, metric: str, loads: Sequence[int] = LOADS, *, order: str = "", name: str = ""
) -> tuple[Row, ...]:
    """Every variant that was run at all of these loads, and ns-2's number beside it."""
    own = group.where(flow="tcp")
    own = own.where(order=order) if order else _whole(own)
    orders = [str(each) for each in own.values("order")]
    order = orders[0] if len(orders) == 1 else ""
    loads = run_of(own, loads)
    own = own.where(cbr_mbit=loads)
    whole = [each for each in own.values("variant") if _at_all(own.where(variant=each), loads)]
    found = samples(own.where(variant=whole).rows, metric, "variant", CELLS)
    measure = MEASURES[metric]
    label = name or NAMES.get(metric, metric)
    rows = []
    for variant in sorted(found, key=variant_key):
        ns2 = ns2_load(group.reference, variant, metric, loads, group.window, order)
        rows.append(
            Row(
                f"{label}, {variant}, {where(loads)}",
                spread(measure, found[variant]),
                ns2=measure.write(ns2) if math.isfinite(ns2) else "",
            )
        )
    return tuple(rows)


def latency_tables(group: Group, loads: Sequence[int] = LOADS) -> tuple[Row, ...]:
    """By all three definitions."""
    return tuple(
        row for name, metric in LATENCIES.items() for row in table(group, metric, loads, name=name)
    )


def steps(group: Group, metric: str, variant: str) -> dict[int, pd.Series[float]]:
    """By seed, how the metric changes from one load to the next (named by the latter)."""
    own = tcp(group, LOADS, [variant])
    found = sweeps(own.rows, metric, "axis_cbr_mbit")
    if found and len(next(iter(found.values()))) < len(LOADS):
        raise NotMeasured("the sweep of CBR from 1 to 10 Mbit/s is incomplete")
    return {seed: sweep.diff().dropna() for seed, sweep in found.items()}
