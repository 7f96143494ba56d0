"""`testbed columns`: every column of the tables, with its unit and its definition."""

from __future__ import annotations

import argparse

from testbed.errors import UsageError, nearest
from testbed.runs.console import console, print_folded
from testbed.store.names import LINKS_CSV, METRICS_CSV, TRANSFERS_CSV


def columns(options: argparse.Namespace) -> int:
    """Run `testbed columns`: print all columns, or those whose names have a word in them."""
    from analysis.metrics.columns import ALL_METRICS
    from analysis.metrics.links import LINK_COLUMNS
    from analysis.transfers.transfer_rows import TRANSFER_COLUMNS

    tables = {METRICS_CSV: ALL_METRICS, LINKS_CSV: LINK_COLUMNS, TRANSFERS_CSV: TRANSFER_COLUMNS}
    wanted = [word.lower() for word in options.words]
    matching = {
        file: [each for each in kinds if not wanted or any(word in each.name for word in wanted)]
        for file, kinds in tables.items()
    }
    if not any(matching.values()):
        names = [each.name for kinds in tables.values() for each in kinds]
        raise UsageError(f"no column has {' or '.join(wanted)}", nearest(wanted[0], names))
    for file, kinds in matching.items():
        if kinds:
            console.print(f"{file}:")
        for each in kinds:
            unit = f" ({each.unit})" if each.unit else ""
            print_folded(f"  {each.name}{unit}: {each.definition}", 6)
    return 0
