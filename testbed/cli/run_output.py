"""The results of a run on the terminal: as a table, or as text for programs and documents."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.table import Table

from testbed.runs.progress import console

if TYPE_CHECKING:
    import pandas as pd  # loaded where it is needed

    from analysis.statistics import text_tables


@dataclass(frozen=True)
class Printed:
    """What the user asked to see: the format, and the columns unless the usual ones."""

    format: str
    columns: tuple[str, ...] | None


def parse(options: argparse.Namespace) -> Printed:
    """Read the options; with a format for programs, all other output goes to stderr."""
    from analysis.statistics import text_tables

    if options.format != "table":
        console.file = sys.stderr
    if options.all:
        return Printed(options.format, text_tables.every_column())
    columns = text_tables.parse_columns(options.columns) if options.columns else None
    return Printed(options.format, columns)


def print_results(
    metrics: pd.DataFrame, own: Iterable[text_tables.TextTable], printed: Printed
) -> None:
    """Print this run's trials: in an experiment's own tables if it has any, else summed up."""
    from analysis.statistics import text_tables

    if printed.format in ("csv", "json"):
        frame = text_tables.as_frame(metrics, printed.columns)
        write = text_tables.as_csv if printed.format == "csv" else text_tables.as_json
        sys.stdout.write(write(frame))
        return
    tables = [] if printed.columns else list(own)
    for table in tables or [text_tables.summary(metrics, printed.columns)]:
        print_table(table, printed)


def print_table(table: text_tables.TextTable, printed: Printed) -> None:
    """Print one table, as Markdown if that was asked for."""
    from analysis.statistics import text_tables

    if printed.format == "md":
        sys.stdout.write(text_tables.as_markdown(table))
    else:
        _print_table(table)


def _print_table(shown: text_tables.TextTable) -> None:
    table = Table(box=None, header_style="")
    for name, cell in zip(shown.header, shown.rows[0] if shown.rows else shown.header, strict=True):
        number = cell[:1] in "0123456789–"
        table.add_column(
            name, justify="right" if number else "left", vertical="bottom", no_wrap=not number
        )
    for row in shown.rows:
        table.add_row(*row)
    console.print(table)
    if shown.note:
        console.print(shown.note)
