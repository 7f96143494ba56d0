"""What a run's numbers have to be: fixed bounds, or parts of a baseline's, one-sided.

`goodput_mbps >= 0.95 * baseline` holds for each cell of a run whose mean is at least 95 % of the
mean of the same cell in the baseline, the table of an earlier run.
"""

from __future__ import annotations

import io
import math
import operator
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from analysis.metrics.columns import CELL_COLUMNS, NUMBER_COLUMNS, is_number_column
from analysis.metrics.metric_rows import counted
from testbed.errors import UsageError, nearest, quoted
from testbed.machine.safe_files import UnfitFile, read_bytes
from testbed.store.names import METRICS_CSV

MAX_BASELINE_BYTES = 1 << 26
ROUNDED = 1e-6  # of a number in metrics.csv
EXPECTATION_HINT = "for example: goodput_mbps >= 0.95 * baseline"
RELATIONS: Mapping[str, Callable[[float, float], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
}
CellValues = tuple[str, ...]  # of CELL_COLUMNS
DECIMAL = r"[0-9][0-9.e+-]*"
EXPECTATION = re.compile(rf"(\w+) *(>=|<=|>|<) *(?:({DECIMAL})|(?:({DECIMAL}) *\* *)?baseline)")


@dataclass(frozen=True)
class ExpectedMetric:
    """A bound of a metric, absolute or as a part of the baseline's."""

    text: str
    metric: str
    relation: str
    number: float
    of_baseline: bool


@dataclass(frozen=True)
class CheckedCell:
    """A cell's mean, held to what was expected of it."""

    expected: ExpectedMetric
    cell: str
    value: float
    bound: float

    @property
    def is_met(self) -> bool:
        """Whether the mean is within the bound; the baseline's is as rounded as its file."""
        relation = self.expected.relation
        equal = "=" in relation and math.isclose(self.value, self.bound, rel_tol=ROUNDED)
        return equal or RELATIONS[relation](self.value, self.bound)

    @property
    def words(self) -> str:
        """What was found and expected: `cubic: goodput_mbps 8.9, expected >= 9.01`."""
        metric, relation = self.expected.metric, self.expected.relation
        return f"{self.cell}: {metric} {self.value:.4g}, expected {relation} {self.bound:.4g}"


def parse_expected(text: str) -> ExpectedMetric:
    """Read `METRIC >= 0.95 * baseline` or `METRIC <= 20`."""
    match = EXPECTATION.fullmatch(text.strip())
    if match is None:
        raise UsageError(
            f"--expect {quoted(text)}: not METRIC >= NUMBER * baseline", EXPECTATION_HINT
        )
    metric, relation, absolute, factor = match.groups()
    if not is_number_column(metric):
        raise UsageError(f"--expect: no metric {quoted(metric)}", nearest(metric, NUMBER_COLUMNS))
    try:
        number = float(absolute or factor or 1)
    except ValueError:
        raise UsageError(f"--expect {quoted(text)}: not a number", EXPECTATION_HINT) from None
    return ExpectedMetric(text, metric, relation, number, absolute is None)


def read_baseline(path: Path) -> pd.DataFrame:
    """Read the metrics.csv of an earlier run, whoever wrote it."""
    hint = f"name the table of a run: results/latest/{METRICS_CSV}"
    try:
        content = read_bytes(path, MAX_BASELINE_BYTES)
    except (OSError, UnfitFile) as error:
        raise UsageError(f"--baseline {path}: {error}", hint) from error
    try:
        table = pd.read_csv(io.BytesIO(content), dtype=dict.fromkeys(CELL_COLUMNS, str))
    except ValueError as error:
        raise UsageError(f"--baseline {path}: no table", hint) from error
    if missing := [
        name for name in (*CELL_COLUMNS, "axes", "status", "verdict") if name not in table
    ]:
        raise UsageError(f"--baseline {path}: no column {missing[0]}", hint)
    return table


def check_expected(
    expected: ExpectedMetric, metrics: pd.DataFrame, baseline: pd.DataFrame | None
) -> Iterator[CheckedCell]:
    """Yield the cells of a run; raise where the baseline lacks one of them."""
    cells = _means(metrics, expected.metric)
    known: Mapping[CellValues, tuple[str, float]] = {}
    if expected.of_baseline:
        if baseline is None:
            raise UsageError(
                f"--expect {quoted(expected.text)}: there is no baseline",
                f"--baseline FILE names the {METRICS_CSV} of an earlier run",
            )
        known = _means(baseline, expected.metric) if expected.metric in baseline else {}
    for key, (name, mean) in cells.items():
        if expected.of_baseline and key not in known:
            raise UsageError(
                f"--baseline: it has no {expected.metric} of {name} in this scenario",
                f"make it from this scenario: the {METRICS_CSV} of such a run",
            )
        part = known[key][1] if expected.of_baseline else 1.0
        yield CheckedCell(expected, name, mean, expected.number * part)


def _means(metrics: pd.DataFrame, metric: str) -> dict[CellValues, tuple[str, float]]:
    """Return the name of each cell, and its mean over its valid trials where that is known."""
    rows = counted(metrics)
    rows = rows.assign(known=pd.to_numeric(rows[metric], errors="coerce")).dropna(subset=["known"])
    means = {}
    for _, cell in rows.groupby(list(CELL_COLUMNS), sort=False, dropna=False):
        first = cell.iloc[0]
        axes = "" if pd.isna(first["axes"]) else str(first["axes"])
        key = tuple(str(first[name]) for name in CELL_COLUMNS)
        means[key] = " ".join(filter(None, (str(first["flow"]), axes))), float(cell["known"].mean())
    return means
