"""A flow's history from the trial's captures, samples and traced events, on one clock."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from analysis.figures.timeline.timeline_events import Kind, flow_events, seconds
from analysis.trials.labels import path_rtt_ms
from analysis.trials.packets import TrialPackets, capture_interface, sampled_queue
from analysis.trials.samples import Samples, read_samples
from analysis.trials.series import Floats, Series, grid_step_s, rates_mbps
from analysis.trials.tcp_stream import round_trips
from testbed.errors import UsageError
from testbed.scenario.network import Direction, Link
from testbed.store.names import TCP_EVENTS
from testbed.store.reading import Trial
from testbed.store.records import FlowRecord, QueueRecord

LONG_S = 10  # of a flow whose first second is shown whole
AFTERWARDS_S = 0.5  # shown beyond the flow's stop: what was under way arrives


@dataclass(frozen=True)
class TimeSpan:
    """A stretch of the trial's clock."""

    start_s: float
    stop_s: float

    def of(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Return the rows whose `time_s` lies in the span."""
        return rows[(rows["time_s"] >= self.start_s) & (rows["time_s"] <= self.stop_s)]

    def within(self, times: Floats) -> Floats:
        """Return the times that lie in the span."""
        return times[(times >= self.start_s) & (times <= self.stop_s)]

    @property
    def seconds(self) -> float:
        """The span's length."""
        return self.stop_s - self.start_s


@dataclass(frozen=True)
class Timeline:
    """A flow over time; what was neither captured, sampled nor traced is None or absent."""

    span: TimeSpan
    window: pd.DataFrame | None  # time_s, cwnd, ssthresh (NaN: none yet), srtt_ms
    states: pd.DataFrame | None  # start_s, stop_s, state
    rtts: pd.DataFrame | None  # time_s, rtt_ms
    queue: pd.DataFrame | None  # time_s, bytes, packets
    queue_record: QueueRecord | None
    bottleneck: Direction  # of the flow
    path_rtt_ms: float
    throughput: Series | None  # Mbit/s
    step_s: float  # of the throughput
    events: Mapping[Kind, Floats]  # seconds
    traced: bool  # window and states are the kernel's events, not samples


def flow_span(flow: FlowRecord, start_s: float | None, stop_s: float | None) -> TimeSpan:
    """Return the span between two times of a flow; the whole flow if none is given."""
    long = flow.stopped_s - flow.started_s > LONG_S
    began_s = math.floor(flow.started_s) if long else flow.started_s
    span = TimeSpan(
        began_s if start_s is None else start_s,
        flow.stopped_s + AFTERWARDS_S if stop_s is None else stop_s,
    )
    if span.seconds <= 0 or span.start_s > flow.stopped_s or span.stop_s < flow.started_s:
        raise UsageError(
            f"from {span.start_s:g} s to {span.stop_s:g} s: nothing lies between",
            f"flow {flow.name} ran from {flow.started_s:g} s to {flow.stopped_s:g} s",
        )
    return span


def timeline(trial: Trial, flow: FlowRecord, span: TimeSpan) -> Timeline:
    """Everything about the flow within the span."""
    packets = TrialPackets(trial)
    samples = Samples(trial)
    sockets = socket_samples(samples, flow)
    traced = _traced(trial, flow)
    window, states = _traced_window(traced, flow) if traced is not None else (None, None)
    if sockets is not None and window is None:
        window = sockets[["time_s", "cwnd", "ssthresh", "srtt_ms"]]
    if sockets is not None and states is None:
        names = sockets["ca_state"].to_numpy()
        states = _runs(sockets["time_s"].to_numpy(), names, flow.stopped_s)
    queue, record = queue_samples(trial, samples, flow)
    events = flow_events(trial, flow, packets, sockets, queue)
    step_s = grid_step_s(trial, span.seconds)
    return Timeline(
        span=span,
        window=None if window is None else _held(window, span),
        states=None if states is None else _clipped(states, span),
        rtts=_rtts(packets, flow, trial, span),
        queue=None if queue is None else span.of(queue),
        queue_record=record,
        bottleneck=flow_bottleneck(trial, flow)[1],
        path_rtt_ms=path_rtt_ms(trial.scenario, flow.name),
        throughput=_throughput(packets, flow, trial, span, step_s),
        step_s=step_s,
        events={kind: span.within(times) for kind, times in events.items()},
        traced=traced is not None,
    )


def _held(rows: pd.DataFrame, span: TimeSpan) -> pd.DataFrame:
    """Return the span's rows, and the last one before it: its values still hold."""
    before = rows[rows["time_s"] < span.start_s].tail(1).assign(time_s=span.start_s)
    return pd.concat([before, span.of(rows)], ignore_index=True)


def _clipped(states: pd.DataFrame, span: TimeSpan) -> pd.DataFrame:
    clipped = states.assign(
        start_s=states["start_s"].clip(lower=span.start_s),
        stop_s=states["stop_s"].clip(upper=span.stop_s),
    )
    return clipped[clipped["stop_s"] > clipped["start_s"]].reset_index(drop=True)


def socket_samples(samples: Samples, flow: FlowRecord) -> pd.DataFrame | None:
    """Return the flow's samples while it was established, its connections added up."""
    table = samples.sockets
    if table is None:
        return None
    of_flow = table[(table["flow"] == flow.name) & (table["state"] == "established")]
    if of_flow.empty:
        return None
    if not of_flow["time_s"].duplicated().any():
        return of_flow.reset_index(drop=True)
    order = {name: place for place, name in enumerate(STATES)}
    worst = of_flow.assign(ca_state=of_flow["ca_state"].map(order))
    together = worst.groupby("time_s").agg(
        cwnd=("cwnd", "sum"),
        ssthresh=("ssthresh", lambda each: each.sum(skipna=False)),
        srtt_ms=("srtt_ms", "mean"),
        ca_state=("ca_state", "max"),
        backoff=("backoff", "sum"),
    )
    named = together["ca_state"].map(dict(enumerate(STATES)))
    return together.assign(ca_state=named).reset_index()


STATES = ("open", "disorder", "cwr", "recovery", "loss")  # ever more serious


def _traced(trial: Trial, flow: FlowRecord) -> pd.DataFrame | None:
    """Return the kernel's events of the flow, where they were traced."""
    table = read_samples(trial, TCP_EVENTS)
    if table is None or len(flow.src_ports) > 1:  # events do not say of which connection
        return None
    of_flow = table[table["flow"] == flow.name]
    return None if of_flow.empty else of_flow


def _traced_window(
    events: pd.DataFrame, flow: FlowRecord
) -> tuple[pd.DataFrame | None, pd.DataFrame | None]:
    probes = events[events["event"] == "probe"][["time_s", "cwnd", "ssthresh", "srtt_ms"]]
    changes = events[events["event"] == "state"]
    if changes.empty:
        return (None if probes.empty else probes), None
    times = np.concatenate(([flow.started_s], changes["time_s"].to_numpy()))
    names = np.concatenate(([STATES[0]], changes["detail"].to_numpy()))
    return (None if probes.empty else probes), _runs(times, names, flow.stopped_s)


def _runs(time_s: Floats, state: np.ndarray, stop_s: float) -> pd.DataFrame:
    """Stretches of one state: from the first time it is seen until another one is."""
    begins = np.flatnonzero(np.append(True, state[1:] != state[:-1]))
    starts = time_s[begins]
    ends = np.append(starts[1:], max(stop_s, float(time_s[-1])))
    return pd.DataFrame({"start_s": starts, "stop_s": ends, "state": state[begins]})


def flow_bottleneck(trial: Trial, flow: FlowRecord) -> tuple[Link, Direction]:
    """Return the link behind the flow's slowest queue; uncaptured, the network's slowest link."""
    graph = trial.scenario.network
    name = capture_interface(trial, "bottleneck-out", flow)
    for (index, end), number in graph.interface_numbers.items():
        link = graph.links[index]
        if f"{link.ends[end]}-eth{number}" == name:
            return link, link.directions[end]
    return graph.bottleneck_link, graph.bottleneck


def queue_samples(
    trial: Trial, samples: Samples, flow: FlowRecord
) -> tuple[pd.DataFrame | None, QueueRecord | None]:
    """Return the samples of the flow's `sampled_queue`, and its record."""
    record = sampled_queue(trial, flow)
    table = samples.queues
    if table is None or record is None:
        return None, record
    of_queue = table[table["interface"] == record.interface]
    names = {"backlog_bytes": "bytes", "backlog_packets": "packets"}
    return of_queue.rename(columns=names)[["time_s", "bytes", "packets", "drops", "marks"]], record


def _rtts(
    packets: TrialPackets, flow: FlowRecord, trial: Trial, span: TimeSpan
) -> pd.DataFrame | None:
    sender = packets.flow("sender", flow)
    if sender is None or flow.protocol != "tcp":
        return None
    trips = round_trips(sender.acks)
    return span.of(pd.DataFrame({"time_s": seconds(trips, trial), "rtt_ms": trips["rtt_ms"]}))


def _throughput(
    packets: TrialPackets, flow: FlowRecord, trial: Trial, span: TimeSpan, step_s: float
) -> Series | None:
    receiver = packets.flow("receiver", flow)
    if receiver is None:
        return None
    start_s, stop_s = max(span.start_s, flow.started_s), min(span.stop_s, flow.stopped_s)
    sizes = receiver.data["length"].to_numpy()
    return rates_mbps(seconds(receiver.data, trial), sizes, start_s, stop_s, step_s)


def table(history: Timeline) -> pd.DataFrame:
    """All of it in rows of `time_s`, `what` and `value`, in the order of time."""
    parts = []
    if history.window is not None:
        parts += [_part(history.window, name) for name in ("cwnd", "ssthresh", "srtt_ms")]
    if history.rtts is not None:
        parts.append(_part(history.rtts, "rtt_ms"))
    if history.queue is not None:
        backlog = history.queue.rename(columns={"bytes": "queue_bytes", "packets": "queue_packets"})
        parts += [_part(backlog, name) for name in ("queue_bytes", "queue_packets")]
    if history.throughput is not None:
        rates = {"time_s": history.throughput.time_s, "throughput_mbps": history.throughput.value}
        parts.append(_part(pd.DataFrame(rates), "throughput_mbps"))
    if history.states is not None:
        states = history.states.rename(columns={"start_s": "time_s", "state": "ca_state"})
        parts.append(_part(states, "ca_state"))
    for kind, times in history.events.items():
        parts.append(_part(pd.DataFrame({"time_s": times, "event": str(kind)}), "event"))
    rows = [part for part in parts if not part.empty]
    if not rows:
        return pd.DataFrame(columns=["time_s", "what", "value"])
    return pd.concat(rows, ignore_index=True).sort_values("time_s", kind="stable")


def _part(rows: pd.DataFrame, name: str) -> pd.DataFrame:
    known = rows[["time_s", name]].dropna()
    values = known[name].astype("object")
    return pd.DataFrame({"time_s": known["time_s"], "what": name, "value": values})
