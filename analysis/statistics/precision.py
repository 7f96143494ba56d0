"""The precision of a metric over repeats: whether there are enough seeds."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

import numpy as np
import pandas as pd

from analysis.metrics.valid_trials import counted
from analysis.statistics.cells import cell_table
from testbed.errors import UsageError

LEAST_SEEDS = 3  # fewer say nothing about their spread


@dataclass(frozen=True)
class Widest:
    """The cell with the widest confidence interval."""

    variant: str
    relative: float  # half of the 95 % interval over the mean; infinite where not known


def parse_target(text: str) -> float:
    """`ci=2%` as 0.02."""
    match = re.fullmatch(r"ci=(\d+\.?\d*|\.\d+)%", text)
    target = float(match[1]) / 100 if match else 0.0
    if target <= 0:
        raise UsageError(f"--until {text}: not ci=N%", "e.g. --until ci=2%")
    return target


def widest(metrics: pd.DataFrame, metric: str) -> Widest:
    """Among the cells of TCP flows and videos, the one with the widest interval of the mean."""
    rows = counted(metrics)
    rows = rows[rows["kind"] != "cbr"]
    if rows.empty:
        return Widest("", math.inf)
    cells = cell_table(rows, metric)
    half = (cells["t_high"] - cells["t_low"]) / 2
    relative = (half / cells["mean"].abs()).fillna(np.inf)
    relative[half == 0] = 0.0
    worst = int(relative.to_numpy().argmax())
    return Widest(str(cells["variant"].iloc[worst]), float(relative.iloc[worst]))


def seeds_needed(seeds: int, relative: float, target: float, most: int) -> int:
    """The number of seeds to try next: intervals shrink with its square root; at most doubled."""
    if not math.isfinite(relative):
        return min(most, 2 * seeds)
    wanted = math.ceil(seeds * (relative / target) ** 2)
    return min(most, max(seeds + 1, min(wanted, 2 * seeds)))
