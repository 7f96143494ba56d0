"""What a model is asked with, and what it answers: a throughput, or why it has none."""

from __future__ import annotations

import math
from dataclasses import dataclass

BITS_A_BYTE = 8


@dataclass(frozen=True)
class Conditions:
    """What a flow met, as far as any of the models asks."""

    loss_event_rate: float  # p: loss events over segments sent
    rtt_s: float
    losses_per_event: float = 1.0  # m
    rto_s: float | None = None  # of the first timeout; only some models ask
    # For how many segments one ACK lets the window grow as for one: 2 where a stack counts ACKs
    # and they are delayed; 1 where every segment is acknowledged, and on Linux, which counts
    # segments (tcp_reno_cong_avoid).
    segments_per_ack: int = 1
    max_window: float = math.inf  # segments that the receiver's window allows


@dataclass(frozen=True)
class Invalid:
    """A model does not hold under these conditions."""

    because: str


Prediction = float | Invalid  # segments/s


def fault(conditions: Conditions) -> str | None:
    """What keeps any model from answering, if something does."""
    p, m = conditions.loss_event_rate, conditions.losses_per_event
    if p == 0:
        return "no loss event: p is 0"
    # asked this way round, a number that is not one fails too
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
    """That the receiver's window is in the way of the window that a model expects, if it is."""
    if window > conditions.max_window:
        return f"the window would reach {window:.1f}, the receiver allows {conditions.max_window:g}"
    return None


def bits_per_s(segments_per_s: float, segment_bytes: float) -> float:
    """Segments/s as bit/s, by the bytes that are to count of a segment (payload, or a frame)."""
    return segments_per_s * segment_bytes * BITS_A_BYTE
