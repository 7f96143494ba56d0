"""Numbers in pages: made by commands, stored beside the pages, and checked by a test.

A mark in a page (README.md, docs/, experiments/) names the commands whose results stand below it:

    <!-- run: testbed run … -->             the table that the command prints
    <!-- summary: testbed run … -->         the experiment's own table, as Markdown
    <!-- layers: testbed run … -->          what two layers say of the same, a line per trial
    <!-- radio: testbed run … -->           what the radio's medium counted, a line per trial
    <!-- sheet: TITLE by run …; run … -->   a table of the runs' report, by its title
    <!-- answers: GYS by run …; run … -->   a paper's claims and their answers, from these runs
    <!-- answers: PMW1 KS2 by run … -->     only these claims: PMW1, KS2.1 to KS2.5

down to `<!-- end -->`; what a command prints ends at an empty line or its first figure. Within a
sentence, `<!-- GYS3.1 | TRIALS | WHAT -->37.5 %<!-- / -->` is one number of such an answer. A
file that a command names is the first indented block after its name in backticks on the same page.

    python -m benchmarks.papers [PAGE …]         run the commands, store the results, fill the pages
    python -m benchmarks.papers --stale          the same for tables that this code might change
    python -m benchmarks.papers --fill           only fill the pages with what is stored

What the commands gave is stored in `answers.json` beside a paper's page, and in docs/answers.json
for all other pages, with a revision: a hash of what they run and of how it is reduced. Beside it is
the behaviour of the code that ran them (`testbed/runs/behaviour.py`). A table is stale if its
revision is another today, or if the code's behaviour is, and a recipe that its trials are like
moved. `tests/unit/test_pages.py` fails then, unless the ledger says why stale tables stay for now.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import functools
import hashlib
import itertools
import json
import re
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from analysis.figures.general.presentation import of_results, summaries, tables
from analysis.report.verdict_tables import side_by_side
from analysis.results import reduction
from analysis.results.reduction import reduction_of
from analysis.statistics.text_tables import as_markdown
from benchmarks.claim_answers import CLAIMS, ClaimAnswer, answer_lines, claim_answer, verdict_of
from benchmarks.harness import markdown_lines
from benchmarks.recipes import captures_hash, features, is_touched
from experiments.catalogue import EXPERIMENTS
from testbed.cli.evaluate import evaluation_of, seeds_of
from testbed.cli.parser import build_parser
from testbed.cli.run import selected
from testbed.errors import TestbedError
from testbed.machine.json_files import read_record
from testbed.machine.safe_files import make_folder
from testbed.plan.plan import make_plan
from testbed.runs.behaviour import ledger
from testbed.runs.estimate import guest_seconds
from testbed.runs.identity import kernel_of_ours, plan_values
from testbed.runs.sources import parts_of
from testbed.scenario.model import Scenario
from testbed.store.names import EVALUATION_JSON, RADIO_FILE, RECORD, REPORT, trial_folder
from testbed.store.reading import Trial, trials_in
from testbed.store.records import Record, Status

PROJECT_ROOT = Path(__file__).resolve().parents[1]
STORED = "answers.json"
ORACLE_NAME = "ns2"  # beside a paper's page: the results of the simulator that its claims are about
MARK = re.compile(
    r"<!-- (?P<kind>run|summary|layers|radio|evaluation): testbed (?P<commands>.+) -->"
    r"|<!-- (?P<kind2>answers|sheet): (?P<title>.+) by (?P<commands2>run .*) -->"
)
END_MARK = "<!-- end -->"
PAST_PRINTED = re.compile(r"\s*(figure:.*)?")  # an empty line, or a figure's
NUMBER = re.compile(r"(?P<mark><!-- (?P<key>[A-Z]+\d[^>]*\S) -->)[^<]*(?P<end><!-- / -->)")
INDENT = "    "
HOW_TO_MAKE = "run .venv/bin/python -m benchmarks.papers"
HOW_TO_CERTIFY = "run .venv/bin/python -m benchmarks.same_packets --certify"
CAPTURE_DIGITS = 8  # of a trial's hash
UNKNOWN_CAPTURES = "." * CAPTURE_DIGITS
PROGRESS_LINE = re.compile(r"engine: |\[\d+/\d+\] |.*: warning: ")
COMPARED_LAYERS = {  # by their headings: checks of a trial with one TCP flow, and their subjects
    "variant: congestion control requested = in use": ("variant", "tcp"),
    "queue: in = out, dropped, inside": ("conservation, packets", "router-eth0"),
    "sent, by the queue's counter = captured": ("queue counters, packets", "router-eth0"),
    "retransmitted: TCP_INFO = captured": ("retransmissions, segments", "tcp"),
    "iperf3 = captured": ("retransmissions, segments", "tcp iperf3"),
    "the host's counter = captured": ("retransmissions, segments", "sender1"),
    "goodput, Mbit/s: iperf3 = captured": ("goodput, Mbit/s", "tcp"),
    "srtt, ms: TCP_INFO ≈ captured": ("RTT, ms", "tcp"),
}

PLAN_HEADS = ("claim", "trials", "answer", "planned", "networks", "needed")
RADIO_HEADINGS = (
    *("signal", "others' share", "goodput, Mbit/s"),
    *("frames lost for good", "failed attempts"),
)

PageFiles = tuple[tuple[str, str], ...]  # names and contents


@dataclass(frozen=True)
class StoredTable:
    """What commands gave, the revision of what they run, and the behaviour of the code."""

    commands: tuple[str, ...]
    revision: str
    behaviour: str
    lines: tuple[str, ...] = ()  # as they stand in a page
    answers: tuple[ClaimAnswer, ...] = ()
    captures: str = ""  # the first digits of each trial's hash, dots where it is not known

    def in_page(self) -> list[str]:
        """Return the lines between the marks of a page."""
        return answer_lines(self.answers) if self.answers else list(self.lines)


STORED_TABLES = TypeAdapter(dict[str, StoredTable])


@dataclass(frozen=True)
class MarkedTable:
    """A marked table of a page: what makes it, and where its lines are."""

    name: str
    kind: str  # the mark's first word
    title: str  # the paper or its claims, or the table of a report
    commands: tuple[str, ...]
    page: Path
    begin: int
    end: int
    files: PageFiles = ()

    def revision(self) -> str:
        """Return the revision of what the commands would run now."""
        parts = (
            *(what_runs(command, self.files).revision for command in self.commands),
            reduction.revision_of_tables(),
        )
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]

    def is_stale(self) -> bool:
        """Return whether this code might give something else than what is stored."""
        stored = stored_tables(store_of(self.page)).get(self.name)
        if not stored or stored.commands != self.commands or stored.revision != self.revision():
            return True
        made = (what_runs(command, self.files) for command in self.commands)
        return any(
            is_moved(stored.behaviour, setting) for each in made for setting in each.settings
        )


@dataclass(frozen=True)
class WhatRuns:
    """What a command runs: a hash of its trials' values, and what could move their packets."""

    revision: str
    settings: frozenset[TrialSetting]


