"""A flow's row of the metrics, as models of throughput ask: what it met, and what it got."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from analysis.measures import NAN


def measured_conditions(row: Mapping[Any, Any]) -> dict[str, float | None]:
    """p, m, the mean round trip and the timer, by the names that models have for them.

    The timer is that of the timeouts; where there was none, what it stood at on average. NaN
    for m means that there was no loss event: p is 0, and no model answers.
    """
    at_timeout, mean = float(row["rto_at_timeout_ms"]), float(row["rto_mean_ms"])
    rto_ms = mean if math.isnan(at_timeout) else at_timeout
    return {
        "loss_event_rate": float(row["loss_event_rate"]),
        "losses_per_event": float(row["losses_per_event"]),
        "rtt_s": float(row["rtt_mean_ms"]) / 1e3,
        "rto_s": None if math.isnan(rto_ms) else rto_ms / 1e3,
    }


def measured_segments_per_s(row: Mapping[Any, Any]) -> float:
    """What the models predict: segments delivered in order, each once, in a second."""
    size = float(row["segment_bytes"])
    return float(row["goodput_mbps"]) * 1e6 / 8 / size if size > 0 else NAN
