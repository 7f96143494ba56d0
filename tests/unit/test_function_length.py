"""No function is longer than fifty lines: one that is does two things."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGES = ("testbed", "topologies", "experiments", "analysis")
MOST_LINES = 50


def too_long(text: str) -> Iterator[str]:
    """The names of functions that span more lines than the limit, docstrings included."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert node.end_lineno
            if node.end_lineno - node.lineno + 1 > MOST_LINES:
                yield node.name


def test_functions_are_short(root: Path) -> None:
    found = {
        f"{path.relative_to(root).as_posix()}: {name}"
        for package in PACKAGES
        for path in (root / package).rglob("*.py")
        for name in too_long(path.read_text())
    }
    assert not found


@pytest.mark.parametrize(("lines", "long"), [(MOST_LINES, False), (MOST_LINES + 1, True)])
@pytest.mark.parametrize("start", ["def", "async def"])
def test_the_limit_is_inclusive(start: str, lines: int, long: bool) -> None:
    body = "    pass\n" * (lines - 2)
    text = f'{start} f():\n    """Counted too."""\n{body}'
    assert list(too_long(text)) == ["f"] * long
