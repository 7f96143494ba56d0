"""The linters, as tests: one command checks everything."""

from __future__ import annotations

import ast
import fcntl
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from testbed.machine.process import run

TYPED = ("testbed", "analysis", "topologies", "experiments", "benchmarks", "contrib", "tests")
PRODUCT = ("testbed", "analysis", "topologies", "experiments", "benchmarks", "kernel")
SOURCES = (*TYPED, "kernel", "docs")


def passes(root: Path, *argv: str) -> None:
    """Run a linter in the project's directory and fail with what it says."""
    done = run(argv, check=False, cwd=root)
    assert done.status == 0, done.stdout + done.stderr


def shell_scripts(root: Path) -> Iterator[str]:
    """Every shell script of the project, relative to its directory."""
    yield from (".ci/run", "kernel/cc")
    for found in (root.glob("*.sh"), *((root / name).rglob("*.sh") for name in SOURCES)):
        yield from (str(path.relative_to(root)) for path in found)


def test_ruff_check(root: Path) -> None:
    passes(root, sys.executable, "-m", "ruff", "check", ".")


def test_ruff_format(root: Path) -> None:
    passes(root, sys.executable, "-m", "ruff", "format", "--check", ".")


def test_mypy(root: Path, tmp_path: Path) -> None:
    """By the cache that all clones share: one at a time, and what fails is asked without it.

    Mypy knows a file of its cache by the second in which it was written. Two clones that write
    in one second leave the types of the one to the other.
    """
    argv = (sys.executable, "-m", "mypy", "--strict", *TYPED)
    options = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["mypy"]
    cache = Path(options["cache_dir"]).expanduser()
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if run(argv, check=False, cwd=root).status:
            passes(root, *argv, "--cache-dir", str(tmp_path))


def test_shellcheck(root: Path) -> None:
    scripts = sorted(shell_scripts(root))
    assert "setup.sh" in scripts
    passes(root, "shellcheck", "-x", *scripts)


@pytest.mark.parametrize(
    "name", ["setup.sh", ".ci/run", "kernel/build.sh", "kernel/cc", "kernel/image.sh"]
)
def test_scripts_can_be_called(root: Path, name: str) -> None:
    assert (root / name).stat().st_mode & 0o111, f"chmod +x {name}"


VAGUE_NAMES = {"found", "own", "said", "words"}  # what was found, is one's own, was said?
NAMED_LATER = {  # changed together with what makes packets there
    "testbed/traffic/video": {"found", "own", "said"},
    "testbed/traffic": {"words"},
    "testbed/runner": {"words"},
    "testbed/trial": {"words"},
}


def vague_names(tree: ast.AST) -> Iterator[str]:
    """The variables and arguments of functions whose names say nothing of what they hold."""
    classes = (node for node in ast.walk(tree) if isinstance(node, ast.ClassDef))
    fields = {
        id(part.target) for node in classes for part in node.body if isinstance(part, ast.AnnAssign)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield from VAGUE_NAMES & {node.id} if id(node) not in fields else ()
        elif isinstance(node, ast.arg):
            yield from VAGUE_NAMES & {node.arg}


def test_names_say_what_they_hold(root: Path) -> None:
    assert [*vague_names(ast.parse("def f(said):\n found = own = said\n x.found = 1"))]
    vague = {
        f"{path.relative_to(root)}: {name}"
        for folder in PRODUCT
        for path in (root / folder).rglob("*.py")
        if not path.name.startswith("test_")
        for name in vague_names(ast.parse(path.read_text()))
        if not any(
            name in names and path.is_relative_to(root / later)
            for later, names in NAMED_LATER.items()
        )
    }
    assert vague == set()
