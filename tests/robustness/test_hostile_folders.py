"""Journals, results folders, caches and environments that somebody prepared for us."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import stat
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from analysis.results.background_reduction import settle
from testbed.cli.entry import main
from testbed.engine import Job
from testbed.errors import TestbedError
from testbed.guest import worker
from testbed.guest.engine import GuestEngine
from testbed.machine.atomic import replace, whole_folder, workplace
from testbed.machine.journal import JOURNAL, JOURNAL_SUFFIX, core_locks, journals, state_folder
from testbed.machine.leftovers import clean
from testbed.machine.safe_files import make_folder
from testbed.plan.plan import tasks
from testbed.runs.results_folders import find_run, keep_run
from testbed.store.names import RECORD, RUN_FILE
from testbed.store.reading import open_trial
from tests.scenarios import router
from tests.trial_writer import write_trial

NOBODY = 65534
MARK = "0123456789abcdef"
pytestmark = pytest.mark.as_root
needs_root = pytest.mark.root("acts as two users")


@pytest.fixture(autouse=True)
def _own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    JOURNAL.leave_to_parent()  # that of this process may be open, in the state of an earlier test


@pytest.fixture
def victim(tmp_path: Path) -> Iterator[Path]:
    """What an attacker wants changed: a folder, a file, and a folder that looks unfinished."""
    folder = tmp_path / "victim"
    (folder / ".trial.1").mkdir(parents=True)
    (folder / "file").write_text("untouched")
    before = _state(folder)
    yield folder
    assert _state(folder) == before


def _state(folder: Path) -> list[tuple[str, int, int, int]]:
    found = []
    for path in (folder, *sorted(folder.rglob("*"))):
        info = path.lstat()
        found.append((str(path), info.st_mode, info.st_uid, info.st_mtime_ns))
    return found


def header() -> dict[str, str]:
    """The first line of a journal of this place."""
    with workplace("test"):
        (own,) = journals().iterdir()
        found: dict[str, str] = json.loads(own.read_text().split("\n")[1])
    return found


def entries(victim: Path) -> list[object]:
    """Lines that ask for what no run of ours does."""
    name = f".x.{MARK}.00000000"
    return [
        {"number": 1, "temporary": str(victim)},
        {"number": 1, "temporary": str(victim / ".trial.1")},
        {"number": 1, "temporary": f"{victim}/{name}/../file"},
        {"number": 1, "temporary": f"{victim}/{name}/.."},
        {"number": 1, "temporary": name},
        {"number": 1, "temporary": f"/{name}\0"},
        {"number": 1, "temporary": f"/\ud800{name}"},
        {"number": 1, "temporary": "/" + "x" * 5000 + f"/{name}"},
        {"number": 1, "temporary": None},
        {"number": 1, "temporary": {"a": []}},
        {"number": [1], "temporary": str(victim)},
        {"number": 1, "aside": str(victim / "file"), "of": "moved"},
        {"number": 1, "aside": f"{victim}/{name}", "of": "../file"},
        {"number": 1, "setting": str(victim / "file"), "before": "evil", "after": "untouched"},
        {"number": 1, "setting": "/proc/sys/kernel/hostname", "before": "evil", "after": "x"},
        {"number": 1, "setting": "/sys/module/tcp_x/parameters/../../file", "before": "1"},
        {"done": {"x": 1}},
        [],
        7,
        "{",
        "[" * 100_000,
        "\x00\xff",
    ]


def test_doctored_journals_do_nothing_and_stop_no_other(tmp_path: Path, victim: Path) -> None:
    first = header()
    folder = journals()
    for number, line in enumerate(entries(victim)):
        text = line if isinstance(line, str) else json.dumps(line)
        path = folder / f"{MARK[:-2]}{number:02x}{JOURNAL_SUFFIX}"
        path.write_text(f"{json.dumps(first)}\n{text.replace(MARK, path.stem)}\n")
    for number, text in enumerate(
        ("", "\n", "{", json.dumps({**first, "more": 1}), "[]", "x" * 9999)
    ):
        (folder / f"{MARK[:-2]}e{number}{JOURNAL_SUFFIX}").write_text(text)
    left = tmp_path / f".trial.{'f' * 16}.00000000"
    left.mkdir()
    genuine = f"{json.dumps(first)}\n{json.dumps({'number': 1, 'temporary': str(left)})}"
    (folder / f"{'f' * 16}{JOURNAL_SUFFIX}").write_text(genuine)
    said = clean()
    assert said.done == [f"removed unfinished {left}"]
    long = [each for each in said.failed if "File name too long" in each]
    assert said.failed == long and said.left == []
    assert len(list(folder.iterdir())) == len(long)


def test_what_is_no_journal_is_left_and_named(victim: Path) -> None:
    folder = journals()
    folder.mkdir(parents=True)
    (folder / f"{MARK}{JOURNAL_SUFFIX}").symlink_to(victim / "file")
    (folder / f"{MARK[:-1]}0{JOURNAL_SUFFIX}").mkdir()
    os.mkfifo(folder / f"{MARK[:-1]}1{JOURNAL_SUFFIX}")
    (folder / "12-trial.json").write_text("{}")
    said = clean()
    assert len(said.left) + len(said.failed) == 4
    assert len(list(folder.iterdir())) == 4


@needs_root
def test_root_obeys_no_journal_of_another_user(tmp_path: Path) -> None:
    left = tmp_path / f".trial.{MARK}.00000000"
    left.mkdir()
    first = header()
    path = journals() / f"{MARK}{JOURNAL_SUFFIX}"
    path.write_text(f"{json.dumps(first)}\n{json.dumps({'number': 1, 'temporary': str(left)})}")
    os.chown(path, NOBODY, NOBODY)
    assert clean().left == [f"{path}: it belongs to user {NOBODY}, who can clean up"]
    assert left.is_dir()


@needs_root
def test_root_keeps_no_state_where_another_user_may_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs = tmp_path / "home"
    theirs.mkdir()
    os.chown(theirs, NOBODY, NOBODY)
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setenv("HOME", str(theirs))
    assert state_folder() == Path("/root/.local/state/tcp-testbed")
    monkeypatch.setenv("XDG_STATE_HOME", str(theirs / "state"))
    assert state_folder() == Path("/root/.local/state/tcp-testbed")


@needs_root
def test_root_makes_nothing_in_the_home_of_another_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither locks, nor caches, nor what libraries keep, whatever is linked there."""
    home, roots = tmp_path / "home", Path("/root")
    for name in (".local/state/tcp-testbed", ".config", ".cache"):
        (home / name).mkdir(parents=True)
    plant(home / ".local/state/tcp-testbed/cores", tmp_path)
    os.chown(home, NOBODY, NOBODY)
    monkeypatch.setenv("HOME", str(home))
    for name in ("XDG_STATE_HOME", "XDG_CACHE_HOME", "MPLCONFIGDIR"):
        monkeypatch.setenv(name, "")
    assert core_locks() == worker._core_locks() == roots / ".local/state/tcp-testbed/cores"
    assert main(["list"], {}) == 0
    assert os.environ["MPLCONFIGDIR"] == f"{roots}/.local/state/tcp-testbed/matplotlib"
    assert worker.cache_folder() == roots / ".cache/tcp-testbed/kernel"
    # who ran sudo may have built the kernel
    monkeypatch.setenv("XDG_CACHE_HOME", "")
    monkeypatch.setenv("SUDO_UID", str(NOBODY))
    monkeypatch.setenv("SUDO_GID", str(NOBODY))
    assert main(["list"], {}) == 0
    assert worker.cache_folder() == home / ".cache/tcp-testbed/kernel"


