"""Counts of a flow's packets in the captures, and of its sender's kernel; what limited it."""

from __future__ import annotations

import pandas as pd

from analysis.captures.flow_tables import FLOW_METRICS, Metric
from analysis.captures.packet_matching import drop_rate, numbering_drop_rate
from analysis.captures.tcp import CE
from analysis.metrics.metric import ColumnGroup, MeasuredFlow, Row
from analysis.trials.limits import sender_limits
from analysis.trials.packets import BEFORE, BEHIND, NAN, queue_roles
from analysis.trials.samples import read_counters
from testbed.scenario.model import FlowKind

PACKET_COUNT_COLUMNS = (
    FLOW_METRICS["sent_packets"].at(
        "at the sender's capture, retransmissions included, within the measured interval"
    ),
    Metric(
        "received_packets",
        "packets",
        "packets with data at the receiver's capture, within the measured interval",
        count=True,
    ),
    Metric(
        "drop_rate",
        "",
        "the share of the flow's packets in the data's direction that entered the bottleneck in "
        "the measured interval and never left it (of several observed queues on its path: the "
        "first, and the last); packets that may still be inside when the captures end do not "
        "count. "
        "For a CBR flow whose own host has the first queue: the share of the packets numbered by "
        "its kernel (IP identification, first to last behind that queue) that is missing there, or "
        "behind the last queue; not known if, besides a pause of the flow, none left its own queue "
        "for more than a hundredth of the interval at its beginning or end, and for a TCP flow "
        "there",
    ),
    Metric(
        "mark_rate",
        "",
        "the share of the flow's packets in the data's direction that carry CE, ECN's mark of "
        "congestion, behind the bottleneck in the measured interval; where nothing is captured "
        "there, at the receiver",
    ),
    FLOW_METRICS["wireshark_retransmissions"].at(
        "fast and spurious ones included, in the data's direction at the sender's capture, within "
        "the measured interval: not all that was sent again (`retransmitted`), of which Wireshark "
        "calls a part out-of-order"
    ),
    FLOW_METRICS["wireshark_fast_retransmissions"].at("as above"),
    FLOW_METRICS["wireshark_spurious_retransmissions"].at("as above"),
)
RETRANSMISSION_MARKS = ("retransmission", "fast_retransmission", "spurious_retransmission")


def _measure_counts(flow: MeasuredFlow) -> Row:
    row: Row = {"drop_rate": _drop_rate(flow), "mark_rate": mark_rate(flow)}
    if received := flow.measured_packets("receiver"):
        row["received_packets"] = int((received.data["payload"] > 0).sum())
    if sent := flow.measured_packets("sender"):
        row["sent_packets"] = int((sent.data["payload"] > 0).sum())
        if flow.is_tcp:
            row |= {
                f"wireshark_{mark}s": int(sent.data[mark].sum()) for mark in RETRANSMISSION_MARKS
            }
    return row


MAX_UNSEEN = 0.01  # of the measured interval, before the first packet that left or after the last


def _drop_rate(flow: MeasuredFlow) -> float:
    first, last = first_and_last_queue(flow)
    entered, left = flow.packets_at(f"{first}{BEFORE}"), flow.packets_at(f"{last}{BEHIND}")
    own_rate = 0.0
    if entered is None:  # the flow's own host has the first queue
        entered, own_rate = flow.packets_at(f"{first}{BEHIND}"), _own_drop_rate(flow, first)
    if entered is None or left is None:
        return NAN
    interval = flow.interval
    end_ns = flow.packets.end_ns()
    rate = drop_rate(entered.data, left.data, end_ns, interval.start_ns, interval.stop_ns)
    return 1 - (1 - own_rate) * (1 - rate)


def _own_drop_rate(flow: MeasuredFlow, queue: str) -> float:
    """Return the share of a CBR flow's packets that the sending host's queue dropped."""
    behind, wanted = flow.measured_packets(f"{queue}{BEHIND}"), flow.scenario_flow
    if behind is None or not len(behind.data) or wanted.kind is not FlowKind.CBR:
        return NAN
    time_ns, interval = behind.data["time_ns"], flow.interval
    silent_ns = max(int(time_ns.min()) - interval.start_ns, interval.stop_ns - int(time_ns.max()))
    silent_s = silent_ns / 1e9 - (wanted.off_s or 0.0)
    if silent_s > MAX_UNSEEN * interval.seconds:
        return NAN
    return numbering_drop_rate(behind.data)


def first_and_last_queue(flow: MeasuredFlow) -> tuple[str, str]:
    """Return what the capture roles of the flow's first and last queue begin with."""
    roles = queue_roles(flow.trial, flow.record) or ("",)
    return roles[0], roles[-1]


