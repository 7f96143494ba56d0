"""A flow's delays: round trips, repairs of losses, one way, and in the bottleneck."""

from __future__ import annotations

from analysis.captures.flow_tables import FLOW_METRICS, Metric
from analysis.metrics.metric import ColumnGroup, MeasuredFlow, Row, low_mean_high

DELAY_COLUMNS = (
    FLOW_METRICS["rtt_min_ms"].at("at the sender's capture, over the whole capture"),
    FLOW_METRICS["rtt_mean_ms"],
    FLOW_METRICS["rtt_p95_ms"].at(
        "those of the flow's start included unless the scenario's measure_from_s leaves them out: "
        "of a short flow it is slow start's"
    ),
    Metric(
        "recovery_latency_mean_ms",
        "ms",
        "mean time from a segment's first transmission to the acknowledgement that covers it, at "
        "the sender's capture, over the whole capture: includes the time that the repair of a loss "
        "takes; not known for a workload",
    ),
    Metric(
        "owd_mean_ms",
        "ms",
        "mean one-way delay: the same data packet at the sender's and at the receiver's "
        "capture, over the whole capture",
    ),
    Metric("owd_p95_ms", "ms", "95th percentile of the one-way delays"),
    Metric(
        "queue_mean_ms",
        "ms",
        "mean time in the bottleneck (of several observed queues on the path, the slowest): the "
        "same data packet at its two captures; not known if the flow starts at "
        "the bottleneck itself",
    ),
    Metric("queue_p95_ms", "ms", "95th percentile of the times in the bottleneck"),
)


def _measure(flow: MeasuredFlow) -> Row:
    return {
        **_round_trips(flow),
        **_between(flow, "owd", "sender", "receiver"),
        **_between(flow, "queue", "bottleneck-in", "bottleneck-out"),
    }


def _round_trips(flow: MeasuredFlow) -> Row:
    if flow.round_trips is None or flow.recoveries is None:
        return {}
    counting = flow.round_trips["time_ns"] >= flow.begin_ns
    low, mean, high = low_mean_high(flow.round_trips.loc[counting, "rtt_ms"])
    trips: Row = {"rtt_min_ms": low, "rtt_mean_ms": mean, "rtt_p95_ms": high}
    if flow.scenario_flow.workload is not None:
        return trips
    counting = flow.recoveries["sent_ns"] >= flow.begin_ns
    _, recovery, _ = low_mean_high(flow.recoveries.loc[counting, "recovery_ms"])
    return trips | {"recovery_latency_mean_ms": recovery}


def _between(flow: MeasuredFlow, name: str, first: str, second: str) -> Row:
    """Return the delays of data packets from one capture to another."""
    delays = flow.delays(first, second)
    if delays is None:
        return {}
    _, mean, high = low_mean_high(delays.loc[delays["sent_ns"] >= flow.begin_ns, "owd_ms"])
    return {f"{name}_mean_ms": mean, f"{name}_p95_ms": high}


DELAY_GROUP = ColumnGroup(DELAY_COLUMNS, _measure)
