"""A flow's delays: round trips, repairs of losses, one way, and in the bottleneck."""

from __future__ import annotations

import numpy as np
import pandas as pd

from analysis.captures.flow_tables import FLOW_METRICS, Metric
from analysis.captures.tcp import ACKED_DATA
from analysis.metrics.metric import ColumnGroup, MeasuredFlow, Row, low_mean_high
from analysis.trials.capacity import own_sending_ns
from analysis.trials.packets import NAN, capture_interface

DELAY_COLUMNS = (
    FLOW_METRICS["rtt_min_ms"].at(
        "at the sender's capture, of acknowledgements in the measured interval"
    ),
    FLOW_METRICS["rtt_mean_ms"],
    FLOW_METRICS["rtt_p95_ms"].at(
        "those of the flow's start included unless the scenario's measure_from_s leaves them out: "
        "of a short flow it is slow start's"
    ),
    FLOW_METRICS["wireshark_ack_rtt_mean_ms"].at("as above"),
    Metric(
        "recovery_latency_mean_ms",
        "ms",
        "mean time from a segment's first transmission to the acknowledgement that covers it, at "
        "the sender's capture, of segments first sent in the measured interval: includes the time "
        "that the repair of a loss takes; not known for a workload",
    ),
    Metric(
        "owd_mean_ms",
        "ms",
        "mean one-way delay: the same data packet at the sender's and at the receiver's "
        "capture, of packets sent in the measured interval",
    ),
    Metric("owd_p95_ms", "ms", "95th percentile of the one-way delays"),
    Metric(
        "queue_mean_ms",
        "ms",
        "mean time in the bottleneck's queue (of several observed queues on the path, the "
        "slowest): the same data packet at its two captures, less the time for which the link "
        "sends that packet (of a link that aggregates, the rest of the aggregate counts as "
        "waiting), of packets that arrive in the measured interval; not known if the flow "
        "starts at the bottleneck itself",
    ),
    Metric("queue_p95_ms", "ms", "95th percentile of the times in the bottleneck's queue"),
)


def _measure(flow: MeasuredFlow) -> Row:
    return {
        **_round_trips(flow),
        **_between(flow, "owd", "sender", "receiver"),
        **_described(flow, "queue", _waits(flow)),
    }


def _round_trips(flow: MeasuredFlow) -> Row:
    trips: Row = {}
    if flow.round_trips is not None:
        low, mean, high = low_mean_high(flow.measured(flow.round_trips, "time_ns", "rtt_ms"))
        trips = {"rtt_min_ms": low, "rtt_mean_ms": mean, "rtt_p95_ms": high}
        trips["wireshark_ack_rtt_mean_ms"] = _ack_rtt_mean_ms(flow)
    if flow.recoveries is None or flow.scenario_flow.workload is not None:
        return trips
    _, recovery, _ = low_mean_high(flow.measured(flow.recoveries, "sent_ns", "recovery_ms"))
    return trips | {"recovery_latency_mean_ms": recovery}


def _ack_rtt_mean_ms(flow: MeasuredFlow) -> float:
    sender = flow.measured_packets("sender")
    if sender is None:
        return NAN
    times = sender.acks["ack_rtt_ms"][sender.acks[ACKED_DATA]]
    return low_mean_high(times[~np.isnan(times)])[1]


def _between(flow: MeasuredFlow, name: str, first: str, second: str) -> Row:
    """Return the delays of data packets from one capture to another."""
    return _described(flow, name, flow.delays(first, second))


def _waits(flow: MeasuredFlow) -> pd.DataFrame | None:
    """Return the times of data packets in the bottleneck's queue, until they begin to be sent."""
    delays, behind = (
        flow.delays("bottleneck-in", "bottleneck-out"),
        flow.packets_at("bottleneck-out"),
    )
    if delays is None or behind is None:
        return None
    interface = capture_interface(flow.trial, "bottleneck-out", flow.record)
    queues = flow.trial.record.queues
    queue = next((each for each in queues if each.interface == interface), None)
    if queue is None or not queue.is_exact:
        return delays
    crossed_ns = (delays["owd_ms"] * 1e6).round().astype(np.int64)
    left_ns = (delays["sent_ns"] + crossed_ns).to_numpy(dtype=np.int64)
    times_ns, length = behind.data["time_ns"], behind.data["length"]
    taken_ns = own_sending_ns(flow.trial, queue, times_ns.astype(np.int64), length)
    sending_ms = taken_ns[np.searchsorted(times_ns, left_ns)] / 1e6
    return delays.assign(owd_ms=delays["owd_ms"] - sending_ms)


def _described(flow: MeasuredFlow, name: str, delays: pd.DataFrame | None) -> Row:
    if delays is None:
        return {}
    _, mean, high = low_mean_high(flow.measured(delays, "sent_ns", "owd_ms"))
    return {f"{name}_mean_ms": mean, f"{name}_p95_ms": high}


DELAY_GROUP = ColumnGroup(DELAY_COLUMNS, _measure)
