"""`testbed runs`: what was run, each run with its own table and figures."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.table import Table

from testbed.cli.console import console, errors, wide_console
from testbed.errors import UsageError
from testbed.runs import run_sets
from testbed.runs.results_folder import claimed
from testbed.runs.run_sets import Run

RESULTS = Path("results")
REMOVE = "remove"
MB = 1e6


def runs(options: argparse.Namespace) -> int:
    """`testbed runs`."""
    first, *rest = options.words or [str(RESULTS)]
    if first == REMOVE:
        return _remove(rest, options.unused)
    if options.unused:
        raise UsageError("--unused goes with remove", "testbed runs remove --unused")
    for name in options.words:
        if not Path(name).is_dir():
            raise UsageError(f"{name}: no such folder", "name a results folder, or none")
    return _list([Path(name) for name in options.words] or [RESULTS])


def _say(sentence: str) -> None:
    errors.print(f"testbed: {sentence}", soft_wrap=True)


def _list(folders: Sequence[Path]) -> int:
    stores = [store for folder in folders for store in run_sets.stores(folder)]
    table = Table("run", "when", "trials", "made by", box=None, header_style="")
    found = [run for store in stores for run in run_sets.runs_in(store)]
    for run in sorted(found, key=lambda run: run.ended_s, reverse=True):
        when = time.strftime("%Y-%m-%d %H:%M", time.localtime(run.ended_s))
        table.add_row(str(run.path), when, _there(run), run.command)
    if found:
        wide_console().print(table)
    else:
        console.print("no runs: `testbed run` makes them")
    for line in _unused_lines(stores):
        console.print(line, soft_wrap=True)
    return 0


def _there(run: Run) -> str:
    there = len(run.there())
    return str(there) if there == len(run.trials) else f"{there} of {len(run.trials)}"


def _unused_lines(stores: Sequence[Path]) -> Iterator[str]:
    for store in stores:
        if loose := run_sets.unused(store):
            are = "1 trial is" if len(loose) == 1 else f"{len(loose)} trials are"
            yield f"{store}: {are} in no run (`testbed runs remove --unused` removes them)"


def _remove(names: Sequence[str], unused: bool) -> int:
    if not names and not unused:
        raise UsageError("testbed runs remove: which run?", "`testbed runs` lists them")
    found = [run_sets.find(name, RESULTS) for name in names]
    for run in found:
        with claimed(run.store, _say):
            loose = run_sets.remove(run)
            console.print(f"removed: {run.path}, {_freed(loose)}", soft_wrap=True)
    if unused:
        for store in [run.store for run in found] or list(run_sets.stores(RESULTS)):
            with claimed(store, _say):
                loose = run_sets.unused(store)
                console.print(f"removed from {store}: {_freed(loose)}", soft_wrap=True)
    return 0


def _freed(loose: Sequence[Path]) -> str:
    if not loose:
        return "and no trial: other runs have them, or there was none"
    size = run_sets.free(loose) / MB
    trials = "1 trial" if len(loose) == 1 else f"{len(loose)} trials"
    return f"{trials} that no other run has, {size:.3g} MB"
