"""What is printed and exported is safe for who reads it: terminals, spreadsheets, Markdown."""

from __future__ import annotations

import csv
import html
import io
import json
import random
import re
from collections.abc import Callable

import pandas as pd
import pyarrow as pa
import pytest
from rich.table import Table

from analysis.captures.tables import csv_text, json_text
from analysis.report.page import fill
from analysis.report.page_plot import script_json
from analysis.statistics.text_tables import TextTable, as_csv, as_latex, as_markdown
from testbed.cli.programs import PrintableOutput
from testbed.errors import printable_lines
from testbed.runs.console import PrintableConsole
from testbed.store.writing import FORMULA_STARTS, spreadsheet_cell

ESCAPE = "\x1b]0;title\x07\x1b[2J"
CONTROLS = [chr(number) for number in (*range(32), *range(127, 160))]
HOSTILE = [
    *CONTROLS,
    *FORMULA_STARTS,
    *"|<>&\"'`\\,;$%#_{}~^",
    "\u202e",
    "\u2028",
    "\ud800",
    "x",
    "é",
]


def fuzzed(count: int = 300) -> list[str]:
    """Names by chance, the same each time."""
    chance = random.Random(count)
    return ["".join(chance.choices(HOSTILE, k=chance.randint(1, 9))) for _ in range(count)]


def printed(*things: object) -> str:
    """What a console writes on a terminal without colours."""
    file = io.StringIO()
    console = PrintableConsole(file=file, force_terminal=True, width=500, no_color=True)
    console.print(*things, soft_wrap=True, markup=False, highlight=False, emoji=False)
    return file.getvalue()


def is_inert(text: str) -> bool:
    return not any(each in text for each in (*set(CONTROLS) - {"\n"}, "\u202e", "\u2028", "\ud800"))


@pytest.mark.parametrize("text", [ESCAPE, "\x9b2J", "a\rb", "a\x08b", "a\u202eb"])
def test_the_console_obeys_no_text(text: str) -> None:
    """As a string, as an object, and in a table, which other code prints as pieces."""
    table = Table(text, box=None, header_style="")
    table.add_row(text)
    for thing in (text, Exception(text), table):
        assert is_inert(printed(thing)), printed(thing)
    assert "title" in printed(ESCAPE)


def test_fuzzed_names_on_the_console_and_in_lines() -> None:
    for name in fuzzed():
        assert is_inert(printed(f"see {name}"))
        assert is_inert(printable_lines(name).replace("\t", ""))


@pytest.mark.parametrize("size", [1, 2, 3, 1000])
def test_a_programs_output_commands_no_terminal(size: int) -> None:
    """In pieces, which end within characters, and with bytes that are none."""
    said = (
        "50 %\r100 %\n\té ü 漢字 😀\a\x1b]0;title\a\x1b[2J\u202e\x9b2J".encode()
        + b"\x9b\xff\xe2\x82"
    )
    terminal = io.StringIO()
    output = PrintableOutput(terminal)
    for start in range(0, len(said), size):
        output.write(said[start : start + size])
    output.write(b"", final=True)
    shown = terminal.getvalue()
    assert shown.startswith(
        "50 %\r100 %\n\té ü 漢字 😀\\x07\\x1b]0;title\\x07\\x1b[2J\\u202e\\x9b2J"
    )
    assert shown.endswith("2J\\x9b\\xff\\xe2\\x82")
    assert is_inert(shown.replace("\r", "").replace("\t", ""))


def test_what_is_readable_stays_as_it_is() -> None:
    for text in ("goodput 7.85 ± 0.1 Mbit/s", "é ü – … ≤", "a\u00a0b\u2009c", "two\nlines"):
        assert printable_lines(text) == text
        assert printed(text) == f"{text}\n"


def test_no_cell_is_a_formula() -> None:
    """A negative number is none."""
    for name in (*fuzzed(), "=1+cmd|' /C calc'!A0", "@SUM(A1)", "-2+3", "+1-1", "\t=1"):
        assert not spreadsheet_cell(name).startswith(FORMULA_STARTS)
        frame = pd.DataFrame({"file": [name.encode(errors="replace").decode()], "loss": [-0.5]})
        ((cell, number),) = list(csv.reader(io.StringIO(as_csv(frame), newline="")))[1:]
        assert not cell.startswith(FORMULA_STARTS)
        assert number == "-0.5"
        found = "".join(csv_text([pa.table({"file": frame["file"], "loss": [-0.5]})]))
        assert not found.splitlines()[1].lstrip('"').startswith(FORMULA_STARTS)
    for number in ("-1.5e3", "-1.5 ± 0.2"):
        assert spreadsheet_cell(number) == number


