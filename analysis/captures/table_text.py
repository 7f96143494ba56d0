"""Tables as text, block by block: a million rows take seconds, and no more memory than a few."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import numpy as np

from analysis.captures.plain_table import Column, Labels, Table, rows_of

BLOCK = 1 << 14  # rows


def csv_text(tables: Iterable[Table]) -> Iterator[str]:
    """One CSV of all tables; what is not known is empty."""
    for number, table in enumerate(tables):
        if not number:
            yield ",".join(map(_quoted, table)) + "\n"
        for columns in _blocks(table, "%.9g", _quoted):
            yield "".join(f"{','.join(row)}\n" for row in zip(*columns, strict=True))


def json_text(tables: Iterable[Table]) -> Iterator[str]:
    """One JSON list of records of all tables."""
    import pandas as pd

    before = "[\n"
    for table in tables:
        for start in range(0, rows_of(table), BLOCK):
            block = {name: column[start : start + BLOCK] for name, column in table.items()}
            plain = {n: c.texts() if isinstance(c, Labels) else c for n, c in block.items()}
            records = pd.DataFrame(plain).to_json(orient="records", indent=1)
            yield before + records[1:-1].strip("\n")
            before = ",\n"
    yield "\n]\n" if before == ",\n" else "[]\n"


def aligned(tables: Iterable[Table], headings: Mapping[str, str]) -> Iterator[str]:
    """Lines for people; a column is as wide as its widest cell so far."""
    widths: list[int] = []
    left: list[bool] = []
    waiting: list[tuple[str, ...]] = []
    for table in tables:
        if not widths:
            waiting = [tuple(headings.get(name, name) for name in table)]
            widths = [0] * len(table)
            left = [isinstance(column, Labels) for column in table.values()]
        for columns in _blocks(table, "%.5g", str):
            waiting += zip(*columns, strict=True)
            if len(waiting) >= BLOCK:
                yield _align(waiting, widths, left)
                waiting = []
    yield _align(waiting, widths, left)


def _align(rows: list[tuple[str, ...]], widths: list[int], left: Sequence[bool]) -> str:
    for place, cells in enumerate(zip(*rows, strict=True)):
        widths[place] = max(widths[place], *map(len, cells))
    form = "  ".join(f"%{'-' * side}{width}s" for width, side in zip(widths, left, strict=True))
    return "".join(f"{(form % row).rstrip()}\n" for row in rows)


def _blocks(table: Table, form: str, form_text: Callable[[str], str]) -> Iterator[list[list[str]]]:
    """The cells, column by column, of some rows at a time."""
    columns = [_formed(column, form_text) for column in table.values()]
    for start in range(0, rows_of(table), BLOCK):
        yield [_cells(column[start : start + BLOCK], form) for column in columns]


def _formed(column: Column, form_text: Callable[[str], str]) -> Column:
    """Each different text is formed once, not once a row."""
    if isinstance(column, Labels):
        return Labels(column.codes, tuple(map(form_text, column.names)))
    return column


def _cells(column: Column, form: str) -> list[str]:
    if isinstance(column, Labels):
        return column.texts()
    if column.dtype.kind == "f":
        unknown = np.isnan(column).tolist()
        values = zip(column.tolist(), unknown, strict=True)
        return ["" if nan else form % value for value, nan in values]
    return list(map(str, column.tolist()))


def _quoted(text: str) -> str:
    """As a cell of a CSV."""
    if not any(sign in text for sign in ',"\r\n'):
        return text
    file = io.StringIO()
    csv.writer(file, lineterminator="").writerow([text])
    return file.getvalue()
