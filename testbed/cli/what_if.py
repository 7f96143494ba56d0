"""`testbed whatif`: a trial again with one thing changed, and where that leads."""

from __future__ import annotations

import argparse
import math
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from testbed.cli.run_output import Printed, print_table
from testbed.errors import UsageError
from testbed.runs.console import console, errors
from testbed.runs.orchestration import RunOptions
from testbed.runs.progress import ConsoleListener
from testbed.runs.selection import parse_settings
from testbed.runs.what_if import (
    SET_EXAMPLE,
    WHAT_IF,
    Intervention,
    WhatIf,
    fate_of_one,
    what_if,
)
from testbed.store.names import FIGURES, REPORT, WATCH_PAGE, results_folder
from testbed.store.reading import open_named_trial

if TYPE_CHECKING:
    from analysis.statistics.text_tables import SummaryColumn, TextTable


def ask(options: argparse.Namespace) -> int:
    """Run `testbed whatif`: status 1 if packets before the change differ or a trial is invalid."""
    from analysis.report import collect, make_report

    trial = open_named_trial(options.trial)
    packet = fate_of_one(options.drop, options.delay, options.mark, options.spare)
    if packet[0] and (options.set or options.at is not None):
        raise UsageError("one packet: one change at a time", "leave out --set and --at")
    settings = {}
    for place, values in parse_settings(options.set, SET_EXAMPLE).items():
        if len(values) != 1:
            raise UsageError(f"--set {place}: one value", f"--set {place}={values[0]}")
        settings[place] = values[0]
    change = Intervention(settings, options.at, *packet, options.flow, options.queue)
    out = options.out or results_folder(WHAT_IF)
    run_options = RunOptions(seeds=options.seeds, engine="guest", out=out, jobs=options.jobs)
    command = shlex.join(("testbed", *options.arguments))
    answer = what_if(trial, change, run_options, command, ConsoleListener())
    for line in _proof(answer, change):
        console.print(line, soft_wrap=True)
    print_table(_table(answer), Printed("table", None))
    for name in answer.invalid:
        errors.print(f"testbed: {name} is invalid: its numbers do not count", soft_wrap=True)
    page = make_report(collect([answer.run]), answer.run / REPORT)
    console.print(f"report: {page}", soft_wrap=True)
    console.print(f"side by side: {_both(answer, change, command)}", soft_wrap=True)
    return 1 if answer.invalid or _reaches_back(answer, change) else 0


def _both(answer: WhatIf, change: Intervention, command: str) -> Path:
    """Write the moving pictures of the first network, and the page that has them side by side."""
    from analysis.report.watch_page import write_both, write_watch_page
    from analysis.watch.excerpt import watched_trial

    pair, *_ = answer.pairs
    names = ("as it was", f"what if {change.description}")
    pages = []
    for name, trial in zip(names, (pair.before, pair.after), strict=True):
        out = trial.path / FIGURES / WATCH_PAGE
        pages.append((name, write_watch_page(watched_trial(trial), out, command)))
    first_s = pair.first.earliest_s if pair.first else change.at_s or 0.0
    return write_both(pages, names[1], first_s, answer.run / WATCH_PAGE)


def _reaches_back(answer: WhatIf, change: Intervention) -> bool:
    firsts = [each.first.earliest_s for each in answer.pairs if each.first]
    return change.at_s is not None and any(first_s < change.at_s for first_s in firsts)


def _proof(answer: WhatIf, change: Intervention) -> Iterator[str]:
    """Yield what is the same, and the first packet that is not."""
    stored, (pair, *_) = answer.differs_from_stored, answer.pairs
    if stored is None:
        yield "as it was: the same packets as the trial, in all captures that both have"
    else:
        yield (
            f"as it was: other packets than the trial's from second {stored.earliest_s:.6f} on: "
            "another version ran it"
        )
    if pair.first is None:
        yield f"what if {change.description}: no packet differs"
        return
    first = pair.first
    yield (
        f"what if {change.description}: the same {pair.same_packets:,} packets until second "
        f"{first.earliest_s:.6f}, where packet {first.number} of {first.interface} is the first "
        "that differs"
    )


def _table(answer: WhatIf) -> TextTable:
    """Return the metrics of each flow, as they were and with the change."""
    from analysis.statistics.intervals import ComparisonKind
    from analysis.statistics.text_tables import (
        REPEATED_NOTE,
        SUMMARY_COLUMNS,
        TextTable,
    )

    columns = {each.metric: each for each in SUMMARY_COLUMNS}
    rows = []
    for each in answer.effects:
        column = columns.get(each.metric) or _of_player(each.metric)
        change = each.difference
        half = (change.high - change.low) / 2 if change.high > change.low else math.nan
        difference = column.text(abs(change.difference), half)
        sign = "−" if change.difference < 0 else "+" if change.difference > 0 else ""
        sides = (column.text(each.before), column.text(each.after))
        rows.append((each.flow, column.heading, *sides, sign + difference))
    n = len(answer.pairs)
    note = f"difference: the mean over {n} networks, with its 95 % interval" if n > 1 else ""
    if n > 1 and all(each.difference.kind is not ComparisonKind.TESTED for each in answer.effects):
        note = REPEATED_NOTE
    return TextTable(("flow", "metric", "as it was", "what if", "difference"), tuple(rows), note)


def _of_player(metric: str) -> SummaryColumn:
    """Return the column of a video player's metric: seconds, or a number."""
    from analysis.statistics.text_tables import SummaryColumn

    name = metric.removesuffix("_s")
    if name == metric:
        return SummaryColumn(metric, name, decimals=0)
    return SummaryColumn(metric, f"{name} s")