def test_markdown_cells_stay_cells() -> None:
    for name in fuzzed():
        text = as_markdown(TextTable(("file", "n"), ((name, "1"),), ""))
        assert len(text.splitlines()) == 3 and is_inert(text.replace("\t", ""))
        assert "<" not in text
        assert text.splitlines()[2].replace("\\|", "").count("|") == 3


def test_json_has_no_nan_and_no_control_characters() -> None:
    names = [name.encode(errors="replace").decode() for name in fuzzed(50)]
    table = pa.table({"file": names, "loss": [float("nan")] * len(names)})
    text = "".join(json_text([table]))

    def refuse(word: str) -> None:
        raise AssertionError(word)

    found = json.loads(text, parse_constant=refuse)
    assert [each["file"] for each in found] == names
    assert {each["loss"] for each in found} == {None}


NAMES = (  # of a file, a flow, an experiment, as somebody may choose them
    *(
        "=cmd()",
        "+1+cmd",
        "-1+cmd",
        "@x",
        "\t=1",
        "|",
        "a|b|c",
        "\\",
        "\\input{x}",
        "%",
        "&",
        "$x$",
    ),
    *("{", "}", "#_^~", "<script>alert(1)</script>", "</script>", "<!--", "\"'><img src=x>"),
    *("`x`", ESCAPE, "\x9b2J", "\r", "a\nb", "\u2028", "\u202e", "NaN", "nan", "inf", "-Infinity"),
    *("", "x" * 300),
)


def check_csv(name: str) -> None:
    frame = pd.DataFrame({"name": [name], "value": [1.5]})
    ((cell, value),) = list(csv.reader(io.StringIO(as_csv(frame), newline="")))[1:]
    assert not cell.startswith(FORMULA_STARTS) and value == "1.5"


def check_markdown(name: str) -> None:
    lines = as_markdown(TextTable(("name", "n"), ((name, "1"),), "")).splitlines()
    assert len(lines) == 3 and "<" not in lines[2]
    assert len(re.findall(r"(?<!\\)(?:\\\\)*\|", lines[2])) == 3


def check_latex(name: str) -> None:
    """A row of two cells, in which only the commands of our own table of signs are left."""
    text = as_latex(TextTable(("name", "n"), ((name, "1"),), name))
    rows = [line for line in text.splitlines() if line.startswith("    ")]
    assert len(rows) == 5 and is_inert(text.replace("\t", ""))  # three rules, the head, and it
    (cell,) = re.findall(r"^    (.*) & 1 \\\\$", rows[3])
    for known in (r"\textbackslash{}", r"\textasciitilde{}", r"\textasciicircum{}"):
        cell = cell.replace(known, "")
    assert not re.search(r"[&%$#_{}\\]", re.sub(r"\\[&%$#_{}]", "", cell)), cell
    assert not re.search(r"[~^]", cell)
    outside = text.replace(rows[3], "").splitlines()
    assert all(line.startswith(("%", "\\begin", "\\end", "    ")) for line in outside if line)


def check_terminal(name: str) -> None:
    assert is_inert(printed(name))


def check_html(name: str) -> None:
    """It stays the text of an element."""
    page = fill("live.html", (), experiment=name)
    (heading,) = re.findall("<h1>(.*)</h1>", page, re.DOTALL)
    assert "<" not in heading and html.unescape(heading) == name


def check_json(name: str) -> None:
    def refuse(word: str) -> None:
        raise AssertionError(word)

    for value in (float("nan"), float("inf"), -float("inf")):
        table = pa.table({"name": [name], "value": [value]})
        text = "".join(json_text([table]))
        assert json.loads(text, parse_constant=refuse) == [{"name": name, "value": None}]


def check_script(name: str) -> None:
    text = script_json({"name": name})
    assert json.loads(text) == {"name": name}
    assert "<" not in text and "\u2028" not in text
    with pytest.raises(ValueError, match="float"):
        script_json({name: float("nan")})


WRITERS = (
    *(check_csv, check_markdown, check_latex, check_terminal, check_html, check_json),
    check_script,
)


@pytest.mark.parametrize("write", WRITERS, ids=lambda write: write.__name__.partition("_")[2])
@pytest.mark.parametrize("name", NAMES, ids=ascii)
def test_a_hostile_name_stays_a_name(name: str, write: Callable[[str], None]) -> None:
    """In every form in which the testbed writes it."""
    write(name)
