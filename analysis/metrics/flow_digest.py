"""Parts of a flow's digest: throughput over time, and the quantiles of delays and RTTs."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

from analysis.captures.packet_matching import one_way_delays_ms
from analysis.metrics.measured_flow import MeasuredFlow
from analysis.trials import measures
from analysis.trials.packets import epoch_ns
from analysis.trials.series import Floats, rates_mbps

Part = tuple[str, Floats, Floats]  # what, x, value

BIN_S = 1.0
FRACTIONS = np.concatenate(([0.0, 0.001, 0.005], np.arange(1, 100) / 100, [0.995, 0.999, 1.0]))

# `what` of a part, and its x and value
THROUGHPUT = "throughput_mbps"  # x: the bin's middle, in seconds of the trial's clock
DELAYS = "owd_ms"  # x: a fraction; value: the quantile
RTTS = "rtt_ms"  # the same


def parts(flow: MeasuredFlow) -> Iterator[Part]:
    """The flow's digest, as far as its captures reach."""
    sender, receiver = flow.at("sender"), flow.at("receiver")
    if receiver is not None:
        yield _throughput(flow, receiver.data)
    if sender is not None and receiver is not None:
        found = one_way_delays_ms(sender.data, receiver.data)
        delays = found.loc[found["sent_ns"] >= flow.begin_ns, "owd_ms"]
        yield _quantiles(DELAYS, delays.to_numpy())
    if sender is not None and flow.is_tcp:
        rtts = measures.rtts(sender.data, sender.acks)
        rtts = rtts[rtts["time_ns"] >= flow.begin_ns]
        yield _quantiles(RTTS, rtts["rtt_ms"].to_numpy(dtype=np.float64))


def _throughput(flow: MeasuredFlow, data: pd.DataFrame) -> Part:
    seconds = (data["time_ns"].to_numpy() - epoch_ns(flow.trial)) / 1e9
    sizes, record = data["length"].to_numpy(), flow.record
    found = rates_mbps(seconds, sizes, record.started_s, record.stopped_s, BIN_S)
    return THROUGHPUT, found.time_s, found.value


def _quantiles(what: str, values: Floats) -> Part:
    if not len(values):
        return what, FRACTIONS[:0], values
    return what, FRACTIONS, np.quantile(values, FRACTIONS)
