"""A table of the page: heads, cells, and what a cell shows of repeats or of a printed number."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from analysis.statistics.intervals import half_width, known


@dataclass(frozen=True)
class Head:
    """A column's head."""

    words: str
    unit: str = ""
    hint: str = ""
    number: bool = False


@dataclass(frozen=True)
class Cell:
    """What is shown, and what it is sorted by."""

    words: str
    key: str = ""
    number: bool = False


@dataclass(frozen=True)
class Sheet:
    """A table of the page."""

    heads: tuple[Head, ...]
    rows: tuple[tuple[Cell, ...], ...]


def printed(value: float | None) -> Cell:
    """A number of a paper's, or a dash where it has none."""
    return Cell("–", "", True) if value is None else Cell(f"{value:g}", f"{value:g}", True)


def mean_cell(values: pd.Series) -> Cell:
    """Mean and half of its 95 % interval; a dash where nothing is known."""
    mean = float(values.mean())
    if math.isnan(mean):
        return Cell("–", "", True)
    half = half_width(values)
    # two digits, but no exponent: 490, not 4.9e+02
    width = f" ± {float(f'{half:.2g}'):g}" if math.isfinite(half) and half else ""
    words = f"{mean:.4g}{width}"
    return Cell(words, f"{mean:.9g}", True)


def median_cell(values: Iterable[float], decimals: int = 1) -> Cell:
    """The median, and from least to most: with five repeats its 94 % interval."""
    found = known(values)
    if not len(found):
        return Cell("–", "", True)
    median = float(np.median(found))
    ends = [f"{each:.{decimals}f}" for each in (found.min(), found.max())]
    span = f" ({ends[0]}–{ends[1]})" if ends[0] != ends[1] else ""
    return Cell(f"{median:.{decimals}f}{span}", f"{median:.9g}", True)
