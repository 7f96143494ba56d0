"""`testbed columns` and `testbed doctor`, without a trial."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from testbed.cli import machine
from testbed.cli.entry import main
from testbed.store.records import Status


def test_a_column_has_its_unit_and_its_definition(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["columns", "jitter"]) == 0
    assert "  jitter_ms (ms): the interarrival jitter" in capsys.readouterr().out
    assert main(["columns", "gooput_mbps"]) == 2
    assert "did you mean 'goodput_mbps'?" in capsys.readouterr().err


def test_a_folder_has_the_size_of_its_files(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "b").write_bytes(b"x" * 8192)
    assert machine._size(tmp_path) >= 8192


class Ran:
    """What a trial of a second came to, as far as doctor reads it."""

    def __init__(self, status: Status) -> None:
        self.record = SimpleNamespace(status=status, reason="no kernel", wall_s=0.4)
        self.trials = (self,)


@pytest.mark.parametrize(
    ("status", "free", "code", "lines"),
    [
        (Status.OK, 10**12, 0, ["ok      0.4 s, ", "ok      disk: 1000.0 GB free here"]),
        (Status.FAILED, 10**9, 1, ["missing speed: no kernel", "-       disk: 1.0 GB free here"]),
    ],
)
def test_doctor_says_how_fast_a_trial_is_and_what_the_disk_has(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    status: Status,
    free: int,
    code: int,
    lines: list[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(machine, "print_findings", lambda: 0)
    monkeypatch.setattr(machine, "select", lambda *_: None)
    monkeypatch.setattr(machine, "plan_and_carry_out", lambda *_: (None, Ran(status)))
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=free))
    assert main(["doctor"]) == code
    said = capsys.readouterr()
    assert all(line in said.out for line in lines)
    assert ("hint: testbed doctor --mend" in said.err) == bool(code)


def test_doctor_mends_what_is_stale_and_cleans_before_it_checks(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    done: list[object] = []
    stale = SimpleNamespace(file=tmp_path / "runner")
    monkeypatch.setattr(machine, "BUILT", (stale,))
    monkeypatch.setattr(machine, "run", lambda words, cwd: done.append(words))
    monkeypatch.setattr(machine, "clean", lambda _: done.append("clean"))
    monkeypatch.setattr(machine, "print_findings", lambda: len(done) - 2)  # 0: after both
    monkeypatch.setattr(machine, "_speed", lambda _: 0)
    assert main(["doctor", "--mend"]) == 0
    assert done == [["make", "--silent"], "clean"]
    assert "compiling runner" in capsys.readouterr().out
