"""`testbed runs`: what was run, each run with its own table and figures."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.table import Table

from testbed.errors import UsageError, number_of
from testbed.runs.console import console, errors, wide_console
from testbed.runs.results_folders import (
    StoredRun,
    claimed,
    find_run,
    remove_run,
    remove_trials,
    runs_in,
    stores,
    unreferenced,
)

DEFAULT_RESULTS = Path("results")
REMOVE = "remove"
MB = 1e6
WIDE_TERMINAL = 120  # columns, from which on a run's command is beside it


def runs(options: argparse.Namespace) -> int:
    """Run `testbed runs`."""
    first, *rest = options.words or [str(DEFAULT_RESULTS)]
    if first == REMOVE:
        return _remove(rest, options.unused)
    if options.unused:
        raise UsageError("--unused is an option of remove", "testbed runs remove --unused")
    for name in options.words:
        if not Path(name).is_dir():
            hint = f"a results folder, none, or: testbed runs {REMOVE} RUN"
            raise UsageError(f"{name}: no such folder", hint)
    return _list([Path(name) for name in dict.fromkeys(options.words)] or [DEFAULT_RESULTS])


def _say(sentence: str) -> None:
    errors.print(f"testbed: {sentence}", soft_wrap=True)


def _list(folders: Sequence[Path]) -> int:
    folders = [store for folder in folders for store in stores(folder)]
    table = Table("run", "when", "trials", "made by", box=None, header_style="")
    wide = wide_console()
    stored_runs = [run for store in folders for run in runs_in(store)]
    for run in sorted(stored_runs, key=lambda run: run.ended_s, reverse=True):
        when = time.strftime("%Y-%m-%d %H:%M", time.localtime(run.ended_s))
        table.add_row(str(run.path), when, _existing(run), run.command)
        if wide.width < WIDE_TERMINAL:  # the names are whole: `runs remove` takes them
            trials = f"{_existing(run)} trial{'' if len(run.trials) == 1 else 's'}"
            console.print(f"{run.path}  {when}  {trials}", soft_wrap=True)
            console.print(f"    {run.command}", soft_wrap=True)
    if stored_runs and wide.width >= WIDE_TERMINAL:
        wide.print(table)
    if not stored_runs:
        console.print("no runs: `testbed run` makes them")
    for line in _unreferenced_lines(folders):
        console.print(line, soft_wrap=True)
    return 0


def _existing(run: StoredRun) -> str:
    count = len(run.existing_trials())
    return str(count) if count == len(run.trials) else f"{count} of {len(run.trials)}"


def _unreferenced_lines(folders: Sequence[Path]) -> Iterator[str]:
    for store in folders:
        if trials := unreferenced(store):
            are = "is" if len(trials) == 1 else "are"
            count = number_of(len(trials), "trial")
            yield f"{store}: {count} {are} in no run (`testbed runs remove --unused` removes them)"


def _remove(names: Sequence[str], unused: bool) -> int:
    if not names and not unused:
        raise UsageError("runs remove: which run?", "`testbed runs` lists them")
    stored_runs = [find_run(name, DEFAULT_RESULTS) for name in names]
    for run in stored_runs:
        with claimed(run.store, _say):
            trials = remove_run(run)
            console.print(f"removed: {run.path}, {_freed(trials)}", soft_wrap=True)
    if unused:
        for store in [run.store for run in stored_runs] or list(stores(DEFAULT_RESULTS)):
            with claimed(store, _say):
                trials = unreferenced(store)
                console.print(f"removed from {store}: {_freed(trials)}", soft_wrap=True)
    return 0


def _freed(trials: Sequence[Path]) -> str:
    if not trials:
        return "and no trial: other runs have them, or there was none"
    size = remove_trials(trials) / MB
    count = number_of(len(trials), "trial")
    return f"{count} that no other run has, {size:.{0 if size >= 10 else 1}f} MB"
