"""Columns that say what limited a TCP flow, if it was not the network."""

from __future__ import annotations

from analysis.captures.flow_tables import Metric
from analysis.metrics.metric import ColumnGroup, MeasuredFlow, Row
from analysis.trials.limits import sender_limits

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


def _measure(flow: MeasuredFlow) -> Row:
    found = sender_limits(flow.trial, flow.samples.flow(flow.record), flow.interval)
    if found is None:
        return {}
    return {
        "receive_window_limited": found.receive_window,
        "send_buffer_limited": found.send_buffer,
        "application_limited": found.application,
    }


LIMIT_GROUP = ColumnGroup(LIMIT_COLUMNS, _measure)
