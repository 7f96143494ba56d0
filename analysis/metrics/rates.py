"""The interval in which a flow is measured, and its throughput and goodput."""

from __future__ import annotations

from analysis.metrics.measured_flow import MeasuredFlow
from analysis.metrics.metric import ColumnGroup, Metric, Row
from analysis.trials import measures

COLUMNS = (
    Metric("start_s", "s", "when the flow started, on the trial's clock"),
    Metric(
        "duration_s",
        "s",
        "the measured interval: from the flow's start, or from the scenario's measure_from_s if "
        "that is later, to the flow's stop. The columns below that cover the whole capture cover "
        "it from measure_from_s on",
    ),
    Metric(
        "throughput_mbps",
        "Mbit/s",
        "bits of the Ethernet frames (without preamble and checksum) in the data's direction "
        "at the receiver's capture within the measured interval, over the interval",
    ),
    Metric(
        "goodput_mbps",
        "Mbit/s",
        "bytes delivered in order to the receiver within the measured interval, each counted once "
        "(TCP: the advance of the contiguous sequence numbers at the receiver's capture; "
        "UDP: the payload received), over the interval",
    ),
)


def _measure(flow: MeasuredFlow) -> Row:
    row: Row = {"start_s": flow.record.started_s, "duration_s": flow.interval.seconds}
    if found := flow.at("receiver"):
        row["throughput_mbps"] = measures.throughput_mbps(found.data, flow.interval)
        row["goodput_mbps"] = measures.goodput_mbps(found.data, flow.interval, flow.record.protocol)
    return row


RATES = ColumnGroup(COLUMNS, _measure)
