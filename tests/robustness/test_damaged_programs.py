"""Programs that were damaged after they were built: a run names them, instead of other packets."""

from __future__ import annotations

import base64
import contextlib
import dataclasses
import hashlib
import io
import os
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from experiments import command
from testbed.errors import TestbedError
from testbed.guest import boot, kernels
from testbed.guest.engine import GuestEngine
from testbed.machine import installed_packages
from testbed.machine.process import run
from testbed.runs.sources import BUILT, require_compiled


@pytest.mark.parametrize("left", [b"", b"compile", b"compileD", b"compiledx"])
def test_a_damaged_program_does_not_run(tmp_path: Path, left: bytes) -> None:
    """By its content: a truncated library would only be left out, and the packets be others."""
    file = tmp_path / "testbed-iperf3.so"
    content = b"compiled"
    file.write_bytes(content)
    (tmp_path / f"{file.name}.sha256").write_text(f"{_hash(content)}  {file.name}\n")
    built = dataclasses.replace(BUILT[0], file=file)
    require_compiled([built])
    file.write_bytes(left)
    with pytest.raises(TestbedError, match=r"testbed-iperf3.so is damaged"):
        require_compiled([built])


def test_a_program_that_is_missing_is_named(tmp_path: Path) -> None:
    built = dataclasses.replace(BUILT[0], file=tmp_path / "testbed-runner")
    with pytest.raises(TestbedError, match="testbed-runner is not built"):
        require_compiled([built])


def test_a_damaged_program_confines_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    damaged = tmp_path / "testbed-confine"
    damaged.write_bytes(b"x")
    (tmp_path / "testbed-confine.sha256").write_text(f"{_hash(b'y')}  testbed-confine\n")
    monkeypatch.setattr(boot, "CONFINE", damaged)
    with pytest.raises(TestbedError, match="testbed-confine is damaged"):
        boot.why_not_confined.__wrapped__()


def test_what_was_built_here_is_whole() -> None:
    """The Makefile notes the hash of each program that runs in trials."""
    require_compiled(BUILT)
    for each in BUILT:
        if each.file.exists():
            assert each.file.with_name(f"{each.file.name}.sha256").is_file()


def test_a_damaged_kernel_does_not_boot(tmp_path: Path) -> None:
    for name in ("linux", "config"):
        (tmp_path / name).write_bytes(name.encode())
    lines = (f"{_hash(name.encode())}  {name}\n" for name in ("linux", "config"))
    (tmp_path / "sha256").write_text("".join(lines))
    assert kernels.is_whole(tmp_path)
    engine = GuestEngine()
    engine._found = tmp_path
    for damage in (b"", b"linuX"):
        (tmp_path / "linux").write_bytes(damage)
        assert engine.ready() == f"kernel {engine.kernel_name} is damaged: ./setup.sh builds it"
    (tmp_path / "linux").unlink()
    assert not kernels.is_whole(tmp_path)


@pytest.mark.parametrize("noted", [b"", b"x\n", b"\xff", b"a b c\n"])
def test_damaged_hashes_of_a_kernel_are_no_hashes(tmp_path: Path, noted: bytes) -> None:
    for name in ("linux", "config"):
        (tmp_path / name).write_bytes(b"x")
    (tmp_path / "sha256").write_bytes(noted)
    assert not kernels.is_whole(tmp_path)


def test_an_older_kernel_without_a_file_does_not_boot(tmp_path: Path) -> None:
    """No hashes were noted then."""
    for name in ("linux", "config"):
        (tmp_path / name).write_bytes(b"x")
    assert kernels.is_whole(tmp_path)
    (tmp_path / "config").write_bytes(b"")
    assert not kernels.is_whole(tmp_path)
    (tmp_path / "config").unlink()
    assert not kernels.is_whole(tmp_path)


def test_a_damaged_package_is_a_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever its import ended in; where all packages are whole, it is our own error."""
    site = write_package(tmp_path / "site")
    monkeypatch.setattr(installed_packages, "SITE", site)
    monkeypatch.setattr("testbed.cli.entry.main", lambda *_: int("x"))
    with pytest.raises(ValueError, match="invalid literal"):
        command.main(["list"])
    (site / "wheel" / "__init__.py").write_text("")
    errors = io.StringIO()
    with contextlib.redirect_stderr(errors):
        assert command.main(["list"]) == 1
    assert errors.getvalue().splitlines() == [
        f"testbed: {site}/wheel/__init__.py is damaged",
        "    hint: ./setup.sh installs the packages again",
    ]


def test_packages_that_are_mounted_noexec_are_a_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """NumPy's own error says that a segment cannot be mapped."""
    monkeypatch.setattr("testbed.cli.entry.main", lambda *_: int("x"))
    monkeypatch.setattr(os, "statvfs", lambda _: SimpleNamespace(f_flag=os.ST_NOEXEC))
    assert command.main(["list"]) == 1
    assert "mounted noexec" in capsys.readouterr().err


@pytest.mark.parametrize("damage", ["", "x = 2\n", None])
def test_damaged_packages_are_found_by_content(tmp_path: Path, damage: str | None) -> None:
    """Also with the same size, which setup.sh alone once compared."""
    site = write_package(tmp_path / "site")
    argv = [sys.executable, "-I", installed_packages.__file__, str(site)]
    assert run(argv).stdout == ""
    file = site / "wheel" / "__init__.py"
    file.write_text(damage) if damage is not None else file.unlink()
    (site / "wheel" / "data.txt").write_text("the administrator's")
    done = run(argv, check=False)
    assert (done.status, done.stdout) == (1, f"{file} is damaged\n")


def test_a_folder_without_packages_is_not_whole(tmp_path: Path) -> None:
    """As where all of them were removed: setup.sh then installs them again."""
    argv = [sys.executable, "-I", installed_packages.__file__, str(tmp_path)]
    done = run(argv, check=False)
    assert (done.status, done.stdout) == (1, f"{tmp_path} has no packages\n")


def test_the_packages_here_are_whole() -> None:
    assert installed_packages.why_damaged(installed_packages.SITE) == ""


def write_package(site: Path) -> Path:
    """Write an installed package, which lists its files with their hashes."""
    (site / "wheel").mkdir(parents=True)
    (site / "wheel" / "__init__.py").write_text("x = 1\n")
    (site / "wheel" / "data.txt").write_text("data")
    (site / "wheel-1.dist-info").mkdir()
    rows = []
    for name in ("wheel/__init__.py", "wheel/data.txt"):
        digest = base64.urlsafe_b64encode(hashlib.sha256((site / name).read_bytes()).digest())
        rows.append(f"{name},sha256={digest.rstrip(b'=').decode()},1\n")
    rows.append("wheel-1.dist-info/RECORD,,\n")
    (site / "wheel-1.dist-info" / "RECORD").write_text("".join(rows))
    return site


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
