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
    """Equation 1: segments sent from one loss event to the next, by the peak window."""
    return window / 4 * (3 * window / 2 + m + 3)


def sbs_window(p: float, m: float) -> float:
    """Equation 2: the peak window at which equation 1 gives 1/p segments."""
    return (-3 * p - m * p + math.sqrt(9 * p**2 + 6 * m * p**2 + m**2 * p**2 + 24 * p)) / (3 * p)


def sbs_cycle_rtts(window: float, m: float) -> float:
    """Equation 3: round trips from one loss event to the next."""
    return window / 2 + 1 + m


def imp_segments(window: float) -> float:
    """Equation 5: as equation 1, of a cycle with a timeout and a slow start."""
    return 15 / 32 * window**2 + 7 / 8 * window - 1


def imp_window(p: float) -> float:
    """Equation 6: the peak window at which equation 5 gives 1/p segments."""
    return (-14 * p + 2 * math.sqrt(169 * p**2 + 120 * p)) / (15 * p)


def imp_cycle_rtts(window: float, rto_rtts: float) -> float:
    """Equation 7: slow start, congestion avoidance, a round trip of recovery, and the timeout.

    The logarithm is to base 2: a round of slow start doubles the window.
    """
    slow_start = math.log2(window / 8) + 1
    avoidance = 3 * window / 4 + 1
    return slow_start + avoidance + 1 + rto_rtts


def losses_of_cycle(p: float, rtts: float) -> float:
    """The m with which SBS's cycle lasts so many round trips: equation 3 with 2, solved for m."""
    # W = 2 (rtts - 1 - m) in equation 1 leaves a quadratic; its other root has W < 0
    a = rtts - 1
    return (5 * a + 3 - math.sqrt((a + 3) ** 2 + 16 / p)) / 4


def critical_losses(rto_rtts: float) -> int:
    """m*: the fewest losses at which IMP's timer runs out before recovery ends.

    It runs from the first partial ACK; the ACK that ends recovery is m - 1 round trips behind.
    """
    return math.floor(rto_rtts) + 2


def sbs(conditions: Conditions) -> Prediction:
    """Equation 4."""
    p, m = conditions.loss_event_rate, conditions.losses_per_event
    window = sbs_window(p, m)
    because = _outside(conditions, window)
    if because:
        return Invalid(because)
    return 1 / p / (sbs_cycle_rtts(window, m) * conditions.rtt_s)


def imp(conditions: Conditions) -> Prediction:
    """Equation 8; below m* the two forms are one, and equation 4 holds."""
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
    """The assumption of section III.A that does not hold, or nothing."""
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
        """m*: the least number of losses from which the two differ."""
        return critical_losses(self.rto_rtts)

    def crossing(self, p: float) -> float:
        """m_t: the number of losses at which both have the same throughput."""
        return losses_of_cycle(p, imp_cycle_rtts(imp_window(p), self.rto_rtts))

    def sbs_end(self, p: float) -> float:
        """The losses up to which SBS is better: m_t, or as many as its own window bears."""
        return min(self.crossing(p), sbs_most_losses(p))

    def imp_end(self, p: float) -> float:
        """The most losses that IMP's window bears: W_IMP - 3."""
        return imp_window(p) - DUPLICATES


def sbs_most_losses(p: float) -> float:
    """The m that equals W_SBS - 3: the window, which shrinks with m, bears no more."""
    # equation 1 with W = m + 3 is 5/8 W²
    return float((8 / (5 * p)) ** 0.5) - DUPLICATES


@dataclass(frozen=True)
class Model:
    """A model's equation, and where it comes from."""

    label: str
    source: str
    equation: Callable[[Conditions], Prediction]


MODELS: dict[str, Model] = {
    "sbs": Model("NewReno, Slow-but-Steady", "Parvez 2006, eq. 4", sbs),
    "imp": Model("NewReno, Impatient", "Parvez 2006, eq. 8", imp),
    "square-root": Model("square-root law", "Mathis 1997", throughput_models.square_root),
    "pftk": Model("PFTK", "Padhye 1998, full", throughput_models.pftk),
    "pftk-approximate": Model(
        "PFTK", "Padhye 1998, approximate", throughput_models.pftk_approximate
    ),
    "cubic": Model("Cubic", "RFC 9438, 5.1", throughput_models.cubic),
}


def predict(name: str, conditions: Conditions) -> Prediction:
    """Segments/s that the model expects under these conditions, or why it does not hold."""
    because = fault(conditions)
    return Invalid(because) if because else MODELS[name].equation(conditions)


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
    fraction of the measurement), and `why_not` where the model does not hold.
    """
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
