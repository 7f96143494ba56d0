"""What a killed run leaves is found by its journal; what lives is left alone."""

from __future__ import annotations

import contextlib
import errno
import itertools
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from testbed.errors import TestbedError
from testbed.machine import safe_files, sysctl_guard, tracefs
from testbed.machine.atomic import replace, replace_all, whole_folder, workplace
from testbed.machine.journal import JOURNAL, JOURNAL_SUFFIX, journals
from testbed.machine.leftovers import Cleaned, clean
from testbed.machine.locks import lock
from tests.lab import PATIENCE_S

OWNER = """
import os, sys, time
from pathlib import Path
from testbed.machine.atomic import replace, whole_folder
from testbed.machine.journal import JOURNAL
from testbed.machine.sysctl_guard import temporarily
trial, setting = Path(sys.argv[1]), Path(sys.argv[2])

def wait(_path):
    pid = os.posix_spawnp("sleep", ["sleep", "300"], {**os.environ, **JOURNAL.marker})
    while not Path(f"/proc/{pid}/environ").read_bytes():  # the kernel fills it in after the exec
        time.sleep(0.001)
    print(pid, flush=True)
    time.sleep(300)

with whole_folder(trial), temporarily(setting, "b c after"):
    replace(trial.parent / "metrics.csv", wait)
"""


@pytest.fixture(autouse=True)
def _own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture
def setting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file that counts as one of the kernel's settings."""
    path = tmp_path / "setting"
    path.write_text("before")
    monkeypatch.setattr(sysctl_guard, "_CHANGED_BY_TRIALS", re.compile(re.escape(str(path))))
    return path


@pytest.fixture
def out(tmp_path: Path) -> Path:
    folder = tmp_path / "out"
    folder.mkdir()
    return folder


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def killed_run(trial: Path, setting: Path) -> int:
    """A run that is killed; returns the process that it leaves behind."""
    argv = [sys.executable, "-c", OWNER, str(trial), str(setting)]
    owner = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
    assert owner.stdout
    orphan = int(owner.stdout.readline())
    owner.kill()
    owner.wait()
    return orphan


def test_everything_of_a_killed_run_is_undone(out: Path, setting: Path) -> None:
    orphan = killed_run(out / "trial", setting)
    assert len(names(out)) == 2
    said = clean()
    assert (said.left, said.failed) == ([], [])
    assert f"ended process {orphan} (sleep)" in said.done
    assert "set setting back to 'before'" in said.done
    assert names(out) == []
    assert setting.read_text() == "before"
    assert names(journals()) == []
    with contextlib.suppress(ChildProcessError):
        os.waitpid(orphan, 0)
    assert clean() == Cleaned()


def test_a_list_in_another_order_is_the_same_list(out: Path, setting: Path) -> None:
    killed_run(out / "trial", setting)
    setting.write_text("after b  c\n")
    clean()
    assert setting.read_text() == "before"


def test_a_setting_that_somebody_changed_since_is_left_alone(out: Path, setting: Path) -> None:
    killed_run(out / "trial", setting)
    setting.write_text("theirs")
    assert "left setting alone: it was changed since" in clean().done
    assert setting.read_text() == "theirs"


