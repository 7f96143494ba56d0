"""TCP before CBR joins it and beside it: what the third experiments say of time.

The bounds, chosen beforehand; CBR runs from 40 to 60 s in the full form, and other times scale
with it. *Before* is the last three quarters of the time until CBR starts (slow start is over),
*beside CBR* all but its first second. *Steady* is a coefficient of variation of at most 10 % in
bins of 1 s. *Recovers faster* is a higher throughput in the five seconds from CBR's start: about 75
round trips.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import pandas as pd

from analysis.claims.dumbbell.queue_claims import CASES, case, label, ordered, table
from analysis.claims.engine import moments
from analysis.claims.engine.answers import Finding, Part, Row
from analysis.claims.engine.contrasts import (
    DELAY,
    RATE,
    RATIO,
    SHARE,
    Outcome,
    Sample,
    all_are,
    contrasts,
    spread,
    within,
)
from analysis.claims.engine.paper_numbers import JH_OSCILLATION_MBPS
from analysis.claims.engine.selection import Group, sample
from analysis.metrics.per_second import NotMeasured

STEADY = 0.1
ONSET_S = 5

Stretch = tuple[float, float]


@dataclass(frozen=True)
class Phases:
    """Stretches of a trial, in whole seconds."""

    before: Stretch
    beside: Stretch
    onset: Stretch


def phases(group: Group) -> Phases:
    """By when the trials' CBR ran."""
    cbr = group.where(flow="cbr").rows
    if cbr.empty or cbr["start_s"].isna().all():
        raise NotMeasured("the trials have no CBR flow")
    start = round(float(cbr["start_s"].median()))
    stop = start + round(float(cbr["duration_s"].median()))
    if start < 4 or stop < start + 2:
        raise NotMeasured(f"CBR ran from {start} to {stop} s: too short to tell before and beside")
    return Phases((start / 4, start), (start + 1, stop), (start, min(stop, start + ONSET_S)))


def cbr_ahead(group: Group) -> Finding:
    """While CBR is on: its one-way delay is below TCP's, its throughput above."""
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
    why = (
        "Both flows wait in the same queue: on a like way CBR is ahead by what its packets are "
        "shorter and TCP's come in bursts (see the ends of the flows below; in ns-2's runs its way "
        "was shorter by two links). A higher rate is what CBR was told to send and TCP makes room "
        "for."
    )
    return Finding(tuple(parts), tuple(rows), why)


def _ways(group: Group) -> list[Row]:
    """Whose way is the shorter one, and the wait in the queue that both share."""
    rows = []
    for flow, own in group.rows.groupby("flow"):
        ends = own[["src", "dst"]].drop_duplicates().agg(" to ".join, axis=1)
        waits = spread(DELAY, sample(own, "queue_mean_ms", ("variant", "axis_queue")))
        rows.append(
            Row(f"way of {flow}; mean time in the bottleneck", f"{', '.join(ends)}; {waits}")
        )
    return rows


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
        what = f"{variant}: part of the seconds beside CBR with {low:g} to {high:g} Mbit/s"
        parts.append(within(what, SHARE, part, low=0.5).because(_IMPOSSIBLE))
        peak = moments.each_seed(found, lambda t: _most(t, times.beside))
        rows += [
            Row(f"throughput before CBR, {variant}", spread(RATE, before)),
            Row(
                f"throughput beside CBR, {variant}",
                spread(RATE, beside),
                f"{low:g} to {high:g} Mbit/s",
            ),
            Row(f"most in a second beside CBR, {variant}", spread(RATE, peak)),
            Row(f"throughput in the first 5 s of CBR, {variant}", spread(RATE, onset[variant])),
        ]
    faster = [("SACK's first 5 s beside CBR", onset["sack"], "Reno's", onset["reno"])]
    parts.append(all_are(Outcome.ABOVE, contrasts(RATE, faster)))
    return Finding(tuple(parts), tuple(rows))


_IMPOSSIBLE = (
    "Beside CBR of 7 Mbit/s a link of 10 Mbit/s has 3 Mbit/s left: 6 to 10 is impossible for TCP "
    "alone. It is what TCP and CBR carry together, or a trace whose drops were not taken off."
)


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
    why = (
        "A window that is halved at every drop makes a sawtooth: a queue of ten packets cannot "
        "hide it, and RED drops earlier than a full queue does."
    )
    return Finding(tuple(parts), (*table(group, "throughput_mbps"), *rows), why)


def _variation(found: dict[int, list[pd.DataFrame]], during: Stretch) -> Sample:
    def of(table: pd.DataFrame) -> float:
        own = moments.phase(table, "tcp", *during)
        return float(own.std() / own.mean()) if own.mean() else math.nan

    return moments.each_seed(found, of)
