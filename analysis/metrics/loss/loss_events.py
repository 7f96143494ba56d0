"""Loss events: a connection's losses, window by window (Parvez, Mahanti, Williamson III.A)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from analysis.metrics.loss.responses import Responses
from analysis.trials.segments import Booleans, Integers, Segments


@dataclass(frozen=True)
class LossEvent:
    """A window's losses, from the first to which the sender responded."""

    began_ns: int  # when the first of them was sent
    answered_ns: int  # when it was retransmitted: the sender leaves its previous state
    by_timeout: bool  # whether the timer caused that, and not duplicate ACKs
    losses: int  # packets, lost retransmissions included


def loss_events(segments: Segments, lost: Booleans, found: Responses) -> list[LossEvent]:
    """A connection's loss events; `lost` says which of its segments never arrived.

    An event begins with a lost segment that is retransmitted. It includes everything sent by
    then, and if the timer fires before that is acknowledged, everything sent when it fired. A
    loss beyond that begins the next event.
    """
    again = np.flatnonzero(segments.again)
    begins, ends = segments.begin[again].tolist(), segments.end[again].tolist()
    before = np.concatenate(([0], np.maximum.accumulate(segments.end)))
    fired = found.timeouts.tolist()
    heads: list[tuple[int, int]] = []  # the first loss and its answer
    reach: list[int] = []  # the upper end of each event's losses
    places = np.flatnonzero(lost)
    nexts = np.searchsorted(again, places, side="right")
    for place, following in zip(places.tolist(), nexts.tolist(), strict=True):
        begin = int(segments.begin[place])
        if reach and begin < reach[-1]:
            continue
        answers = (k for k in range(following, len(again)) if begins[k] <= begin < ends[k])
        if (answer := next(answers, None)) is None:
            continue  # the flow ended first, or the retransmission was spurious
        heads.append((place, int(again[answer])))
        reach.append(_reach(heads[-1][1], fired, segments.begin, before))
    within = np.searchsorted(reach, segments.begin[places], side="right")
    counts = np.bincount(within, minlength=len(reach) + 1)
    timers = set(fired)
    return [
        LossEvent(
            began_ns=int(segments.time_ns[first]),
            answered_ns=int(segments.time_ns[answer]),
            by_timeout=answer in timers,
            losses=int(count),
        )
        for (first, answer), count in zip(heads, counts[: len(reach)], strict=True)
    ]


def _reach(answer: int, fired: list[int], begin: Integers, before: Integers) -> int:
    """The upper end of what a response repairs: all sent before it, or before a timeout in it."""
    reach = int(before[answer])
    for timeout in fired[int(np.searchsorted(fired, answer)) :]:
        if begin[timeout] >= reach:
            break
        reach = max(reach, int(before[timeout]))
    return reach