@dataclass(frozen=True)
class TrialSetting:
    """Trials that a change of the code moves alike."""

    parts: frozenset[tuple[str, str]]  # of our code, with their states
    features: frozenset[str]


def is_moved(since: str, setting: TrialSetting) -> bool:
    """Return whether trials may have other packets than when the code had that behaviour."""
    known, parts = ledger(), dict(setting.parts)
    then, now = known.behaviours.get(since), known.behaviours.get(known.id_of(parts))
    if then and then.has(parts):
        return False
    return not then or not now or is_touched(setting.features, then, now)


# ---------------------------------------------------------------- pages


def pages(root: Path = PROJECT_ROOT) -> list[Path]:
    """Return every page that may have marks."""
    files = (page for folder in ("docs", "experiments") for page in (root / folder).rglob("*.md"))
    return [root / "README.md", *sorted(files)]


def all_tables(paths: Iterable[Path]) -> list[MarkedTable]:
    """Return the marked tables of pages, each once."""
    by_name = {(store_of(each.page), each.name): each for path in paths for each in marked(path)}
    return list(by_name.values())


def marked(page: Path) -> list[MarkedTable]:
    """Return the marked tables of a page."""
    lines, pages_tables = page.read_text(encoding="utf-8").splitlines(), []
    for number, line in enumerate(lines):
        if not (mark := MARK.fullmatch(line)):
            continue
        kind, title = mark["kind"] or mark["kind2"], mark["title"] or ""
        begin, end = _extent(lines, number + 1, kind)
        commands = tuple(c.strip() for c in (mark["commands"] or mark["commands2"]).split(";"))
        files = tuple(_files(lines, commands))
        name = title if kind == "answers" else f"{kind}: {title or commands[0]}"
        pages_tables.append(MarkedTable(name, kind, title, commands, page, begin, end, files))
    return pages_tables


