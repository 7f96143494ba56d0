"""The rooms of docs/architecture.md: arrows go one way, names say one thing, rooms stay small."""

from __future__ import annotations

import ast
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

PACKAGES = ("testbed", "topologies", "experiments", "analysis")
MOST_FILES = 20

# One name in several rooms is right where it is one thing, seen at each stage.
ONE_THING = {
    "background": "the background sessions: planned, read from a trial, judged",
    "dumbbell_load": "the experiment, and its figures",
    "dumbbell_pairs": "the experiment, and its figures",
    "dumbbell_queues": "the experiment, and its figures",
    "iperf3": "the program: run, and its reports judged",
    "losses": "losses by chance: asked for, and planned",
    "newreno_background": "the experiment, and its figures",
    "newreno_models": "the experiment, and its figures",
    "plan": "the plan, and the verb that prints it",
    "radio": "the radio link: planned, on the air, judged",
    "router_bottleneck": "the network, the experiment on it, and its figures",
    "router_fairness": "the experiment, and its figures",
    "video": "a video flow: asked for, read from a trial, judged",
    "video_access": "the experiment, and its figures",
}

Arrows = Mapping[str, set[str]]  # a module → the modules that it imports


def modules(root: Path) -> dict[str, Path]:
    """Our modules by their dotted names; a package goes by its own."""
    found = {}
    for package in PACKAGES:
        for path in (root / package).rglob("*.py"):
            parts = path.relative_to(root).with_suffix("").parts
            found[".".join(parts[:-1] if path.name == "__init__.py" else parts)] = path
    return found


def arrows(root: Path) -> Arrows:
    """Who imports whom, wherever in the module the import stands."""
    ours = modules(root)
    return {name: set(_imports(path, ours)) - {name} for name, path in ours.items()}


def _imports(path: Path, ours: Mapping[str, Path]) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in ours)
        elif isinstance(node, ast.ImportFrom) and node.module in ours:
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                yield full if full in ours else str(node.module)


def room(module: str, ours: Mapping[str, Path]) -> str:
    """The folder that a module is in; `store`, `errors` and `kept` stand alone."""
    alone = ("testbed.store", "testbed.errors", "testbed.kept")
    if module in alone or ours[module].name == "__init__.py":
        return module
    return module.rpartition(".")[0]


def between_rooms(root: Path) -> Arrows:
    ours = modules(root)
    found: dict[str, set[str]] = defaultdict(set)
    for module, targets in arrows(root).items():
        for target in targets:
            one, other = room(module, ours), room(target, ours)
            if one != other:
                found[one].add(other)
    return found


def cycles(graph: Arrows) -> list[str]:
    """Rooms from which an arrow leads back, directly or by way of others."""
    return sorted(start for start in graph if start in reached(start, graph))


def reached(start: str, graph: Arrows) -> set[str]:
    seen: set[str] = set()
    ahead = list(graph.get(start, ()))
    while ahead:
        each = ahead.pop()
        if each not in seen:
            seen.add(each)
            ahead.extend(graph.get(each, ()))
    return seen


def test_no_arrow_between_rooms_leads_back(root: Path) -> None:
    assert not cycles(between_rooms(root))


def test_a_cycle_of_rooms_is_found() -> None:
    assert cycles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}) == ["a", "b", "c"]


@pytest.mark.parametrize("lazily", [False, True])
def test_lazy_imports_are_arrows_too(tmp_path: Path, lazily: bool) -> None:
    for name in PACKAGES:
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").touch()
    line = "from analysis import y\n"
    text = f"def f():\n    {line}" if lazily else line
    (tmp_path / "testbed" / "x.py").write_text(text)
    (tmp_path / "analysis" / "y.py").write_text("import testbed.x\n")
    assert cycles(between_rooms(tmp_path)) == ["analysis", "testbed"]


def test_rooms_stay_small(root: Path) -> None:
    ours = modules(root)
    sizes = Counter(room(module, ours) for module in ours)
    assert not {name: size for name, size in sizes.items() if size > MOST_FILES}


def test_a_file_name_means_one_thing(root: Path) -> None:
    paths = (path for path in modules(root).values() if not path.name.startswith("__"))
    counts = Counter(path.stem for path in paths)
    assert {name for name, number in counts.items() if number > 1} == set(ONE_THING)


def test_every_room_says_what_is_inside(root: Path) -> None:
    for path in modules(root).values():
        if path.name == "__init__.py":
            assert ast.get_docstring(ast.parse(path.read_text())), path
