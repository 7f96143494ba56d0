"""What the captures, the samples and the kernel's counters say of a flow that ran."""

from __future__ import annotations

import numpy as np

from analysis.captures.packet_matching import drop_rate, numbering_drop_rate, one_way_delays_ms
from analysis.metrics.convergence import BIN_S, convergence_time_s
from analysis.metrics.loss.loss_columns import loss_columns
from analysis.metrics.video_row import video_columns
from analysis.trials import measures
from analysis.trials.evidence import Evidence
from analysis.trials.measures import NAN, Interval
from analysis.trials.packets import (
    FlowPackets,
    TrialPackets,
    measured_interval,
    settled_ns,
    whole_interval,
)
from analysis.trials.samples import read_counters, read_samples
from testbed.scenario.model import FlowKind
from testbed.store import FlowRecord, Trial

TIMEOUTS = "TcpExtTCPTimeouts"

Row = dict[str, object]


def measured_row(trial: Trial, flow: FlowRecord, packets: TrialPackets) -> Row:
    """The flow's columns, without what it is beside others."""
    interval, begin_ns = measured_interval(trial, flow), settled_ns(trial)
    row = {
        "variant_seen": flow.variant_seen,
        "start_s": flow.started_s,
        "duration_s": interval.seconds,
        **_at_receiver(packets.flow("receiver", flow), interval, flow.protocol, begin_ns),
        **_at_sender(packets.flow("sender", flow), flow.protocol, begin_ns),
        **_delays(packets, flow, "owd", ("sender", "receiver"), begin_ns),
        **_delays(packets, flow, "queue", ("bottleneck-in", "bottleneck-out"), begin_ns),
        "drop_rate": _drop_rate(packets, flow, begin_ns),
        "convergence_s": convergence_s(packets.flow("receiver", flow), whole_interval(trial, flow)),
    }
    if flow.protocol == "tcp":
        row |= _counted(trial, flow) | loss_columns(Evidence(trial, packets), flow, interval)
    if trial.scenario.flow(flow.name).kind is FlowKind.VIDEO:
        ends = (packets.flow(role, flow) for role in ("sender", "receiver"))
        row |= video_columns(trial, flow, *(each and _since(each, begin_ns) for each in ends))
    return row


def _counted(trial: Trial, flow: FlowRecord) -> Row:
    """What the sender's kernel counted."""
    row: Row = {}
    sockets = read_samples(trial, "sockets.csv")
    if sockets is not None and len(own := sockets[sockets["flow"] == flow.name]):
        # a flow's connections are rows of the same instant
        total = own.groupby("time_s")["total_retrans"].sum()
        before = total[total.index < trial.scenario.measure_from_s]
        row["retransmitted"] = int(total.max()) - int(before.max() if len(before) else 0)
    src = trial.scenario.flow(flow.name).src
    senders = [each for each in trial.scenario.flows if each.src == src]
    connections = sum(each.parallel for each in senders if each.protocol == "tcp")
    counters = read_counters(trial, src)
    if connections == 1 and TIMEOUTS in counters:
        row["timeouts"] = counters[TIMEOUTS]
    return row


def _since(found: FlowPackets, begin_ns: int) -> FlowPackets:
    """The packets from then on."""
    if not begin_ns:
        return found
    data, acks = (rows[rows["time_ns"] >= begin_ns] for rows in (found.data, found.acks))
    return FlowPackets(data, acks)


def _at_receiver(
    found: FlowPackets | None, interval: Interval, protocol: str, begin_ns: int
) -> Row:
    if found is None:
        return {}
    counted = _since(found, begin_ns).data
    row: Row = {
        "throughput_mbps": measures.throughput_mbps(found.data, interval),
        "goodput_mbps": measures.goodput_mbps(found.data, interval, protocol),
        "received_packets": measures.data_packets(counted),
    }
    if protocol == "tcp":
        row["out_of_order"] = int(counted["out_of_order"].sum())
    return row


def convergence_s(found: FlowPackets | None, interval: Interval) -> float:
    """When the throughput at a receiver settled; NaN if it did not, or was not captured.

    A bin without a packet is a rate of nought, not one that is not known.
    """
    if found is None:
        return NAN
    own = found.data[interval.holds(found.data["time_ns"])]
    places = ((own["time_ns"].to_numpy() - interval.start_ns) / 1e9 / BIN_S).astype(np.int64)
    bins = int(interval.seconds / BIN_S) + 1
    sizes = np.bincount(places, weights=own["length"].to_numpy(), minlength=bins)
    middles = np.arange(0.5, bins) * BIN_S
    return convergence_time_s(
        middles.astype(np.float64), sizes[:bins].astype(np.float64), 0.0, interval.seconds
    )


def _at_sender(found: FlowPackets | None, protocol: str, begin_ns: int) -> Row:
    if found is None:
        return {}
    counted = _since(found, begin_ns)
    row: Row = {"sent_packets": measures.data_packets(counted.data)}
    if protocol != "tcp":
        return row
    rtts = measures.rtts(found.data, found.acks)
    low, mean, high = measures.low_mean_high(rtts.loc[rtts["time_ns"] >= begin_ns, "rtt_ms"])
    recovered = measures.recovery_latencies(found.data, found.acks)
    recovered = recovered[recovered["sent_ns"] >= begin_ns]
    _, recovery, _ = measures.low_mean_high(recovered["recovery_ms"])
    return row | {
        "retransmissions": int(counted.data["retransmission"].sum()),
        "fast_retransmissions": int(counted.data["fast_retransmission"].sum()),
        "spurious_retransmissions": int(counted.data["spurious_retransmission"].sum()),
        "duplicate_acks": int(counted.acks["duplicate_ack"].sum()),
        "rtt_min_ms": low,
        "rtt_mean_ms": mean,
        "rtt_p95_ms": high,
        "recovery_latency_mean_ms": recovery,
    }


def _delays(
    packets: TrialPackets, flow: FlowRecord, way: str, ends: tuple[str, str], begin_ns: int
) -> Row:
    """How long data packets take from one capture to the other."""
    before, after = (packets.flow(end, flow) for end in ends)
    if before is None or after is None:
        return {}
    delays = one_way_delays_ms(before.data, after.data)
    delays = delays[delays["sent_ns"] >= begin_ns]
    _, mean, high = measures.low_mean_high(delays["owd_ms"])
    return {f"{way}_mean_ms": mean, f"{way}_p95_ms": high}


def _drop_rate(packets: TrialPackets, flow: FlowRecord, begin_ns: int) -> float:
    entered, left = packets.flow("bottleneck-in", flow), packets.flow("bottleneck-out", flow)
    if left is not None and flow.protocol == "udp" and packets.starts_at_bottleneck(flow.name):
        return numbering_drop_rate(_since(left, begin_ns).data)
    if entered is None or left is None:
        return NAN
    return drop_rate(entered.data, left.data, packets.end_ns(), begin_ns)
