"""Pages whose numbers come from stored results: README.md, docs/ and experiments/, and docs/data/.

Marks in a page say what stands below or beside them:

    <!-- run: testbed run … -->          the table that the command prints
    <!-- summary: testbed run … -->      the experiment's own table, as Markdown
    <!-- layers: testbed run … -->       of each of its trials, what two layers say of the same
    <!-- radio: testbed run … -->        of each of its trials, what the radio's medium counted
    <!-- sheet: TITLE by run …; run … -->  a table of the runs' report, by its title
    <!-- answers: GYS by run …; run … -->  a paper's claims and their answers, from these runs
    <!-- answers: PMW1 PMW4 by run … -->  only these claims
    <!-- GYS3.1 | READING | WHAT -->37.5 %<!-- / -->  one number of such an answer

A file that a command names is the first indented block after its name in backticks on the same
page. A block ends at an empty line, or at the line that names the first figure.
`benchmarks/papers.py` runs the commands and stores what they give; here nothing is run.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import re
import shlex
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from analysis.results.reduction import revision
from experiments.catalogue import EXPERIMENTS
from testbed.cli.parser import build_parser
from testbed.cli.run import selected
from testbed.errors import TestbedError
from testbed.plan.task import Task, tasks
from testbed.runs.identity import Identities, identities
from testbed.scenario.model import Scenario

ROOT = Path(__file__).resolve().parents[1]
DATA = "docs/data"
TABLE = re.compile(r"<!-- (?P<kind>run|summary|layers|radio): testbed (?P<commands>run .*) -->")
ANSWERS = re.compile(
    r"<!-- (?P<kind>answers): (?P<title>[\w.]+(?: [\w.]+)*) by (?P<commands>run .*) -->"
)
SHEET = re.compile(r"<!-- (?P<kind>sheet): (?P<title>.+) by (?P<commands>run .*) -->")
NUMBER = re.compile(r"(?P<mark><!-- (?P<key>[A-Z]+\d[^>]*\S) -->)[^<]*(?P<end><!-- / -->)")
PAST_BLOCK = re.compile(r"\s*(figure:.*)?")  # matched in full: an empty line, or a figure's
INDENT = "    "
AGAIN = "run .venv/bin/python -m benchmarks.papers"


Files = tuple[tuple[str, str], ...]  # names and contents


@dataclass(frozen=True)
class Stored:
    """What commands gave, and the revisions of the code that ran the trials and reduced them."""

    commands: tuple[str, ...]
    trials: str
    metrics: str
    lines: tuple[str, ...]  # as they stand in a page
    numbers: Mapping[str, str]
    plans: str = ""  # what is done in the trials, without the programs that do it
    again: str = ""  # how it is known that the trials are of this revision, if not all have run

    def stale(self, files: Files = ()) -> str:
        """What has changed since; empty if nothing has."""
        if self.trials != identity_of(self.commands, files):
            return "the trials"
        return "" if self.metrics == revision() else "what is measured"


@dataclass(frozen=True)
class Block:
    """A marked table of a page: what makes it, and its lines."""

    name: str  # of the file in docs/data
    kind: str  # the mark's first word
    commands: tuple[str, ...]
    begin: int
    end: int
    files: Files = ()
    title: str = ""  # the paper or claims of it, or the table of a report


def pages(root: Path = ROOT) -> list[Path]:
    """Every page that may have marks."""
    folders = ("docs", "experiments")
    return [
        root / "README.md",
        *(page for each in folders for page in sorted((root / each).glob("**/*.md"))),
    ]


def blocks(text: str) -> Iterator[Block]:
    """The marked tables of a page, from its end: line numbers hold while they are filled."""
    lines = text.splitlines()
    for number in reversed(range(len(lines))):
        marks = (mark.fullmatch(lines[number]) for mark in (TABLE, ANSWERS, SHEET))
        found = next(filter(None, marks), None)
        if not found:
            continue
        begin = next((n for n in range(number + 1, len(lines)) if lines[n].strip()), number + 1)
        end = next((n for n in range(begin, len(lines)) if _is_past(lines[n])), len(lines))
        commands = tuple(each.strip() for each in found["commands"].split(";"))
        files = tuple(_files(lines, commands))
        title = found.groupdict().get("title", "")
        name = _name(found["kind"], title, commands[0])
        yield Block(name, found["kind"], commands, begin, end, files, title)


def _name(kind: str, title: str, command: str) -> str:
    """`GYS`, `PMW1-PMW4`, `layers-run-variants`, or `sheet-video-access-Shaped-Ethernet`."""
    if kind == "answers":
        return title.replace(" ", "-")
    told = f"{command.split()[1]} {title}" if title else command
    words = re.sub(r"\W+", "-", told)[: None if title else 60].strip("-")
    return words if kind == "run" else f"{kind}-{words}"


def _files(lines: Sequence[str], commands: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The files that the commands name, with the blocks of the page that hold them."""
    for word in dict.fromkeys(word for command in commands for word in shlex.split(command)):
        name = Path(word).name
        if name.endswith((".json", ".py")):
            named = next((n for n, line in enumerate(lines) if f"`{name}`" in line), len(lines))
            first = next((n for n in range(named, len(lines)) if lines[n][:4] == INDENT), named)
            past = next((n for n in range(first, len(lines)) if _is_text(lines[n])), len(lines))
            yield name, "\n".join(line[4:] for line in lines[first:past]) + "\n"


