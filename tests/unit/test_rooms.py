"""Imports go one way: no circles of files or rooms, and a room imports only those above it.

An import counts wherever it stands: inside a function, and under `TYPE_CHECKING`, too.
"""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from testbed.machine.process import run
from tests.unit.test_imports import imported, is_of_tests, parse

PACKAGES = ("testbed", "topologies", "experiments", "analysis", "benchmarks")

Imports = Mapping[str, set[str]]  # a module, folder or room → those that it imports


def modules(root: Path) -> dict[str, Path]:
    """Return the paths of our modules by their dotted names; a package goes by its own."""
    paths = {}
    for package in PACKAGES:
        for path in (root / package).rglob("*.py"):
            if is_of_tests(path):
                continue
            parts = path.relative_to(root).with_suffix("").parts
            paths[".".join(parts[:-1] if path.name == "__init__.py" else parts)] = path
    return paths


def imports_of_modules(root: Path) -> Imports:
    """Return the imports between our modules."""
    ours = modules(root)
    return {name: set(our_imports(root, path, ours)) - {name} for name, path in ours.items()}


def our_imports(root: Path, path: Path, ours: Mapping[str, Path]) -> Iterator[str]:
    """Yield those of our modules that a module imports."""
    for name in imported(parse(path.relative_to(root).as_posix(), path.read_text())):
        module = name if name in ours else name.rpartition(".")[0]
        if module in ours:
            yield module


def folder(module: str, ours: Mapping[str, Path]) -> str:
    """Return the folder of a module. Modules directly in a top-level package stand alone."""
    if ours[module].name == "__init__.py" or module.count(".") == 1:
        return module
    return module.rpartition(".")[0]


def room(module: str, ours: Mapping[str, Path]) -> str:
    """Return the room of a module: `testbed.plan`, with all that is below it."""
    return ".".join(folder(module, ours).split(".")[:2])


def grouped(imports: Imports, group: Mapping[str, str]) -> Imports:
    """Return the imports between the groups of modules."""
    between: dict[str, set[str]] = defaultdict(set)
    for module, targets in imports.items():
        between[group[module]] |= {group[target] for target in targets} - {group[module]}
    return between


def in_circles(imports: Imports) -> set[str]:
    """Return the names whose imports lead back to them, directly or through others."""
    return {start for start in imports if start in reached(start, imports)}


def reached(start: str, imports: Imports) -> set[str]:
    """Return all that a name imports, directly or through others."""
    reached: set[str] = set()
    ahead = list(imports.get(start, ()))
    while ahead:
        name = ahead.pop()
        if name not in reached:
            reached.add(name)
            ahead.extend(imports.get(name, ()))
    return reached


def test_no_circle_of_files_folders_or_rooms(root: Path) -> None:
    ours, imports = modules(root), imports_of_modules(root)
    assert in_circles(imports) == set()
    for part in (folder, room):
        assert in_circles(grouped(imports, {name: part(name, ours) for name in ours})) == set()


def order_of_rooms(page: str) -> dict[str, int]:
    """Return the rooms of the table in docs/architecture.md, with the number of their rows."""
    table = page.partition("| what | rooms |\n|---|---|\n")[2].partition("\n\n")[0]
    rows = [re.findall(r"`([\w/.]+)`", line) for line in table.splitlines()]
    return {name: number for number, row in enumerate(rows) for name in row}


def room_in_order(path: str, order: Mapping[str, int]) -> str:
    """Return the row's room that a file is in: itself, or the folder."""
    rooms = [name for name in order if name == path or (name[-1] == "/" and path.startswith(name))]
    assert rooms, f"{path} is in no room of the table in docs/architecture.md"
    return rooms[0]


