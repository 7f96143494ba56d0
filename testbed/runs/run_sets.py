"""Runs: each command's trials as a set of its own, with its own table and figures.

A trial is stored once, in its results folder, however many runs have it; a run is a folder in
`runs/` there that lists its trials and holds what is made of them.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from testbed.errors import UsageError, nearest
from testbed.machine import safe_files
from testbed.machine.atomic import replace, replace_link
from testbed.scenario.names import checked
from testbed.store import LATEST, RUN_FILE, RUNS, is_trial, listed_trials

BY_TIME = "%Y%m%d-%H%M%S"  # the name of a run without --name


@dataclass(frozen=True)
class Run:
    """One run of a results folder."""

    path: Path
    command: str  # that made it last
    ended_s: float
    trials: tuple[str, ...]  # their folders' names

    @property
    def name(self) -> str:
        """What `testbed runs` calls it."""
        return self.path.name

    @property
    def store(self) -> Path:
        """The results folder with its trials."""
        return self.path.parent.parent

    def there(self) -> list[Path]:
        """Those of its trials that are complete."""
        return [self.store / name for name in self.trials if is_trial(self.store / name)]


def runs_in(store: Path) -> list[Run]:
    """The runs of a results folder, the newest first."""
    folder = store / RUNS
    if not folder.is_dir():
        return []
    found = [_read(path) for path in folder.iterdir() if (path / RUN_FILE).is_file()]
    return sorted(found, key=lambda run: (run.ended_s, run.name), reverse=True)


def _read(path: Path) -> Run:
    names = listed_trials(path)
    told = json.loads((path / RUN_FILE).read_text())  # which listed_trials has checked
    ended = told.get("ended_s")
    return Run(
        path, str(told.get("command", "")), ended if isinstance(ended, float) else 0.0, names
    )


def keep_run(store: Path, name: str, command: str, trials: Sequence[str]) -> Run:
    """Note a command's trials as a run, and let `latest` point there.

    Without a name it is named by the time, but a command that comes to the very trials of a run
    that is there is that run again. A run of the same name is replaced; its trials stay.
    """
    own = tuple(sorted(set(trials)))
    path = store / RUNS / checked(name) if name else _place(store, own)
    run = Run(path, command, time.time(), own)
    safe_files.make_folder(path)
    content = {"command": run.command, "ended_s": run.ended_s, "trials": list(own)}
    text = json.dumps(content, indent=1) + "\n"
    replace(path / RUN_FILE, lambda file: file.write_text(text))
    point_at(store / LATEST, f"{RUNS}/{run.name}")
    return run


def _place(store: Path, trials: tuple[str, ...]) -> Path:
    for run in runs_in(store):
        if run.trials == trials:
            return run.path
    name = time.strftime(BY_TIME)
    number, path = 1, store / RUNS / name
    while path.exists():
        number += 1
        path = store / RUNS / f"{name}.{number}"
    return path


def point_at(link: Path, target: str) -> None:
    """Let a link point there, unless something else has its name."""
    if link.is_symlink() or not link.exists():
        replace_link(link, target)


def stores(folder: Path) -> Iterator[Path]:
    """The results folders with runs: this one, or those in it."""
    if (folder / RUNS).is_dir():
        yield folder
        return
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        for path in sorted(folder.iterdir()):
            if not path.is_symlink() and (path / RUNS).is_dir():
                yield path


def find(text: str, results: Path) -> Run:
    """The run that the user names: by its folder, or by its name if no two have it."""
    path = Path(text)
    if (path / RUN_FILE).is_file():
        return _read(path.resolve())
    runs = [run for store in stores(results) for run in runs_in(store)]
    found = [run for run in runs if run.name == text]
    if len(found) > 1:
        raise UsageError(f"{len(found)} runs are called {text}", f"name one: {found[0].path}")
    if not found:
        raise UsageError(
            f"no run {text}",
            nearest(text, [run.name for run in runs]) if runs else f"{results} has no runs",
        )
    return found[0]


def needed(store: Path) -> set[str]:
    """The names of the trials that some run has."""
    return {name for run in runs_in(store) for name in run.trials}


def unused(store: Path) -> list[Path]:
    """Trials that no run has: of runs that were stopped, replaced, or made by earlier versions."""
    own = needed(store)
    return [path for path in sorted(store.iterdir()) if path.name not in own and is_trial(path)]


def remove(run: Run) -> list[Path]:
    """Remove a run; returns those of its trials that no other run needs."""
    with safe_files.folder(run.path.parent) as parent:
        safe_files.remove(parent, run.name)
    left = runs_in(run.store)
    for latest in (run.store / LATEST, run.store.parent / LATEST):
        if latest.is_symlink() and not latest.exists():
            if left:
                place = left[0].path.resolve().relative_to(latest.parent.resolve())
                point_at(latest, str(place))
            else:
                safe_files.remove_file(latest)
    own = needed(run.store)
    return [path for path in run.there() if path.name not in own]


def free(trials: Sequence[Path]) -> int:
    """Remove trials; returns the bytes that they took."""
    size = 0
    for path in trials:
        size += sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
        with safe_files.folder(path.parent) as parent:
            safe_files.remove(parent, path.name)
    return size