@needs_root
def test_root_runs_no_kernel_that_another_user_could_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = GuestEngine()
    engine._found = tmp_path / "cache"
    linux = tmp_path / "cache" / "linux"
    linux.parent.mkdir()
    for file in (linux, linux.with_name("config")):
        file.write_text("whole")
    assert engine.ready() == ""
    os.chown(linux, NOBODY, NOBODY)
    assert f"{linux} belongs to user {NOBODY}" in engine.ready()
    monkeypatch.setenv("SUDO_UID", str(NOBODY))
    monkeypatch.setenv("SUDO_GID", str(NOBODY))
    assert engine.ready() == ""
    linux.parent.chmod(0o777)
    assert "can be written by others" in engine.ready()


@pytest.fixture
def theirs(tmp_path: Path) -> Path:
    """A results folder of another user's."""
    folder = tmp_path / "results"
    folder.mkdir()
    os.chown(folder, NOBODY, NOBODY)
    return folder


def plant(link: Path, target: Path) -> None:
    link.symlink_to(target)
    os.chown(link, NOBODY, NOBODY, follow_symlinks=False)


@needs_root
def test_planted_links_are_not_written_through(theirs: Path, victim: Path) -> None:
    plant(theirs / "metrics.csv", victim / "file")
    replace(theirs / "metrics.csv", lambda path: path.write_text("ours"))
    assert not (theirs / "metrics.csv").is_symlink()
    plant(theirs / "figures", victim)
    with pytest.raises(TestbedError, match=f"a link on the way, to {victim}, was made by user"):
        make_folder(theirs / "figures")
    with pytest.raises(TestbedError, match="a link on the way"):
        replace(theirs / "figures" / "file", lambda path: path.write_text("evil"))
    plant(theirs / "trial", victim)
    with whole_folder(theirs / "trial") as folder:
        (folder / "file").write_text("ours")
    assert not (theirs / "trial").is_symlink()
    assert (theirs / "trial" / "file").read_text() == "ours"


