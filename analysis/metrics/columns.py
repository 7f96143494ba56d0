"""The table of column groups, in the order of metrics.csv; every report prints the definitions.

A metric is a definition and its computation in the file of its group; a new group adds a line here.
"""

from __future__ import annotations

from collections.abc import Iterable

import pandas as pd

from analysis.metrics.datagrams import DATAGRAM_GROUP
from analysis.metrics.delays import DELAY_GROUP
from analysis.metrics.identification import IDENTIFICATION_GROUP, identity_rows
from analysis.metrics.loss_columns import LOSS_GROUP
from analysis.metrics.metric import MeasuredFlow, Row
from analysis.metrics.packet_counts import (
    KERNEL_COUNT_GROUP,
    LIMIT_GROUP,
    PACKET_COUNT_GROUP,
    REORDERING_GROUP,
)
from analysis.metrics.rates import (
    COMPLETION_GROUP,
    FAIRNESS_GROUP,
    RATE_GROUP,
    STEADINESS_GROUP,
    add_fairness,
    unknown_fairness,
)
from analysis.metrics.video_columns import VIDEO_GROUP
from analysis.trials.packets import NAN
from testbed.store.reading import Trial

COLUMN_GROUPS = (
    IDENTIFICATION_GROUP,
    RATE_GROUP,
    PACKET_COUNT_GROUP,
    KERNEL_COUNT_GROUP,
    LIMIT_GROUP,
    LOSS_GROUP,
    REORDERING_GROUP,
    DELAY_GROUP,
    STEADINESS_GROUP,
    FAIRNESS_GROUP,
    VIDEO_GROUP,
    COMPLETION_GROUP,
    DATAGRAM_GROUP,
)

ALL_METRICS = tuple(metric for group in COLUMN_GROUPS for metric in group.columns)
METRIC_COLUMNS = tuple(metric.name for metric in ALL_METRICS)
COUNT_COLUMNS = tuple(metric.name for metric in ALL_METRICS if metric.count)
TEXT_COLUMNS = METRIC_COLUMNS[: METRIC_COLUMNS.index("seed")]
NUMBER_COLUMNS = tuple(name for name in METRIC_COLUMNS if name not in TEXT_COLUMNS)

# Rows that agree in these are one cell: the same trial except for its seed.
CELL_COLUMNS = ("experiment", "topology", "queue", "engine", "variant", "flow", "setting")


def flow_table(trial: Trial, measured: Iterable[MeasuredFlow]) -> pd.DataFrame:
    """Return a row for each flow of the scenario; those that were not measured have no numbers."""
    flows = {flow.record.name: flow for flow in measured}
    rows = [
        row | (_measured_row(flows[row["flow"]]) if row["flow"] in flows else {})
        for row in identity_rows(trial)
    ]
    frame = pd.DataFrame(rows, columns=list(METRIC_COLUMNS))
    if flows:
        add_fairness(frame, flows)
        frame[unknown_fairness(trial.scenario)] = NAN
    return frame


def _measured_row(flow: MeasuredFlow) -> Row:
    """Return a flow's columns, except for those that all flows of the trial decide."""
    return {name: value for group in COLUMN_GROUPS for name, value in group.measure(flow).items()}
