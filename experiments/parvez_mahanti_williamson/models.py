"""Models of NewReno's throughput, its map of regions, and measured flows beside all models."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from analysis import throughput_models
from analysis.throughput_models import (
    BITS_A_BYTE,
    Conditions,
    Invalid,
    Prediction,
    fault,
    window_fault,
)


def sbs_segments(window: float, m: float) -> float:
    """Compute equation 1: segments from one loss event to the next, by the peak window."""
    return window / 4 * (3 * window / 2 + m + 3)


def sbs_window(p: float, m: float) -> float:
    """Compute equation 2: the peak window at which equation 1 gives 1/p segments."""
    return (-3 * p - m * p + math.sqrt(9 * p**2 + 6 * m * p**2 + m**2 * p**2 + 24 * p)) / (3 * p)


def sbs_cycle_rtts(window: float, m: float) -> float:
    """Compute equation 3: round trips from one loss event to the next."""
    return window / 2 + 1 + m


def imp_segments(window: float) -> float:
    """Compute equation 5: the segments of a cycle with a timeout and a slow start."""
    return 15 / 32 * window**2 + 7 / 8 * window - 1


def imp_window(p: float) -> float:
    """Compute equation 6: the peak window at which equation 5 gives 1/p segments."""
    return (-14 * p + 2 * math.sqrt(169 * p**2 + 120 * p)) / (15 * p)


def imp_cycle_rtts(window: float, rto_rtts: float) -> float:
    """Compute equation 7: round trips of slow start, avoidance, recovery and the timeout.

    The logarithm is to base 2: a round of slow start doubles the window.
    """
    slow_start = math.log2(window / 8) + 1
    avoidance = 3 * window / 4 + 1
    return slow_start + avoidance + 1 + rto_rtts


def losses_of_cycle(p: float, rtts: float) -> float:
    """Solve equation 3 with 2 for m: the losses with which SBS's cycle lasts `rtts` round trips."""
    # W = 2 (rtts - 1 - m) in equation 1 leaves a quadratic; its other root has W < 0
    a = rtts - 1
    return (5 * a + 3 - math.sqrt((a + 3) ** 2 + 16 / p)) / 4


def critical_losses(rto_rtts: float) -> int:
    """Return m*: the fewest losses at which IMP's timer runs out before recovery ends.

    It runs from the first partial ACK; the ACK that ends recovery is m - 1 round trips behind.
    """
    return math.floor(rto_rtts) + 2


def sbs(conditions: Conditions) -> Prediction:
    """Compute equation 4: Slow-but-Steady's throughput, in segments/s."""
    p, m = conditions.loss_event_rate, conditions.losses_per_event
    window = sbs_window(p, m)
    because = _outside(conditions, window)
    if because:
        return Invalid(because)
    return 1 / p / (sbs_cycle_rtts(window, m) * conditions.rtt_s)


def imp(conditions: Conditions) -> Prediction:
    """Compute equation 8, Impatient's throughput; below m* the forms are one: equation 4."""
    if conditions.rto_s is None:
        return Invalid("the model needs the RTO")
    rto_rtts = conditions.rto_s / conditions.rtt_s
    # of a flow m is an average: with 3.9 most of its events have four
    if round(conditions.losses_per_event) < critical_losses(rto_rtts):
        return sbs(conditions)
    p = conditions.loss_event_rate
    window = imp_window(p)
    because = _outside(conditions, window)
    if because:
        return Invalid(because)
    return 1 / p / (imp_cycle_rtts(window, rto_rtts) * conditions.rtt_s)


def _outside(conditions: Conditions, window: float) -> str | None:
    """Name the assumption of section III.A that does not hold, if any."""
    m = conditions.losses_per_event
    if conditions.segments_per_ack != 1:
        return "the model has an ACK for every segment"
    if not m < window - 2:
        return (
            f"m is {m:g} of a window of {window:.1f}: fewer than three duplicate ACKs are left,"
            " and the loss event would be a timeout"
        )
    return window_fault(conditions, window)