def against_the_order(root: Path) -> dict[tuple[str, str], list[str]]:
    """Return the imports of rooms that are not above the importing one, with the files."""
    order = order_of_rooms((root / "docs" / "architecture.md").read_text())
    ours = modules(root)
    found: dict[tuple[str, str], list[str]] = defaultdict(list)
    for module, targets in imports_of_modules(root).items():
        for target in targets:
            paths = (ours[name].relative_to(root).as_posix() for name in (module, target))
            importer, imported = (room_in_order(path, order) for path in paths)
            if importer != imported and order[imported] >= order[importer]:
                found[importer, imported].append(module)
    return found


def test_a_room_imports_only_those_above_it(root: Path) -> None:
    assert against_the_order(root) == {}


def test_the_order_names_what_is_there(root: Path) -> None:
    order = order_of_rooms((root / "docs" / "architecture.md").read_text())
    assert len(order) > 20 and all((root / name).exists() for name in order)


def test_an_import_against_the_order_is_found(tmp_path: Path) -> None:
    for name in ("docs", "testbed/plan", "analysis"):
        (tmp_path / name).mkdir(parents=True)
    rows = ("what | rooms", "---|---", "a | `testbed/plan/`, `testbed/x.py`", "b | `analysis/`")
    table = "".join(f"| {row} |\n" for row in rows).replace("| ---|--- |", "|---|---|")
    (tmp_path / "docs/architecture.md").write_text(f"{table}\n")
    (tmp_path / "testbed/plan/y.py").write_text("import testbed.x\nimport analysis.z")
    (tmp_path / "testbed/x.py").touch()
    (tmp_path / "analysis/z.py").write_text("import testbed.plan.y")
    assert against_the_order(tmp_path) == {
        ("testbed/plan/", "testbed/x.py"): ["testbed.plan.y"],
        ("testbed/plan/", "analysis/"): ["testbed.plan.y"],
    }


def test_a_circle_is_found() -> None:
    assert in_circles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}) == {"a", "b", "c"}


@pytest.mark.parametrize(
    "text",
    [
        "from testbed.b.y import f",
        "import testbed.b.y",
        "from testbed.b import y",
        "from ..b import y",
        "from ..b.y import f",
        "def g():\n    from testbed.b.y import f",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from testbed.b.y import f",
    ],
)
def test_every_form_of_import_counts(tmp_path: Path, text: str) -> None:
    for name in ("a", "b"):
        (tmp_path / "testbed" / name).mkdir(parents=True)
    (tmp_path / "testbed" / "a" / "x.py").write_text(text)
    (tmp_path / "testbed" / "b" / "y.py").write_text("import testbed.a.x")
    assert in_circles(imports_of_modules(tmp_path)) == {"testbed.a.x", "testbed.b.y"}
    group = {"testbed.a.x": "testbed.a", "testbed.b.y": "testbed.b"}
    between = grouped(imports_of_modules(tmp_path), group)
    assert in_circles(between) == {"testbed.a", "testbed.b"}


def test_rooms_and_folders() -> None:
    names = ("testbed.errors", "testbed.scenario.model", "testbed.trial.parts.capture")
    ours = {name: Path(*name.split(".")).with_suffix(".py") for name in names}
    assert [folder(name, ours) for name in names] == [
        "testbed.errors",
        "testbed.scenario",
        "testbed.trial.parts",
    ]
    assert [room(name, ours) for name in names] == [
        "testbed.errors",
        "testbed.scenario",
        "testbed.trial",
    ]


@pytest.mark.parametrize("module", ["player", "browser", "http3_server"])
def test_no_plan_and_no_analysis_is_loaded_in_the_guest(root: Path, module: str) -> None:
    """Only a video's programs are Python there."""
    code = f"import sys, testbed.traffic.video.{module}; print(*sys.modules)"
    done = run((sys.executable, "-c", code), cwd=root)
    rooms = ("testbed.scenario", "testbed.plan", "testbed.trial", "analysis", "experiments")
    assert not [name for name in done.stdout.split() if name.startswith(rooms)]
