"""A flow's delays: round trips, repairs of losses, one way, and in the bottleneck."""

from __future__ import annotations

from analysis.captures.packet_matching import one_way_delays_ms
from analysis.metrics.metric import ColumnGroup, MeasuredFlow, Metric, Row
from analysis.trials import measures

COLUMNS = (
    Metric(
        "rtt_min_ms",
        "ms",
        "smallest round-trip time: Wireshark's tcp.analysis.ack_rtt of acknowledgements of "
        "data at the sender's capture, over the whole capture",
    ),
    Metric("rtt_mean_ms", "ms", "mean of the round-trip times"),
    Metric(
        "rtt_p95_ms",
        "ms",
        "95th percentile of the round-trip times, those of the flow's start included unless the "
        "scenario's measure_from_s leaves them out: of a short flow it is slow start's",
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
    found = flow.at("sender")
    if found is None or not flow.is_tcp:
        return {}
    rtts = measures.rtts(found.data, found.acks)
    counting = rtts.loc[rtts["time_ns"] >= flow.begin_ns, "rtt_ms"]
    low, mean, high = measures.low_mean_high(counting)
    trips: Row = {"rtt_min_ms": low, "rtt_mean_ms": mean, "rtt_p95_ms": high}
    if flow.scenario_flow.workload is not None:
        return trips
    recovered = measures.recovery_latencies(found.data, found.acks)
    recovered = recovered[recovered["sent_ns"] >= flow.begin_ns]
    _, recovery, _ = measures.low_mean_high(recovered["recovery_ms"])
    return trips | {"recovery_latency_mean_ms": recovery}


def _between(flow: MeasuredFlow, name: str, first: str, second: str) -> Row:
    """The delays of data packets from one capture to another."""
    before, after = flow.at(first), flow.at(second)
    if before is None or after is None:
        return {}
    delays = one_way_delays_ms(before.data, after.data)
    counting = delays.loc[delays["sent_ns"] >= flow.begin_ns, "owd_ms"]
    _, mean, high = measures.low_mean_high(counting)
    return {f"{name}_mean_ms": mean, f"{name}_p95_ms": high}


DELAYS = ColumnGroup(COLUMNS, _measure)
