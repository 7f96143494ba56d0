"""ns-2's results on the dumbbell as metrics of ours, so that the same judges answer the claims."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import pandas as pd

from analysis.claims.ledger import SIMULATED
from analysis.claims.samples import Reference
from analysis.metrics.metric_rows import write_axes
from experiments.kapre_saxena_joshi_hattikar.judges import METRICS, NS2_SETTINGS, VARIANT_WORDS

OUR_WINDOWS = {setting: window for window, setting in NS2_SETTINGS.items()}
OUR_VARIANTS = {word: name for name, word in VARIANT_WORDS.items()}


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
