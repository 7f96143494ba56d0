"""What kept a TCP sender from sending more than it did, by the samples of its sockets."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from analysis.trials.packets import Interval, capture_ns
from testbed.store.reading import Trial

APPLICATION, SEND_BUFFER = "application", "send-buffer"  # of the samples' column starved_by


@dataclass(frozen=True)
class SenderLimits:
    """The shares of an interval in which something else than the network limited a flow."""

    receive_window: float
    send_buffer: float
    application: float


def sender_limits(
    trial: Trial, samples: pd.DataFrame | None, interval: Interval
) -> SenderLimits | None:
    """Return a flow's limits by its samples; None if the interval has no samples.

    Of several connections a share is the mean of theirs.
    """
    if samples is None:
        return None
    at_ns = capture_ns(trial, samples["time_s"])
    inside = interval.holds(at_ns)
    if not inside.any() or interval.seconds <= 0:
        return None
    starved = samples["starved_by"].to_numpy()[inside]
    return SenderLimits(
        receive_window=_window_limited(trial, samples, interval),
        send_buffer=float((starved == SEND_BUFFER).mean()),
        application=float((starved == APPLICATION).mean()),
    )


def _window_limited(trial: Trial, samples: pd.DataFrame, interval: Interval) -> float:
    """Return the share of the interval by which the kernel's count of limited time grew."""
    at_ns, place = np.unique(capture_ns(trial, samples["time_s"]), return_inverse=True)
    total_ms = np.bincount(place, weights=samples["rwnd_limited_ms"].to_numpy())
    times = np.concatenate(([min(interval.start_ns, at_ns[0])], at_ns))
    counted_ms = np.concatenate(([0.0], np.maximum.accumulate(total_ms)))
    begin, end = np.interp([interval.start_ns, interval.stop_ns], times, counted_ms)
    return float((end - begin) / 1e3 / (interval.seconds * int(np.bincount(place).max())))
