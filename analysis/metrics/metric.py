"""A column of the metrics, and a group of columns that are computed together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from analysis.metrics.measured_flow import MeasuredFlow

Row = dict[str, object]


@dataclass(frozen=True)
class Metric:
    """A column: its unit, its definition, and whether it is a count (written as an integer)."""

    name: str
    unit: str
    definition: str
    count: bool = False


def _nothing(_flow: MeasuredFlow) -> Row:
    return {}


@dataclass(frozen=True)
class ColumnGroup:
    """Columns that stand side by side, and the function that computes them for a flow that ran.

    The function leaves out what is not known; the table then has NaN there. A group without one
    is filled in when all flows of the trial are known.
    """

    columns: tuple[Metric, ...]
    measure: Callable[[MeasuredFlow], Row] = _nothing
