"""The stored numbers of the pages, made again: `python -m benchmarks.papers [PAGE …] [--stale]`.

Runs the commands that stand in the marks of README.md and docs/**/*.md (`benchmarks/pages.py`),
in the guest, stores what they give in docs/data/ with the revisions that made it, and puts it in
the pages. With --stale only those that this code would make otherwise; with --results DIR trials
are kept there, one folder per experiment: an interrupted run goes on, and figures can be drawn.
Tables of the same commands are made from the same trials. For a paper's answers, a command whose
trials are there, and by their numbers are those of a stored table of this code, does not run.

With --again N no table is made: where the trials are planned as before, but programs or kernels
that they run on have changed, or what is measured, N of a table's trials are run and compared with
the stored hashes of their packets and numbers. If all are the same, the stored table is of this
code, and says how that is known.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import json
import re
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from analysis.figures.figure_catalogue import of_results, summaries, tables
from analysis.figures.plotting.sheet import Sheet
from analysis.report.verdict_tables import side_by_side
from analysis.results.reduction import reduction_of
from analysis.statistics.text_tables import TextTable, as_markdown
from benchmarks import packets
from benchmarks.pages import (
    DATA,
    ROOT,
    Block,
    Files,
    Stored,
    blocks,
    filled,
    pages,
    scenarios_of,
    store,
    stored,
    stored_now,
    with_files,
)
from testbed.errors import TestbedError
from testbed.store import RADIO, Trial, trial_folder, trials_in

Answers = Sequence[Mapping[str, Any]]
LAYERS = {  # by their headings: checks of a trial with one TCP flow, and what they are of
    "variant: congestion control requested = in use": ("variant", "tcp"),
    "queue: in = out, dropped, inside": ("conservation, packets", "router-eth0"),
    "sent, by the queue's counter = captured": ("queue counters, packets", "router-eth0"),
    "retransmitted: TCP_INFO = captured": ("retransmissions, segments", "tcp"),
    "iperf3 = captured": ("retransmissions, segments", "tcp iperf3"),
    "the host's counter = captured": ("retransmissions, segments", "sender1"),
    "goodput, Mbit/s: iperf3 = captured": ("goodput, Mbit/s", "tcp"),
    "srtt, ms: TCP_INFO ≈ captured": ("RTT, ms", "tcp"),
}
PROGRESS = re.compile(r"engine: |\[\d+/\d+\] |.*: warning: ")


def main() -> None:
    """Run, store, and fill the pages."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--stale", action="store_true", help="only what has changed")
    parser.add_argument("--results", type=Path, metavar="DIR", help="keep the trials there")
    parser.add_argument("--again", type=int, metavar="N", help="only compare N trials per table")
    parser.add_argument("pages", nargs="*", type=Path, help="only these pages (all)")
    options = parser.parse_args()
    own = [path.resolve() for path in options.pages] or pages()
    wanted = {block.name: block for path in own for block in blocks(path.read_text())}
    only_stale = options.stale or options.again
    due = [block for block in wanted.values() if not only_stale or _is_stale(block)]
    if options.again:
        sys.exit(packets.compare(due, options.again))
    for commands in dict.fromkeys(block.commands for block in due):
        with _place(options.results) as folder:
            for block in (each for each in due if each.commands == commands):
                begun = time.monotonic()
                store(block.name, _made(block, folder))
                print(f"{block.name}: {time.monotonic() - begun:.0f} s", flush=True)
            files = next(each.files for each in due if each.commands == commands)
            _keep_packets(commands, files, Path(folder))
    for path in own:
        text = path.read_text()
        if (new := filled(text)) != text:
            path.write_text(new)
            print(f"{path.relative_to(ROOT)}: other numbers")


def _is_stale(block: Block) -> bool:
    try:
        found = stored(block.name)
    except TestbedError:
        return True
    return found.commands != block.commands or bool(found.stale(block.files))


def _keep_packets(commands: Sequence[str], files: Files, out: Path) -> None:
    """The hashes of the packets of all trials of these commands."""
    for command in commands:
        folder = _folder(command, out)
        with with_files(files):
            names = {scenario.name for scenario in scenarios_of(command)}
        found = [trial for trial in trials_in(folder) if trial.scenario.name in names]
        packets.keep(command, found, ROOT / DATA)


def _place(results: Path | None) -> contextlib.AbstractContextManager[Path | str]:
    """A folder for the trials, which go with it unless the user named it."""
    return contextlib.nullcontext(results) if results else tempfile.TemporaryDirectory()


def _made(block: Block, out: Path | str) -> Stored:
    make = {
        "answers": _answers_of,
        "layers": _layers_of,
        "radio": _radio_of,
        "sheet": _sheet_of,
        "summary": _summary_of,
    }
    return make.get(block.kind, _table_of)(block, out)


def _summary_of(block: Block, out: Path | str) -> Stored:
    """The experiment's own table, and its note."""
    _testbed(block.commands[0], Path(out).absolute())
    folder = _folder(block.commands[0], Path(out))
    (table,) = summaries(of_results(folder, folder.name))
    lines = as_markdown(table).splitlines()
    return stored_now(block.commands, [line for line in lines if line.startswith("|")], {})


def _sheet_of(block: Block, out: Path | str) -> Stored:
    """A table of the report."""
    for command in block.commands:
        _testbed(command, Path(out).absolute())
    folder = _folder(block.commands[0], Path(out))
    (results,) = of_results(folder, folder.name)
    made = dict(tables(results))
    if block.title not in made:
        raise SystemExit(f"{folder}: no table {block.title!r}; there are {list(made)}")
    return stored_now(block.commands, sheet_lines(made[block.title]), {})


