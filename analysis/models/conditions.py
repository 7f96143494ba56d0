"""The input of a model, and its answer: a throughput, or why it does not hold."""

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
    """The reason why no model holds under these conditions, if there is one."""
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
    """The reason, if the receiver's window is smaller than the one that the model expects."""
    if window > conditions.max_window:
        return f"the window would reach {window:.1f}, the receiver allows {conditions.max_window:g}"
    return None
