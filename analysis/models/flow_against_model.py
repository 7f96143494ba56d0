"""Flows held against models: what they met by their captures, what each had, what was expected."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import pandas as pd

from analysis.models.all_models import predict
from analysis.models.conditions import BITS_A_BYTE, Conditions, Invalid, Prediction

Row = Mapping[Any, Any]  # of the metrics

MODEL_OF = {
    "newreno": "sbs",
    "newreno-impatient": "imp",
    "reno": "pftk",
    "sack": "pftk",
    "linux-reno": "pftk",
    "cubic": "cubic",
}


def conditions(row: Row) -> Conditions:
    """What a flow's metrics say that it met; what is not known is NaN, and no model answers.

    The timer is that of the timeouts; where there was none, what it stood at on average.
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
    """What the models predict: segments delivered in order, each once, in a second."""
    size = float(row["segment_bytes"])
    return float(row["goodput_mbps"]) * 1e6 / BITS_A_BYTE / size if size > 0 else math.nan


def expected_pps(row: Row) -> Prediction:
    """What the model of the flow's variant expects, in segments a second."""
    name = MODEL_OF.get(str(row["variant"]))
    if name is None:
        return Invalid(f"no model of {row['variant']}")
    return predict(name, conditions(row))


def held(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows with `goodput_pps`, `expected_pps`, `model_error` (how far the model is above what
    was measured, as a part of that) and `why_not`, where the model does not hold."""
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
