"""`testbed reduce`: captures become tables, or are held against tshark."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.table import Table

from testbed.cli.console import console, errors, track
from testbed.errors import UsageError

if TYPE_CHECKING:
    import pandas as pd  # loaded where it is needed

SHOWN_DIFFERENCES = 20  # of each capture


def reduce_captures(options: argparse.Namespace) -> int:
    """`testbed reduce`."""
    from analysis.captures.reduction import captures_of

    options.pcap = [capture for path in options.pcap for capture in captures_of(path)]
    if options.verify:
        return _verify(options.pcap)
    if options.format == "parquet" and options.out is None:
        raise UsageError("--format parquet goes to a file", "add --out FILE")
    if options.out is not None and options.format == "table":
        raise UsageError("--out takes csv, json or parquet", "add --format csv")
    if options.format == "table" and not (options.packets or options.bin or options.lengths):
        _print_flows(options.pcap)
        return 0
    from analysis.captures import reduction

    tables = _told(_reductions(options))
    if options.format == "table":
        shown = map(reduction.for_people, tables) if options.packets else tables
        for rows in shown:
            _print_rows(rows)
    elif options.format == "parquet":
        reduction.write_parquet(tables, options.out)
    elif options.out is None:
        reduction.write_text(tables, options.format, sys.stdout)
    else:
        with options.out.open("w") as file:
            reduction.write_text(tables, options.format, file)
    return 0


def _print_flows(paths: Sequence[Path]) -> None:
    """Without pandas, which is slow to load."""
    from analysis.captures.flow_table import HEADINGS, read_flows
    from analysis.captures.reduction import each_of, names_of

    table = Table(*HEADINGS, box=None)
    found = track(each_of(paths, read_flows), len(paths))
    for name, flows in zip(names_of(paths), found, strict=True):
        _warn(flows.warnings)
        for row in flows.rows:
            table.add_row(name, *(_cell(value) for value in list(vars(row).values())[1:]))
    console.print(table)


def _reductions(
    options: argparse.Namespace,
) -> Iterator[tuple[pd.DataFrame, Sequence[str]]]:
    """Capture by capture, what was asked for and what was wrong."""
    from analysis.captures import reduction
    from analysis.captures.bins import parse_width
    from analysis.captures.flow_table import capture_flows

    if options.packets:
        found = reduction.packet_tables(options.pcap)
    elif options.lengths:
        found = reduction.length_tables(options.pcap)
    elif options.bin:
        found = reduction.bin_tables(options.pcap, parse_width(options.bin))
    else:
        flows = reduction.each_of(options.pcap, capture_flows)
        found = ((each, each.attrs["warnings"]) for each in flows)
    return track(_named(found, reduction.names_of(options.pcap)), len(options.pcap))


def _named(
    tables: Iterator[tuple[pd.DataFrame, Sequence[str]]], names: Sequence[str]
) -> Iterator[tuple[pd.DataFrame, Sequence[str]]]:
    for (rows, warnings), name in zip(tables, names, strict=True):
        yield rows.assign(file=name), warnings


def _told(tables: Iterator[tuple[pd.DataFrame, Sequence[str]]]) -> Iterator[pd.DataFrame]:
    for rows, warnings in tables:
        _warn(warnings)
        yield rows


def _warn(warnings: Sequence[str]) -> None:
    for warning in warnings:
        errors.print(f"testbed: warning: {warning}", markup=False, soft_wrap=True)


def _print_rows(rows: pd.DataFrame) -> None:
    table = Table(*map(str, rows.columns), box=None)
    for row in rows.itertuples(index=False):
        table.add_row(*(_cell(value) for value in row))
    console.print(table)


def _verify(paths: Sequence[Path]) -> int:
    """Compare with tshark, capture by capture; differences are a failure."""
    from analysis.captures.tshark_verify import Verdict, verify

    total = Verdict()
    for path in paths:
        found = verify(path)
        total += found
        console.print(f"{path}: {found}", markup=False, soft_wrap=True)
        for each in found.differences[:SHOWN_DIFFERENCES]:
            console.print(f"    {each}", markup=False, soft_wrap=True)
        if (hidden := len(found.differences) - SHOWN_DIFFERENCES) > 0:
            console.print(f"    and {hidden} more")
    if len(paths) > 1:
        console.print(f"{len(paths)} captures: {total}", markup=False)
    return 1 if total.differences else 0


def _cell(value: object) -> str:
    if isinstance(value, float):
        return "" if math.isnan(value) else f"{value:.5g}"  # NaN: not known
    return str(value)
