"""The host opens nothing, by path, below a folder that a guest wrote: the code is searched for it.

A guest gets its folder as the working directory of its first process. All that could lead the host
there is that folder's path or descriptor, which `GuestFolder` keeps, and a guest that is started in
another folder. All such places in the code are listed here.
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from testbed.guest.engine import LEFT_BY_TRIALS
from testbed.guest.machine import LEFT_BY_PROGRAMS
from testbed.machine import trees
from testbed.machine.trees import GuestFolder, Rule

ROOT = Path(__file__).parents[2]
SOURCES = [
    path for room in ("testbed", "analysis", "experiments") for path in (ROOT / room).rglob("*.py")
]
TREES = "testbed/machine/trees.py"
STARTS = {  # where guests are started: function by function
    "testbed/guest/boot.py": "boot",
    "testbed/guest/worker.py": "_run",
}
# Of GuestFolder, what others may use; the first of them only as a process's working directory.
START_PATH, PUBLIC = "start_path", {"start_path", "take"}
# How trees.py opens: found by a descriptor of the folder above, and never a file to be read.
OPENED_AS = {"_FOUND | flags", "_FOUND", "_LISTED", "os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC"}
BY_PATH = {
    "read_text",
    "read_bytes",
    "write_text",
    "write_bytes",
    "open",
    "touch",
    "mkdir",
    "rename",
}
BY_PATH |= {"stat", "lstat", "exists", "is_file", "is_dir", "glob", "rglob", "iterdir", "unlink"}


def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def uses(tree: ast.AST, attribute: str) -> list[ast.Attribute]:
    nodes = ast.walk(tree)
    return [each for each in nodes if isinstance(each, ast.Attribute) and each.attr == attribute]


def calls(tree: ast.AST, called: str) -> list[ast.Call]:
    found = (each for each in ast.walk(tree) if isinstance(each, ast.Call))
    return [each for each in found if ast.unparse(each.func).rpartition(".")[2] == called]


def places_of_the_path(path: Path, tree: ast.Module) -> Iterator[str]:
    """Where a guest's folder is used for anything but the directory in which its process starts."""
    allowed = [
        keyword.value
        for call in ast.walk(tree)
        if isinstance(call, ast.Call)
        for keyword in call.keywords
        if keyword.arg == "cwd"
    ]
    for each in uses(tree, START_PATH):
        if each not in allowed:
            yield f"{name(path)}:{each.lineno}: {ast.unparse(each)}"


def other_attributes(path: Path, tree: ast.Module) -> Iterator[str]:
    """Where something else of a GuestFolder is used: its descriptors, or itself as a value."""
    for block in (each for each in ast.walk(tree) if isinstance(each, ast.With)):
        for item in block.items:
            if not calls(item.context_expr, "GuestFolder"):
                continue
            assert isinstance(item.optional_vars, ast.Name)
            mine = item.optional_vars.id
            used = {
                each.value
                for public in PUBLIC
                for each in uses(block, public)
                if isinstance(each.value, ast.Name) and each.value.id == mine
            }
            named = [each for each in ast.walk(block) if isinstance(each, ast.Name)]
            for each in named:
                if each.id == mine and each not in used and each is not item.optional_vars:
                    yield f"{name(path)}:{each.lineno}: {mine}"


def test_the_host_opens_nothing_by_path_below_a_guests_folder() -> None:
    """The list of the places where it does, which is empty."""
    found = [
        place
        for path in SOURCES
        if name(path) != TREES
        for tree in [parsed(path)]
        for place in (*places_of_the_path(path, tree), *other_attributes(path, tree))
    ]
    assert found == []


def test_a_guests_folder_is_made_only_where_a_guest_is_started() -> None:
    """And no guest is started elsewhere, with a folder that its host could open."""
    for called in ("GuestFolder", "guest_command"):
        found = {}
        for path in SOURCES:
            for function in ast.walk(parsed(path)):
                if isinstance(function, ast.FunctionDef) and calls(function, called):
                    found[name(path)] = function.name
        assert found == STARTS, called


