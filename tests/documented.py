"""The tables in README and docs, made again by the commands that stand above them.

    .venv/bin/python -m tests.documented                      exit status 1 if a table differs
    .venv/bin/python -m tests.documented --write README.md    put the present ones in their place

A table is preceded by the comment `<!-- run: testbed run … -->` and ends at an empty line or at
the line that names the first figure. In the guest the same command prints the same table, so any
difference is a change of the code that has not reached the document.
"""

from __future__ import annotations

import argparse
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MARKER = re.compile(r"<!-- run: testbed (?P<command>run .*) -->")
PAST_TABLE = re.compile(r"\s*(figure:.*)?")  # matched in full: an empty line, or a figure's


@dataclass(frozen=True)
class Documented:
    """A table in a document: the command, and the lines of the file that it occupies."""

    path: Path
    command: tuple[str, ...]
    begin: int
    end: int


def documented(path: Path) -> Iterator[Documented]:
    """The marked tables of a document."""
    lines = path.read_text().splitlines()
    for number, line in enumerate(lines):
        if not (found := MARKER.fullmatch(line)):
            continue
        begin = next(n for n in range(number + 1, len(lines)) if lines[n].strip())
        end = next((n for n in range(begin, len(lines)) if _is_past(lines[n])), len(lines))
        yield Documented(path, tuple(shlex.split(found["command"])), begin, end)


def _is_past(line: str) -> bool:
    return PAST_TABLE.fullmatch(line) is not None


def printed(command: tuple[str, ...]) -> list[str]:
    """The table that the command prints, as it stands in a document."""
    with tempfile.TemporaryDirectory() as out:
        testbed = Path(sys.executable).with_name("testbed")
        argv = [str(testbed), *command, "--engine", "guest", "--out", f"{out}/results"]
        done = subprocess.run(argv, capture_output=True, text=True, check=False, cwd=ROOT)
    if done.returncode:
        raise SystemExit(f"testbed {shlex.join(command)}: {done.stderr or done.stdout}")
    lines = done.stdout.splitlines()
    if "--format" in command:  # nothing else is on stdout, and the note is left to the document
        return lines[: lines.index("")]
    progress = re.compile(r"engine: |\[\d+/\d+\] |.*: warning: ")
    table = [line.rstrip() for line in lines if not progress.match(line)]
    return [f"    {line}" for line in table[: next(n for n, t in enumerate(table) if _is_past(t))]]


def main() -> int:
    """Compare all documents' tables, or write them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="put the present tables in place")
    parser.add_argument("files", nargs="*", type=Path, help="only these documents (all)")
    options = parser.parse_args()
    every = (ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md")))
    differing = 0
    for path in [path.resolve() for path in options.files] or every:
        for each in reversed([*documented(path)]):  # from the end, so that line numbers hold
            lines, now = path.read_text().splitlines(), printed(each.command)
            same = lines[each.begin : each.end] == now
            differing += not same
            print(f"{path.relative_to(ROOT)}:{each.begin + 1}: {'same' if same else 'differs'}")
            if options.write:
                lines[each.begin : each.end] = now
                path.write_text("\n".join(lines) + "\n")
    return 1 if differing and not options.write else 0


if __name__ == "__main__":
    sys.exit(main())
