"""What a killed run leaves is found by its journal; what lives is left alone."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from testbed.machine import tracefs
from testbed.machine.journal import Journal, clean, state_folder

OWNER = """
import os, sys, time
from pathlib import Path
from testbed.machine import tracefs
from testbed.machine.journal import Journal
from testbed.machine.process import run
folder, setting = Path(sys.argv[1]), Path(sys.argv[2])
folder.mkdir()
journal = Journal(folder).__enter__()
journal.change(setting, setting.read_text(), "after")
setting.write_text("after")
pid = os.posix_spawnp("sleep", ["sleep", "300"], {**os.environ, **journal.marker})
while not Path(f"/proc/{pid}/environ").read_bytes():  # the kernel fills it in after the exec
    time.sleep(0.001)
print(pid, flush=True)
time.sleep(300)
"""


@pytest.fixture(autouse=True)
def _own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture
def setting(tmp_path: Path) -> Path:
    path = tmp_path / "setting"
    path.write_text("before")
    return path


def killed_run(folder: Path, setting: Path) -> int:
    """A run that is killed; returns the process that it leaves behind."""
    argv = [sys.executable, "-c", OWNER, str(folder), str(setting)]
    owner = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
    assert owner.stdout
    orphan = int(owner.stdout.readline())
    owner.kill()
    owner.wait()
    return orphan


def test_everything_of_a_killed_run_is_removed(tmp_path: Path, setting: Path) -> None:
    orphan = killed_run(tmp_path / ".trial.1", setting)
    assert Path(f"/proc/{orphan}").exists()
    said = clean()
    assert any(f"process {orphan} (sleep)" in what for what in said)
    assert not (tmp_path / ".trial.1").exists()
    assert setting.read_text() == "before"
    assert list(state_folder().iterdir()) == []
    for _ in range(100):
        if not Path(f"/proc/{orphan}").exists():
            break
        time.sleep(0.01)
    assert not Path(f"/proc/{orphan}").exists()


def test_the_trace_instance_of_a_dead_run_alone(
    tmp_path: Path, setting: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which one is ours follows from the run's mark."""
    asked: list[str] = []

    def remove(mark: str) -> str:
        asked.append(mark)
        return "testbed-1"

    monkeypatch.setattr(tracefs, "remove", remove)
    living = tmp_path / ".trial.2"
    living.mkdir()
    killed_run(tmp_path / ".trial.1", setting)
    dead = next(state_folder().iterdir()).stem
    with Journal(living) as journal:
        assert "trace instance testbed-1" in clean()
        assert asked == [dead] != [journal.mark]


@pytest.mark.skipif(os.geteuid() != 0, reason="tracing needs root")
def test_an_instance_that_is_left_is_removed_and_no_other() -> None:
    try:
        instances = [tracefs.Instance(f"{os.getpid()}-{name}") for name in ("mine", "theirs")]
    except OSError:
        pytest.skip("this kernel has no tracing")
    try:
        mark = f"{os.getpid()}-mine"
        assert tracefs.remove(mark) == tracefs.instance_name(mark)
        assert tracefs.remove(mark) == ""
        assert instances[1].format("tcp/tcp_probe")
    finally:
        for instance in instances:
            instance.close()
    assert tracefs.remove(f"{os.getpid()}-theirs") == ""


def test_a_second_call_finds_nothing(tmp_path: Path, setting: Path) -> None:
    killed_run(tmp_path / ".trial.1", setting)
    clean()
    assert clean() == []


def test_a_setting_that_somebody_changed_since_is_left_alone(tmp_path: Path, setting: Path) -> None:
    killed_run(tmp_path / ".trial.1", setting)
    setting.write_text("theirs")
    clean()
    assert setting.read_text() == "theirs"


def test_a_living_run_is_left_alone(tmp_path: Path) -> None:
    folder = tmp_path / ".trial.2"
    folder.mkdir()
    with Journal(folder):
        assert clean() == []
        assert folder.exists()
    assert list(state_folder().iterdir()) == []


def test_a_pid_that_belongs_to_another_process_now(tmp_path: Path) -> None:
    folder = tmp_path / ".trial.3"
    folder.mkdir()
    with Journal(folder):
        path = next(state_folder().iterdir())
        text = path.read_text()
    import json

    path.write_text(json.dumps({**json.loads(text), "pid": os.getpid(), "started": 1}))
    assert clean() == [f"unfinished folder {folder}"]


def test_a_whole_trial_is_never_removed(tmp_path: Path, setting: Path) -> None:
    killed_run(tmp_path / "trial", setting)  # no dot: already renamed
    clean()
    assert (tmp_path / "trial").is_dir()
