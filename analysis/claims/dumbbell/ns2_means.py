"""ns-2's means on the dumbbell: `exp1_means.csv`, `exp2_means.csv`, `exp3_means.csv`.

Only runs with jittered CBR are used: with evenly spaced CBR, flows lock into phases.
"""

from __future__ import annotations

import math
from collections.abc import Collection

import pandas as pd

from analysis.claims.engine.reference import Reference

METRICS = {
    "throughput_mbps": "throughput_mbps",
    "goodput_mbps": "goodput_mbps",
    "drop_rate": "drop_rate",
    "owd_mean_ms": "oneway_ms",
    "rtt_mean_ms": "rtt_ms",
    "recovery_latency_mean_ms": "recovery_latency_ms",
}
# Over a flow's lifetime, where a trial has phases. Not throughput: ns-2's runs end with CBR, and a
# mean that includes more time without CBR is not comparable.
WHOLE = {
    "drop_rate": "drop_rate_all",
    "rtt_mean_ms": "rtt_all_ms",
    "recovery_latency_mean_ms": "recovery_latency_all_ms",
}
VARIANTS = {
    "tahoe": "Tahoe",
    "reno": "Reno",
    "newreno": "Newreno",
    "vegas": "Vegas",
    "sack": "Sack1",
}
QUEUES = {"droptail": "DropTail", "red": "RED"}
SETTINGS = {"small": "w20rand", "large": "w1000rand", "": "w1000rand"}


def ns2_load(
    reference: Reference,
    variant: str,
    metric: str,
    loads: Collection[float],
    window: str,
    order: str = "",
) -> float:
    """One TCP flow beside CBR: the mean over the loads."""
    rows = _rows(reference, "exp1_means.csv", window, "tcp1")
    if rows.empty:
        return math.nan
    rows = rows[(rows["variant"] == VARIANTS.get(variant)) & rows["cbr_mbps"].isin(loads)]
    if order:
        rows = rows[rows["order"] == order.replace("-", "_")]
    return _mean(rows, METRICS[metric])


def ns2_sweep(
    reference: Reference, variant: str, metric: str, window: str, order: str
) -> list[float]:
    """One TCP flow beside CBR: the metric at each load."""
    rows = _rows(reference, "exp1_means.csv", window, "tcp1")
    if rows.empty:
        return []
    chosen = (rows["variant"] == VARIANTS.get(variant)) & (rows["order"] == order.replace("-", "_"))
    return [float(each) for each in rows.loc[chosen, f"{METRICS[metric]}_mean"]]


def ns2_share(reference: Reference, pair: str, loads: Collection[float], window: str) -> float:
    """The first flow's share of both TCP flows' throughput: the mean over the loads."""
    name = "/".join(VARIANTS.get(each, each) for each in pair.split("/"))
    rates = []
    for flow in ("tcp1", "tcp2"):
        rows = _rows(reference, "exp2_means.csv", window, flow)
        if rows.empty:
            return math.nan
        own = rows[(rows["pair"] == name) & rows["cbr_mbps"].isin(loads)]
        rates.append(own.groupby("cbr_mbps")["throughput_mbps_mean"].mean())
    return float((rates[0] / (rates[0] + rates[1])).mean())


def ns2_queue(reference: Reference, variant: str, queue: str, metric: str) -> float:
    """One TCP flow that CBR joins for a while: over the flow's lifetime."""
    rows = _rows(reference, "exp3_means.csv", "large", "tcp1")
    if rows.empty or metric not in WHOLE:
        return math.nan
    chosen = (rows["variant"] == VARIANTS.get(variant)) & (rows["queue"] == QUEUES.get(queue))
    return _mean(rows[chosen], WHOLE[metric])


def _rows(reference: Reference, name: str, window: str, flow: str) -> pd.DataFrame:
    table = reference.table(name)
    if table.empty:
        return table
    return table[(table["setting"] == SETTINGS[window]) & (table["flow"] == flow)]


def _mean(rows: pd.DataFrame, name: str) -> float:
    """NaN where the table has no such column."""
    column = f"{name}_mean"
    return float(rows[column].mean()) if column in rows else math.nan
