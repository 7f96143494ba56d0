"""Segments out of order, and the duplicate acknowledgements that answer them."""

from __future__ import annotations

from analysis.metrics.measured_flow import MeasuredFlow
from analysis.metrics.metric import ColumnGroup, Metric, Row

COLUMNS = (
    Metric(
        "out_of_order",
        "packets",
        "Wireshark's tcp.analysis.out_of_order in the data's direction at the receiver's capture",
        count=True,
    ),
    Metric(
        "duplicate_acks",
        "packets",
        "Wireshark's tcp.analysis.duplicate_ack against the data's direction at the sender's "
        "capture",
        count=True,
    ),
)


def _measure(flow: MeasuredFlow) -> Row:
    row: Row = {}
    if not flow.is_tcp:
        return row
    if received := flow.settled_at("receiver"):
        row["out_of_order"] = int(received.data["out_of_order"].sum())
    if sent := flow.settled_at("sender"):
        row["duplicate_acks"] = int(sent.acks["duplicate_ack"].sum())
    return row


REORDERING = ColumnGroup(COLUMNS, _measure)
