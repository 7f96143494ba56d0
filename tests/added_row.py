"""A trial with the tutorial's row in the table: `python -m tests.added_row SCENARIO OUT`.

Runs in place of `testbed.guest.main`, in the guest.
"""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path

from testbed.machine.sysctl_guard import ALLOWED, AVAILABLE
from testbed.scenario import queues
from testbed.scenario.discipline import Discipline
from testbed.trial import session

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


if __name__ == "__main__":
    queues.DISCIPLINES["fq_pie"] = tutorial_row()
    ALLOWED.write_text(AVAILABLE.read_text())
    sys.exit(session.main(sys.argv[1:]))
