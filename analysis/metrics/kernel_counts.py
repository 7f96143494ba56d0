"""Retransmissions and timeouts as the sender's kernel counted them."""

from __future__ import annotations

from analysis.metrics.measured_flow import MeasuredFlow
from analysis.metrics.metric import ColumnGroup, Metric, Row
from analysis.trials.samples import read_counters

COLUMNS = (
    Metric(
        "retransmitted",
        "packets",
        "segments that the sender's kernel retransmitted in the measured interval, by its own "
        "count (TCP_INFO's total_retrans, over the flow's connections); of a command flow by the "
        "sender's capture, over all of it",
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
COUNTER = "TcpExtTCPTimeouts"


def _measure(flow: MeasuredFlow) -> Row:
    return _retransmitted(flow) | _timeouts(flow) if flow.is_tcp else {}


def _retransmitted(flow: MeasuredFlow) -> Row:
    """From all samples: those after the flow's stop know of its last segments. A program's sockets
    are not sampled: what it sent again is captured."""
    if flow.scenario_flow.command is not None:
        every = flow.packets.connections(flow.record)
        return {} if every is None else {"retransmitted": sum(int(s.again.sum()) for s in every)}
    sockets = flow.samples.sockets
    if sockets is None or not len(own := sockets[sockets["flow"] == flow.record.name]):
        return {}
    # a flow's connections are rows of the same instant
    total = own.groupby("time_s")["total_retrans"].sum()
    before = total[total.index < flow.trial.scenario.measure_from_s]
    return {"retransmitted": int(total.max()) - int(before.max() if len(before) else 0)}


def _timeouts(flow: MeasuredFlow) -> Row:
    src = flow.scenario_flow.src
    senders = [each for each in flow.trial.scenario.flows if each.src == src]
    connections = sum(each.parallel for each in senders if each.protocol == "tcp")
    if any(each.command for each in senders):
        return {}
    counters = read_counters(flow.trial, src)
    return {"timeouts": counters[COUNTER]} if connections == 1 and COUNTER in counters else {}


KERNEL_COUNTS = ColumnGroup(COLUMNS, _measure)
