"""Classic models of the throughput of a TCP flow, and the conditions under which they hold."""

from __future__ import annotations

import math
from dataclasses import dataclass

BITS_A_BYTE = 8


@dataclass(frozen=True)
class Conditions:
    """The conditions that a flow met: every input of any model."""

    loss_event_rate: float  # p: loss events over segments sent
    rtt_s: float
    losses_per_event: float = 1.0  # m
    rto_s: float | None = None  # of the first timeout; only some models need it
    # Segments per ACK as far as the window's growth is concerned: 2 where a stack counts ACKs and
    # they are delayed; 1 where every segment is acknowledged, and on Linux, which counts segments
    # (tcp_reno_cong_avoid).
    segments_per_ack: int = 1
    max_window: float = math.inf  # segments that the receiver's window allows


@dataclass(frozen=True)
class Invalid:
    """A model does not hold under these conditions."""

    because: str


Prediction = float | Invalid  # segments/s


def fault(conditions: Conditions) -> str | None:
    """Return the reason why no model holds under these conditions, if there is one."""
    p, m = conditions.loss_event_rate, conditions.losses_per_event
    if p == 0:
        return "no loss event: p is 0"
    # NaN fails this way round too
    if not 0 < p < 1:
        return f"p is {p:g}, not between 0 and 1"
    if not 1 <= m < math.inf:
        return f"m is {m:g}, and a loss event has at least one loss"
    if not 0 < conditions.rtt_s < math.inf:
        return f"the round-trip time is {conditions.rtt_s:g} s"
    if conditions.rto_s is not None and not 0 < conditions.rto_s < math.inf:
        return f"the RTO is {conditions.rto_s:g} s"
    if conditions.segments_per_ack < 1:
        return f"an ACK for {conditions.segments_per_ack} segments"
    if not conditions.max_window > 0:
        return f"a window of {conditions.max_window:g} segments"
    return None


def window_fault(conditions: Conditions, window: float) -> str | None:
    """Return the reason if the receiver's window is smaller than the one that the model expects."""
    if window > conditions.max_window:
        return f"the window would reach {window:.1f}, the receiver allows {conditions.max_window:g}"
    return None


# RFC 9438, 4.1 and 4.6
CUBIC_C = 0.4  # segments/s³
CUBIC_BETA = 0.7


def square_root(conditions: Conditions) -> Prediction:
    """Mathis, Semke, Mahdavi, Ott (1997): a sawtooth between a window and its half, no timeouts.

    Their constant is √(3/2) with an ACK for every segment, √(3/4) with one for every other.
    """
    p, b = conditions.loss_event_rate, conditions.segments_per_ack
    because = window_fault(conditions, math.sqrt(8 / (3 * b * p)))
    if because:
        return Invalid(because)
    return math.sqrt(3 / (2 * b * p)) / conditions.rtt_s


def pftk_approximate(conditions: Conditions) -> Prediction:
    """Predict Reno with timeouts by the approximate model of Padhye and others (1998)."""
    p, b, rto_s = conditions.loss_event_rate, conditions.segments_per_ack, conditions.rto_s
    if rto_s is None:
        return Invalid("the model needs the RTO")
    sawtooth_s = conditions.rtt_s * math.sqrt(2 * b * p / 3)
    timeouts_s = rto_s * min(1, 3 * math.sqrt(3 * b * p / 8)) * p * (1 + 32 * p**2)
    return min(conditions.max_window / conditions.rtt_s, 1 / (sawtooth_s + timeouts_s))


def pftk(conditions: Conditions) -> Prediction:
    """Predict Reno by the full model of Padhye and others (1998); lost segments count as sent."""
    p, b, rto_s = conditions.loss_event_rate, conditions.segments_per_ack, conditions.rto_s
    if rto_s is None:
        return Invalid("the model needs the RTO")
    window = pftk_window(p, b)
    if window < conditions.max_window:
        rounds = b / 2 * window + 1
    else:
        window = conditions.max_window
        rounds = b / 8 * window + (1 - p) / (p * window) + 2
    timeout = timeout_probability(p, window)
    segments = (1 - p) / p + window + timeout / (1 - p)
    return segments / (conditions.rtt_s * rounds + timeout * rto_s * backoff(p) / (1 - p))


def pftk_window(p: float, b: int) -> float:
    """Return E[W] of PFTK: the mean window at a loss event if no receiver limits it."""
    offset = (2 + b) / (3 * b)
    return offset + math.sqrt(8 * (1 - p) / (3 * b * p) + offset**2)


def timeout_probability(p: float, window: float) -> float:
    """Return Q̂ of PFTK: the probability that a loss in a window of this size ends in a timeout."""
    arrived = 1 - p
    if window <= 3:
        return 1.0  # no three duplicate ACKs
    three_lost = (1 - arrived**3) * (1 + arrived**3 * (1 - arrived ** (window - 3)))
    return float(min(1, three_lost / (1 - arrived**window)))


def backoff(p: float) -> float:
    """Return f(p) of PFTK: the factor by which doubling prolongs a series of timeouts."""
    return 1 + p + 2 * p**2 + 4 * p**3 + 8 * p**4 + 16 * p**5 + 32 * p**6


def cubic(conditions: Conditions) -> Prediction:
    """Predict Cubic by RFC 9438, 5.1, or by Reno's mean window where that is larger (4.3)."""
    window = max(cubic_window(conditions), reno_window(conditions.loss_event_rate))
    because = window_fault(conditions, window)
    return Invalid(because) if because else window / conditions.rtt_s


def cubic_window(conditions: Conditions) -> float:
    """Return the mean window of the cubic function alone."""
    scale = CUBIC_C * (3 + CUBIC_BETA) / (4 * (1 - CUBIC_BETA))
    return float(scale**0.25 * (conditions.rtt_s / conditions.loss_event_rate) ** 0.75)


def reno_window(p: float) -> float:
    """Return the mean window of the Reno-friendly region.

    Its growth is chosen so that the mean is Reno's, whatever beta is: √(3/2p), in the RFC 1.2/√p.
    """
    return math.sqrt(3 / (2 * p))
