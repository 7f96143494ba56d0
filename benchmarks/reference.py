"""The reference pages that are made from the code: `python -m benchmarks.reference`.

docs/reference/command-line.md comes from the command line's parsers, trial-directory.md from
testbed/store/, and metrics.md from the columns' definitions. `tests/unit/test_reference.py` fails
when they are not as the code is.
"""

from __future__ import annotations

import argparse
import ast
import dataclasses
import inspect
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from analysis.captures.flow_tables import FLOW_COLUMNS, Metric
from analysis.metrics.columns import ALL_METRICS
from analysis.metrics.links import LINK_COLUMNS
from analysis.transfers.transfer_rows import TRANSFER_COLUMNS
from benchmarks.harness import markdown_lines
from testbed.cli.parser import VERBS, build_parser
from testbed.store import names, records

REFERENCE_FOLDER = Path(__file__).resolve().parents[1] / "docs" / "reference"
MADE = "<!-- made by `python -m benchmarks.reference`: change the code instead -->"
RECORD_TYPES = (
    (records.Record, "`trial.json`"),
    (records.FlowRecord, "`trial.json`, in `flows`"),
    (records.QueueRecord, "`trial.json`, in `queues`"),
    (records.CaptureRecord, "`trial.json`, in `captures`"),
    (records.FileRecord, "`trial.json`, in `files`, by path"),
    (records.ProgramRecord, "`flows/FLOW.programs.json`, by `client` and `server`"),
)
METRIC_TABLES: tuple[tuple[str, str, Sequence[Metric]], ...] = (
    ("`metrics.csv`", "A row for each flow and trial.", ALL_METRICS),
    ("`links.csv`", "A row for each observed link and trial.", LINK_COLUMNS),
    ("`transfers.csv`", "A row for each transfer of a workload.", TRANSFER_COLUMNS),
    ("`testbed reduce`", "A row for each flow of any capture.", FLOW_COLUMNS),
)


def command_line() -> str:
    """Return the page of all verbs with their options."""
    parser = build_parser()
    (subparsers,) = (a for a in parser._actions if isinstance(a, argparse._SubParsersAction))
    lines = [MADE, "", "# The command line", ""]
    lines += ["`testbed VERB --help` prints the same on the terminal.", ""]
    lines += table("verb", ((f"[`{v.name}`](#{v.name})", v.about) for v in VERBS))
    for verb in VERBS:
        lines += ["", f"## {verb.name}", "", _sentence(verb.about), ""]
        rows = [
            (_usage(action), (action.help or "").replace("%%", "%"))
            for action in subparsers.choices[verb.name]._actions
            if not isinstance(action, argparse._HelpAction)
        ]
        if rows:
            lines += [*table("argument", rows), ""]
        lines += [f"    testbed {verb.example}"]
    return "\n".join([*lines, ""])


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}{'' if text.endswith('?') else '.'}"


def _usage(action: argparse.Action) -> str:
    """Return an argument as it is typed: `--seeds N`."""
    if action.metavar is not None:
        value = str(action.metavar)
    elif action.choices:
        value = "|".join(map(str, action.choices))
    else:
        value = action.dest if not action.option_strings else action.dest.upper()
    if not action.option_strings:
        return f"`{value}`"
    takes_value = action.nargs != 0
    return f"`{action.option_strings[-1]}{f' {value}' if takes_value else ''}`"


def trial_directory() -> str:
    """Return the page of a trial's and a results folder's files."""
    lines = [MADE, "", "# A trial's directory", ""]
    lines += [
        "A trial is written under a name that begins with a dot, and renamed when it is complete:",
        "a directory that exists is whole. A file exists only if the trial has what it holds.",
        "Captures may end in `.zst` (`--captures zstd`) or be dropped (`--captures drop`).",
        "",
        *table(
            "file", ((f"`{name}`", description) for name, description in names.TRIAL_FILES.items())
        ),
    ]
    tables = sorted(
        (value for value in vars(names).values() if isinstance(value, names.Table)),
        key=lambda each: list(names.TRIAL_FILES).index(each.file),
    )
    lines += ["", "## Columns of the samples", ""]
    lines += ["Times are seconds of the trial's clock.", ""]
    columns = ((f"`{t.file}`", ", ".join(f"`{c}`" for c in t.columns)) for t in tables)
    lines += table("file", columns, "columns")
    for kind, where in RECORD_TYPES:
        lines += ["", f"## {where}", "", " ".join((inspect.getdoc(kind) or "").split()), ""]
        lines += table("field", ((f"`{name}`", text) for name, text in field_docs(kind).items()))
    lines += ["", "# A results folder", ""]
    lines += table(
        "name", ((f"`{name}`", description) for name, description in names.RESULTS_FILES.items())
    )
    return "\n".join([*lines, ""])


def field_docs(kind: type[Any]) -> Mapping[str, str]:
    """Return the sentence below each field of a dataclass."""
    (body,) = ast.parse(inspect.getsource(kind)).body
    assert isinstance(body, ast.ClassDef)
    docs = {}
    for field, sentence in zip(body.body, body.body[1:], strict=False):
        match field, sentence:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(
                value=ast.Constant(value=str(text))
            ):
                docs[name] = " ".join(text.split())
    missing = {f.name for f in dataclasses.fields(kind)} - docs.keys()
    assert not missing, f"{kind.__name__}: no sentence below {missing}"
    return docs


def metrics() -> str:
    """Return the page of all columns with numbers that are reduced from captures."""
    lines = [MADE, "", "# Metrics", ""]
    for title, description, columns in METRIC_TABLES:
        lines += [f"## {title}", "", description, ""]
        rows = (
            (f"`{each.name}`", each.definition + (f" ({each.unit})" if each.unit else ""))
            for each in columns
        )
        lines += [*table("column", rows), ""]
    return "\n".join(lines)


def table(first: str, rows: Iterable[tuple[str, str]], second: str = "what it is") -> list[str]:
    """Return the lines of a Markdown table with two columns."""
    escaped = ([cell.replace("|", "\\|") for cell in row] for row in rows)
    return markdown_lines((first, second), escaped)


PAGES = {
    "command-line.md": command_line,
    "trial-directory.md": trial_directory,
    "metrics.md": metrics,
}


def main() -> None:
    """Write the pages."""
    REFERENCE_FOLDER.mkdir(exist_ok=True)
    for name, page in PAGES.items():
        (REFERENCE_FOLDER / name).write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
