"""A flow beside the others of its trial: its share, and Jain's index."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pandas as pd

from analysis.metrics.measured_flow import MeasuredFlow
from analysis.metrics.metric import ColumnGroup, Metric
from analysis.trials import measures
from analysis.trials.measures import NAN, Interval
from testbed.scenario.model import FlowKind

FAIRNESS = ColumnGroup(
    (
        Metric(
            "share",
            "",
            "the flow's goodput over the sum of all flows of the trial, while all of them are "
            "measured; not known if they never are at once",
        ),
        Metric(
            "jain",
            "",
            "Jain's index over the goodputs of the trial's TCP flows (of all flows if none "
            "is TCP), while all of these are measured: 1 means equal",
        ),
    )
)


def add_fairness(rows: pd.DataFrame, flows: Mapping[str, MeasuredFlow]) -> None:
    """Fill in the columns for the rows of one trial."""
    goodput = _goodputs(rows, flows)
    total = goodput.sum(skipna=False)
    rows["share"] = goodput / total if total > 0 else NAN
    tcp = rows[rows["kind"] == FlowKind.TCP]
    rows["jain"] = measures.jain(_goodputs(tcp, flows) if len(tcp) else goodput)


def _goodputs(rows: pd.DataFrame, flows: Mapping[str, MeasuredFlow]) -> pd.Series[float]:
    """Those of the rows while all of their flows are measured."""
    own = [flows.get(str(name)) for name in rows["flow"]]
    common = _common(flow.interval for flow in own if flow is not None)
    known = zip(own, rows["goodput_mbps"], strict=True)
    found = [NAN if flow is None else _goodput(flow, common, value) for flow, value in known]
    return pd.Series(found, index=rows.index, dtype="float64")


def _common(intervals: Iterable[Interval]) -> Interval:
    every = tuple(intervals)
    begin, end = (each.start_ns for each in every), (each.stop_ns for each in every)
    return Interval(max(begin, default=0), min(end, default=0))


def _goodput(flow: MeasuredFlow, common: Interval, over_its_own: float) -> float:
    """NaN for an interval of no length, or a flow that was not captured at its receiver."""
    if common == flow.interval:
        return over_its_own
    found = flow.at("receiver")
    if found is None:
        return NAN
    return measures.goodput_mbps(found.data, common, flow.record.protocol)
