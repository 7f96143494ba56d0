"""A class name, and the name of a module's constant, means one thing in the project.

`python -m tests.unit.test_defined_once` says where a name that stands on the temporary list is
defined, and takes those off it that are defined once by now.
"""

from __future__ import annotations

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.test_imports import is_of_tests

PRODUCT = ("testbed", "topologies", "experiments", "analysis", "benchmarks")
CONSTANT = re.compile(r"_?[A-Z][A-Z0-9]*(_[A-Z0-9]+)*")

# Names that several modules define, because each means the same there.
SAME_MEANING = {
    "_T": "a type variable",
    "EXPERIMENT": "the experiment of its file, which the catalogue collects",
    "EXPERIMENTS": "the experiments of its folder, which the catalogue collects",
    "CLAIMS": "the claims of its paper, which the ledger collects",
    "PAPER": "the paper of its folder, which the ledger collects",
}


def names_defined(tree: ast.Module) -> Iterator[str]:
    """Yield the names of all classes, and of the constants of the module itself."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            yield node.name
    for statement in tree.body:
        targets: list[ast.expr] = []
        if isinstance(statement, ast.Assign):
            targets = statement.targets
        elif isinstance(statement, ast.AnnAssign | ast.AugAssign):
            targets = [statement.target]
        for target in targets:
            for node in ast.walk(target):
                if isinstance(node, ast.Name) and CONSTANT.fullmatch(node.id):
                    yield node.id


def defined_twice(root: Path) -> dict[str, list[str]]:
    """Return the names that are defined in several places, and the files that define them."""
    files: dict[str, list[str]] = defaultdict(list)
    for package in PRODUCT:
        for path in sorted((root / package).rglob("*.py")):
            if is_of_tests(path):
                continue
            for name, count in Counter(names_defined(ast.parse(path.read_text()))).items():
                times = count if not CONSTANT.fullmatch(name) else 1
                files[name] += [path.relative_to(root).as_posix()] * times
    return {name: where for name, where in files.items() if len(where) > 1}


def test_names_are_defined_once(root: Path) -> None:
    twice = defined_twice(root)
    assert {name: where for name, where in twice.items() if name not in SAME_MEANING} == {}


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("class Part:\n    pass", ["Part"]),
        ("def f():\n    class Part:\n        A = 1", ["Part"]),
        ("MOST, LEAST = 2, 1", ["MOST", "LEAST"]),
        ("MOST: int = 2", ["MOST"]),
        ("def f():\n    MOST = 2", []),
        ("most = Most = 2", []),
    ],
)
def test_what_counts_as_a_definition(text: str, names: list[str]) -> None:
    assert list(names_defined(ast.parse(text))) == names


def test_a_second_definition_is_found(tmp_path: Path) -> None:
    (tmp_path / "testbed").mkdir()
    (tmp_path / "analysis").mkdir()
    (tmp_path / "testbed" / "x.py").write_text("class Part: ...\nMOST = 1\nif a:\n    MOST = 2")
    (tmp_path / "analysis" / "y.py").write_text("class Part: ...")
    assert defined_twice(tmp_path) == {"Part": ["testbed/x.py", "analysis/y.py"]}
