"""The page's comparison of two results folders."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from analysis.figures.sheet import Cell, Head, Sheet
from analysis.statistics.comparison import compare_results, in_common
from analysis.statistics.comparison_table import closing_lines, report_table
from analysis.statistics.tolerances import choose_tolerances


@dataclass(frozen=True)
class Compared:
    """Two folders, the lines of their comparison, and what came of it."""

    a: str
    b: str
    sheet: Sheet
    note: str
    closing: tuple[str, ...]


def compared(first: Path, second: Path) -> Compared | None:
    """The comparison by the usual tolerances; None if no scenario is in both."""
    if not in_common(first, second):
        return None
    report = compare_results(first, second, choose_tolerances("", []))
    shown = report_table(report, everything=False)
    heads = tuple(Head(words) for words in shown.header)
    rows = tuple(tuple(Cell(words, words) for words in row) for row in shown.rows)
    closing = tuple(closing_lines(report))
    return Compared(str(first), str(second), Sheet(heads, rows), shown.note, closing)
