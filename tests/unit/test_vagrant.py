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


@pytest.mark.slow
def test_vagrantfile_is_valid(copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done = validate(copy, monkeypatch)
    assert done.status == 0, done.stdout + done.stderr
    assert "validated successfully" in done.stdout


@pytest.mark.slow
def test_a_fault_would_be_found(copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = copy / "Vagrantfile"
    file.write_text(file.read_text().replace("config.vm.hostname", "config.vm.hostnam"))
    assert validate(copy, monkeypatch).status != 0


# Stands in for Vagrant: prints the names of all settings and calls, and what they are given.
RECORDER = """
class Recorder < BasicObject
  def initialize(name) = @name = name
  def method_missing(name, *given, **named)
    full = "#{@name}.#{name}"
    ::Kernel.puts [full, *given, *named.flatten].join(" ")
    recorder = ::Recorder.new(full)
    yield recorder if ::Kernel.block_given?
    recorder
  end
end
module Vagrant
  def self.configure(version) = yield(Recorder.new("config"))
end
load ARGV[0]
"""


def recorded(root: Path) -> list[str]:
    return run(["ruby", "-e", RECORDER, str(root / "Vagrantfile")]).stdout.splitlines()


def test_the_machine_gets_what_was_built_here(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    there = f"{tmp_path}/tcp-testbed /home/vagrant/.cache/tcp-testbed "
    assert not any(there in line for line in recorded(root))
    (tmp_path / "tcp-testbed").mkdir()
    assert any(there in line for line in recorded(root))


def test_what_the_machine_is(root: Path) -> None:
    """A release of Debian that the installation knows, set up by a script that is there."""
    lines = recorded(root)
    assert "config.vm.box= debian/bookworm64" in lines
    (provision,) = (line for line in lines if line.startswith("config.vm.provision "))
    *_, folder, script = provision.partition(" inline ")[2].split(" && ")
    assert any(line.startswith(f"config.vm.synced_folder . {folder[3:]} ") for line in lines)
    assert (root / script).stat().st_mode & 0o111
    assert "privileged false" in provision
    assert not [line for line in lines if line.startswith("config.vm.network")]


def test_no_part_of_the_code_is_left_out(root: Path) -> None:
    """A pattern of rsync's without a slash before it holds in every folder."""
    (shared,) = (line for line in recorded(root) if line.startswith("config.vm.synced_folder . "))
    patterns = shared.partition("rsync__exclude ")[2].split()
    assert "/results/" in patterns
    anywhere = [each.strip("/") for each in patterns if not each.startswith("/")]
    for package in ("analysis", "testbed", "experiments", "kernel", "foreign", "docs"):
        assert [path for name in anywhere for path in (root / package).rglob(name)] == []
