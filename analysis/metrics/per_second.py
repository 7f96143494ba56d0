"""A trial second by second: what a claim about time needs, kept in the trial's folder.

Means of delays are by the second in which a packet (or a segment, for the first time) was sent,
so that they tell of what it met on its way.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd

from analysis.captures.packet_matching import one_way_delays_ms
from analysis.trials import measures
from analysis.trials.kept_table import kept_or_computed
from analysis.trials.packets import TrialPackets, epoch_ns
from testbed.errors import TestbedError
from testbed.scenario.model import FlowKind
from testbed.store import SECONDS_FILE, FlowRecord, Trial

REVISION = "1"  # raise it when a change here gives other numbers
DELAYS = ("owd", "rtt", "recovery")
COLUMNS = (
    "flow",
    "kind",
    "second",
    "throughput_mbps",
    *(f"{name}_{what}" for name in DELAYS for what in ("ms", "n")),
)


class NotMeasured(TestbedError):
    """The results at hand lack what is asked for."""


def trial_seconds(trial: Trial, packets: TrialPackets | None = None) -> pd.DataFrame:
    """One row per flow and second of the trial: rate at the receiver, mean delays, their number."""

    def compute() -> pd.DataFrame:
        return _seconds(trial, packets or TrialPackets(trial))

    return kept_or_computed(trial.path / SECONDS_FILE, REVISION, compute)


def _seconds(trial: Trial, packets: TrialPackets) -> pd.DataFrame:
    kinds = {flow.name: flow.kind for flow in trial.scenario.flows}
    tables = [_flow(trial, packets, each, kinds[each.name]) for each in trial.record.flows]
    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame(columns=list(COLUMNS))


def _flow(trial: Trial, packets: TrialPackets, record: FlowRecord, kind: FlowKind) -> pd.DataFrame:
    zero, count = epoch_ns(trial), int(np.ceil(trial.scenario.duration_s))
    sender, receiver = packets.flow("sender", record), packets.flow("receiver", record)
    if receiver is None:
        raise NotMeasured(
            f"{trial.path.name}: no capture at the receiver is left", "run it with --captures keep"
        )
    columns: dict[str, object] = {
        "flow": record.name,
        "kind": str(kind),
        "second": np.arange(count),
        "throughput_mbps": _sums(receiver.data, "time_ns", "length", zero, count) * 8e-6,
    }
    tables = dict.fromkeys(DELAYS, pd.DataFrame({"ns": [], "ms": []}))
    if sender is not None:
        tables["owd"] = _named(one_way_delays_ms(sender.data, receiver.data), "sent_ns", "owd_ms")
        if kind is FlowKind.TCP:
            tables["rtt"] = _named(measures.rtts(sender.data, sender.acks), "time_ns", "rtt_ms")
            recovered = measures.recovery_latencies(sender.data, sender.acks)
            tables["recovery"] = _named(recovered, "sent_ns", "recovery_ms")
    for name, table in tables.items():
        numbers = _sums(table.assign(one=1.0), "ns", "one", zero, count)
        with np.errstate(invalid="ignore", divide="ignore"):
            columns[f"{name}_ms"] = _sums(table, "ns", "ms", zero, count) / numbers
        columns[f"{name}_n"] = numbers
    return pd.DataFrame(columns, columns=list(COLUMNS))


def _named(table: pd.DataFrame, time: str, value: str) -> pd.DataFrame:
    return table.rename(columns={time: "ns", value: "ms"})


def _sums(
    table: pd.DataFrame, time: str, value: str, zero: int, count: int
) -> npt.NDArray[np.float64]:
    """Of the values in each second; what lies outside the trial is left out."""
    places = (table[time].to_numpy(dtype=np.int64) - zero) // 1_000_000_000
    inside = (places >= 0) & (places < count)
    weights = table[value].to_numpy(dtype=np.float64)[inside]
    return np.asarray(
        np.bincount(places[inside], weights=weights, minlength=count), dtype=np.float64
    )