def _is_text(line: str) -> bool:
    return bool(line) and not line.startswith(INDENT)


def _is_past(line: str) -> bool:
    return PAST_BLOCK.fullmatch(line) is not None


def filled(text: str, root: Path = ROOT) -> str:
    """The page with every marked table and number as it is stored."""
    lines = text.splitlines()
    for block in blocks(text):
        lines[block.begin : block.end] = stored(block.name, root).lines
    return NUMBER.sub(lambda mark: _numbered(mark, root), "\n".join(lines) + "\n")


def _numbered(mark: re.Match[str], root: Path) -> str:
    paper = re.split(r"\d", mark["key"], maxsplit=1)[0]
    tables = (stored(path.stem, root) for path in (root / DATA).glob(f"{paper}*.json"))
    numbers = {key: number for table in tables for key, number in table.numbers.items()}
    if mark["key"] not in numbers:
        near = [key for key in numbers if key.startswith(mark["key"].split(" | ")[0])]
        raise TestbedError(f"{DATA} has no number {mark['key']!r}", f"there is {near[:40]}")
    return f"{mark['mark']}{numbers[mark['key']]}{mark['end']}"


@functools.cache
def stored(name: str, root: Path = ROOT) -> Stored:
    """What was stored under this name."""
    path = root / DATA / f"{name}.json"
    if not path.is_file():
        raise TestbedError(f"{DATA}/{path.name}: no such file", AGAIN)
    found = json.loads(path.read_text(encoding="utf-8"))
    lists = {key: tuple(found[key]) for key in ("commands", "lines")}
    return Stored(**found | lists)


def store(name: str, made: Stored, root: Path = ROOT) -> None:
    """Keep it for the pages."""
    (root / DATA).mkdir(exist_ok=True)
    text = json.dumps(asdict(made), indent=1, ensure_ascii=False)
    (root / DATA / f"{name}.json").write_text(text + "\n", encoding="utf-8")
    stored.cache_clear()


def scenarios_of(command: str) -> list[Scenario]:
    """The trials that a command runs."""
    parser = build_parser()
    parser.set_defaults(experiments=EXPERIMENTS)
    options = parser.parse_args(shlex.split(command))
    return selected(options).scenarios(options.seeds)


def planned(commands: Sequence[str]) -> Iterator[Task]:
    """The trials that the commands run, planned as they are asked for."""
    for command in commands:
        for scenario in scenarios_of(command):
            yield from tasks((scenario,))


@functools.cache
def identities_of(command: str, files: Files) -> Identities:
    """Of one command's trials: thousands take seconds to plan, and pages share commands."""
    with with_files(files):
        return identities(scenarios_of(command))


def identity_of(commands: Sequence[str], files: Files = ()) -> str:
    """The revision of these trials, as the code is now."""
    return _together(identities_of(command, files).code for command in commands)


def plans_of(commands: Sequence[str], files: Files = ()) -> str:
    """The revision of what these trials do."""
    return _together(identities_of(command, files).plans for command in commands)


def _together(hashes: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(hashes).encode()).hexdigest()


@contextlib.contextmanager
def with_files(files: Files) -> Iterator[Path]:
    """A folder with the files of a page, in which their commands run."""
    with tempfile.TemporaryDirectory() as folder:
        for name, content in files:
            (Path(folder) / name).write_text(content, encoding="utf-8")
        with contextlib.chdir(folder):
            yield Path(folder)


def stored_now(
    commands: Sequence[str], lines: Sequence[str], numbers: Mapping[str, str], files: Files = ()
) -> Stored:
    """What commands gave just now."""
    own = tuple(commands)
    plans = plans_of(own, files)
    return Stored(own, identity_of(own, files), revision(), tuple(lines), dict(numbers), plans)
