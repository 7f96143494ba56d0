"""The tutorial's row of a queue discipline, and other blocks of its text."""

from __future__ import annotations

import textwrap
from pathlib import Path

from testbed.scenario import queues
from testbed.scenario.discipline import Discipline

TUTORIAL = Path(__file__).resolve().parent.parent / "docs" / "tutorial.md"


def block(first: str) -> str:
    """The indented block of the tutorial that begins with this line."""
    text = TUTORIAL.read_text()
    lines = text[text.index(f"    {first}") :].splitlines()
    ends = (number for number, line in enumerate(lines) if line and not line.startswith("    "))
    return textwrap.dedent("\n".join(lines[: next(ends)]))


def tutorial_row() -> Discipline:
    """The tutorial's row, read where the table's own rows stand."""
    row: Discipline = eval(f"({block('Discipline(')})", vars(queues))[0]
    return row
