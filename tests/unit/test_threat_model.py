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


def test_the_system_calls_on_the_page_are_those_of_the_confinement() -> None:
    source = (ROOT / "testbed/guest/confine.c").read_text(encoding="utf-8")
    tables = dict(re.findall(r"(\w+)\[[^=\n]*= \{(.*?)\};", source, re.DOTALL))
    allowed, *looked_into = (
        set(re.findall(r"SYS_(\w+)", tables[name]))
        for name in ("allowed", "modes", "makers", "commands")
    )
    looked_into.append({"clone", "fchmodat2"})
    page = (ROOT / "docs/security.md").read_text(encoding="utf-8")
    text = page.partition("## The system calls of a guest")[2].partition(NEXT)[0]
    always, with_arguments = text.partition("Always allowed are ")[2].split("And with a look at")
    assert names(always) == allowed and always.startswith(f"{len(allowed)}:")
    assert names(with_arguments) == set.union(*looked_into)
    assert f"{len(allowed) + len(names(with_arguments))} of Linux's 362" in page


def names(text: str) -> set[str]:
    return set(re.findall(r"`(\w+)`", text))
