"""The table of column groups, in the order of metrics.csv; every report prints the definitions.

A metric is a definition and its computation in the file of its group; a new group adds a line here.
"""

from __future__ import annotations

from analysis.metrics.delays import DELAYS
from analysis.metrics.fairness import FAIRNESS
from analysis.metrics.identification import IDENTIFICATION
from analysis.metrics.kernel_counts import KERNEL_COUNTS
from analysis.metrics.loss_columns import LOSSES
from analysis.metrics.measured_flow import MeasuredFlow
from analysis.metrics.metric import Row
from analysis.metrics.packet_counts import PACKET_COUNTS, REORDERING
from analysis.metrics.rates import RATES
from analysis.metrics.steadiness import STEADINESS
from analysis.metrics.video_columns import VIDEO

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


def measured_row(flow: MeasuredFlow) -> Row:
    """The columns of a flow that ran, except for those that all flows of the trial decide."""
    return {name: value for group in GROUPS for name, value in group.measure(flow).items()}
