"""The table of column groups, in the order of metrics.csv; every report prints the definitions.

A metric is a definition and its computation in the file of its group; a new group adds a line here.
"""

from __future__ import annotations

from collections.abc import Iterable

import pandas as pd

from analysis.metrics.delays import DELAYS
from analysis.metrics.identification import IDENTIFICATION, identity_row
from analysis.metrics.loss_columns import LOSSES
from analysis.metrics.metric import MeasuredFlow, Row
from analysis.metrics.packet_counts import KERNEL_COUNTS, PACKET_COUNTS, REORDERING
from analysis.metrics.rates import FAIRNESS, RATES, STEADINESS, add_fairness
from analysis.metrics.video_columns import VIDEO
from testbed.store import Trial

GROUPS = (
    IDENTIFICATION,
    RATES,
    PACKET_COUNTS,
    KERNEL_COUNTS,
    LOSSES,
    REORDERING,
    DELAYS,
    STEADINESS,
    FAIRNESS,
    VIDEO,
)

METRICS = tuple(metric for group in GROUPS for metric in group.columns)
COLUMNS = tuple(metric.name for metric in METRICS)
COUNTS = tuple(metric.name for metric in METRICS if metric.count)
TEXTS = COLUMNS[: COLUMNS.index("seed")]
NUMBERS = tuple(name for name in COLUMNS if name not in TEXTS)

# Rows that agree in these are one cell: the same trial except for its seed.
CELL = ("experiment", "topology", "queue", "engine", "variant", "flow", "setting")


def flow_table(trial: Trial, measured: Iterable[MeasuredFlow]) -> pd.DataFrame:
    """Return a row for each flow of the scenario; those that were not measured have no numbers."""
    flows = {flow.record.name: flow for flow in measured}
    rows = [
        identity_row(trial, flow) | (_measured_row(flows[flow.name]) if flow.name in flows else {})
        for flow in trial.scenario.flows
    ]
    frame = pd.DataFrame(rows, columns=list(COLUMNS))
    if flows:
        add_fairness(frame, flows)
    return frame


def _measured_row(flow: MeasuredFlow) -> Row:
    """Return a flow's columns, except for those that all flows of the trial decide."""
    return {name: value for group in GROUPS for name, value in group.measure(flow).items()}
