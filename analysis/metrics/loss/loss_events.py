"""Loss events: what a connection lost, window by window (Parvez, Mahanti, Williamson III.A)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from analysis.metrics.loss.responses import Responses
from analysis.trials.segments import Booleans, Integers, Segments


@dataclass(frozen=True)
class LossEvent:
    """A window's losses, from the first one that the sender answered."""

    began_ns: int  # when the first of them was sent
    answered_ns: int  # when it was sent again: the sender leaves what it was doing
    by_timeout: bool  # whether the timer did that, and not duplicate ACKs
    losses: int  # packets, those among the retransmissions included


def loss_events(segments: Segments, lost: Booleans, found: Responses) -> list[LossEvent]:
    """A connection's loss events; `lost` says which of its segments never arrived.

    An event begins with a lost segment that is sent again. To it belongs all that had been
    sent by then; and where the timer fires before that is acknowledged, all that had been sent
    when it did. What is lost beyond begins the next event.
    """
    again = np.flatnonzero(segments.again)
    begins, ends = segments.begin[again].tolist(), segments.end[again].tolist()
    before = np.concatenate(([0], np.maximum.accumulate(segments.end)))
    fired = found.timeouts.tolist()
    heads: list[tuple[int, int]] = []  # the first loss and its answer
    reach: list[int] = []  # up to where an event's losses lie
    places = np.flatnonzero(lost)
    nexts = np.searchsorted(again, places, side="right")
    for place, following in zip(places.tolist(), nexts.tolist(), strict=True):
        begin = int(segments.begin[place])
        if reach and begin < reach[-1]:
            continue
        answers = (k for k in range(following, len(again)) if begins[k] <= begin < ends[k])
        if (answer := next(answers, None)) is None:
            continue  # the flow ended before, or this was sent again for nothing
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
    """Up to where what an answer repairs lies: all sent before it, or before a timeout in it."""
    reach = int(before[answer])
    for timeout in fired[int(np.searchsorted(fired, answer)) :]:
        if begin[timeout] >= reach:
            break
        reach = max(reach, int(before[timeout]))
    return reach