DUPLICATES = 3  # segments of a window that must arrive for a fast retransmission


@dataclass(frozen=True)
class Regions:
    """The map for one ratio of RTO to RTT; everything else depends on p and m."""

    rto_rtts: float

    @property
    def critical(self) -> int:
        """Return m*: the least number of losses from which the two differ."""
        return critical_losses(self.rto_rtts)

    def crossing(self, p: float) -> float:
        """Return m_t: the number of losses at which both have the same throughput."""
        return losses_of_cycle(p, imp_cycle_rtts(imp_window(p), self.rto_rtts))

    def sbs_end(self, p: float) -> float:
        """Return the losses up to which SBS is better: m_t, or the most that its window bears."""
        return min(self.crossing(p), sbs_most_losses(p))

    def imp_end(self, p: float) -> float:
        """Return the most losses that IMP's window bears: W_IMP - 3."""
        return imp_window(p) - DUPLICATES


def sbs_most_losses(p: float) -> float:
    """Return the m that equals W_SBS - 3: the window, which shrinks with m, bears no more."""
    # equation 1 with W = m + 3 is 5/8 W²
    return float((8 / (5 * p)) ** 0.5) - DUPLICATES


THROUGHPUT_MODELS: dict[str, Callable[[Conditions], Prediction]] = {
    "sbs": sbs,
    "imp": imp,
    "square-root": throughput_models.square_root,  # Mathis and others, 1997
    "pftk": throughput_models.pftk,  # Padhye and others, 1998, in full
    "pftk-approximate": throughput_models.pftk_approximate,
    "cubic": throughput_models.cubic,  # RFC 9438, 5.1
}


def predict(name: str, conditions: Conditions) -> Prediction:
    """Return the segments/s that a model expects under conditions, or why it does not hold."""
    because = fault(conditions)
    return Invalid(because) if because else THROUGHPUT_MODELS[name](conditions)


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
    """Read the conditions that a flow met from its metrics; unknown ones are NaN.

    No model holds under unknown conditions. The RTO is that of the timeouts, or its mean where
    there was none.
    """
    timers = (float(row[name]) for name in ("rto_at_timeout_ms", "rto_mean_ms"))
    rto_ms = next(filter(math.isfinite, timers), None)
    return Conditions(
        float(row["loss_event_rate"]),
        float(row["srtt_mean_ms"]) / 1e3,
        float(row["losses_per_event"]),
        None if rto_ms is None else rto_ms / 1e3,
    )


def goodput_pps(row: Row) -> float:
    """Return the segments per second delivered in order, counted once: what the models predict."""
    size = float(row["segment_bytes"])
    return float(row["goodput_mbps"]) * 1e6 / BITS_A_BYTE / size if size > 0 else math.nan


def expected_pps(row: Row) -> Prediction:
    """Predict the flow's segments per second by its variant's model."""
    name = MODEL_OF.get(str(row["variant"]))
    if name is None:
        return Invalid(f"no model of {row['variant']}")
    return predict(name, conditions(row))


def with_model(rows: pd.DataFrame) -> pd.DataFrame:
    """Add `goodput_pps`, `expected_pps` and `model_error` to rows, and `why_not` without a model.

    The error is the excess of the model, as a fraction of the measurement.
    """
    lines = rows.to_dict("records")
    predictions = [expected_pps(line) for line in lines]
    expected = [math.nan if isinstance(pps, Invalid) else pps for pps in predictions]
    measured = [goodput_pps(line) for line in lines]
    return rows.assign(
        goodput_pps=measured,
        expected_pps=expected,
        model_error=[e / g - 1 if g else math.nan for e, g in zip(expected, measured, strict=True)],
        why_not=[pps.because if isinstance(pps, Invalid) else "" for pps in predictions],
    )
