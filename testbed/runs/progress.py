"""The terminal, and what a run shows there: a bar, a line in a notebook, or lines in a log."""

from __future__ import annotations

import functools
import sys
import textwrap
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from rich.console import Console, ConsoleOptions, RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.segment import Segment
from rich.table import Column, Table
from rich.text import Text

from testbed.errors import FAULT_BREAK, TestbedError, printable, printable_lines
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


class PrintableConsole(Console):
    """A console that escapes what a terminal would obey: what is printed is data of others too."""

    def render_str(self, text: str, **settings: Any) -> Text:
        """Escape before the text is measured and put into lines."""
        return super().render_str(printable_lines(text), **settings)

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Escape what did not come as a string."""
        for segment in super().render(renderable, options):
            text = segment.text if segment.control else printable_lines(segment.text)
            yield segment._replace(text=text)


# no brackets or colons in what is printed mean anything
_console = functools.partial(PrintableConsole, highlight=False, markup=False, emoji=False)
# a log or a pipe has no width: let tables be as wide as they are
console = _console(width=None if sys.stdout and sys.stdout.isatty() else 200)
errors = _console(stderr=True)


def print_error(error: TestbedError, status: int) -> int:
    """Print an error with its hint, and return the exit status."""
    message = f"testbed: {printable(error.message)}"
    if len(message) > errors.width:  # a fault a line
        message = message.replace(FAULT_BREAK, "\n    ")
    errors.print(message, soft_wrap=True)
    if error.hint:
        errors.print(f"    hint: {printable(error.hint)}", soft_wrap=True)
    return status


def wide_console() -> Console:
    """Return a console for tables with one column per trial, whose lines a log must not break."""
    return console if console.is_terminal else _console(width=2000)


def folding_table(*headings: str) -> Table:
    """Return a table that folds names where it is narrow, but never cuts them: users type them."""
    table = Table(box=None)
    for heading in headings:
        table.add_column(heading, overflow="fold")
    return table


def print_folded(line: str, indent: int = 0) -> None:
    """Print a line; a terminal has it in several, broken at words, the others indented.

    A log or a pipe has it in one, for whatever searches there.
    """
    if console.is_terminal:
        line = textwrap.fill(
            line,
            console.width,
            subsequent_indent=" " * indent,
            break_long_words=False,
            break_on_hyphens=False,
        )
    console.print(line, soft_wrap=True)


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
            console.print(f"{before}{text}")

    def _left(self) -> str:
        if self._done in (0, self._total):
            return ""
        spent = time.monotonic() - self._begun
        return f", about {spent / self._done * (self._total - self._done):.0f} s left"


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