@needs_root
def test_the_own_links_of_root_are_followed(theirs: Path, tmp_path: Path) -> None:
    (tmp_path / "latest").symlink_to("results")
    replace(tmp_path / "latest" / "metrics.csv", lambda path: path.write_text("ours"))
    assert (theirs / "metrics.csv").read_text() == "ours"


@needs_root
def test_a_trial_of_another_user_is_not_replaced_in_a_sticky_folder(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As an ordinary user, who may rename only what is theirs there."""
    with tempfile.TemporaryDirectory(prefix="testbed-sticky-") as name:
        shared = Path(name)
        shared.chmod(0o1777)
        (shared / "trial").mkdir()
        monkeypatch.setenv("XDG_STATE_HOME", str(shared / "state"))
        os.seteuid(NOBODY)
        try:
            with (
                pytest.raises(TestbedError, match="trial: only user 0 can replace it"),
                whole_folder(shared / "trial"),
            ):
                pass
        finally:
            os.seteuid(0)
        assert {path.name for path in shared.iterdir()} == {"trial", "state"}


@needs_root
def test_a_link_put_in_a_running_trials_place(theirs: Path, victim: Path) -> None:
    """Whoever owns the folder above may rename what is in it."""
    with whole_folder(theirs / "trial") as folder:
        (making,) = theirs.iterdir()
        making.rename(theirs / "elsewhere")
        plant(making, victim)
        (folder / "file").write_text("ours")
    assert (theirs / "elsewhere" / "file").read_text() == "ours"


@needs_root
def test_only_what_was_made_is_given_to_the_user(
    theirs: Path, victim: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SUDO_UID", str(NOBODY))
    monkeypatch.setenv("SUDO_GID", str(NOBODY))
    (theirs / "roots").write_text("root's own")
    os.link(theirs / "roots", theirs / "linked")
    make_folder(theirs / "new" / "figures")
    with whole_folder(theirs / "trial") as made:
        (made / "file").touch()
        (made / "link").symlink_to(victim / "file")
    replace(theirs / "metrics.csv", lambda path: path.write_text("x"))
    owners = {path.name: path.lstat().st_uid for path in theirs.rglob("*")}
    given = {"trial", "file", "link", "metrics.csv", "new", "figures"}
    assert {name for name, uid in owners.items() if uid == NOBODY} == given


@needs_root
def test_captures_are_dropped_in_their_own_folder(theirs: Path, victim: Path) -> None:
    path = write_trial(theirs / "trial")
    trial = open_trial(path)
    (capture, *others) = trial.record.captures
    outside = dataclasses.replace(capture, file=str(victim / "file"))
    record = dataclasses.replace(trial.record, captures=(outside, *others))
    (path / RECORD).write_text(record.to_json())
    with pytest.raises(TestbedError, match="is not one of its capture files"):
        open_trial(path)
    (path / RECORD).write_text(trial.record.to_json())
    (path / "captures").rename(path / "away")
    (path / "elsewhere").mkdir()
    name = Path(capture.file).name
    shutil.copy(path / "away" / name, path / "elsewhere")  # what is damaged is not compressed
    plant(path / "captures", path / "elsewhere")
    for how in ("zstd", "drop"):
        with pytest.raises(TestbedError, match="a link on the way"):
            settle(trial, how)
    assert len(list((path / "elsewhere").iterdir())) == 1


@needs_root
@pytest.mark.parametrize("link", ["runs/mine", "latest", "elsewhere"])
def test_no_run_is_removed_behind_a_link_of_another_user(
    theirs: Path, tmp_path: Path, link: str
) -> None:
    """Neither by a link in the place of a run, nor of a results folder."""
    ours = tmp_path / "ours"
    write_trial(ours / "trial")
    run = keep_run(ours, "first", "testbed run x", ["trial"])
    (theirs / "runs").mkdir()
    plant(theirs / link, ours if link == "elsewhere" else run.path)
    named = theirs / link / ("runs/first" if link == "elsewhere" else "")
    with pytest.raises(TestbedError, match=f"a link on the way, to {tmp_path}/ours.*, was made by"):
        find_run(str(named), theirs)
    assert main(["runs", "remove", str(named)]) == 1
    assert run.existing_trials() == [ours / "trial"]
    assert (run.path / RUN_FILE).is_file()


@needs_root
def test_a_run_is_removed_behind_a_link_of_root(tmp_path: Path) -> None:
    ours = tmp_path / "ours"
    write_trial(ours / "trial")
    run = keep_run(ours, "first", "testbed run x", ["trial"])
    assert main(["runs", "remove", str(ours / "latest")]) == 0
    assert not run.path.exists() and not (ours / "trial").exists()


def test_a_running_trial_is_closed_to_others(tmp_path: Path) -> None:
    with whole_folder(tmp_path / "one"):
        (made,) = tmp_path.glob(".one*")
        assert stat.S_IMODE(made.stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "one").stat().st_mode) == 0o777 & ~_umask()


@needs_root
def test_a_running_trial_is_open_to_the_group_of_the_user_who_ran_sudo(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their programs, on the host engine, may pass through its folder."""
    monkeypatch.setenv("SUDO_UID", str(NOBODY))
    monkeypatch.setenv("SUDO_GID", str(NOBODY))
    with whole_folder(tmp_path / "two"):
        (made,) = tmp_path.glob(".two*")
        assert (stat.S_IMODE(made.stat().st_mode), made.stat().st_gid) == (0o710, NOBODY)


def _umask() -> int:
    before = os.umask(0)
    os.umask(before)
    return before


def test_what_a_guest_leaves_besides_files(tmp_path: Path, victim: Path) -> None:
    """Links, pipes and what no trial leaves are gone before anything is read; the trial failed."""
    kernel = tmp_path / "kernel"
    kernel.mkdir()
    attack = [
        "#!/bin/sh",
        "rm -r captures samples",
        f"ln -s {victim} captures; ln -s {victim}/file guest.status; mkfifo trial.json",
        "mkdir samples; ln -s /etc/shadow samples/queues.csv",
        "touch program; chmod 4755 program",
    ]
    (kernel / "linux").write_text("\n".join(attack))
    (kernel / "linux").chmod(0o755)
    (kernel / "config").touch()
    trial = tmp_path / "trial"
    trial.mkdir()
    engine = GuestEngine()
    engine._found = kernel
    (task,) = tasks([router()])
    with pytest.raises(TestbedError) as caught:
        engine.run(trial, task, Job(1, min(os.sched_getaffinity(0)), threading.Event()))
    line, _, named = caught.value.message.partition(": ")
    assert line == "5 things that the guest left were not taken"
    assert {"captures (a link)", "guest.status (a link)", "trial.json (a pipe)"} & set(
        named.removesuffix(" and 2 more").split(", ")
    )
    assert not list(trial.iterdir())
