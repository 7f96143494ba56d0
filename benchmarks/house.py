"""Count what a reader of the code has to hold in mind: `python -m benchmarks.house [FOLDER]`.

The folder is a checkout of this project, of any age; this one if none is named.
"""

from __future__ import annotations

import ast
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

PRODUCT_FOLDERS = ("testbed", "topologies", "experiments", "analysis", "benchmarks", "kernel")


@dataclass(frozen=True)
class SourceFile:
    """A Python file of a checkout: its path in there, its text, and what that parses to."""

    path: str
    text: str
    tree: ast.Module

    @property
    def room(self) -> str:
        """The first two folders: `testbed/plan`; `tests` is one room."""
        parts = self.path.split("/")
        return "/".join(parts[:2]) if len(parts) > 2 and parts[0] != "tests" else parts[0]

    @property
    def module(self) -> str:
        """The dotted name; a package's is its own."""
        return self.path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def read(checkout: Path, folders: Iterable[str]) -> list[SourceFile]:
    """Read all Python files below some folders of a checkout."""
    files = []
    for folder in folders:
        for path in sorted((checkout / folder).rglob("*.py")):
            text = path.read_text()
            name = path.relative_to(checkout).as_posix()
            files.append(SourceFile(name, text, ast.parse(text)))
    return files


def line_count(file: SourceFile) -> int:
    """Return the number of lines of a file."""
    return file.text.count("\n")


def is_test(file: SourceFile) -> bool:
    """Return whether a file is a test, or helps one: in `tests/`, or beside what it tests."""
    name = file.path.rpartition("/")[2]
    beside = name == "conftest.py" or name.startswith("test_") or name.endswith("_for_tests.py")
    return file.path.startswith("tests/") or beside


def function_lengths(files: Iterable[SourceFile]) -> list[int]:
    """Return the lines of every function, nested ones included."""
    return [
        (node.end_lineno or node.lineno) - node.lineno + 1
        for file in files
        for node in ast.walk(file.tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]


def spread(numbers: list[int]) -> str:
    """Describe a distribution by its median, 90th percentile and maximum."""
    return f"median {np.median(numbers):.0f}, 90 % {np.quantile(numbers, 0.9):.0f}, " + (
        f"longest {max(numbers)}"
    )


def imported(file: SourceFile, modules: set[str]) -> Iterator[str]:
    """Yield those of the project's modules that a file imports, wherever the import stands."""
    for node in ast.walk(file.tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in modules)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                if full in modules or node.module in modules:
                    yield full if full in modules else node.module


def importers(files: list[SourceFile]) -> dict[str, set[str]]:
    """Return the modules that import each module."""
    by_module: dict[str, set[str]] = {file.module: set() for file in files}
    for file in files:
        for name in imported(file, set(by_module)):
            by_module[name] |= {file.module} - {name}
    return by_module


def describe(checkout: Path) -> Iterator[str]:
    """Yield the lines of the report."""
    every = read(checkout, (*PRODUCT_FOLDERS, "tests"))
    product = [file for file in every if not is_test(file)]
    tests = [file for file in every if is_test(file)]
    rooms = Counter(file.room for file in every)
    for room in sorted(rooms):
        of_room = [[f for f in group if f.room == room] for group in (product, tests)]
        lines = [sum(map(line_count, group)) for group in of_room]
        yield f"{room:32} {rooms[room]:4} files {lines[0]:6} lines {lines[1]:6} of tests"
    packages = sum(file.path.endswith("__init__.py") for file in product)
    total = sum(map(line_count, product))
    yield f"product: {len(product)} files, {packages} packages, {total} lines"
    yield f"tests: {len(tests)} files, {sum(map(line_count, tests))} lines"
    yield f"lines of a product file: {spread([line_count(file) for file in product])}"
    yield f"lines of a product function: {spread(function_lengths(product))}"
    used = importers(product)
    yield f"modules with exactly one importer: {sum(len(who) == 1 for who in used.values())}"


if __name__ == "__main__":
    checkout = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent.parent
    sys.stdout.write("\n".join(describe(checkout)) + "\n")