def test_a_setting_that_we_do_not_change_is_left_alone(
    out: Path, setting: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed_run(out / "trial", setting)
    monkeypatch.undo()
    monkeypatch.setenv("XDG_STATE_HOME", str(out.parent / "state"))
    clean()
    assert setting.read_text() == "b c after"


@pytest.mark.root("traces the kernel")
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


def test_the_trace_instance_of_a_dead_run_alone(
    out: Path, setting: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which one is ours follows from the run's mark."""
    asked: list[str] = []

    def remove(mark: str) -> str:
        asked.append(mark)
        return "testbed-1"

    monkeypatch.setattr(tracefs, "remove", remove)
    killed_run(out / "trial", setting)
    (dead,) = names(journals())
    with whole_folder(out / "another"):
        assert "removed trace instance testbed-1" in clean().done
        assert asked == [dead.removesuffix(JOURNAL_SUFFIX)] != [JOURNAL.mark]


def test_a_living_run_is_left_alone(out: Path) -> None:
    with whole_folder(out / "trial"):
        assert clean() == Cleaned()
        assert len(names(out)) == 1
    assert names(out) == ["trial"]
    assert names(journals()) == []


def test_the_folder_for_temporary_files_is_tried_without_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As `tempfile` would: whoever is killed just then leaves it."""
    monkeypatch.setenv("TMPDIR", str(tmp_path / "missing"))
    (own := tmp_path / "own").mkdir()
    monkeypatch.setenv("TEMP", str(own))
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setattr(tempfile, "gettempdir", None)
    with workplace("test") as place:
        assert place.parent == own
        assert names(own) == [place.name]
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(TestbedError, match="written nowhere"), workplace("test"):
        pass


@contextlib.contextmanager
def dead_journal(mark: str = "0123456789abcdef", **origin: str) -> Iterator[list[object]]:
    """Lines for a journal that nobody has locked, with this machine's origin unless told."""
    with workplace("test"):
        (own,) = journals().iterdir()
        first = json.loads(own.read_text().split("\n")[1])
    lines: list[object] = [{**first, **origin}]
    yield lines
    text = "".join(f"\n{each if isinstance(each, str) else json.dumps(each)}" for each in lines)
    (journals() / f"{mark}{JOURNAL_SUFFIX}").write_text(text)


@pytest.mark.parametrize(
    ("field", "where"), [("machine", "on another machine, theirs"), ("processes", "in another")]
)
def test_a_foreign_journal_is_left_and_named(out: Path, field: str, where: str) -> None:
    theirs = out / ".trial.0123456789abcdef.00000000"
    theirs.mkdir()
    with dead_journal(**{field: "theirs"}) as lines:
        lines.append({"number": 1, "temporary": str(theirs)})
    said = clean()
    assert said.done == said.failed == []
    (left,) = said.left
    assert f"a run {where}" in left and names(journals())[0] in left
    assert theirs.is_dir()


def test_after_a_restart_files_go_and_settings_are_the_new_kernels(
    out: Path, setting: Path
) -> None:
    theirs = out / ".trial.0123456789abcdef.00000000"
    theirs.mkdir()
    with dead_journal(boot="earlier", processes="gone") as lines:
        lines.append({"number": 1, "temporary": str(theirs)})
        lines.append({"number": 2, "setting": str(setting), "before": "x", "after": "before"})
    assert clean() == Cleaned(done=[f"removed unfinished {theirs}"])
    assert setting.read_text() == "before"


@pytest.mark.parametrize("present", [False, True])
def test_a_replacement_that_was_cut_off_loses_no_trial(out: Path, present: bool) -> None:
    old = out / ".trial.0123456789abcdef.00000000"
    old.mkdir()
    (old / "old").touch()
    if present:
        (out / "trial").mkdir()
    with dead_journal() as lines:
        lines.append({"number": 1, "aside": str(old), "of": "trial"})
    clean()
    assert names(out) == ["trial"]
    assert (out / "trial" / "old").exists() is not present


def test_what_is_crossed_out_is_done(out: Path) -> None:
    mine = out / ".trial.0123456789abcdef.00000000"
    mine.mkdir()
    with dead_journal() as lines:
        lines += [{"number": 1, "temporary": str(mine)}, {"done": 1}]
    assert clean() == Cleaned()
    assert mine.is_dir()


def test_a_trial_is_on_the_disk_before_it_counts(
    out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[list[str]] = []
    monkeypatch.setattr(safe_files, "sync", lambda _folder: seen.append(names(out)))
    with whole_folder(out / "trial"):
        pass
    assert ["trial" in each for each in seen] == [False]
    assert names(out) == ["trial"]


@pytest.mark.parametrize("failing", [1, 2])
def test_what_cannot_be_replaced_stays(
    out: Path, monkeypatch: pytest.MonkeyPatch, failing: int
) -> None:
    """Whichever of the two renames fails."""
    (out / "trial").mkdir()
    (out / "trial" / "old").touch()
    rename, numbers = os.rename, itertools.count(1)

    def rename_or_fail(old: str, new: str, *, src_dir_fd: int, dst_dir_fd: int) -> None:
        if next(numbers) == failing:
            raise OSError(errno.EIO, "the disk is broken")
        rename(old, new, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd)

    monkeypatch.setattr(os, "rename", rename_or_fail)
    with pytest.raises(OSError, match="broken"), whole_folder(out / "trial"):
        pass
    assert names(out) == ["trial"]
    assert names(out / "trial") == ["old"]
    assert names(journals()) == []


def test_many_files_are_replaced_each_whole(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (out / "b").write_text("old")
    replace_all(out, {"a": "new", "b": "new"})
    assert {path.name: path.read_text() for path in out.iterdir()} == {"a": "new", "b": "new"}

    left = iter([1])

    def full(_file: int) -> None:
        assert names(journals()) != []
        if next(left, None) is None:
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(safe_files, "give_to_user", full)
    with pytest.raises(TestbedError, match="cannot be written: No space left on device"):
        replace_all(out, {"a": "newer", "b": "newer"})
    assert {path.name: path.read_text() for path in out.iterdir()} == {"a": "newer", "b": "new"}
    assert names(journals()) == []


def test_threads_share_a_journal(out: Path) -> None:
    """It is there as long as one of them has something in it."""
    began, end = threading.Event(), threading.Event()

    def make() -> None:
        with whole_folder(out / "trial"):
            began.set()
            end.wait(PATIENCE_S)

    thread = threading.Thread(target=make)
    thread.start()
    assert began.wait(PATIENCE_S)
    replace(out / "metrics.csv", lambda path: path.write_text("x"))
    assert len(names(journals())) == 1
    end.set()
    thread.join()
    assert names(journals()) == []


def test_a_forked_process_has_a_journal_of_its_own(out: Path) -> None:
    with whole_folder(out / "trial"):
        mark = JOURNAL.mark
        child = os.fork()
        if child == 0:
            with contextlib.suppress(BaseException):
                with workplace("child"):
                    fine = JOURNAL.mark != mark and len(names(journals())) == 2
                os._exit(0 if fine and len(names(journals())) == 1 else 1)
            os._exit(2)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert JOURNAL.mark == mark
        assert clean() == Cleaned()


def test_without_a_place_for_journals_nothing_is_begun(
    out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "/proc/state")
    with pytest.raises(TestbedError, match="no journal can be written"):
        replace(out / "metrics.csv", lambda path: path.write_text("x"))
    assert names(out) == []


def test_who_waits_is_told_for_whom(tmp_path: Path) -> None:
    (tmp_path / "lock").touch()
    said: list[str] = []
    cancel = threading.Event()

    def tell(text: str) -> None:
        said.append(text)
        cancel.set()

    with (tmp_path / "lock").open() as first, (tmp_path / "lock").open() as second:
        lock(first.fileno(), "it", tell, cancel)
        assert said == []
        lock(second.fileno(), "it", tell, cancel)
    assert said[0].startswith(f"it is in use by process {os.getpid()} (")
