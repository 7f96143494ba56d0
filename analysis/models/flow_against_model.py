"""Flows compared with models: measured and expected throughput under the conditions met."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import pandas as pd

from analysis.models.all_models import predict
from analysis.models.conditions import BITS_A_BYTE, Conditions, Invalid, Prediction

Row = Mapping[Any, Any]  # of the metrics table

MODEL_OF = {
    "newreno": "sbs",
    "newreno-impatient": "imp",
    "reno": "pftk",
    "sack": "pftk",
    "linux-reno": "pftk",
    "cubic": "cubic",
}


def conditions(row: Row) -> Conditions:
    """The conditions that a flow met, by its metrics; unknown ones are NaN, and no model holds.

    The RTO is that of the timeouts, or its mean where there was none.
    """
    timers = (float(row[name]) for name in ("rto_at_timeout_ms", "rto_mean_ms"))
    rto_ms = next((each for each in timers if math.isfinite(each)), None)
    return Conditions(
        float(row["loss_event_rate"]),
        float(row["srtt_mean_ms"]) / 1e3,
        float(row["losses_per_event"]),
        None if rto_ms is None else rto_ms / 1e3,
    )


def goodput_pps(row: Row) -> float:
    """Segments per second delivered in order, each counted once: what the models predict."""
    size = float(row["segment_bytes"])
    return float(row["goodput_mbps"]) * 1e6 / BITS_A_BYTE / size if size > 0 else math.nan


def expected_pps(row: Row) -> Prediction:
    """The prediction of the model for the flow's variant, in segments per second."""
    name = MODEL_OF.get(str(row["variant"]))
    if name is None:
        return Invalid(f"no model of {row['variant']}")
    return predict(name, conditions(row))


def with_model(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows with `goodput_pps`, `expected_pps`, `model_error` (the excess of the model, as a
    fraction of the measurement), and `why_not` where the model does not hold."""
    lines = rows.to_dict("records")
    expected = [expected_pps(line) for line in lines]
    numbers = [math.nan if isinstance(each, Invalid) else each for each in expected]
    measured = [goodput_pps(line) for line in lines]
    return rows.assign(
        goodput_pps=measured,
        expected_pps=numbers,
        model_error=[e / g - 1 if g else math.nan for e, g in zip(numbers, measured, strict=True)],
        why_not=[each.because if isinstance(each, Invalid) else "" for each in expected],
    )
