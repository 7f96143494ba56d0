"""A flow's rates, from when on they are steady, and its share beside the trial's other flows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pandas as pd

from analysis.captures.flow_tables import FLOW_METRICS, Metric
from analysis.captures.tcp import Rows
from analysis.metrics.metric import ColumnGroup, MeasuredFlow, Row
from analysis.trials.packets import NAN, PORTS, FlowPackets, Interval, whole_interval
from analysis.trials.tcp_stream import by_ports, delivered_bytes
from testbed.scenario.model import GREEDY, Flow, FlowKind, Scenario
from testbed.scenario.network import Graph

RATE_COLUMNS = (
    Metric("start_s", "s", "when the flow started, on the trial's clock"),
    Metric(
        "duration_s",
        "s",
        "the measured interval: from the flow's start, or from the scenario's measure_from_s if "
        "that is later, to the flow's stop. All columns below are of this interval unless they say "
        "otherwise",
    ),
    FLOW_METRICS["throughput_mbps"].at("at the receiver's capture, within the measured interval"),
    FLOW_METRICS["goodput_mbps"].at("at the receiver's capture, within the measured interval"),
)


def throughput_mbps(data: Rows, interval: Interval) -> float:
    """Rate of the frames."""
    return interval.rate_mbps(float(data["length"][interval.holds(data["time_ns"])].sum()))


def goodput_mbps(
    data: Rows, interval: Interval, protocol: str, *, over_gaps: bool = False
) -> float:
    """Rate of the bytes that reached the application, summed over the flow's connections."""
    if protocol == "udp":
        payload = data["payload"][interval.holds(data["time_ns"])]
        return interval.rate_mbps(float(payload.sum()))
    connections = by_ports(data, PORTS).values()
    size = sum(_advance(rows, interval, over_gaps=over_gaps) for rows in connections)
    return interval.rate_mbps(size)


def _advance(rows: Rows, interval: Interval, *, over_gaps: bool) -> int:
    """Return by how much one connection's contiguous bytes advanced within the interval."""
    delivered = np.concatenate(([0], delivered_bytes(rows, over_gaps=over_gaps)))
    times = np.asarray(rows["time_ns"])
    before = int((times < interval.start_ns).sum())
    until = int((times <= interval.stop_ns).sum())
    return int(delivered[until] - delivered[before])


def _within(interval: Interval, flow: MeasuredFlow, data: Rows) -> float:
    over_gaps = flow.scenario_flow.conceals_losses
    return goodput_mbps(data, interval, flow.record.protocol, over_gaps=over_gaps)


def _measure_rates(flow: MeasuredFlow) -> Row:
    row: Row = {"start_s": flow.record.started_s, "duration_s": flow.interval.seconds}
    if received := flow.packets_at("receiver"):
        row["throughput_mbps"] = throughput_mbps(received.data, flow.interval)
        row["goodput_mbps"] = _within(flow.interval, flow, received.data)
    return row


RATE_GROUP = ColumnGroup(RATE_COLUMNS, _measure_rates)


def _measure_completion(flow: MeasuredFlow) -> Row:
    record = flow.record
    finished = bool(flow.scenario_flow.bytes) and record.stopped_s < record.planned_stop_s
    return {"completion_s": record.stopped_s - record.started_s} if finished else {}


COMPLETION_GROUP = ColumnGroup(
    (
        Metric(
            "completion_s",
            "s",
            "of a flow with `bytes`, the time from its start to the acknowledgement of its last "
            "byte; not known if it did not finish",
        ),
    ),
    _measure_completion,
)


Floats = npt.NDArray[np.float64]

STEADINESS_BIN_S = 1.0
STEADY_DEVIATION = 0.2  # of the mean of the second half


def steady_time_s(time_s: Floats, rate: Floats, start_s: float, stop_s: float) -> float:
    """Return the time from which rates stay steady, in s after the start; NaN if they never do.

    The rates are in any unit, around these times, on a grid of at most 1 s.
    """
    bins = int((stop_s - start_s) / STEADINESS_BIN_S + 1e-9)
    means = _binned(time_s - start_s, rate, bins)
    half = bins // 2
    if half < 1 or np.isnan(means).any():
        return float("nan")
    settled = float(means[half:].mean())
    outside = np.flatnonzero(np.abs(means - settled) > STEADY_DEVIATION * abs(settled))
    first = int(outside[-1]) + 1 if len(outside) else 0
    return first * STEADINESS_BIN_S if first <= half and settled > 0 else float("nan")


def _binned(since_s: Floats, rate: Floats, bins: int) -> Floats:
    """Return the mean rate in each bin, NaN for a bin without one."""
    place = np.floor(since_s / STEADINESS_BIN_S + 1e-9).astype(np.int64)
    is_inside = (place >= 0) & (place < bins) & np.isfinite(rate)
    counts = np.bincount(place[is_inside], minlength=bins)
    sums = np.bincount(place[is_inside], weights=rate[is_inside], minlength=bins)
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)