def mark_rate(flow: MeasuredFlow) -> float:
    """Return the share of the flow's packets that left its last queue with CE."""
    _, last = first_and_last_queue(flow)
    received = flow.measured_packets(f"{last}{BEHIND}") or flow.measured_packets("receiver")
    if received is None or not len(received.data):
        return NAN
    return float((received.data["ecn"] == CE).mean())


PACKET_COUNT_GROUP = ColumnGroup(PACKET_COUNT_COLUMNS, _measure_counts)


ORDER_COLUMNS = (
    FLOW_METRICS["out_of_order"].at(
        "in the data's direction at the receiver's capture, within the measured interval"
    ),
    Metric(
        "out_of_order_sent",
        "packets",
        "the same at the sender's capture: before any queue",
        count=True,
    ),
    FLOW_METRICS["duplicate_acks"].at(
        "against the data's direction at the sender's capture, within the measured interval"
    ),
)


def _measure_order(flow: MeasuredFlow) -> Row:
    row: Row = {}
    if not flow.is_tcp:
        return row
    if received := flow.measured_packets("receiver"):
        row["out_of_order"] = int(received.data["out_of_order"].sum())
    if sent := flow.measured_packets("sender"):
        row["out_of_order_sent"] = int(sent.data["out_of_order"].sum())
        row["duplicate_acks"] = int(sent.acks["duplicate_ack"].sum())
    return row


REORDERING_GROUP = ColumnGroup(ORDER_COLUMNS, _measure_order)


KERNEL_COLUMNS = (
    Metric(
        "retransmitted",
        "packets",
        "segments that the sender retransmitted in the measured interval, without SYNs: by its "
        "capture, with which the verdict compares its kernel's count; without that, by TCP_INFO's "
        "total_retrans at the samples",
        count=True,
    ),
    Metric(
        "timeouts",
        "",
        "times that the retransmission timer fired: the sending host's kernel counter TCPTimeouts "
        "over the whole trial; not known if that host sends several TCP connections",
        count=True,
    ),
)
TIMEOUT_COUNTER = "TcpExtTCPTimeouts"
SYN_SENT = "syn-sent"  # a state of the samples


def _measure_kernel(flow: MeasuredFlow) -> Row:
    return _retransmitted(flow) | _timeouts(flow) if flow.is_tcp else {}


def _retransmitted(flow: MeasuredFlow) -> Row:
    every = flow.packets.connections(flow.record)
    if every is not None:
        # a SYN begins where the sequence numbers do
        times = (each.time_ns[each.again & (each.begin > 0)] for each in every)
        return {"retransmitted": sum(int(flow.interval.holds(each).sum()) for each in times)}
    samples = flow.samples.flow(flow.record)
    if samples is None:
        return {}
    # a flow's connections are rows of the same instant
    total = samples.groupby("time_s")["total_retrans"].sum()
    syns = samples[samples["state"] == SYN_SENT].groupby("time_s")["total_retrans"].sum()
    before = pd.concat((total[total.index < flow.trial.scenario.measure_from_s], syns))
    return {"retransmitted": int(total.max()) - int(before.max() if len(before) else 0)}


def _timeouts(flow: MeasuredFlow) -> Row:
    src = flow.scenario_flow.src
    senders = [each for each in flow.trial.scenario.flows if each.src == src]
    connections = sum(each.parallel for each in senders if each.protocol == "tcp")
    if any(each.command for each in senders):
        return {}
    counters = read_counters(flow.trial, src)
    return (
        {"timeouts": counters[TIMEOUT_COUNTER]}
        if connections == 1 and TIMEOUT_COUNTER in counters
        else {}
    )


KERNEL_COUNT_GROUP = ColumnGroup(KERNEL_COLUMNS, _measure_kernel)


LIMIT_COLUMNS = (
    Metric(
        "receive_window_limited",
        "",
        "the share of the measured interval in which the sender had data for which the receiver's "
        "window had no room (TCP_INFO's rwnd_limited)",
    ),
    Metric(
        "send_buffer_limited",
        "",
        "the share of the samples in the measured interval at which the congestion window had "
        "room and no loss was being repaired, but the sender had no whole segment, since its "
        "buffer was too full for the application to be woken. TCP_INFO's sndbuf_limited is less: "
        "it leaves out the time in which a part of a segment waits",
    ),
    Metric(
        "application_limited",
        "",
        "the share of the samples in the measured interval at which the congestion window and the "
        "send buffer had room and no loss was being repaired, but the application had given the "
        "sender no whole segment",
    ),
)


def _measure_limits(flow: MeasuredFlow) -> Row:
    limits = sender_limits(flow.trial, flow.samples.flow(flow.record), flow.interval)
    if limits is None:
        return {}
    return {
        "receive_window_limited": limits.receive_window,
        "send_buffer_limited": limits.send_buffer,
        "application_limited": limits.application,
    }


LIMIT_GROUP = ColumnGroup(LIMIT_COLUMNS, _measure_limits)
