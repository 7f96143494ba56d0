"""KS's first experiment: one function per claim."""

from __future__ import annotations

import math

from analysis.claims.dumbbell.load_judges import (
    CONGESTED,
    FOUR,
    LATENCIES,
    LOADS,
    LOW,
    RIVALS,
    STEEP,
    beside,
    latency_tables,
    ratio_within,
    run_of,
    steps,
    table,
    tcp,
    where,
)
from analysis.claims.dumbbell.ns2_means import ns2_sweep
from analysis.claims.engine.answers import Finding, Part, Row, both, by_definition
from analysis.claims.engine.contrasts import Outcome, all_are, contrasts, students_p, within
from analysis.claims.engine.quantities import MEASURES, RATIO
from analysis.claims.engine.selection import Group, sweeps
from analysis.claims.kapre_saxena.ks_numbers import KS_P_VALUES
from analysis.metrics.digest import NotMeasured


def vegas_at_low_load(group: Group) -> Finding:
    """Vegas's throughput is the lowest of the four."""
    part = all_are(
        Outcome.BELOW,
        beside(group, "throughput_mbps", "vegas", RIVALS, LOW),
        where(run_of(group, LOW)),
    )
    rows = (*table(group, "throughput_mbps", LOW), *table(group, "goodput_mbps", LOW))
    useful = beside(group, "goodput_mbps", "vegas", RIVALS, LOW)
    equal = sum(each.outcome is Outcome.EQUAL for each in useful)
    same = Row("comparisons of goodput in which Vegas's is equal", f"{equal} of {len(useful)}")
    return Finding((part,), (*rows, same))


def sudden_fall(group: Group) -> Finding:
    """The others fall suddenly from about CBR 7 on, and Vegas is then highest."""
    parts = [_falls(group, variant) for variant in RIVALS]
    parts.append(
        all_are(
            Outcome.ABOVE,
            beside(group, "throughput_mbps", "vegas", RIVALS, CONGESTED),
            where(run_of(group, CONGESTED)),
        )
    )
    return Finding(tuple(parts), table(group, "throughput_mbps", CONGESTED))


def _falls(group: Group, variant: str) -> Part:
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
    """NewReno's throughput is above Reno's and Tahoe's."""
    found = beside(group, "throughput_mbps", "newreno", ("reno", "tahoe"), CONGESTED)
    return Finding(
        (all_are(Outcome.ABOVE, found, where(run_of(group, CONGESTED))),),
        table(group, "throughput_mbps", CONGESTED),
    )


def vegas_best_and_steadiest(group: Group) -> Finding:
    """With CBR first Vegas's mean over the loads is highest and its variance lowest."""
    first = _with_cbr_first(group)
    better = all_are(
        Outcome.ABOVE, beside(first, "throughput_mbps", "vegas", RIVALS, LOADS), "mean of the loads"
    )
    spreads = {
        variant: {
            seed: float(sweep.std())
            for seed, sweep in sweeps(
                tcp(first, LOADS, [variant]).rows, "throughput_mbps", "axis_cbr_mbit"
            ).items()
        }
        for variant in FOUR
    }
    steadier = all_are(
        Outcome.BELOW,
        contrasts(
            MEASURES["throughput_mbps"],
            [("vegas", spreads["vegas"], each, spreads[each]) for each in RIVALS],
            paired=True,
        ),
        "standard deviation over the loads",
    )
    p_values = _papers_t_tests(first)
    return Finding((better, steadier), (*table(first, "throughput_mbps"), *p_values))


def _with_cbr_first(group: Group) -> Group:
    return group.asked("order", ["cbr-first"]) if group.values("order") else group


def _papers_t_tests(group: Group) -> tuple[Row, ...]:
    """Excel's: two samples of ten loads each, equal variances, one tail."""
    own = tcp(group).rows
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
            Row(
                f"the papers' t-test over the loads, Vegas/{rival}: p",
                RATIO.write(ours),
                RATIO.write(KS_P_VALUES[rival]),
                RATIO.write(theirs) if math.isfinite(theirs) else "",
            )
        )
    return tuple(rows)


def vegas_latency(group: Group) -> Finding:
    """Lowest on average; a little rise before congestion and no peak; Reno's rises steeply."""
    lowest = by_definition(
        "latency",
        (
            (name, all_are(Outcome.BELOW, beside(group, metric, "vegas", RIVALS, LOADS)))
            for name, metric in LATENCIES.items()
        ),
    )
    shape = by_definition(
        "latency", ((name, _shape(group, metric)) for name, metric in LATENCIES.items())
    )
    return Finding((lowest, shape), latency_tables(group))


def _shape(group: Group, metric: str) -> Part:
    """Vegas's largest step stays below a steep one, Reno's from CBR 7 on does not."""
    parts = []
    for variant, since, low, high in (
        ("vegas", 2, -math.inf, STEEP),
        ("reno", 7, STEEP, math.inf),
    ):
        changes = steps(group, metric, variant)
        base = sweeps(tcp(group, LOADS, [variant]).rows, metric, "axis_cbr_mbit")
        largest = {
            seed: float(step[step.index >= since].max() / base[seed].iloc[0])
            for seed, step in changes.items()
        }
        what = f"{variant}'s largest step over its latency at CBR 1"
        parts.append(within(what, RATIO, largest, low, high))
    return both(*parts)


def vegas_drops(group: Group) -> Finding:
    """Lowest on average; steep at the end: 8 to 10 adds at least twice what 1 to 8 adds."""
    lowest = all_are(Outcome.BELOW, beside(group, "drop_rate", "vegas", RIVALS, LOADS))
    ratio = {}
    for seed, sweep in sweeps(
        tcp(group, LOADS, ["vegas"]).rows, "drop_rate", "axis_cbr_mbit"
    ).items():
        if not {1, 8, 10} <= set(sweep.index):
            raise NotMeasured("CBR of 1, 8 and 10 Mbit/s is needed")
        before, after = float(sweep[8] - sweep[1]), float(sweep[10] - sweep[8])
        ratio[seed] = after / max(before, 1e-4)
    steep = within("vegas: rise from CBR 8 to 10 over that from 1 to 8", RATIO, ratio, low=2)
    return Finding((lowest, steep), table(group, "drop_rate"))


def reno_as_tahoe(group: Group) -> Finding:
    """Under congestion, Reno's throughput is within a tenth of Tahoe's."""
    return Finding(
        (ratio_within(group, "reno", "tahoe", CONGESTED, 0.9, 1.1),),
        table(group, "throughput_mbps", CONGESTED),
    )