def steady_after_s(received: FlowPackets[Rows] | None, interval: Interval) -> float:
    """Return from when on a receiver's rate is steady; NaN if it is not, or was not captured.

    The rate of a bin without packets is zero, not unknown.
    """
    if received is None:
        return NAN
    received_rows = received.data[interval.holds(received.data["time_ns"])]
    places = (
        (np.asarray(received_rows["time_ns"]) - interval.start_ns) / 1e9 / STEADINESS_BIN_S
    ).astype(np.int64)
    bins = int(interval.seconds / STEADINESS_BIN_S) + 1
    sizes = np.bincount(places, weights=received_rows["length"], minlength=bins)
    middles = np.arange(0.5, bins) * STEADINESS_BIN_S
    return steady_time_s(
        middles.astype(np.float64), sizes[:bins].astype(np.float64), 0.0, interval.seconds
    )


def _measure_steadiness(flow: MeasuredFlow) -> Row:
    whole = whole_interval(flow.trial, flow.record)
    return {"steady_after_s": steady_after_s(flow.packets_at("receiver"), whole)}


STEADINESS_GROUP = ColumnGroup(
    (
        Metric(
            "steady_after_s",
            "s",
            "time from the flow's start to the first moment from which its throughput at the "
            "receiver, in bins of 1 s, stays within 20 % of its mean over the second half: 0 for "
            "a flow that fills its link from the start; not known if it is not steady by the "
            "middle",
        ),
    ),
    _measure_steadiness,
)


FAIRNESS_GROUP = ColumnGroup(
    (
        Metric(
            "share",
            "",
            "the flow's goodput over the sum of all captured flows of the trial, while all of "
            "them are measured; not known if they never are at once, or no two share a link",
        ),
        Metric(
            "jain",
            "",
            "Jain's index over the goodputs of the trial's TCP flows (of all flows if none "
            "is TCP), while all of these are measured: 1 means equal; not known if no two of them "
            "share a link",
        ),
    )
)


def add_fairness(rows: pd.DataFrame, flows: Mapping[str, MeasuredFlow]) -> None:
    """Fill in the columns for the rows of one trial."""
    goodput = _goodputs(rows, flows)
    captured = [name in flows and flows[name].scenario_flow.captured for name in rows["flow"]]
    total = goodput[captured].sum(skipna=False)
    rows["share"] = goodput / total if total > 0 else NAN
    greedy = rows[rows["kind"].isin(GREEDY)]
    rows["jain"] = jain(_goodputs(greedy, flows) if len(greedy) else goodput)


def unknown_fairness(scenario: Scenario) -> list[str]:
    """Return the columns that mean nothing in a trial, since no two of their flows share a link."""
    greedy = [flow for flow in scenario.flows if flow.sort in GREEDY]
    flows = {"share": scenario.flows, "jain": greedy or scenario.flows}
    return [name for name, sharing in flows.items() if not _share_a_link(scenario.network, sharing)]


def _share_a_link(network: Graph, flows: Sequence[Flow]) -> bool:
    """Say whether two flows send over one direction of a link, or over one radio link."""
    radios = {n for n, link in enumerate(network.links) if any(d.radio for d in link.directions)}
    crossed = Counter[tuple[int, int]]()
    for flow in flows if len(flows) > 1 else ():
        ends = [(flow.src, flow.dst)]
        if flow.kind is FlowKind.COMMAND:  # either side may send
            ends.append((flow.dst, flow.src))
        steps = {step for src, dst in ends for step in network.steps_from(src).get(dst, ())}
        crossed.update({(link, 0 if link in radios else end) for link, end in steps})
    return any(count > 1 for count in crossed.values())


def _goodputs(rows: pd.DataFrame, flows: Mapping[str, MeasuredFlow]) -> pd.Series[float]:
    """Return each row's goodput over the time in which all of them are measured."""
    of_rows = [flows.get(str(name)) for name in rows["flow"]]
    common = _common(flow.interval for flow in of_rows if flow is not None)
    known = zip(of_rows, rows["goodput_mbps"], strict=True)
    goodputs = [NAN if flow is None else _goodput(flow, common, value) for flow, value in known]
    return pd.Series(goodputs, index=rows.index, dtype="float64")


def _common(intervals: Iterable[Interval]) -> Interval:
    every = tuple(intervals)
    begin, end = (each.start_ns for each in every), (each.stop_ns for each in every)
    return Interval(max(begin, default=0), min(end, default=0))


def _goodput(flow: MeasuredFlow, common: Interval, over_its_own: float) -> float:
    """NaN for an interval of no length, or a flow that was not captured at its receiver."""
    if common == flow.interval:
        return over_its_own
    received = flow.packets_at("receiver")
    if received is None:
        return NAN
    return _within(common, flow, received.data)


def jain(rates: Iterable[float]) -> float:
    """Return Jain's fairness index: 1 if all are equal, 1/n if one has everything."""
    array = np.asarray(list(rates), dtype=np.float64)
    squares = float((array**2).sum())
    return float(array.sum() ** 2 / (len(array) * squares)) if squares > 0 else NAN
