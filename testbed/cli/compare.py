"""`testbed compare`: two results folders by cells or by packets, or what other tools measured."""

from __future__ import annotations

import argparse

from rich.table import Table

from testbed.bundles.opened import folder_of
from testbed.errors import UsageError, number_of
from testbed.runs.console import console, folding_table, print_folded


def compare_folders(options: argparse.Namespace) -> int:
    """Run `testbed compare`; the exit status is 1 if the folders differ."""
    options.a, options.b = folder_of(options.a), folder_of(options.b)
    if options.packets:
        return _compare_packets(options)
    from analysis.statistics.measurements import is_measurement

    if is_measurement(options.a) or is_measurement(options.b):
        return _compare_measurements(options)
    if options.figure:
        raise UsageError("--figure: is of other tools' files", "testbed report A B draws folders")
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


def _compare_measurements(options: argparse.Namespace) -> int:
    """Compare what another tool measured, with ours or with another tool's."""
    from analysis.statistics.measurements import (
        compare_measurements,
        measurements_of,
        series_rows,
    )
    from analysis.statistics.tolerances import choose_tolerances

    tolerances = choose_tolerances(options.metric, options.tolerance)
    sides = measurements_of(options.a), measurements_of(options.b)
    for letter, runs in zip("AB", sides, strict=True):
        more = f", and {number_of(len(runs) - 1, 'run')} more" if len(runs) > 1 else ""
        print_folded(f"{letter}: {runs[0].name} ({runs[0].tool}){more}")
        table = folding_table("", "", "mean", "5 %", "median", "95 %")
        for row in series_rows(runs):
            table.add_row(*row)
        console.print(table)
    compared = compare_measurements(*sides, tolerances)
    table = folding_table("metric", "A", "B", "B − A", "tolerance", "")
    for each in compared:
        numbers = (f"{each.a:.4g}", f"{each.b:.4g}", f"{each.b - each.a:+.4g}")
        verdict = "within" if each.agrees else "beyond"
        table.add_row(each.metric, *numbers, str(each.tolerance), verdict)
    console.print(table)
    print_folded(
        "goodput of all flows together, both ways; round trips of whatever each has timed"
        if compared
        else "no number is known in both"
    )
    if options.figure:
        from analysis.figures.measurement_figure import figure
        from analysis.figures.static_renderer import save

        firsts = [runs[0] for runs in sides]
        path, *_ = save(figure(firsts, options.figure.stem), options.figure.parent)
        console.print(f"figure: {path} (.svg, .csv)", soft_wrap=True)
    return 0 if compared and all(each.agrees for each in compared) else 1
