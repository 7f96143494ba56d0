"""What a run shows on the terminal: a bar, a line in a notebook, or lines in a log."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Column

from testbed.runs.console import console, errors
from testbed.runs.orchestration import RunListener
from testbed.runs.sweep import (
    ClusterExposed,
    SweepEvent,
    TrialFinished,
    TrialStarted,
    TrialWaiting,
    Watcher,
    WorkerRejected,
)
from testbed.store.records import Status

_T = TypeVar("_T")


LONGEST_SILENCE_S = 2.0  # of a user to whom nothing is said


def after_a_while(message: str, items: Iterable[_T]) -> Iterator[_T]:
    """Yield the items; say what goes on before one that takes longer than a user's patience."""
    waiting = threading.Timer(LONGEST_SILENCE_S, errors.print, (f"{message} …",))
    waiting.daemon = True
    waiting.start()
    try:
        yield from items
    finally:
        waiting.cancel()


def time_left(begun: float, done: int, total: int) -> str:
    """Return how long the rest takes at the pace so far, to follow other words; '' if unknown."""
    if done in (0, total):
        return ""
    spent = time.monotonic() - begun
    return f", about {spent / done * (total - done):.0f} s left"


class _TerminalBar:
    """A bar that disappears at the end."""

    def __init__(self, total: int) -> None:
        self._progress = Progress(
            BarColumn(20),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.description}", table_column=Column(no_wrap=True, ratio=1)),
            console=console,
            expand=True,
            transient=True,
        )
        self._task = self._progress.add_task("", total=total)
        self._progress.start()

    def show(self, done: int, running: Sequence[str], left: str) -> None:
        self._progress.update(self._task, completed=done, description=" ".join(running))

    def end(self) -> None:
        self._progress.stop()


class _NotebookLine:
    """A line below a notebook's cell, in any front end: rich's own bar needs widgets there."""

    def __init__(self, total: int) -> None:
        from IPython.display import display

        self._total = total
        self._begun = time.monotonic()
        self._handle = display(self._line("", 0), raw=True, display_id=True)

    def _line(self, rest: str, done: int) -> dict[str, str]:
        return {"text/plain": f"trials: {done} of {self._total}{rest}"}

    def show(self, done: int, running: Sequence[str], left: str) -> None:
        now = f"; now {', '.join(running)}" if running else ""
        if done == self._total:
            now = f" in {time.monotonic() - self._begun:.0f} s"
        self._handle.update(self._line(left + now, done), raw=True)

    def end(self) -> None:
        """Leave the last line, as a record of what ran."""


class SweepProgress:
    """A watcher that prints the events of a sweep; a context manager that ends its bar."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._done = 0
        self._begun = time.monotonic()
        self._running: list[str] = []
        self._said: set[str] = set()
        self._bar: _TerminalBar | _NotebookLine | None = None

    def __enter__(self) -> SweepProgress:
        if console.is_jupyter:
            self._bar = _NotebookLine(self._total)
        elif console.is_terminal and not console.is_dumb_terminal:
            self._bar = _TerminalBar(self._total)
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar:
            self._bar.end()

    def __call__(self, event: SweepEvent) -> None:
        """Print an event of the sweep."""
        if isinstance(event, WorkerRejected):
            console.print(f"{event.worker} takes no trials: {event.reason}")
        elif isinstance(event, TrialWaiting | ClusterExposed):
            self._once(event.reason)
        elif isinstance(event, TrialStarted):
            self._running.append(event.scenario.name)
            if event.stale:
                self._once("results of another kernel or version are here: those trials run again")
        else:
            self._finish(event)
        if self._bar:
            self._bar.show(self._done, self._running, self._left())

    def _finish(self, event: TrialFinished) -> None:
        self._done += 1
        if event.scenario.name in self._running:
            self._running.remove(event.scenario.name)
        record = event.record
        if record.status is not Status.OK:
            console.print(f"{event.scenario.name}: {record.status}: {record.reason}")
            if record.status is Status.FAILED:  # the run sums up what is unsupported
                if record.hint:
                    console.print(f"    hint: {record.hint}")
                console.print(f"    see {event.path}/")
        elif not self._bar:
            how = f"{record.wall_s:.1f} s" if event.fresh else "already there"
            console.print(
                f"[{self._done}/{self._total}] {event.scenario.name}: {how}{self._left()}",
            )
        for warning in record.warnings:
            self._once(warning, f"{event.scenario.name}: warning: ")

    def _once(self, text: str, before: str = "") -> None:
        """Print a text that many trials share only once."""
        if text not in self._said:
            self._said.add(text)
            console.print(f"{before}{text}", soft_wrap=True)

    def _left(self) -> str:
        return time_left(self._begun, self._done, self._total)


class NotebookListener(RunListener):
    """Prints warnings, and the progress of trials; what a run returns says the rest."""

    def warn(self, sentence: str) -> None:
        """Print a sentence on stderr."""
        errors.print(f"testbed: {sentence}", soft_wrap=True)

    @contextmanager
    def watching(self, trials: int) -> Iterator[Watcher]:
        """Show the progress of a sweep."""
        with SweepProgress(trials) as progress:
            yield progress


class ConsoleListener(NotebookListener):
    """Prints all that a run says."""

    def say(self, line: str) -> None:
        """Print a line on stdout."""
        console.print(line, soft_wrap=True)


def track(things: Iterable[_T], total: int) -> Iterator[_T]:
    """Iterate with a progress bar if there is a terminal."""
    if not errors.is_terminal or total < 2:
        yield from things
        return
    with Progress(
        BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), console=errors, transient=True
    ) as bar:
        yield from bar.track(things, total)
