"""What it costs to import what a guest left, to list its files, and to check them later.

    .venv/bin/python -m benchmarks.import_costs [--repeats N] [--rate MBIT] [--seconds S]

Runs of the same trial differ by more than these parts take. So the parts themselves are timed,
by this process's clock, as shares of the processor time of a whole trial (boot, guest, captures)
and of a reduction. Captures' hashes stand apart: a trial without the rest has them, too.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

from analysis.results import reduction
from benchmarks.engine import scenario
from benchmarks.harness import parser_of, processor_s, require_guest, run_trials, scratch_folder
from testbed.machine import file_hashes, trees
from testbed.runs import sweep
from testbed.store.names import CAPTURES_FOLDER
from testbed.store.reading import Trial, open_trial

IMPORTING, LISTING, CHECKING = "the import", "hashes of files", "checks of files"
HASHING = "hashes of captures"


def share(options: argparse.Namespace) -> None:
    """Run the trials, reduce them as another process would, and print both."""
    spent = Counter[str]()
    with scratch_folder() as folder, timed(spent):
        trial = scenario(options.rate, options.seconds)
        run_trials([trial], f"{folder}/first", jobs=1)  # what a process does once
        spent.clear()
        before, done = processor_s(), list[Path]()
        for number in range(options.repeats):
            done += (each.path for each in run_trials([trial], f"{folder}/{number}", jobs=1))
        print_shares("trial", spent, processor_s() - before, options.repeats)
        spent.clear()
        before = processor_s()
        with mock.patch.dict(file_hashes._KNOWN, clear=True):
            for path in done:
                reduction.reduce_trial(open_trial(path))
        print_shares("reduction", spent, processor_s() - before, options.repeats)


@contextlib.contextmanager
def timed(spent: Counter[str]) -> Iterator[None]:
    """Add up what the parts take."""
    parts: list[tuple[Any, str, Callable[..., str]]] = [
        (trees.GuestFolder, "__init__", lambda *_: IMPORTING),
        (trees.GuestFolder, "take", lambda *_: IMPORTING),
        (trees.GuestFolder, "__exit__", lambda *_: IMPORTING),
        (sweep, "file_record", lambda path, *_: kind_of(path.parent.name, LISTING)),
        (Trial, "file_fault", lambda _, name: kind_of(name.partition("/")[0], CHECKING)),
    ]
    with contextlib.ExitStack() as patched:
        for owner, name, kind in parts:
            patched.enter_context(
                mock.patch.object(owner, name, counted(getattr(owner, name), kind, spent))
            )
        yield


def kind_of(folder: str, other: str) -> str:
    """Return what a file's hash counts as."""
    return HASHING if folder == CAPTURES_FOLDER else other


def counted(
    act: Callable[..., Any], kind: Callable[..., str], spent: Counter[str]
) -> Callable[..., Any]:
    """Return the same function, with the processor time of its thread added up by kind."""

    @functools.wraps(act)
    def run(*given: Any, **named: Any) -> Any:
        begun = time.thread_time_ns()
        try:
            return act(*given, **named)
        finally:
            spent[kind(*given)] += time.thread_time_ns() - begun

    return run


def print_shares(what: str, spent: Counter[str], whole_s: float, repeats: int) -> None:
    """Print the whole, and each part as a share of it."""
    print(f"{what}: {1e3 * whole_s / repeats:.1f} ms of processor time, of {repeats}")
    for kind, part_ns in sorted(spent.items()):
        print(f"  {kind}: {part_ns / 1e6 / repeats:.2f} ms, {part_ns / 1e7 / whole_s:.2f} %")


def main() -> None:
    """Run the command line."""
    parser = parser_of(__doc__)
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--rate", type=int, default=10, help="Mbit/s")
    parser.add_argument("--seconds", type=float, default=10.0, help="of each trial")
    require_guest()
    share(parser.parse_args())


if __name__ == "__main__":
    main()
