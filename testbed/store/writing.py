"""Writing the tables and documents of a trial; cells that no spreadsheet takes for formulas."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from testbed.errors import printable_lines
from testbed.indented import indented
from testbed.store.names import Table

if TYPE_CHECKING:
    import pandas as pd  # most who read trials need no table
FORMULA_STARTS = ("=", "+", "-", "@", "\t")  # of a cell, to spreadsheets


def write_table(folder: Path, table: Table, rows: Iterable[Sequence[object]]) -> None:
    """Write a table of the trial in this folder."""
    path = folder / table.file
    path.parent.mkdir(exist_ok=True)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(table.columns)
        writer.writerows(rows)


def csv_text(values: Sequence[object]) -> str:
    """Return values as `write_table` writes them: a whole line, or its end."""
    line = io.StringIO()
    csv.writer(line).writerow(values)
    return line.getvalue()


def spreadsheet_cell(text: str) -> str:
    """Return a text as a CSV's cell that no spreadsheet takes for a formula."""
    text = printable_lines(text)
    if not text.startswith(FORMULA_STARTS):
        return text
    try:
        is_number = all(math.isfinite(float(number)) for number in text.split(" ± "))
    except ValueError:
        is_number = False
    return text if is_number else f"'{text}"


def spreadsheet_frame(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a table for `to_csv`, in which no text and no heading is a formula."""
    shown = frame.copy(deep=False)
    for name, column in frame.select_dtypes(exclude="number").items():
        texts = (value for value in column.unique() if isinstance(value, str))
        changed = {text: cell for text in texts if (cell := spreadsheet_cell(text)) != text}
        if changed:
            shown[name] = column.map(lambda value, cells=changed: cells.get(value, value))
    return shown.rename(columns=lambda name: spreadsheet_cell(str(name)))


def write_text(folder: Path, table: Table, rows: bytes) -> None:
    """Write a table whose rows are text already."""
    write_table(folder, table, ())
    with (folder / table.file).open("ab") as file:
        file.write(rows)


def write_json(folder: Path, name: str, content: object) -> None:
    """Write a JSON document of the trial in this folder."""
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(indented(content, 1) + "\n")