def test_trees_opens_folders_by_descriptors_and_no_file() -> None:
    tree = parsed(ROOT / TREES)
    opened = [call for call in calls(tree, "open") if ast.unparse(call.func) == "os.open"]
    assert len(opened) >= 3
    for call in opened:
        assert ast.unparse(call.args[1]) in OPENED_AS, ast.unparse(call)
    by_path = [each for each in opened if not any(key.arg == "dir_fd" for key in each.keywords)]
    assert [ast.unparse(each.args[0]) for each in by_path] == ["folder"]  # of results
    for call in (each for each in ast.walk(tree) if isinstance(each, ast.Call)):
        function = ast.unparse(call.func)
        if function.rpartition(".")[2] in BY_PATH and function != "os.open":
            keywords = {key.arg for key in call.keywords}
            assert keywords & {"dir_fd", "src_dir_fd", "follow_symlinks"}, ast.unparse(call)
    assert trees.RESOLVE == 0xF  # BENEATH, NO_SYMLINKS, NO_MAGICLINKS, NO_XDEV of linux/openat2.h


@pytest.mark.parametrize(
    "line",
    [
        "(place.start_path / 'x').read_text()",
        "shown = place.start_path",
        "look(place)",
        "os.listdir(place._folder)",
    ],
)
def test_the_search_finds(line: str) -> None:
    text = f"with GuestFolder(folder) as place:\n    start(cwd=place.start_path)\n    {line}\n"
    path = ROOT / "testbed" / "made_up.py"
    tree = ast.parse(text)
    assert [*places_of_the_path(path, tree), *other_attributes(path, tree)]


def test_the_folder_is_gone_when_the_block_ends(tmp_path: Path) -> None:
    (tmp_path / "given").write_text("1")
    with GuestFolder(tmp_path) as place:
        start_path = place.start_path
        assert (start_path / "given").read_text() == "1"
        (start_path / "left").write_text("2")
        place.take([Rule("left", 1)])
    assert not start_path.exists()
    assert [path.name for path in tmp_path.iterdir()] == ["left"]


@pytest.mark.parametrize("rules", [LEFT_BY_TRIALS, LEFT_BY_PROGRAMS, (Rule("(a)+/(b|c)*", 1),) * 3])
def test_a_file_is_taken_by_the_first_rule_that_has_its_path(rules: tuple[Rule, ...]) -> None:
    files, folders = trees._compiled(tuple(rule.path for rule in rules))
    assert files.groups == folders.groups == len(rules)
    for rule in rules:
        path = rule.path.replace(trees.TREE, "x/y").replace("*", "x")
        fitting = [each for each in rules if re.fullmatch(trees._expression(each.path), path)]
        number = trees._first(files, tuple(path.split("/")))
        assert number is not None and rules[number] == fitting[0]


def test_paths_of_rules_have_no_capturing_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """One would shift the numbers of the rules after it, and files would get the wrong limits."""
    monkeypatch.setattr(trees, "PLAIN_NAME", "([a-z]+)")
    with pytest.raises(ValueError, match="capturing groups"):
        trees._compiled(("some/*", "other"))


def test_a_file_that_becomes_another_while_it_is_taken_is_not_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was looked at, and then another had its name."""
    moved = trees._move

    def exchanged(name: str, source: int, target: int) -> None:
        if name == "answers":
            os.rename("other", name, src_dir_fd=source, dst_dir_fd=source)
        moved(name, source, target)

    with GuestFolder(tmp_path) as folder:
        (folder.start_path / "answers").write_text("looked at")
        (folder.start_path / "other").write_text("unseen")
        monkeypatch.setattr(trees, "_move", exchanged)
        taken = folder.take([Rule("answers", 100)])
    assert "changed meanwhile" in str(taken)
    assert not (tmp_path / "answers").exists()


def test_a_tree_is_as_deep_as_its_limit_and_no_deeper(tmp_path: Path) -> None:
    with GuestFolder(tmp_path) as folder:
        below = folder.start_path.joinpath("files", *["d"] * (trees.MAX_DEPTH - 2))
        below.mkdir(parents=True)
        (below / "last").touch()
        (below / "d").mkdir()
        (below / "d" / "beyond").touch()
        folder.take([Rule("files/**", 100, 1000)])
    names = [path.name for path in (tmp_path / "files").rglob("*") if path.is_file()]
    assert names == ["last"]
