"""A flow beside the others of its trial: its share, and Jain's index."""

from __future__ import annotations

import pandas as pd

from analysis.metrics.metric import ColumnGroup, Metric
from analysis.trials import measures
from analysis.trials.measures import NAN
from testbed.scenario.model import FlowKind

FAIRNESS = ColumnGroup(
    (
        Metric("share", "", "the flow's goodput over the sum of all flows of the trial"),
        Metric(
            "jain",
            "",
            "Jain's index over the goodputs of the trial's TCP flows (of all flows if none "
            "is TCP): 1 means equal",
        ),
    )
)


def add_fairness(rows: pd.DataFrame) -> None:
    """Fill in the columns for the rows of one trial."""
    goodput = rows["goodput_mbps"]
    total = goodput.sum(skipna=False)
    rows["share"] = goodput / total if total > 0 else NAN
    tcp = goodput[rows["kind"] == FlowKind.TCP]
    rows["jain"] = measures.jain(tcp if len(tcp) else goodput)
