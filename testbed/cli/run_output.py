"""The results of a run on the terminal: as a table, or as text for programs and documents."""

from __future__ import annotations

import argparse
import sys
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import JustifyMethod
from rich.table import Table
from rich.text import Text

from testbed.errors import printable_lines
from testbed.runs.console import console, errors
from testbed.runs.progress import after_a_while

if TYPE_CHECKING:
    import pandas as pd  # loaded where it is needed

    from analysis.results.experiment_results import ResultSet
    from analysis.statistics import text_tables


@dataclass(frozen=True)
class Printed:
    """The output that the user wants: its format, and its columns if not the usual ones."""

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


def collected(folders: Sequence[Path], options: argparse.Namespace) -> ResultSet:
    """Collect the trials of results folders; print warnings of those to distrust."""
    from analysis.results.experiment_results import collect

    collecting = (collect(each, options.experiments) for each in [folders])
    [results] = after_a_while("reading trials", collecting)
    print_warnings(results.warnings)
    return results


def print_warnings(warnings: Iterable[str]) -> None:
    """Print warnings: what not to trust, and what is missing."""
    for text in warnings:
        errors.print(f"testbed: warning: {text}", soft_wrap=True)


def print_results(
    metrics: pd.DataFrame, each_table: Iterable[text_tables.TextTable], printed: Printed
) -> None:
    """Print this run's trials: in an experiment's own tables if it has any, else summed up."""
    from analysis.statistics import text_tables

    if printed.format in ("csv", "json"):
        frame = text_tables.as_frame(metrics, printed.columns)
        write = text_tables.as_csv if printed.format == "csv" else text_tables.as_json
        sys.stdout.write(write(frame))
        return
    tables = [] if printed.columns else list(each_table)
    for table in tables or [text_tables.summary(metrics, printed.columns)]:
        print_table(table, printed)


def print_table(table: text_tables.TextTable, printed: Printed) -> None:
    """Print one table, as Markdown or LaTeX if that was asked for."""
    from analysis.statistics import text_tables

    if printed.format == "md":
        sys.stdout.write(text_tables.as_markdown(table))
    elif printed.format == "latex":
        sys.stdout.write(text_tables.as_latex(table))
    else:
        narrow = text_tables.narrowed(table, console.width)
        for part in text_tables.blocks(narrow, console.width):
            _print_table(part)


@dataclass(frozen=True)
class JunitCase:
    """A test case for others' tools: without a failure it passed, or was skipped."""

    classname: str
    name: str
    failure: str = ""
    output: str = ""
    took_s: float = 0.0
    skipped: str = ""  # why


def junit(suites: Mapping[str, Sequence[JunitCase]]) -> str:
    """Return suites of test cases as JUnit's XML."""
    top = ET.Element("testsuites")
    for name, cases in suites.items():
        suite = ET.SubElement(top, "testsuite", name=name)
        for each in cases:
            names = {"classname": each.classname, "name": each.name}
            case = ET.SubElement(suite, "testcase", names, time=f"{each.took_s:.3f}")
            if each.failure:
                ET.SubElement(case, "failure", message=each.failure).text = each.output
            if each.skipped:
                ET.SubElement(case, "skipped", message=each.skipped)
    return ET.tostring(top, encoding="unicode", xml_declaration=True) + "\n"


VERDICT_STYLES = {"invalid": "red", "suspect": "yellow", "failed": "red", "valid": "green"}


def _print_table(shown: text_tables.TextTable) -> None:
    from analysis.statistics.text_tables import headings, is_number

    table = Table(box=None, header_style="")
    cells = shown.rows[0] if shown.rows else shown.header
    for heading, cell in zip(headings(shown, console.width), cells, strict=True):
        side: JustifyMethod = "right" if is_number(cell) else "left"
        table.add_column(heading, justify=side, vertical="bottom", no_wrap=True)
    for row in shown.rows:
        table.add_row(*map(_styled, row))
    console.print(table)
    if shown.note:
        console.print(shown.note)


def _styled(cell: str) -> Text:
    """Return a cell, that of verdicts in the colour of its worst; a file or pipe has no colours."""
    style = next((style for word, style in VERDICT_STYLES.items() if word in cell.split()), "")
    return Text(printable_lines(cell), style=style)


def print_figures(figures: Iterable[Path], others: str = ".svg, .csv") -> list[Path]:
    """Print the first figure's file as soon as it is drawn, and the names of the others."""
    drawn = list[Path]()
    for figure in after_a_while("drawing figures", figures):
        if not drawn:
            console.print(f"figure: {figure} ({others})", soft_wrap=True)
        drawn.append(figure)
    if drawn[1:]:
        console.print(f"beside it: {', '.join(each.name for each in drawn[1:])}", soft_wrap=True)
    return drawn
