"""`testbed doctor`: what this machine can run, how fast, what its disk holds; and it mends."""

from __future__ import annotations

import argparse
import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

from testbed.cli.machine import check, clean
from testbed.errors import TestbedError
from testbed.guest.worker import cache_folder
from testbed.machine.atomic import workplace
from testbed.machine.compiled import IN_WHEEL, REINSTALL
from testbed.machine.journal import state_folder
from testbed.machine.process import run
from testbed.runs.console import console, errors, print_folded
from testbed.runs.orchestration import RunListener, RunOptions, plan_and_carry_out
from testbed.runs.selection import select
from testbed.runs.sources import BUILT, PROJECT
from testbed.store.records import Status

PROBE = {"variant": ["linux-reno"], "queue": ["bfifo"], "path": ["receiver"], "duration_s": ["1"]}
PROBE_EXPERIMENT = "router-bottleneck"
RESULTS = Path("results")
MEGABYTE, GIGABYTE = 1e6, 1e9
LITTLE_DISK = 2 * GIGABYTE  # README's longest example takes more


def doctor(options: argparse.Namespace) -> int:
    """Run `testbed doctor`: check, then speed and disk; --mend first mends what it can."""
    if options.mend:
        _mend()
    status = check(argparse.Namespace(variants=False))
    status |= _speed(options)
    for line in _disk():
        print_folded(line, 8)
    if status and not options.mend:
        hint = REINSTALL if IN_WHEEL else "testbed doctor --mend, or ./setup.sh"
        errors.print(f"    hint: {hint}", soft_wrap=True)
    return status


def _mend() -> None:
    """Compile what is missing or older than its sources, and remove what killed runs left."""
    stale = [each.file.name for each in BUILT if not each.file.exists() or each.is_stale()]
    if stale and not IN_WHEEL:
        console.print(f"compiling {', '.join(stale)}", soft_wrap=True)
        run(["make", "--silent"], cwd=PROJECT)
    clean(argparse.Namespace())


def _speed(options: argparse.Namespace) -> int:
    """Run a trial of a second in a folder that is removed; return 1 if it fails."""
    console.print("a trial of a second:")
    begun = time.monotonic()
    try:
        with workplace("doctor") as folder:
            settings = RunOptions(out=folder / "results")
            selection = select(PROBE_EXPERIMENT, PROBE, options.experiments)
            _, made = plan_and_carry_out(selection, settings, "testbed doctor", RunListener())
            (trial,) = made.trials
            record = trial.record  # read before the folder is gone
    except TestbedError as error:
        print_folded(f"missing speed: {error.message}", 8)
        return 1
    if record.status is not Status.OK:
        print_folded(f"missing speed: {record.reason}", 8)
        return 1
    whole_s = time.monotonic() - begun
    rest = f"{whole_s:.1f} s with plan, verdict and numbers"
    print_folded(f"ok      {record.wall_s:.1f} s, {rest}", 8)
    return 0


def _disk() -> Iterator[str]:
    """Yield what is free, and what caches, state and the results of this folder take."""
    free = shutil.disk_usage(Path()).free
    mark = "ok     " if free > LITTLE_DISK else "-      "
    yield f"{mark} disk: {free / GIGABYTE:.1f} GB free here"
    for name, folder, remedy in (
        ("kernels", cache_folder(), "`testbed kernel remove NAME`"),
        ("state", state_folder(), "`testbed clean`"),
        (str(RESULTS), RESULTS, "`testbed runs remove RUN`"),
    ):
        if folder.is_dir():
            yield f"ok      {name}: {_size(folder) / MEGABYTE:.0f} MB in {folder} ({remedy})"


def _size(folder: Path) -> int:
    """Return the bytes that a folder's files take on the disk."""
    files = (Path(top) / name for top, _, names in os.walk(folder) for name in names)
    return sum(path.lstat().st_blocks * 512 for path in files if path.is_symlink() or path.exists())
