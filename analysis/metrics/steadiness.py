"""From when on a flow's throughput is steady.

That is the time from the flow's start to the start of the first of its whole 1 s bins from which on
every bin's throughput lies within 20 % of the mean of the bins of the second half: 0 for a flow
that fills its link from the first second on, whatever its window does. It is not known (NaN) for a
flow that is not steady by its middle: the mean of the second half then says nothing.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from analysis.metrics.measured_flow import MeasuredFlow
from analysis.metrics.metric import ColumnGroup, Metric, Row
from analysis.trials.measures import NAN, Interval
from analysis.trials.packets import FlowPackets, whole_interval

Floats = npt.NDArray[np.float64]

BIN_S = 1.0
WITHIN = 0.2


def steady_time_s(time_s: Floats, rate: Floats, start_s: float, stop_s: float) -> float:
    """The same of a flow with these rates (any unit) around these times, on a grid of at most
    1 s."""
    bins = int((stop_s - start_s) / BIN_S + 1e-9)
    means = _binned(time_s - start_s, rate, bins)
    half = bins // 2
    if half < 1 or np.isnan(means).any():
        return float("nan")
    settled = float(means[half:].mean())
    outside = np.flatnonzero(np.abs(means - settled) > WITHIN * abs(settled))
    first = int(outside[-1]) + 1 if len(outside) else 0
    return first * BIN_S if first <= half and settled > 0 else float("nan")


def _binned(since_s: Floats, rate: Floats, bins: int) -> Floats:
    """The mean rate in each bin, NaN for a bin without one."""
    place = np.floor(since_s / BIN_S + 1e-9).astype(np.int64)
    own = (place >= 0) & (place < bins) & np.isfinite(rate)
    counts = np.bincount(place[own], minlength=bins)
    sums = np.bincount(place[own], weights=rate[own], minlength=bins)
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)


def steady_after_s(found: FlowPackets | None, interval: Interval) -> float:
    """The same at a receiver; NaN if the flow was not steady, or not captured.

    The rate of a bin without packets is zero, not unknown.
    """
    if found is None:
        return NAN
    own = found.data[interval.holds(found.data["time_ns"])]
    places = ((own["time_ns"].to_numpy() - interval.start_ns) / 1e9 / BIN_S).astype(np.int64)
    bins = int(interval.seconds / BIN_S) + 1
    sizes = np.bincount(places, weights=own["length"].to_numpy(), minlength=bins)
    middles = np.arange(0.5, bins) * BIN_S
    return steady_time_s(
        middles.astype(np.float64), sizes[:bins].astype(np.float64), 0.0, interval.seconds
    )


def _measure(flow: MeasuredFlow) -> Row:
    whole = whole_interval(flow.trial, flow.record)
    return {"steady_after_s": steady_after_s(flow.at("receiver"), whole)}


STEADINESS = ColumnGroup(
    (
        Metric(
            "steady_after_s",
            "s",
            "time from the flow's start to the first moment from which its throughput at the "
            "receiver, in bins of 1 s, stays within 20 % of its mean over the second half: 0 for "
            "a flow that fills its link from the start; not known if it is not steady by the "
            "middle",
        ),
    ),
    _measure,
)
