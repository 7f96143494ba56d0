"""The terminal: what is printed there, and how an error is told."""

from __future__ import annotations

import functools
import sys
import textwrap
from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from testbed.errors import TestbedError, UsageError, printable, printable_lines


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
    if len(message) > errors.width and isinstance(error, UsageError) and error.lines:
        message = "testbed: " + "\n    ".join(map(printable, error.lines))
    errors.print(message, soft_wrap=True)
    if error.hint:
        errors.print(f"    hint: {printable(error.hint)}", soft_wrap=True)
    return status


def say(line: str) -> None:
    """Print a line of a build's output as it comes: a build takes minutes."""
    errors.print(line, soft_wrap=True)


def print_lines(*lines: str) -> None:
    """Print lines as they are, however long."""
    for line in lines:
        console.print(line, soft_wrap=True, markup=False, highlight=False)


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
