"""What figures need of a trial beside its metrics, small and cached: a trial's captures are read
once, when it is reduced, and never again for a report of a thousand trials."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

from analysis.captures.packet_matching import one_way_delays_ms
from analysis.metrics.video_digest import video_parts
from analysis.trials import measures
from analysis.trials.kept_table import kept_or_computed, read_kept
from analysis.trials.packets import TrialPackets, epoch_ns, settled_ns
from analysis.trials.series import Floats, means, rates_mbps
from testbed.scenario.model import FlowKind
from testbed.store import DIGEST_FILE, FlowRecord, Status, Trial

REVISION = "1"  # raise it when a change here gives other numbers
BIN_S = 1.0
FRACTIONS = np.concatenate(([0.0, 0.001, 0.005], np.arange(1, 100) / 100, [0.995, 0.999, 1.0]))

# `what` of a row, and what its x and value then are
THROUGHPUT = "throughput_mbps"  # x: the bin's middle, in seconds of the trial's clock
DELAY = "owd_mean_ms"  # the same, by when packets were sent
DELAYS = "owd_ms"  # x: a fraction; value: the quantile
RTTS = "rtt_ms"  # the same
COLUMNS = ("flow", "what", "x", "value")


def trial_digest(trial: Trial, packets: TrialPackets | None = None) -> pd.DataFrame:
    """Each flow's throughput and delay over time, and the quantiles of its delays and RTTs."""
    packets = packets or TrialPackets(trial)
    parts = [part for flow in trial.record.flows for part in _flow(trial, packets, flow)]
    if not parts:
        return _empty()
    return pd.concat(parts, ignore_index=True)


def _flow(trial: Trial, packets: TrialPackets, flow: FlowRecord) -> Iterator[pd.DataFrame]:
    zero = epoch_ns(trial)
    sender, receiver = packets.flow("sender", flow), packets.flow("receiver", flow)
    if receiver is not None:
        seconds = (receiver.data["time_ns"].to_numpy() - zero) / 1e9
        series = rates_mbps(
            seconds, receiver.data["length"].to_numpy(), flow.started_s, flow.stopped_s, BIN_S
        )
        yield _part(flow, THROUGHPUT, series.time_s, series.value)
        if trial.scenario.flow(flow.name).kind is FlowKind.VIDEO:
            for what, x, value in video_parts(receiver, flow.protocol):
                yield _part(flow, what, x, value)
    if sender is not None and receiver is not None:
        found = one_way_delays_ms(sender.data, receiver.data)
        delays = found["owd_ms"].to_numpy()
        settled = found["sent_ns"].to_numpy() >= settled_ns(trial)
        series = means((found["sent_ns"].to_numpy() - zero) / 1e9, delays, BIN_S)
        yield _part(flow, DELAY, series.time_s, series.value)
        yield _quantiles(flow, DELAYS, delays[settled])
    if sender is not None and flow.protocol == "tcp":
        rtts = measures.rtts(sender.data, sender.acks)
        rtts = rtts[rtts["time_ns"] >= settled_ns(trial)]
        yield _quantiles(flow, RTTS, rtts["rtt_ms"].to_numpy(dtype=np.float64))


def _quantiles(flow: FlowRecord, what: str, values: Floats) -> pd.DataFrame:
    if not len(values):
        return _part(flow, what, FRACTIONS[:0], values)
    return _part(flow, what, FRACTIONS, np.quantile(values, FRACTIONS))


def _part(flow: FlowRecord, what: str, x: Floats, value: Floats) -> pd.DataFrame:
    return pd.DataFrame({"flow": flow.name, "what": what, "x": x, "value": value})


def cached_digest(trial: Trial, packets: TrialPackets | None = None) -> pd.DataFrame:
    """The digest that the trial keeps, if it is of this revision, or a new one."""
    path = trial.path / DIGEST_FILE
    dropped = any(not capture.file for capture in trial.record.captures)
    if trial.record.status is Status.OK and not dropped:
        return kept_or_computed(path, REVISION, lambda: trial_digest(trial, packets))
    kept = read_kept(path)
    return kept.frame() if kept and kept.revision == REVISION else _empty()


def _empty() -> pd.DataFrame:
    return pd.DataFrame({name: [] for name in COLUMNS}).astype({"x": float, "value": float})
