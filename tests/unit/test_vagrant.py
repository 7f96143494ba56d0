"""The virtual machine's description, read by Vagrant itself."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from testbed.machine.process import Completed, run


@pytest.fixture
def copy(root: Path, tmp_path: Path) -> Path:
    """A directory with the Vagrantfile alone: Vagrant writes beside it."""
    directory = tmp_path / "project"
    directory.mkdir()
    shutil.copy(root / "Vagrantfile", directory)
    return directory


def validate(directory: Path, monkeypatch: pytest.MonkeyPatch) -> Completed:
    """Have Vagrant check the file, with no home of the user's and no question to the network."""
    monkeypatch.setenv("VAGRANT_HOME", str(directory.parent / "home"))
    monkeypatch.setenv("VAGRANT_CHECKPOINT_DISABLE", "1")
    return run(["vagrant", "validate", "--ignore-provider"], check=False, cwd=directory)


def test_vagrantfile_is_valid(copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done = validate(copy, monkeypatch)
    assert done.status == 0, done.stdout + done.stderr
    assert "validated successfully" in done.stdout


def test_a_fault_would_be_found(copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = copy / "Vagrantfile"
    file.write_text(file.read_text().replace("config.vm.hostname", "config.vm.hostnam"))
    assert validate(copy, monkeypatch).status != 0


def test_what_the_machine_is(root: Path) -> None:
    text = (root / "Vagrantfile").read_text()
    assert '"debian/bookworm64"' in text
    assert "./setup.sh demo" in text
    assert "forwarded_port" not in text