def sheet_lines(sheet: Sheet) -> list[str]:
    """The table as a page has it."""
    header = tuple(f"{head.words}, {head.unit}".removesuffix(", ") for head in sheet.heads)
    rows = tuple(tuple(cell.words for cell in row) for row in sheet.rows)
    return as_markdown(TextTable(header, rows, "")).splitlines()


def _radio_of(block: Block, out: Path | str) -> Stored:
    """What one flow gets over the radio of each trial, and what the air did with its frames."""
    with with_files(block.files) as folder:
        _testbed(block.commands[0], Path(out).absolute(), folder)
        order = [trial_folder(each, "guest") for each in scenarios_of(block.commands[0])]
    trials = {each.path.name: each for each in trials_in(_folder(block.commands[0], Path(out)))}
    lines = [
        "| signal | others' share | goodput, Mbit/s | frames lost for good | failed attempts |",
        "|---|---|---|---|---|",
        *(_radio_line(trials[name]) for name in order),
    ]
    return stored_now(block.commands, lines, {}, block.files)


def _radio_line(trial: Trial) -> str:
    medium: dict[str, Any] = json.loads((trial.path / RADIO).read_text(encoding="utf-8"))
    point = medium["radios"][0]
    cells = (
        f"{medium['signal_dbm']:g} dBm",
        f"{medium['busy']:g}",
        f"{reduction_of(trial).flows['goodput_mbps'].iloc[0]:.1f}",
        f"{100 * point['lost'] / point['frames']:.2g} %",
        f"{100 * point['failed'] / point['attempts']:.0f} %",
    )
    return f"| {' | '.join(cells)} |"


def _layers_of(block: Block, out: Path | str) -> Stored:
    """What two layers say of the same, one line per trial."""
    _testbed(block.commands[0], Path(out).absolute())
    trials = {each.path.name: each for each in trials_in(_folder(block.commands[0], Path(out)))}
    folders = [trial_folder(each, "guest") for each in scenarios_of(block.commands[0])]
    lines = [f"| {' | '.join(LAYERS)} |", "|---" * len(LAYERS) + "|"]
    for name in folders:
        variant = trials[name].scenario.flows[0].variant
        told = {row[:2]: row[2] for row in side_by_side([trials[name]]).rows}
        lines.append(f"| {variant}: {' | '.join(told[key] for key in LAYERS.values())} |")
    return stored_now(block.commands, lines, {})


def _table_of(block: Block, out: Path | str) -> Stored:
    """The table that a command prints, as it stands in a page."""
    with with_files(block.files) as folder:
        lines = _testbed(block.commands[0], Path(out).absolute(), folder).splitlines()
    if "--format" in shlex.split(block.commands[0]):  # nothing else is on stdout
        return stored_now(block.commands, lines[: lines.index("")], {}, block.files)
    table = [line.rstrip() for line in lines if not PROGRESS.match(line)]
    end = next(n for n, line in enumerate(table) if not line or line.startswith("figure:"))
    shown = [f"    {line}" for line in table[:end]]
    return stored_now(block.commands, shown, {}, block.files)


def _answers_of(block: Block, out: Path | str) -> Stored:
    """Answers of a paper or of some of its claims, by the report of all that the commands run."""
    known = list[str]()
    for command in block.commands:
        again = packets.here(command, _folder(command, Path(out)))
        if again is None:
            _testbed(command, Path(out))
        else:
            known.append(again)
    page = Path(out) / f"{block.name}.html"
    folders = dict.fromkeys(_folder(command, Path(out)) for command in block.commands)
    _run(["report", *map(str, folders), "--claims", "--out", str(page)])
    found = json.loads(page.with_name(f"{page.stem}-claims.json").read_text())
    own = [each for each in found if {each["paper"], each["id"]} & set(block.title.split())]
    made = stored_now(block.commands, answer_lines(own), numbers_of(own))
    return dataclasses.replace(made, again="; ".join(dict.fromkeys(filter(None, known))))


def _folder(command: str, out: Path) -> Path:
    return out / Path(shlex.split(command)[1]).stem


def _testbed(command: str, out: Path, place: Path = ROOT) -> str:
    told = ["--engine", "guest", "--captures", "zstd", "--out", str(_folder(command, out))]
    return _run([*shlex.split(command), *told], place)


def _run(arguments: Sequence[str], place: Path = ROOT) -> str:
    argv = [str(Path(sys.executable).with_name("testbed")), *arguments]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, cwd=place)
    if done.returncode:
        raise SystemExit(f"{shlex.join(argv)}: {done.stderr or done.stdout}")
    return done.stdout


def answer_lines(answers: Answers) -> list[str]:
    """The ledger as a table of a page."""
    rows = [
        f"| {each['id']} | {each['claim']} | {_which(each)} | {_answer(each)} | "
        f"{each['statement']} | {each['n']} |".replace("\n", " ")
        for each in answers
    ]
    return ["| id | claim | trials | answer | numbers | n |", "|---|---|---|---|---|---|", *rows]


def numbers_of(answers: Answers) -> dict[str, str]:
    """Every number of the answers by its key: `GYS3.1 | bfifo, … | share of bbr`."""
    return {
        f"{each['id']} | {_which(each)} | {row['what']}": str(row["ours"])
        for each in answers
        for row in each["rows"]
    }


def _answer(answer: Mapping[str, Any]) -> str:
    survival = answer.get("survival", "")
    return f"{answer['verdict']}, {survival}" if survival else str(answer["verdict"])


def _which(answer: Mapping[str, Any]) -> str:
    told = (answer["profile"], answer["setting"], answer["reading"])
    return ", ".join(each for each in told if each)


if __name__ == "__main__":
    main()