def _extent(lines: Sequence[str], after: int, kind: str) -> tuple[int, int]:
    """Return the first line of a marked table, and the one past its last."""
    begin = next((n for n in range(after, len(lines)) if lines[n].strip()), after)
    past = PAST_PRINTED if kind == "run" else re.compile(rf"{END_MARK}")
    end = next((n for n in range(begin, len(lines)) if past.fullmatch(lines[n])), len(lines))
    if kind != "run":
        while end > begin and not lines[end - 1].strip():
            end -= 1
    return begin, end


def _files(lines: Sequence[str], commands: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the files that the commands name, with the blocks of the page that hold them."""
    for word in dict.fromkeys(word for command in commands for word in shlex.split(command)):
        name = Path(word).name
        if name.endswith((".json", ".py")):
            named = next((n for n, line in enumerate(lines) if f"`{name}`" in line), len(lines))
            first = next((n for n in range(named, len(lines)) if lines[n][:4] == INDENT), named)
            rest = range(first, len(lines))
            past = next((n for n in rest if lines[n] and lines[n][:4] != INDENT), len(lines))
            yield name, "\n".join(line[4:] for line in lines[first:past]) + "\n"


def filled(page: Path) -> str:
    """Return a page's text with every marked table and number as it is stored."""
    lines = page.read_text(encoding="utf-8").splitlines()
    store = store_of(page)
    tables = stored_tables(store)
    for each in reversed(marked(page)):
        if each.name not in tables:
            raise TestbedError(f"{store}: no {each.name!r}", HOW_TO_MAKE)
        lines[each.begin : each.end] = tables[each.name].in_page()
    numbers = {
        f"{answer.id} | {answer.trials} | {what}": number
        for table in tables.values()
        for answer in table.answers
        for what, number in answer.numbers.items()
    }

    def numbered(mark: re.Match[str]) -> str:
        if mark["key"] not in numbers:
            near = [key for key in numbers if key.startswith(mark["key"].split(" | ")[0])]
            raise TestbedError(f"{store} has no number {mark['key']!r}", f"there is {near[:40]}")
        return f"{mark['mark']}{numbers[mark['key']]}{mark['end']}"

    return NUMBER.sub(numbered, "\n".join(lines) + "\n")


# ---------------------------------------------------------------- what is stored


def store_of(page: Path) -> Path:
    """Return the file where a page's tables are stored."""
    for folder in page.parents:
        if folder.parent.name == "experiments":
            return folder / STORED
    root = next(f for f in (page.parent, *page.parents) if (f / "docs").is_dir())
    return root / "docs" / STORED


def stored_tables(path: Path) -> dict[str, StoredTable]:
    """Read the stored tables by name."""
    return STORED_TABLES.validate_json(path.read_bytes()) if path.is_file() else {}


def store(path: Path, tables: Mapping[str, StoredTable]) -> None:
    """Write the stored tables of a file."""
    data = {
        name: {key: value for key, value in asdict(table).items() if value}
        for name, table in sorted(tables.items())
    }
    text = json.dumps(data, indent=1, ensure_ascii=False)
    path.write_text(text + "\n", encoding="utf-8")


@functools.cache
def what_runs(command: str, files: PageFiles) -> WhatRuns:
    """Return what a command runs.

    Trials that differ in their seeds alone are planned once: the same code draws from all seeds,
    and the command says how many there are.
    """
    with with_files(files):
        scenarios = scenarios_of(command)
    revision, settings = hashlib.sha256(command.encode()), dict[str, TrialSetting]()
    for scenario in scenarios:
        alike = dataclasses.replace(scenario, seed=0)
        if repr(alike) not in settings:
            plan = make_plan(scenario)
            values = {"scenario": alike.to_json(), "plan": plan_values(plan)}
            revision.update(json.dumps(values, sort_keys=True).encode())
            parts = parts_of(plan, kernel_of_ours(scenario))
            settings[repr(alike)] = TrialSetting(frozenset(parts.items()), features(scenario))
    return WhatRuns(revision.hexdigest(), frozenset(settings.values()))


def scenarios_of(command: str) -> list[Scenario]:
    """Return the trials that a command runs."""
    parser = build_parser()
    parser.set_defaults(experiments=EXPERIMENTS)
    options = parser.parse_args(shlex.split(command))
    if options.verb == "run":
        return selected(options).scenarios(options.seeds)
    evaluation, seeds = evaluation_of(options), seeds_of(options)
    return [
        scenario
        for each in evaluation.experiments(EXPERIMENTS.values())
        for scenario in evaluation.selection(each, quick=options.quick).scenarios(seeds)
    ]


@contextlib.contextmanager
def with_files(files: PageFiles) -> Iterator[Path]:
    """Change to a folder with the files of a page."""
    if not files:
        yield PROJECT_ROOT
        return
    with tempfile.TemporaryDirectory() as folder:
        for name, content in files:
            (Path(folder) / name).write_text(content, encoding="utf-8")
        with contextlib.chdir(folder):
            yield Path(folder)


# ---------------------------------------------------------------- making them


def main() -> None:
    """Run the commands of pages, store what they give, and fill the pages."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--stale", action="store_true", help="only tables that are stale")
    parser.add_argument("--fill", action="store_true", help="only fill the pages")
    parser.add_argument(
        "--plan", action="store_true", help="only print the networks that claims need, and hours"
    )
    parser.add_argument("--results", type=Path, metavar="DIR", help="keep the trials there")
    parser.add_argument("pages", nargs="*", type=Path, help="only these pages (all)")
    options = parser.parse_args()
    chosen = [path.resolve() for path in options.pages] or pages()
    if options.plan:
        print("\n".join(plan_lines(all_tables(chosen))))
        return
    due = [] if options.fill else all_tables(chosen)
    if options.stale:
        due = [table for table in due if table.is_stale()]
    for commands in dict.fromkeys(table.commands for table in due):
        with _trials_folder(options.results) as name:  # shared by tables of the same commands
            folder = Path(name).absolute()
            for table in (each for each in due if each.commands == commands):
                begun = time.monotonic()
                path, made = store_of(table.page), MAKERS[table.kind](table, folder)
                made = dataclasses.replace(made, captures=captures_of(table, folder))
                store(path, {**stored_tables(path), table.name: made})
                print(f"{table.name}: {time.monotonic() - begun:.0f} s", flush=True)
    for path in chosen:
        if (text := filled(path)) != path.read_text(encoding="utf-8"):
            path.write_text(text, encoding="utf-8")
            print(f"{path.relative_to(PROJECT_ROOT)}: other numbers")


def plan_lines(tables: Iterable[MarkedTable]) -> Iterator[str]:
    """Yield what each claim states, and has, and what power 0.9 takes, with the hours of both.

    The networks that a claim needs follow from the spread of those that it has: the first trials
    of an experiment are its pilot. Tables may share trials: the last line counts each once.
    """
    whole: dict[str, float] = {}
    for table in tables:
        stored = stored_tables(store_of(table.page)).get(table.name)
        if not stored or not stored.answers:
            continue
        trials = {trial_folder(each, "guest"): each for each in trials_of(table)}
        costs = {name: guest_seconds(make_plan(each), each) for name, each in trials.items()}
        whole |= costs
        hours = sum(costs.values()) / 3600
        rows = [
            (
                *(each.id, each.trials, verdict_of(each.answer)),
                *(str(CLAIMS[each.id].networks), str(each.n), str(each.needed or "–")),
            )
            for each in stored.answers
        ]
        networks = len({each.seed for each in trials.values()})
        most = max((each.needed for each in stored.answers), default=0)
        yield from markdown_lines(PLAN_HEADS, rows)
        ran = f"{len(trials)} trials of {networks} networks, {hours:.2g} core hours"
        more = f"{hours * most / networks:.2g} for the {most} that the most demanding claim needs"
        yield f"{table.title}: {ran}; {more}"
    yield f"all: {len(whole)} trials, {sum(whole.values()) / 3600:.2g} core hours"


def _trials_folder(results: Path | None) -> contextlib.AbstractContextManager[Path | str]:
    return contextlib.nullcontext(results) if results else tempfile.TemporaryDirectory()


def _made(table: MarkedTable, lines: Sequence[str]) -> StoredTable:
    """Return a table that this code made, whose behaviour has to be known."""
    code = [dict(s.parts) for c in table.commands for s in what_runs(c, table.files).settings]
    behaviours = ledger().behaviours.items()
    known = [name for name, each in behaviours if all(map(each.has, code))]
    if not known:
        raise TestbedError("this code's behaviour is not known", HOW_TO_CERTIFY)
    return StoredTable(table.commands, table.revision(), known[-1], tuple(lines))


def trials_of(table: MarkedTable) -> list[Scenario]:
    """Return all trials of a table's commands, in their order."""
    with with_files(table.files):
        return [scenario for command in table.commands for scenario in scenarios_of(command)]


def captures_of(table: MarkedTable, folder: Path) -> str:
    """Return the first digits of the hash of each trial's captures."""
    folders = {path.parent.name: path.parent for path in folder.rglob(RECORD)}
    names = [trial_folder(each, "guest") for each in trials_of(table)]
    return "".join(
        captures_hash(Record.from_json(read_record(folders[name] / RECORD)))[:CAPTURE_DIGITS]
        if name in folders
        else UNKNOWN_CAPTURES
        for name in names
    )


def _summary(table: MarkedTable, out: Path) -> StoredTable:
    """Make the experiment's own table."""
    _testbed(table.commands[0], out)
    folder = _folder(table.commands[0], out)
    (summary,) = summaries(of_results(folder, folder.name, EXPERIMENTS))
    return _made(table, [line for line in as_markdown(summary).splitlines() if line[:1] == "|"])


def _sheet(table: MarkedTable, out: Path) -> StoredTable:
    """Make a table of the report."""
    for command in table.commands:
        _testbed(command, out)
    folders = dict.fromkeys(_folder(command, out) for command in table.commands)
    rows = (each for folder in folders for each in of_results(folder, folder.name, EXPERIMENTS))
    made = dict(itertools.chain.from_iterable(map(tables, rows)))
    if table.title not in made:
        raise SystemExit(f"{table.page}: no table {table.title!r}; there are {list(made)}")
    return _made(table, as_markdown(made[table.title].as_text()).splitlines())


def _evaluation(table: MarkedTable, out: Path) -> StoredTable:
    """Run an evaluation, and make a line per score of its page."""
    page = out / "evaluation" / REPORT
    make_folder(page.parent)
    argv = shlex.split(table.commands[0])
    _run([*argv, "--engine", "guest", "--captures", "drop", "--out", str(page)], page.parent)
    rows = json.loads(page.with_name(EVALUATION_JSON).read_text(encoding="utf-8"))["table"]
    return _made(table, markdown_lines(tuple(rows[0]), (tuple(row.values()) for row in rows)))


def _radio(table: MarkedTable, out: Path) -> StoredTable:
    """Make a line per trial: what one flow gets over the radio, and what became of the frames."""
    return _made(table, markdown_lines(RADIO_HEADINGS, map(_radio_row, _run_trials(table, out))))


def _radio_row(trial: Trial) -> tuple[str, ...]:
    medium: dict[str, Any] = json.loads((trial.path / RADIO_FILE).read_text(encoding="utf-8"))
    point = medium["radios"][0]
    return (
        f"{medium['signal_dbm']:g} dBm",
        f"{medium['busy']:g}",
        f"{reduction_of(trial).flows['goodput_mbps'].iloc[0]:.1f}",
        f"{100 * point['lost'] / point['frames']:.2g} %",
        f"{100 * point['failed'] / point['attempts']:.0f} %",
    )


def _layers(table: MarkedTable, out: Path) -> StoredTable:
    """Make a line per trial: what two layers say of the same."""
    rows = []
    for trial in _run_trials(table, out):
        checks = {row[:2]: row[2] for row in side_by_side([trial]).rows}
        first, *rest = (checks[key] for key in COMPARED_LAYERS.values())
        rows.append((f"{trial.scenario.flows[0].variant}: {first}", *rest))
    return _made(table, markdown_lines(tuple(COMPARED_LAYERS), rows))


def _run_trials(table: MarkedTable, out: Path) -> list[Trial]:
    """Run a table's only command, and return its trials in their order."""
    with with_files(table.files) as folder:
        _testbed(table.commands[0], out, folder)
    trials = {each.path.name: each for each in trials_in(_folder(table.commands[0], out))}
    return [trials[trial_folder(each, "guest")] for each in trials_of(table)]


def _printed(table: MarkedTable, out: Path) -> StoredTable:
    """Take the table that a command prints."""
    with with_files(table.files) as folder:
        lines = _testbed(table.commands[0], out, folder).splitlines()
    if "--format" in shlex.split(table.commands[0]):  # nothing else is on stdout
        return _made(table, lines[: lines.index("")])
    shown = [line.rstrip() for line in lines if not PROGRESS_LINE.match(line)]
    end = next(n for n, line in enumerate(shown) if not line or line.startswith("figure:"))
    return _made(table, [f"{INDENT}{line}" for line in shown[:end]])


def _answers(table: MarkedTable, out: Path) -> StoredTable:
    """Take the answers of a paper, or of some of its claims, from a report of all runs."""
    rows = _claims(table.commands, out, store_of(table.page).with_name(ORACLE_NAME))
    of_table = [each for each in rows if is_about(table, each["id"])]
    answers = tuple(map(claim_answer, of_table))
    return dataclasses.replace(_made(table, ()), answers=answers)


def is_about(table: MarkedTable, claim: str) -> bool:
    """Return whether a table's title names a claim, what of its paper it is about, or the paper."""
    names = {claim, claim.partition(".")[0], claim.rstrip("0123456789.")}
    return not names.isdisjoint(table.title.split())


@functools.cache  # tables of different claims may have the same runs
def _claims(commands: tuple[str, ...], out: Path, oracle: Path) -> list[dict[str, Any]]:
    """Run the commands, report on their results, and return the answers to all papers' claims.

    An invalid trial ends a run with an error, too; an answer leaves it out, and says so.
    """
    for command in commands:
        try:
            _testbed(command, out)
        except SystemExit:
            trials = trials_in(_folder(command, out))
            ran = {each.path.name for each in trials if each.record.status is Status.OK}
            if not ran.issuperset(trial_folder(each, "guest") for each in scenarios_of(command)):
                raise
    page = out / "report.html"
    folders = dict.fromkeys(_folder(command, out) for command in commands)
    reference = ["--reference", str(oracle)] if oracle.is_dir() else []
    _run(["report", *map(str, folders), "--claims", *reference, "--out", str(page)])
    claims: list[dict[str, Any]] = json.loads(
        page.with_name(f"{page.stem}-claims.json").read_text()
    )
    return claims


MAKERS = {
    "answers": _answers,
    "evaluation": _evaluation,
    "layers": _layers,
    "radio": _radio,
    "run": _printed,
    "sheet": _sheet,
    "summary": _summary,
}


def _folder(command: str, out: Path) -> Path:
    return out / Path(shlex.split(command)[1]).stem


def _testbed(command: str, out: Path, place: Path = PROJECT_ROOT) -> str:
    more = ["--engine", "guest", "--captures", "zstd", "--out", str(_folder(command, out))]
    return _run([*shlex.split(command), *more], place)


def _run(arguments: Sequence[str], place: Path = PROJECT_ROOT) -> str:
    argv = [str(Path(sys.executable).with_name("testbed")), *arguments]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, cwd=place)
    if done.returncode:
        raise SystemExit(f"{shlex.join(argv)}: {done.stderr or done.stdout}")
    return done.stdout


if __name__ == "__main__":
    main()
