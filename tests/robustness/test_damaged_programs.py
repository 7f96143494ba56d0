"""Programs that were damaged after they were built: a run names them, instead of other packets."""

from __future__ import annotations

import dataclasses
import hashlib
from pathlib import Path

import pytest

from testbed.errors import TestbedError
from testbed.guest import boot, kernels
from testbed.guest.engine import GuestEngine
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
    engine.__dict__["kernel"] = tmp_path
    for damage in (b"", b"linuX"):
        (tmp_path / "linux").write_bytes(damage)
        assert "is damaged: ./setup.sh builds it again" in engine.ready()
    (tmp_path / "linux").unlink()
    assert not kernels.is_whole(tmp_path)


def test_an_older_kernel_without_a_file_does_not_boot(tmp_path: Path) -> None:
    """No hashes were noted then."""
    for name in ("linux", "config"):
        (tmp_path / name).write_bytes(b"x")
    assert kernels.is_whole(tmp_path)
    (tmp_path / "config").unlink()
    assert not kernels.is_whole(tmp_path)


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
