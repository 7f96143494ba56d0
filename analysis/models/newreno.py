"""NewReno's two forms: Parvez, Mahanti, Williamson (2006), equations 1 to 8.

Slow-but-Steady (SBS) mends one loss a round trip, however many; Impatient (IMP) times out when
that takes longer than its timer, and slow-starts. Windows are in segments, durations in round
trips: RTT comes in only when a throughput goes out.
"""

from __future__ import annotations

import math

from analysis.models.conditions import Conditions, Invalid, Prediction, window_fault


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
