"""Each line of docs/security.md's threat model names tests that exist."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HEADING, NEXT = "## Who trusts whom, and the test of it", "\n## "
NAMED = re.compile(r"`((?:[\w/]+/)?test_\w+\.py)(?:::(test_\w+))?`")


def lines() -> list[str]:
    text = (ROOT / "docs/security.md").read_text(encoding="utf-8")
    table = text.partition(HEADING)[2].partition(NEXT)[0]
    return [line for line in table.splitlines() if line.startswith("| ")][1:]


@pytest.mark.parametrize("line", lines(), ids=lambda line: line.split("|")[1].strip()[:40])
def test_a_line_names_tests_that_exist(line: str) -> None:
    """A file is in tests/robustness/ unless the line says where it is."""
    named = NAMED.findall(line.rsplit("|", 2)[1])
    assert named
    for file, name in named:
        path = ROOT / "tests" / (file if "/" in file else f"robustness/{file}")
        defined = {
            each.name
            for each in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            if isinstance(each, ast.FunctionDef) and each.name.startswith("test_")
        }
        assert name in defined if name else defined


def test_the_table_is_there() -> None:
    assert len(lines()) > 20


def test_each_system_call_of_the_confinement_is_in_one_row_of_the_page() -> None:
    source = (ROOT / "testbed/guest/confine.c").read_text(encoding="utf-8")
    tables = re.sub(r"names\[.*?\};", "", source.partition("allowed[] = {")[2], flags=re.DOTALL)
    rules = tables.partition("static void write_program")
    looked_into = re.findall(r"BPF_JEQ, SYS_(\w+)", rules[2])
    confined = {*re.findall(r"\bSYS_(\w+)", rules[0]), *looked_into, "fchmodat2"}
    page = (ROOT / "docs/security.md").read_text(encoding="utf-8")
    text = page.partition("## The system calls of a guest")[2].partition(NEXT)[0]
    rows = [line.split("|") for line in text.splitlines() if line.startswith("| `")]
    named = [name for row in rows for name in re.findall(r"`(\w+)`", row[1])]
    assert sorted(named) == sorted(confined)
    assert all(row[3].strip() for row in rows)
    always = set(re.findall(r"\bSYS_(\w+)", rules[0].partition("};")[0]))
    assert f"{len(confined)} of Linux's 362, {len(confined - always)} of them with" in page
