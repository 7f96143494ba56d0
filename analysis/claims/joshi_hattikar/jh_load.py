"""JH's first experiment: one function per claim."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from analysis.claims.dumbbell.load_judges import (
    BEND,
    CONGESTED,
    FOUR,
    LATENCIES,
    LOADS,
    LOW,
    RIVALS,
    STRAIGHT,
    beside,
    each_load,
    latency_tables,
    ratio_within,
    run_of,
    steps,
    table,
    tcp,
    where,
)
from analysis.claims.engine.answers import Finding, Row, by_definition
from analysis.claims.engine.contrasts import Outcome, all_are, contrasts, spread, within
from analysis.claims.engine.quantities import MEASURES, RATIO
from analysis.claims.engine.selection import Group, sweeps

MOST = 0.55  # of ten loads: six


def vegas_above_all(group: Group) -> Finding:
    """Vegas is above every other at every load; NewReno is next on average."""
    every = all_are(Outcome.ABOVE, each_load(group, "throughput_mbps", "vegas", RIVALS))
    second = all_are(
        Outcome.ABOVE,
        beside(group, "throughput_mbps", "newreno", ("reno", "tahoe"), LOADS),
        "NewReno next, mean of the loads",
    )
    return Finding((every, second), table(group, "throughput_mbps"))


def newreno_and_reno(group: Group) -> Finding:
    """Alike (within 5 %) at low CBR, NewReno ahead under congestion."""
    alike = ratio_within(group, "newreno", "reno", LOW, 0.95, 1.05)
    ahead = all_are(
        Outcome.ABOVE,
        beside(group, "throughput_mbps", "newreno", ("reno",), CONGESTED),
        where(run_of(group, CONGESTED)),
    )
    rows = (*table(group, "throughput_mbps", LOW), *table(group, "throughput_mbps", CONGESTED))
    return Finding((alike, ahead), rows)


def linear_fall(group: Group) -> Finding:
    """Vegas's and NewReno's throughput falls on a straight line, Reno's does not."""
    parts = []
    rows = []
    for variant in ("vegas", "newreno", "reno"):
        found = sweeps(tcp(group, LOADS, [variant]).rows, "throughput_mbps", "axis_cbr_mbit")
        fits = {seed: straightness(sweep) for seed, sweep in found.items()}
        straight = {seed: fit[0] for seed, fit in fits.items()}
        bend = {seed: abs(fit[1]) for seed, fit in fits.items()}
        rows.append(
            Row(
                f"{variant}: R² of the line",
                spread(RATIO, straight),
                "linear" * (variant != "reno"),
            )
        )
        rows.append(Row(f"{variant}: bend over the range", spread(RATIO, bend)))
        if variant == "reno":
            crooked = {
                seed: max((1 - straight[seed]) / (1 - STRAIGHT), bend[seed] / BEND) for seed in fits
            }
            what = "reno: deviation from a line over the allowed one"
            parts.append(within(what, RATIO, crooked, low=1))
        else:
            parts.append(within(f"{variant}: R²", RATIO, straight, low=STRAIGHT))
            parts.append(within(f"{variant}: bend", RATIO, bend, high=BEND))
    return Finding(tuple(parts), tuple(rows))


def straightness(sweep: pd.Series[float]) -> tuple[float, float]:
    """R² of a straight line, and how far a parabola bends from its chord, over the range."""
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
    """At more than half of the loads Vegas's latency is the lowest of the four."""
    parts = []
    for name, metric in LATENCIES.items():
        found = {
            each: sweeps(tcp(group, LOADS, [each]).rows, metric, "axis_cbr_mbit") for each in FOUR
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
    return Finding((by_definition("latency", parts),), latency_tables(group))


def vegas_drops_everywhere(group: Group) -> Finding:
    """Nowhere above another; at CBR 9 the others' rates rise at least twice as much as Vegas's."""
    lowest = all_are(
        Outcome.BELOW, each_load(group, "drop_rate", "vegas", RIVALS), also=(Outcome.EQUAL,)
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
        Outcome.ABOVE,
        contrasts(
            MEASURES["drop_rate"],
            [(f"{each}'s rise", rises[each], "twice Vegas's", twice) for each in RIVALS],
            paired=True,
        ),
        "from CBR 8 to 9",
    )
    rows = tuple(
        Row(
            f"rise of the drop rate from CBR 8 to 9, {each}",
            spread(MEASURES["drop_rate"], rises[each]),
        )
        for each in FOUR
    )
    return Finding((lowest, steeper), (*table(group, "drop_rate"), *rows))
