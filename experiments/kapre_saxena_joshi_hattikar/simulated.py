"""ns-2's results on the dumbbell as metrics of ours, so that the same judges answer the claims."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from analysis.claims.ledger import SIMULATED
from analysis.claims.samples import Reference
from analysis.metrics.metric_rows import write_axes

METRICS = {
    "throughput_mbps": "throughput_mbps",
    "goodput_mbps": "goodput_mbps",
    "drop_rate": "drop_rate",
    "owd_mean_ms": "oneway_ms",
    "srtt_mean_ms": "rtt_ms",
    "recovery_latency_mean_ms": "recovery_latency_ms",
}
OUR_WINDOWS = {"w20rand": "small", "w1000rand": "large"}  # CBR is jittered, as ours is
OUR_VARIANTS = {
    "Tahoe": "tahoe",
    "Reno": "reno",
    "Newreno": "newreno",
    "Vegas": "vegas",
    "Sack1": "sack",
}
ORACLE = Reference(Path(__file__).with_name("ns2"))  # made by benchmarks/ns2_dumbbell.py


def ns2_metrics(reference: Reference) -> Mapping[str, pd.DataFrame]:
    """Return ns-2's flows by experiment of ours; a repeat of ns-2's is a seed."""
    tables = {
        "dumbbell-load": [_load_flow(row) for row in _rows(reference, "exp1_raw.csv")],
        "dumbbell-pairs": [_pair_flow(row) for row in _rows(reference, "exp2_rand_raw.csv")],
        "dumbbell-queues": [_queue_flow(row) for row in _rows(reference, "exp3_raw.csv")],
    }
    return {name: pd.DataFrame(rows) for name, rows in tables.items() if rows}


def _rows(reference: Reference, name: str) -> list[dict[str, Any]]:
    table = reference.table(name)
    if table.empty:
        return []
    return table[table["setting"].isin(OUR_WINDOWS)].to_dict("records")  # type: ignore[return-value]


def _load_flow(row: dict[str, Any]) -> dict[str, Any]:
    variant = OUR_VARIANTS[row["variant"]]
    flow = "tcp" if row["flow"] == "tcp1" else row["flow"]
    return _flow("dumbbell-load", row, flow, variant, {"variant": variant})


def _pair_flow(row: dict[str, Any]) -> dict[str, Any]:
    variants = [OUR_VARIANTS[word] for word in row["pair"].split("/")]
    variant = variants[row["flow"] == "tcp2"]
    place = {"pair": "/".join(variants), "second": "n5-n6"}
    return _flow("dumbbell-pairs", row, row["flow"], variant, place)


def _queue_flow(row: dict[str, Any]) -> dict[str, Any]:
    variant = OUR_VARIANTS[row["variant"]]
    flow = "tcp" if row["flow"] == "tcp1" else row["flow"]
    place = {"variant": variant, "queue": str(row["queue"]).lower(), "cbr_stop": "at-60"}
    return _flow("dumbbell-queues", row, flow, variant, place)


def _flow(
    experiment: str, row: dict[str, Any], flow: str, variant: str, place: dict[str, str]
) -> dict[str, Any]:
    """Return a flow's row as `metrics.csv` has it, at its place on the experiment's axes."""
    axes = {**place, "profile": SIMULATED}
    if "cbr_mbps" in row:
        axes["cbr_mbit"] = str(row["cbr_mbps"])
        axes["order"] = str(row["order"]).replace("_", "-")
        axes["window"] = OUR_WINDOWS[row["setting"]]
    return {
        "experiment": experiment,
        "trial": "-".join((*axes.values(), str(row["rep"]))),
        "engine": "ns-2",
        "status": "ok",
        "flow": flow,
        "variant": "" if flow == "cbr" else variant,
        "seed": float(row["rep"]),
        "start_s": math.nan,  # no seconds are stored, to be told apart by them
        "queue": f"ns-2's own {place['queue']}" if "queue" in place else "",
        "axes": write_axes(axes),
        **{ours: float(row[theirs]) for ours, theirs in METRICS.items()},
    }
