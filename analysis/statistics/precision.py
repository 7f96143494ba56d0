"""Whether a run has enough seeds (`--until ci=2%`): its widest interval, and how many to add."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

import pandas as pd

from analysis.metrics.columns import CELL_COLUMNS
from analysis.metrics.metric_rows import counted
from analysis.statistics.intervals import half_width, known
from testbed.errors import UsageError

MIN_SEEDS_OF_A_SPREAD = 3  # fewer say nothing about their spread


@dataclass(frozen=True)
class WidestCell:
    """The cell with the widest confidence interval."""

    variant: str
    relative: float  # half of the 95 % interval over the mean; infinite where not known


def parse_target(text: str) -> float:
    """Read `ci=2%` as 0.02."""
    match = re.fullmatch(r"ci=(\d+\.?\d*|\.\d+)%", text)
    target = float(match[1]) / 100 if match else 0.0
    if target <= 0:
        raise UsageError(f"--until {text}: not ci=N%", "e.g. --until ci=2%")
    return target


def widest(metrics: pd.DataFrame, metric: str) -> WidestCell:
    """Return the cell of TCP flows and videos with the widest interval of the mean."""
    rows = counted(metrics)
    rows = rows[rows["kind"] != "cbr"]
    worst = WidestCell("", math.inf) if rows.empty else WidestCell("", -1.0)
    for _, cell in rows.groupby(list(CELL_COLUMNS), sort=False, dropna=False):
        values = known(cell[metric])
        half = half_width(values)
        relative = half / abs(float(values.mean())) if half else 0.0
        if math.isnan(relative):
            relative = math.inf
        if relative > worst.relative:
            worst = WidestCell(str(cell["variant"].iloc[0]), relative)
    return worst


def seeds_needed(seeds: int, relative: float, target: float, most: int) -> int:
    """Return how many seeds to try next; intervals shrink with the square root of the number.

    At most twice as many as before.
    """
    if not math.isfinite(relative):
        return min(most, 2 * seeds)
    wanted = math.ceil(seeds * (relative / target) ** 2)
    return min(most, max(seeds + 1, min(wanted, 2 * seeds)))
