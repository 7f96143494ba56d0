"""A TCP flow's losses and what they led to, as columns of its row in the metrics."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd

from analysis.metrics.loss.loss_connections import Connection, connections
from analysis.metrics.loss.loss_events import LossEvent
from analysis.trials.evidence import Evidence
from analysis.trials.measures import NAN, Interval
from analysis.trials.segments import Booleans, Integers
from testbed.store import FlowRecord

CLOCK_NS = 1000  # samples' times are written to the microsecond
GROWING = ("open", "disorder", "loss")  # states in which a window may be in slow start

Row = dict[str, object]


def loss_columns(evidence: Evidence, flow: FlowRecord, interval: Interval) -> Row:
    """Losses, loss events, recoveries, timeouts and the timer, within the interval."""
    every = connections(evidence, flow)
    if every is None:
        return {}
    samples = evidence.socket(flow)
    # samples do not tell connections apart
    own = samples if len(every) == 1 else None
    avoided, started = _events(evidence, every, own, interval)
    sizes = np.concatenate([each.payload[_sent(each, interval)] for each in every])
    lost = sum(int((_sent(each, interval) & each.lost).sum()) for each in every)
    return {
        "segment_bytes": _commonest(sizes),
        "loss_rate": _ratio(lost, len(sizes)),
        "loss_events": len(avoided),
        "loss_event_rate": _ratio(len(avoided), len(sizes)),
        "losses_per_event": _mean(event.losses for event in avoided),
        "slow_start_events": len(started),
        "recoveries": sum(_count(each, each.answers.recoveries, interval) for each in every),
        "timeouts_seen": sum(_count(each, each.answers.timeouts, interval) for each in every),
        **_timer(evidence, every, own, interval),
        **_means_of_samples(evidence, samples, interval),
    }


def _sent(each: Connection, interval: Interval) -> Booleans:
    """The segments with data that were sent in the interval."""
    return _within(each.segments.time_ns, interval) & (each.payload > 0)


def _within(time_ns: Integers, interval: Interval) -> Booleans:
    return (time_ns >= interval.start_ns) & (time_ns <= interval.stop_ns)


def _count(each: Connection, places: Integers, interval: Interval) -> int:
    return int(_within(each.segments.time_ns[places], interval).sum())


def _events(
    evidence: Evidence,
    every: Sequence[Connection],
    samples: pd.DataFrame | None,
    interval: Interval,
) -> tuple[list[LossEvent], list[LossEvent]]:
    """The interval's events: those that ended congestion avoidance, and those slow start."""
    found: tuple[list[LossEvent], list[LossEvent]] = ([], [])
    for each in every:
        slow = _in_slow_start(evidence, each.events, samples)
        for event, is_slow in zip(each.events, slow, strict=True):
            if interval.start_ns <= event.began_ns <= interval.stop_ns:
                found[is_slow].append(event)
    return found


def _in_slow_start(
    evidence: Evidence, events: Sequence[LossEvent], samples: pd.DataFrame | None
) -> list[bool]:
    """Whether the window was below ssthresh when the sender answered, by the last sample before
    it. Without samples: of a connection's events the first. A control that has no ssthresh has
    no slow start that a loss could end."""
    if samples is None:
        return [place == 0 for place in range(len(events))]
    ssthresh = samples["ssthresh"].to_numpy(dtype=np.float64)
    slow = samples["cwnd"].to_numpy() < np.where(np.isnan(ssthresh), np.inf, ssthresh)
    slow &= samples["ca_state"].isin(GROWING).to_numpy() & bool(np.isfinite(ssthresh).any())
    answered_ns = np.array([event.answered_ns for event in events], dtype=np.int64)
    place = _last_before(evidence, samples, answered_ns)
    return [bool(slow[k]) for k in place]


def _last_before(evidence: Evidence, samples: pd.DataFrame, at_ns: Integers) -> Integers:
    """Places of the last samples before these times."""
    place = np.searchsorted(evidence.ns(samples["time_s"]), at_ns - CLOCK_NS, side="left") - 1
    return np.asarray(np.maximum(0, place))


def _timer(
    evidence: Evidence,
    every: Sequence[Connection],
    samples: pd.DataFrame | None,
    interval: Interval,
) -> Row:
    """Of the timeouts that no other preceded: the timer, and how long nothing had happened."""
    fired_ns, wait_ns = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for each in every:
        places = each.answers.timeouts
        chosen = _within(each.segments.time_ns[places], interval) & each.answers.first
        chosen &= each.payload[places] > 0  # a SYN has a timer of its own
        fired_ns.append(each.segments.time_ns[places][chosen])
        wait_ns.append(each.answers.wait_ns[chosen])
    at_ns = np.concatenate(fired_ns)
    row: Row = {"timeout_wait_ms": _mean(np.concatenate(wait_ns) / 1e6)}
    if samples is not None and "rto_ms" in samples and len(at_ns):
        place = _last_before(evidence, samples, at_ns)
        row["rto_at_timeout_ms"] = _mean(samples["rto_ms"].to_numpy()[place])
    return row


def _means_of_samples(evidence: Evidence, samples: pd.DataFrame | None, interval: Interval) -> Row:
    """Of the smoothed round trip; and of the timer while it has not fired."""
    if samples is None or "rto_ms" not in samples:
        return {}
    use = _within(evidence.ns(samples["time_s"]), interval)
    use &= (samples["state"] == "established").to_numpy()
    calm = use & (samples["backoff"] == 0).to_numpy()
    return {
        "srtt_mean_ms": _mean(samples["srtt_ms"].to_numpy()[use]),
        "rto_mean_ms": _mean(samples["rto_ms"].to_numpy()[calm]),
    }


def _commonest(sizes: Integers) -> float:
    """The size that most packets have."""
    return int(np.bincount(sizes).argmax()) if len(sizes) else NAN


def _ratio(part: int, whole: int) -> float:
    return part / whole if whole else NAN


def _mean(values: Iterable[float]) -> float:
    found = np.asarray(list(values), dtype=np.float64)
    return float(found.mean()) if len(found) else NAN
