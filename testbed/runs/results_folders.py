"""Results folders, and the runs in them: each command's trials, with their table and figures.

A trial is stored once, in its results folder, however many runs contain it; a run is a folder in
`runs/` there that lists its trials and holds what is made from them.
"""

from __future__ import annotations

import contextlib
import json
import os
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from testbed.errors import TestbedError, UsageError, nearest
from testbed.machine import json_files, safe_files
from testbed.machine.atomic import replace, replace_link
from testbed.machine.locks import Tell, lock
from testbed.scenario.names import checked_name
from testbed.store.names import LATEST, RUN_FILE, RUNS
from testbed.store.reading import belongs_in_results, is_trial, listed_trials, run_command

NAME_BY_TIME = "%Y%m%d-%H%M%S"  # the name of a run without --name


def prepare_folder(out: Path) -> None:
    """Create the results folder, or check that it can hold results."""
    if out.exists() and not out.is_dir():
        raise TestbedError(f"{out} is a file", "name a folder with --out")
    try:
        safe_files.make_folder(out)
        foreign = [path.name for path in out.iterdir() if not belongs_in_results(path)]
    except OSError as error:
        raise _unwritable(out, error.strerror or str(error)) from error
    if foreign:
        raise TestbedError(
            f"{out} holds something other than results: {foreign[0]}",
            "name another folder with --out",
        )
    if not os.access(out, os.W_OK | os.X_OK):
        raise _unwritable(out, "no right to, or a read-only file system")


def _unwritable(out: Path, reason: str) -> TestbedError:
    return TestbedError(f"cannot write to {out}: {reason}", "name another folder with --out")


@contextlib.contextmanager
def claimed(out: Path, tell: Tell) -> Iterator[None]:
    """Lock a results folder: two sweeps would replace each other's trials."""
    prepare_folder(out)
    with safe_files.folder(out) as folder:
        lock(folder, str(out), tell, threading.Event())
        yield


@dataclass(frozen=True)
class StoredRun:
    """One run of a results folder."""

    path: Path
    command: str  # the last one that made it
    ended_s: float
    trials: tuple[str, ...]  # their folders' names

    @property
    def name(self) -> str:
        """The run's name."""
        return self.path.name

    @property
    def store(self) -> Path:
        """The results folder with its trials."""
        return self.path.parent.parent

    def existing_trials(self) -> list[Path]:
        """Return the folders of those of its trials that exist."""
        return [self.store / name for name in self.trials if is_trial(self.store / name)]


def runs_in(store: Path) -> list[StoredRun]:
    """Return the runs of a results folder, the newest first."""
    folder = store / RUNS
    if not folder.is_dir():
        return []
    runs = [_read(path) for path in folder.iterdir() if (path / RUN_FILE).is_file()]
    return sorted(runs, key=lambda run: (run.ended_s, run.name), reverse=True)


def _read(path: Path) -> StoredRun:
    names = listed_trials(path)
    data = json_files.read(path / RUN_FILE)  # checked by listed_trials
    ended = data.get("ended_s")
    ended_s = ended if isinstance(ended, float) else 0.0
    return StoredRun(path, run_command(path), ended_s, names)


def keep_run(store: Path, name: str, command: str, trials: Sequence[str]) -> StoredRun:
    """Record a command's trials as a run, and let `latest` point there.

    Without a name it is named by the time, or is the existing run with exactly these trials. A run
    of the same name is replaced; its trials stay.
    """
    names = tuple(sorted(set(trials)))
    path = store / RUNS / checked_name(name) if name else _new_folder(store, names)
    run = StoredRun(path, command, time.time(), names)
    safe_files.make_folder(path)
    content = {"command": run.command, "ended_s": run.ended_s, "trials": list(names)}
    text = json.dumps(content, indent=1) + "\n"
    replace(path / RUN_FILE, lambda file: file.write_text(text))
    set_latest_link(store / LATEST, f"{RUNS}/{run.name}")
    return run


def _new_folder(store: Path, trials: tuple[str, ...]) -> Path:
    for run in runs_in(store):
        if run.trials == trials:
            return run.path
    name = time.strftime(NAME_BY_TIME)
    number, path = 1, store / RUNS / name
    while path.exists():
        number += 1
        path = store / RUNS / f"{name}.{number}"
    return path


def set_latest_link(link: Path, target: str) -> None:
    """Let a link point to a target, unless a file or folder has its name."""
    if link.is_symlink() or not link.exists():
        replace_link(link, target)


def stores(folder: Path) -> Iterator[Path]:
    """Yield the results folders with runs: this one, or those in it."""
    if (folder / RUNS).is_dir():
        yield folder
        return
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        for path in sorted(folder.iterdir()):
            if not path.is_symlink() and (path / RUNS).is_dir():
                yield path


def find_run(text: str, results: Path) -> StoredRun:
    """Return the run that the user names by its folder, or by its name if only one has it."""
    path = Path(text)
    if (path / RUN_FILE).is_file():
        with safe_files.folder(path) as folder:  # another user's link would lead elsewhere
            return _read(safe_files.real_path(folder))
    runs = [run for store in stores(results) for run in runs_in(store)]
    matching = [run for run in runs if run.name == text]
    if len(matching) > 1:
        raise UsageError(f"{len(matching)} runs are called {text}", f"name one: {matching[0].path}")
    if not matching:
        raise UsageError(
            f"no run {text}",
            nearest(text, [run.name for run in runs]) if runs else f"{results} has no runs",
        )
    return matching[0]


def _referenced(store: Path) -> set[str]:
    """Return the names of the trials that belong to a run."""
    return {name for run in runs_in(store) for name in run.trials}


def unreferenced(store: Path) -> list[Path]:
    """Return the trials of no run: their run was interrupted, removed or replaced."""
    names = _referenced(store)
    return [path for path in sorted(store.iterdir()) if path.name not in names and is_trial(path)]


def remove_run(run: StoredRun) -> list[Path]:
    """Remove a run; returns those of its trials that no other run needs."""
    with safe_files.folder(run.path.parent) as parent:
        safe_files.remove(parent, run.name)
    left = runs_in(run.store)
    others = [other for store in stores(run.store.parent) for other in runs_in(store)]
    for latest, runs in ((run.store / LATEST, left), (run.store.parent / LATEST, others)):
        if latest.is_symlink() and not latest.exists():
            if runs:
                newest = max(runs, key=lambda other: (other.ended_s, other.name))
                place = newest.path.resolve().relative_to(latest.parent.resolve())
                set_latest_link(latest, str(place))
            else:
                safe_files.remove_file(latest)
    names = _referenced(run.store)
    return [path for path in run.existing_trials() if path.name not in names]


def remove_trials(trials: Sequence[Path]) -> int:
    """Remove trials; returns the bytes that they took."""
    size = 0
    for path in trials:
        size += sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
        with safe_files.folder(path.parent) as parent:
            safe_files.remove(parent, path.name)
    return size
