"""`testbed reduce`: turns captures into tables, or compares them with tshark."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from testbed.cli.run_output import print_warnings
from testbed.errors import UsageError, printable_lines
from testbed.runs.console import console
from testbed.runs.progress import track

if TYPE_CHECKING:  # loaded where it is needed
    import pyarrow as pa

SHOWN_DIFFERENCES = 20  # of each capture
ROW_LABELS = 2  # columns that say which flow a row is of


def reduce_captures(options: argparse.Namespace) -> int:
    """Run `testbed reduce`."""
    from analysis.captures import flow_tables, tables

    options.pcap = [capture for path in options.pcap for capture in tables.captures_of(path)]
    if options.verify:
        return _verify(options.pcap, options.tunnels)
    if options.format == "parquet" and options.out is None:
        raise UsageError("--format parquet needs a file", "add --out FILE")
    if options.out is not None and options.format == "table":
        raise UsageError("--out takes csv, json or parquet", "add --format csv")
    tables_read = _tables(options)
    if options.format == "table":
        other = options.packets or options.lengths or options.bin
        if other:
            lines = tables.aligned(tables_read, {})
        elif console.is_terminal:
            lines = tables.in_parts(tables_read, flow_tables.HEADINGS, ROW_LABELS, console.width)
        else:
            lines = tables.aligned(tables_read, flow_tables.HEADINGS)
        sys.stdout.writelines(map(printable_lines, lines))
    elif options.format == "parquet":
        tables.write_parquet(tables_read, options.out)
    else:
        text = tables.csv_text if options.format == "csv" else tables.json_text
        with options.out.open("w") if options.out else nullcontext(sys.stdout) as file:
            file.writelines(text(tables_read))
    return 0


def _tables(options: argparse.Namespace) -> Iterator[pa.Table]:
    """Yield the requested table of each capture, and print its warnings."""
    from analysis.captures import flow_tables, tables

    if options.packets:
        packet_tables = tables.packet_tables(
            options.pcap, tunnels=options.tunnels, for_people=options.format == "table"
        )
    elif options.lengths:
        packet_tables = tables.length_tables(options.pcap, tunnels=options.tunnels)
    elif options.bin:
        width_s = flow_tables.parse_width(options.bin)
        packet_tables = tables.bin_tables(options.pcap, width_s, tunnels=options.tunnels)
    else:
        packet_tables = tables.flow_tables(options.pcap, tunnels=options.tunnels)
    named = zip(packet_tables, tables.names_of(options.pcap), strict=True)
    for made, name in track(named, len(options.pcap)):
        print_warnings(made.warnings)
        yield made.table.set_column(0, "file", flow_tables.constant(name, len(made.table)))


def _verify(paths: Sequence[Path], tunnels: bool) -> int:
    """Compare with tshark, capture by capture; differences are a failure."""
    from analysis.captures.tshark import TsharkComparison, verify

    total = TsharkComparison()
    for path in paths:
        disagreements = verify(path, tunnels=tunnels)
        total += disagreements
        console.print(f"{path}: {disagreements}", soft_wrap=True)
        for each in disagreements.differences[:SHOWN_DIFFERENCES]:
            console.print(f"    {each}", soft_wrap=True)
        if (hidden := len(disagreements.differences) - SHOWN_DIFFERENCES) > 0:
            console.print(f"    and {hidden} more")
        if disagreements.other_rules:
            _print_other_rules(disagreements.other_rules)
    if len(paths) > 1:
        console.print(f"{len(paths)} captures: {total}")
    return 1 if total.differences else 0


def _print_other_rules(fields: Mapping[str, int]) -> None:
    """No faults: the installed tshark judges by other rules than the Wireshark that we follow."""
    from analysis.captures.tshark import FOLLOWED, version

    often = ", ".join(f"{name} {count}" for name, count in fields.items())
    console.print(
        f"    judged by tshark {version()} otherwise than by Wireshark {FOLLOWED}, whose rules we "
        f"follow: {often}",
        soft_wrap=True,
    )
