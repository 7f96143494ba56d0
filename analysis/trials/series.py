"""A trial over time: throughput, one-way delay, the queue and the window, on even grids."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from analysis.captures.packet_matching import one_way_delays_ms
from analysis.trials.packets import TrialPackets, epoch_ns
from analysis.trials.samples import read_samples
from testbed.scenario.model import FlowKind
from testbed.scenario.network import FRAME_BYTES
from testbed.store.names import QUEUE_SAMPLES, SOCKET_SAMPLES
from testbed.store.reading import Trial
from testbed.store.records import FlowRecord

Floats = npt.NDArray[np.float64]

ROUND_STEPS_S = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100)


@dataclass(frozen=True)
class Series:
    """Values over the trial's time, NaN where there was none."""

    time_s: Floats
    value: Floats


@dataclass(frozen=True)
class FlowSeries:
    """One TCP flow over time; a measure that was not captured or sampled is None."""

    name: str
    throughput_mbps: Series | None
    delay_ms: Series | None
    delays_ms: Floats  # of each packet, for the statistics
    cwnd: Series | None
    cwnd_peak: float  # of single samples, which means would hide


@dataclass(frozen=True)
class QueueSeries:
    """The bottleneck's queue over time."""

    backlog_kb: Series
    peak_kb: float
    drop_times_s: Floats
    drops: int


@dataclass(frozen=True)
class TrialSeries:
    """A trial over time."""

    flows: tuple[FlowSeries, ...]
    queue: QueueSeries | None


def grid_step_s(trial: Trial, span_s: float | None = None) -> float:
    """Return a round step for rates.

    It is at least a sixtieth of the trial (or of the span of it that is shown) and fifty frames at
    the bottleneck's rate.
    """
    rate_bps = trial.scenario.network.bottleneck_mbit * 1e6
    shown_s = trial.scenario.duration_s if span_s is None else span_s
    least = max(shown_s / 60, 50 * 8 * FRAME_BYTES / rate_bps)
    return next((step for step in ROUND_STEPS_S if step >= least * 0.999), least)


def trial_series(trial: Trial) -> TrialSeries:
    """Return the trial's TCP flows and its bottleneck's queue over time."""
    packets = TrialPackets(trial)
    kinds = {flow.name: flow.kind for flow in trial.scenario.flows}
    sockets = read_samples(trial, SOCKET_SAMPLES)
    flows = tuple(
        _flow(trial, packets, record, sockets)
        for record in trial.record.flows
        if kinds.get(record.name) is FlowKind.TCP
    )
    return TrialSeries(flows, _queue(trial, read_samples(trial, QUEUE_SAMPLES)))


def _flow(
    trial: Trial, packets: TrialPackets, record: FlowRecord, sockets: pd.DataFrame | None
) -> FlowSeries:
    zero = epoch_ns(trial)
    fine = trial.scenario.duration_s / 600
    receiver, sender = packets.flow("receiver", record), packets.flow("sender", record)
    throughput = delay = cwnd = None
    peak = 0.0
    delays = np.zeros(0)
    if receiver is not None:
        seconds = (receiver.data["time_ns"].to_numpy() - zero) / 1e9
        sizes = receiver.data["length"].to_numpy()
        throughput = rates_mbps(
            seconds, sizes, record.started_s, record.stopped_s, grid_step_s(trial)
        )
    if receiver is not None and sender is not None:
        transit_ms = one_way_delays_ms(sender.data, receiver.data)
        delays = transit_ms["owd_ms"].to_numpy()
        delay = means((transit_ms["sent_ns"].to_numpy() - zero) / 1e9, delays, fine)
    if sockets is not None and len(of_flow := sockets[sockets["flow"] == record.name]):
        cwnd = means(of_flow["time_s"].to_numpy(), of_flow["cwnd"].to_numpy(dtype=np.float64), fine)
        peak = float(of_flow["cwnd"].max())
    return FlowSeries(record.name, throughput, delay, delays, cwnd, peak)


def rates_mbps(
    time_s: Floats, size: Floats, start_s: float, stop_s: float, step_s: float
) -> Series:
    """Mbit/s in each whole step of the interval, at the middle of the step."""
    first = math.ceil(start_s / step_s - 1e-6)
    last = math.floor(stop_s / step_s + 1e-6)
    edges = np.arange(first, last + 1) * step_s
    sums, _ = np.histogram(time_s, bins=edges, weights=size) if last > first else (edges[:0], 0)
    rates = np.asarray(sums, dtype=np.float64) * 8e-6 / step_s
    return Series(np.asarray(edges[:-1] + step_s / 2, dtype=np.float64), rates)


def means(time_s: Floats, value: Floats, step_s: float) -> Series:
    """Return the mean within each step; NaN in steps without a value."""
    if not len(time_s):
        return Series(np.zeros(0), np.zeros(0))
    index = np.floor(time_s / step_s + 1e-9).astype(np.int64)
    first = min(0, int(index.min()))
    counts = np.bincount(index - first)
    sums = np.bincount(index - first, weights=value)
    with np.errstate(invalid="ignore"):
        means = sums / counts
    middles = (np.arange(len(means), dtype=np.float64) + first + 0.5) * step_s
    return Series(middles, np.asarray(means, dtype=np.float64))


def _queue(trial: Trial, samples: pd.DataFrame | None) -> QueueSeries | None:
    """Return the series of the first sampled queue, which flows cross with their data."""
    if samples is None or samples.empty:
        return None
    of_queue = samples[samples["interface"] == samples["interface"].iloc[0]]
    time_s = of_queue["time_s"].to_numpy()
    rises = np.diff(of_queue["drops"].to_numpy(), prepend=0) > 0
    backlog = of_queue["backlog_bytes"].to_numpy() / 1e3
    return QueueSeries(
        backlog_kb=means(time_s, backlog, trial.scenario.duration_s / 600),
        peak_kb=float(backlog.max()),
        drop_times_s=time_s[rises],
        drops=int(of_queue["drops"].iloc[-1]),
    )
