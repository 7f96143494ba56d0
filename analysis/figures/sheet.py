"""Tables of the report: column headings, cells, and how repeats are summarised in a cell."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

import pandas as pd

from analysis.statistics.intervals import half_width
from analysis.statistics.text_tables import NO_VALUE, TextTable


@dataclass(frozen=True)
class Head:
    """A column heading."""

    words: str
    unit: str = ""
    hint: str = ""
    number: bool = False


@dataclass(frozen=True)
class Cell:
    """The text that is shown, and the key that it is sorted by."""

    words: str
    key: str = ""
    number: bool = False


@dataclass(frozen=True)
class Sheet:
    """A table of the report."""

    heads: tuple[Head, ...]
    rows: tuple[tuple[Cell, ...], ...]

    def as_text(self, note: str = "") -> TextTable:
        """Return the table as text, each unit beside its heading."""
        header = (f"{head.words}, {head.unit}".removesuffix(", ") for head in self.heads)
        return TextTable(
            tuple(header), tuple(tuple(cell.words for cell in row) for row in self.rows), note
        )


NO_NUMBER = Cell(NO_VALUE, "", True)


def as_sheet(
    header: Sequence[str], rows: Iterable[Iterable[str]], numbers: Collection[str] = ()
) -> Sheet:
    """Return a table of texts, some columns of which are numbers."""
    kinds = [name in numbers for name in header]
    cells = (
        tuple(Cell(text, text, kind) for text, kind in zip(row, kinds, strict=True)) for row in rows
    )
    heads = (Head(name, number=kind) for name, kind in zip(header, kinds, strict=True))
    return Sheet(tuple(heads), tuple(cells))


def number_cell(value: float | None, form: str = "g") -> Cell:
    """Return the cell of a number, written in this form, or a dash if it is not known."""
    if value is None or not math.isfinite(value):
        return NO_NUMBER
    return Cell(f"{value:{form}}", f"{value:.9g}", True)


def mean_cell(values: pd.Series, possible: tuple[float, float] = (-math.inf, math.inf)) -> Cell:
    """Mean ± half of its 95 % interval; a dash if there are no values.

    An interval that reaches beyond what is possible is written by its ends, which are not.
    """
    mean = float(values.mean())
    if math.isnan(mean):
        return NO_NUMBER
    half = half_width(values)
    # two digits, but no exponent: 490, not 4.9e+02
    width = f" ± {float(f'{half:.2g}'):g}" if math.isfinite(half) and half else ""
    low, high = max(mean - half, possible[0]), min(mean + half, possible[1])
    if width and (low, high) != (mean - half, mean + half):
        width = f" ({low:.4g} … {high:.4g})"
    text = f"{mean:.4g}{width}"
    return Cell(text, f"{mean:.9g}", True)
