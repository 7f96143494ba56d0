"""A trial with exact losses: its sequence of segments and ACKs, and the outcome."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from analysis.figures.papers.fall_floyd.outcome import Outcome
from analysis.trials.packets import FlowPackets, TrialPackets, epoch_ns
from analysis.trials.samples import read_samples
from analysis.trials.series import Floats
from testbed.errors import TestbedError
from testbed.scenario.model import Flow
from testbed.store import SOCKETS, FlowRecord, Trial


@dataclass(frozen=True)
class Points:
    """Segments over seconds of the trial."""

    time_s: Floats
    number: Floats


@dataclass(frozen=True)
class Sequence:
    """A flow as its sender's capture shows it; segments of new data are numbered from 1."""

    new: Points
    again: Points
    acks: Points  # the last segment that each acknowledges
    timeouts_s: Floats  # when the retransmit timer fired, to a sample


def sequence(trial: Trial, flow: Flow) -> Sequence:
    """The flow's segments and ACKs over time."""
    packets = _packets(trial, flow)
    zero = epoch_ns(trial)
    numbers, is_new = _numbers(packets.data)
    time_s = (packets.data["time_ns"].to_numpy() - zero) / 1e9
    ends = _ends(packets.data)
    # ACKs of the SYN, before any data, are number 0
    acked = np.searchsorted(ends, packets.acks["ack"].to_numpy(), side="right")
    acks_s = (packets.acks["time_ns"].to_numpy() - zero) / 1e9
    sockets = _sockets(trial, flow)
    fired = np.diff(sockets["backoff"].to_numpy(), prepend=0) > 0
    return Sequence(
        new=Points(time_s[is_new], numbers[is_new]),
        again=Points(time_s[~is_new], numbers[~is_new]),
        acks=Points(acks_s, acked.astype(np.float64)),
        timeouts_s=sockets["time_s"].to_numpy()[fired],
    )


def outcome(trial: Trial, flow: Flow, found: Sequence) -> Outcome:
    """The flow's recovery from its losses."""
    sockets = _sockets(trial, flow)
    if not len(found.again.time_s):
        raise TestbedError(
            f"{trial.path.name}: {flow.name} sent nothing again", "did it lose anything?"
        )
    began = float(found.again.time_s[0])
    before = found.new.time_s < began
    covered = found.acks.number >= found.new.number[before].max()
    late = found.acks.time_s[covered & (found.acks.time_s > began)]
    recovery_s = float(late[0]) - began if len(late) else float("nan")
    ssthresh = sockets["ssthresh"].fillna(2.0**31).to_numpy()
    after = sockets[sockets["time_s"] > began]
    growing = after["ca_state"].isin(["open", "loss"]) & (after["cwnd"] < after["ssthresh"])
    earlier = sockets[sockets["time_s"] < began]
    return Outcome(
        lost=flow.drops,
        sent_again=tuple(int(number) for number in found.again.number),
        timeouts=len(found.timeouts_s),
        halvings=int((np.diff(ssthresh) < 0).sum()),
        slow_start=bool(growing.any()),
        recovery_s=recovery_s,
        round_trips=recovery_s * 1e3 / float(sockets["min_rtt_ms"].min()),
        rto_ms=float(earlier["rto_ms"].iloc[-1]),
        acked=int(found.acks.number[found.acks.time_s <= trial.scenario.stop_s(flow)].max()),
    )


def _record(trial: Trial, flow: Flow) -> FlowRecord:
    return next(record for record in trial.record.flows if record.name == flow.name)


def _packets(trial: Trial, flow: Flow) -> FlowPackets:
    found = TrialPackets(trial).flow("sender", _record(trial, flow))
    if found is None:
        raise TestbedError(f"{trial.path.name}: no capture at {flow.src}", "capture the senders")
    return FlowPackets(found.data[found.data["payload"] > 0], found.acks)


def _sockets(trial: Trial, flow: Flow) -> pd.DataFrame:
    table = read_samples(trial, SOCKETS)
    if table is None:
        raise TestbedError(f"{trial.path.name}: no samples of sockets", "sample_interval_ms: 5")
    return table[(table["flow"] == flow.name) & (table["state"] == "established")]


def _numbers(data: pd.DataFrame) -> tuple[Floats, np.ndarray[tuple[int], np.dtype[np.bool_]]]:
    """Each packet's segment, and whether it is its first sending; as the dropper counts."""
    first = ~data["seq"].duplicated()
    order = {seq: number for number, seq in enumerate(data.loc[first, "seq"], start=1)}
    return data["seq"].map(order).to_numpy(dtype=np.float64), first.to_numpy()


def _ends(data: pd.DataFrame) -> Floats:
    """The end of each segment of new data, in order of their numbers."""
    new = data[~data["seq"].duplicated()]
    return (new["seq"] + new["payload"]).to_numpy(dtype=np.float64)
