"""setup.sh as far as it goes without setting anything up, and the lock that it installs."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from testbed.machine.process import run


def test_help_names_the_three_forms(root: Path) -> None:
    done = run([str(root / "setup.sh"), "--help"])
    for form in ("./setup.sh  ", "./setup.sh demo", "./setup.sh test"):
        assert form in done.stdout


@pytest.mark.parametrize("words", [["nonsense"], ["test", "demo"], ["--demo"]])
def test_wrong_usage(root: Path, words: list[str]) -> None:
    done = run([str(root / "setup.sh"), *words], check=False)
    assert done.status == 2
    assert done.stderr.startswith("usage: ./setup.sh")
    assert not done.stdout


def locked(root: Path) -> dict[str, str]:
    """Each locked package with the text of its entry."""
    text = re.sub(r"^ *#.*\n", "", (root / "requirements.lock").read_text(), flags=re.MULTILINE)
    entries = re.split(r"^(?=\S)", text, flags=re.MULTILINE)
    return {entry.split("==")[0]: entry for entry in entries if entry.strip()}


def test_lock_is_pinned_and_hashed(root: Path) -> None:
    for name, entry in locked(root).items():
        assert re.match(r"[a-z0-9-]+==[0-9][^ ]* \\\n +--hash=sha256:[0-9a-f]{64}", entry), name


def test_lock_names_no_index(root: Path) -> None:
    assert "://" not in (root / "requirements.lock").read_text()


def test_lock_has_everything_asked_for(root: Path) -> None:
    asked = re.findall(r"^[a-z][a-z0-9-]*", (root / "requirements.in").read_text(), re.MULTILINE)
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    assert {*asked, *project["dependencies"]} <= set(locked(root))
