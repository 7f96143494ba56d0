"""The linters, as tests: one command checks everything."""

from __future__ import annotations

import json
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from testbed.machine.process import run

TYPED = ("testbed", "analysis", "topologies", "experiments", "benchmarks", "tests")
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


def test_no_docstring_rule_is_switched_off_in_vain(root: Path) -> None:
    """A room whose docstrings are clean leaves the temporary list in pyproject.toml."""
    project = tomllib.loads((root / "pyproject.toml").read_text())
    ignores = project["tool"]["ruff"]["lint"]["per-file-ignores"]
    temporary = {room: set(rules) for room, rules in ignores.items() if rules != ["D"]}
    broken = broken_docstring_rules(root)
    in_vain = {
        room: unneeded
        for room, rules in temporary.items()
        if (unneeded := rules - {rule for path, rule in broken if matches(path, room)})
    }
    assert not in_vain, f"delete these of pyproject.toml's per-file-ignores: {in_vain}"


def broken_docstring_rules(root: Path) -> set[tuple[str, str]]:
    """Return the files and the docstring rules that they break, whatever is switched off."""
    convention = 'lint.pydocstyle.convention="numpy"'
    argv = ("-m", "ruff", "check", "--isolated", "--select", "D", "--config", convention)
    form = ("--output-format", "json", "--exit-zero")
    done = run((sys.executable, *argv, *form, *PRODUCT), cwd=root)
    return {
        (Path(fault["filename"]).relative_to(root).as_posix(), fault["code"])
        for fault in json.loads(done.stdout)
    }


def matches(path: str, glob: str) -> bool:
    """Return whether a file is of a room, as `testbed/plan/**`, `benchmarks/*.py` or one file."""
    room = glob.removesuffix("/**")
    return Path(path).is_relative_to(room) if room != glob else Path(path).match(glob)


def test_ruff_format(root: Path) -> None:
    passes(root, sys.executable, "-m", "ruff", "format", "--check", ".")


def test_mypy(root: Path) -> None:
    passes(root, sys.executable, "-m", "mypy", "--strict", *TYPED)


def test_shellcheck(root: Path) -> None:
    scripts = sorted(shell_scripts(root))
    assert "setup.sh" in scripts
    passes(root, "shellcheck", "-x", *scripts)


@pytest.mark.parametrize(
    "name", ["setup.sh", ".ci/run", "kernel/build.sh", "kernel/cc", "kernel/image.sh"]
)
def test_scripts_can_be_called(root: Path, name: str) -> None:
    assert (root / name).stat().st_mode & 0o111, f"chmod +x {name}"
