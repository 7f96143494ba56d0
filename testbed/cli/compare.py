"""`testbed compare`: compare two results folders cell by cell, or packet by packet."""

from __future__ import annotations

import argparse

from rich.table import Table

from testbed.bundles.opened import folder_of
from testbed.errors import UsageError
from testbed.runs.console import console, print_folded


def compare_folders(options: argparse.Namespace) -> int:
    """Run `testbed compare`; the exit status is 1 if the folders differ."""
    options.a, options.b = folder_of(options.a), folder_of(options.b)
    if options.packets:
        return _compare_packets(options)
    from analysis.statistics.comparison import compare_results
    from analysis.statistics.comparison_table import closing_lines, report_table
    from analysis.statistics.tolerances import choose_tolerances

    tolerances = choose_tolerances(options.metric, options.tolerance)
    report = compare_results(options.a, options.b, tolerances)
    shown = report_table(report, options.all)
    if shown.rows:
        table = Table(box=None)
        used = [place for place, cells in enumerate(zip(*shown.rows, strict=True)) if any(cells)]
        for place in used:  # where it is narrow, the settings' names are folded
            heading = shown.header[place]
            table.add_column(heading, overflow="fold", no_wrap=heading != "setting")
        for row in shown.rows:
            table.add_row(*(row[place] for place in used))
        console.print(table)
        print_folded(shown.note)
    for line in closing_lines(report):
        print_folded(line)
    return 0 if report.agrees else 1


def _compare_packets(options: argparse.Namespace) -> int:
    from analysis.statistics.packet_comparison import compare_packets

    if options.metric or options.tolerance or options.all:
        raise UsageError(
            "--packets: captures and numbers are the same or not", "without --metric, --tolerance"
        )
    report = compare_packets(options.a, options.b)
    for line in report.lines():
        console.print(line, soft_wrap=True)
    return 0 if report.agrees else 1
