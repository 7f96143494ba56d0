"""Columns of a TCP flow's losses, and of the recoveries and timeouts that they led to."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd

from analysis.captures.flow_tables import Metric
from analysis.metrics.loss_events import LossEvent, LossyConnection, lossy_connections
from analysis.metrics.metric import ColumnGroup, MeasuredFlow, Row
from analysis.trials.packets import NAN, Interval, capture_ns
from analysis.trials.tcp_stream import Booleans, Integers
from testbed.store.reading import Trial

LOSS_COLUMNS = (
    Metric(
        "timeouts_seen",
        "",
        "times that the retransmission timer fired for this flow in the measured interval, as the "
        "sender's capture shows them: the segment that the receiver waits for is retransmitted "
        "when nothing has been acknowledged for a timeout and no acknowledgement has just arrived, "
        "or once more than recovery explains. A tail loss probe of the only segment outstanding "
        "looks the same",
        count=True,
    ),
    Metric(
        "recoveries",
        "",
        "times that duplicate acknowledgements caused the segment that the receiver waits for to "
        "be retransmitted, in the measured interval: each begins a fast recovery (Tahoe: a slow "
        "start). SACK begins some recoveries without that segment, and BBR many: those are not "
        "seen",
        count=True,
    ),
    Metric(
        "segment_bytes",
        "B",
        "the most frequent payload of the flow's data packets at the sender's capture",
        count=True,
    ),
    Metric(
        "loss_rate",
        "",
        "the share of the packets with data sent in the measured interval, retransmissions "
        "included, that never reached the receiver's capture. Where the receiver was not captured: "
        "the share that was retransmitted before it was acknowledged (not Wireshark's "
        "spurious_retransmission)",
    ),
    Metric(
        "loss_events",
        "",
        "loss events that began in the measured interval. One begins with the first lost packet "
        "that leads from congestion avoidance to a recovery or a timeout; it includes all losses "
        "among the packets sent before its first retransmission, or before a timeout ended it",
        count=True,
    ),
    Metric("loss_event_rate", "", "loss events over packets with data sent: p of the models"),
    Metric(
        "losses_per_event",
        "packets",
        "mean number of packets lost in a loss event, retransmissions included: m of the models",
    ),
    Metric(
        "slow_start_events",
        "",
        "like loss events, but leading out of slow start: the window was below ssthresh at the "
        "last sample of the socket before the retransmission. Where sockets were not sampled: the "
        "first event of a connection",
        count=True,
    ),
    Metric(
        "srtt_mean_ms",
        "ms",
        "mean of the smoothed RTT over the samples of the sender's socket (TCP_INFO's rtt) in the "
        "measured interval: RTT of the models",
    ),
    Metric(
        "rto_mean_ms",
        "ms",
        "mean length of the retransmission timer over the samples of the sender's socket "
        "(TCP_INFO's rto) in the measured interval, except while it is backed off",
    ),
    Metric(
        "rto_at_timeout_ms",
        "ms",
        "mean of the same at the last sample before each timeout that is the first for its data: "
        "RTO of the models",
    ),
    Metric(
        "timeout_wait_ms",
        "ms",
        "mean time, at the sender's capture, from the last acknowledgement of new data to each of "
        "these timeouts. Shorter than the timer where not every acknowledgement restarts it",
    ),
)
CLOCK_NS = 1000  # the times of samples are written to the microsecond
SLOW_START_STATES = ("open", "disorder", "loss")  # states in which a window may be in slow start


def _measure(flow: MeasuredFlow) -> Row:
    # without a capture at the receiver Wireshark's marks tell what was lost
    known = flow.is_tcp and (flow.packets_at("receiver") is not None or not flow.has_cut_headers)
    every = lossy_connections(flow.trial, flow.packets, flow.record) if known else None
    if every is None:
        return {}
    trial, interval = flow.trial, flow.interval
    samples = flow.samples.flow(flow.record)
    # samples do not tell lossy_connections apart
    flow_samples = samples if len(every) == 1 else None
    avoided, started = _events(trial, every, flow_samples, interval)
    sizes = np.concatenate([each.payload[_sent(each, interval)] for each in every])
    lost = sum(int((_sent(each, interval) & each.lost).sum()) for each in every)
    return {
        "segment_bytes": _most_frequent(sizes),
        "loss_rate": _ratio(lost, len(sizes)),
        "loss_events": len(avoided),
        "loss_event_rate": _ratio(len(avoided), len(sizes)),
        "losses_per_event": _mean(event.losses for event in avoided),
        "slow_start_events": len(started),
        "recoveries": sum(_count(each, each.answers.recoveries, interval) for each in every),
        "timeouts_seen": sum(_count(each, each.answers.timeouts, interval) for each in every),
        **_timer(trial, every, flow_samples, interval),
        **_means_of_samples(trial, samples, interval),
    }


def _sent(each: LossyConnection, interval: Interval) -> Booleans:
    """Return a mask of the segments that carry data and were sent in the interval."""
    return _within(each.segments.time_ns, interval) & (each.payload > 0)


def _within(time_ns: Integers, interval: Interval) -> Booleans:
    return (time_ns >= interval.start_ns) & (time_ns <= interval.stop_ns)


def _count(each: LossyConnection, places: Integers, interval: Interval) -> int:
    return int(_within(each.segments.time_ns[places], interval).sum())


def _events(
    trial: Trial,
    every: Sequence[LossyConnection],
    samples: pd.DataFrame | None,
    interval: Interval,
) -> tuple[list[LossEvent], list[LossEvent]]:
    """Return the events that ended congestion avoidance, and those that ended slow start."""
    events: tuple[list[LossEvent], list[LossEvent]] = ([], [])
    for each in every:
        slow = _in_slow_start(trial, each.events, samples)
        for event, is_slow in zip(each.events, slow, strict=True):
            if interval.start_ns <= event.began_ns <= interval.stop_ns:
                events[is_slow].append(event)
    return events


def _in_slow_start(
    trial: Trial, events: Sequence[LossEvent], samples: pd.DataFrame | None
) -> list[bool]:
    """Say of each event whether it ended slow start.

    That is so where the window was below ssthresh at the last sample before the sender's answer;
    without samples, for the connection's first event. A control without ssthresh has no slow start
    that a loss could end.
    """
    if samples is None:
        return [place == 0 for place in range(len(events))]
    ssthresh = samples["ssthresh"].to_numpy(dtype=np.float64)
    slow = samples["cwnd"].to_numpy() < np.where(np.isnan(ssthresh), np.inf, ssthresh)
    slow &= samples["ca_state"].isin(SLOW_START_STATES).to_numpy() & bool(
        np.isfinite(ssthresh).any()
    )
    answered_ns = np.array([event.answered_ns for event in events], dtype=np.int64)
    place = _last_before(trial, samples, answered_ns)
    return [bool(slow[k]) for k in place]


def _last_before(trial: Trial, samples: pd.DataFrame, at_ns: Integers) -> Integers:
    """Return the places of the last samples before these times."""
    place = np.searchsorted(capture_ns(trial, samples["time_s"]), at_ns - CLOCK_NS, side="left") - 1
    return np.asarray(np.maximum(0, place))


def _timer(
    trial: Trial,
    every: Sequence[LossyConnection],
    samples: pd.DataFrame | None,
    interval: Interval,
) -> Row:
    """Measure the timer and the silence at the timeouts that are the first for their data."""
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
        place = _last_before(trial, samples, at_ns)
        row["rto_at_timeout_ms"] = _mean(samples["rto_ms"].to_numpy()[place])
    return row


def _means_of_samples(trial: Trial, samples: pd.DataFrame | None, interval: Interval) -> Row:
    """Means of the smoothed RTT, and of the timer while it is not backed off."""
    if samples is None or "rto_ms" not in samples:
        return {}
    use = _within(capture_ns(trial, samples["time_s"]), interval)
    use &= (samples["state"] == "established").to_numpy()
    calm = use & (samples["backoff"] == 0).to_numpy()
    return {
        "srtt_mean_ms": _mean(samples["srtt_ms"].to_numpy()[use]),
        "rto_mean_ms": _mean(samples["rto_ms"].to_numpy()[calm]),
    }


def _most_frequent(sizes: Integers) -> float:
    return int(np.bincount(sizes).argmax()) if len(sizes) else NAN


def _ratio(part: int, whole: int) -> float:
    return part / whole if whole else NAN


def _mean(values: Iterable[float]) -> float:
    numbers = np.asarray(list(values), dtype=np.float64)
    return float(numbers.mean()) if len(numbers) else NAN


LOSS_GROUP = ColumnGroup(LOSS_COLUMNS, _measure)
