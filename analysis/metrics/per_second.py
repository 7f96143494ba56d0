"""Parts of a flow's digest that claims about time read: its rate and delays second by second.

Mean delays are by the second in which a packet (or, for the first time, a segment) was sent, so
that they tell what it met on its way.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pandas as pd

from analysis.captures.packet_matching import one_way_delays_ms
from analysis.metrics.flow_digest import Part
from analysis.metrics.measured_flow import MeasuredFlow
from analysis.trials import measures
from analysis.trials.packets import FlowPackets, epoch_ns
from testbed.errors import TestbedError
from testbed.scenario.model import FlowKind
from testbed.store import Trial

Floats = npt.NDArray[np.float64]

SECOND = "second: "  # followed by one of VALUES; x: the second
DELAYS = ("owd", "rtt", "recovery")
VALUES = ("throughput_mbps", *(f"{name}_{what}" for name in DELAYS for what in ("ms", "n")))
COLUMNS = ("flow", "second", *VALUES)


class NotMeasured(TestbedError):
    """The results at hand lack what is asked for."""


def parts(flow: MeasuredFlow) -> Iterator[Part]:
    """The rate at the receiver, mean delays and their number; nothing if it was not captured."""
    receiver = flow.at("receiver")
    if receiver is None:
        return
    zero, count = epoch_ns(flow.trial), int(np.ceil(flow.trial.scenario.duration_s))
    x = np.arange(count, dtype=np.float64)
    rates = _sums(receiver.data, "time_ns", "length", zero, count) * 8e-6
    yield f"{SECOND}throughput_mbps", x, rates
    for name, table in _delays(flow, receiver).items():
        numbers = _sums(table.assign(one=1.0), "ns", "one", zero, count)
        with np.errstate(invalid="ignore", divide="ignore"):
            yield f"{SECOND}{name}_ms", x, _sums(table, "ns", "ms", zero, count) / numbers
        yield f"{SECOND}{name}_n", x, numbers


def _delays(flow: MeasuredFlow, receiver: FlowPackets) -> dict[str, pd.DataFrame]:
    """Times and delays of each kind; nothing where they cannot be known."""
    tables = dict.fromkeys(DELAYS, pd.DataFrame({"ns": [], "ms": []}))
    sender = flow.at("sender")
    if sender is not None:
        tables["owd"] = _named(one_way_delays_ms(sender.data, receiver.data), "sent_ns", "owd_ms")
        if flow.scenario_flow.kind is FlowKind.TCP:
            tables["rtt"] = _named(measures.rtts(sender.data, sender.acks), "time_ns", "rtt_ms")
            recovered = measures.recovery_latencies(sender.data, sender.acks)
            tables["recovery"] = _named(recovered, "sent_ns", "recovery_ms")
    return tables


def _named(table: pd.DataFrame, time: str, value: str) -> pd.DataFrame:
    return table.rename(columns={time: "ns", value: "ms"})


def _sums(table: pd.DataFrame, time: str, value: str, zero: int, count: int) -> Floats:
    """The sum of the values in each second; those outside the trial are left out."""
    places = (table[time].to_numpy(dtype=np.int64) - zero) // 1_000_000_000
    inside = (places >= 0) & (places < count)
    weights = table[value].to_numpy(dtype=np.float64)[inside]
    return np.asarray(
        np.bincount(places[inside], weights=weights, minlength=count), dtype=np.float64
    )


def seconds_table(trial: Trial, digest: pd.DataFrame) -> pd.DataFrame:
    """One row per flow and second, from a whole digest: COLUMNS."""
    own = digest[digest["what"].str.startswith(SECOND)]
    known = set(own["flow"])
    if any(flow.name not in known for flow in trial.record.flows):
        raise NotMeasured(
            f"{trial.path.name}: no capture at the receiver is left", "run it with --captures keep"
        )
    tables = [_flow_table(str(flow), own) for flow in own["flow"].unique()]
    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame(columns=list(COLUMNS))


def _flow_table(flow: str, digest: pd.DataFrame) -> pd.DataFrame:
    rows = digest[digest["flow"] == flow]
    what, x, value = (rows[name].to_numpy() for name in ("what", "x", "value"))
    seconds = x[what == f"{SECOND}{VALUES[0]}"].astype(np.int64)
    columns = {name: value[what == f"{SECOND}{name}"] for name in VALUES}
    return pd.DataFrame({"flow": flow, "second": seconds, **columns}, columns=list(COLUMNS))
