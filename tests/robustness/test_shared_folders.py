"""A results folder on a full, a read-only and a vanishing disk, with two sweeps, and two machines.

The trials are one recorded trial, replayed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from testbed.scenario.model import Scenario
from tests.lab import wait_until
from tests.robustness.killing import KILL, KILLED, ROOT, Laboratory, recorded
from tests.scenarios import router

CLEAN = "raise SystemExit(__import__('experiments.command').command.main(['clean']))"
ELSEWHERE = f"import socket; socket.sethostname('other-machine'); {CLEAN}"
needs_root = pytest.mark.root("mounts a disk")


@pytest.fixture(scope="module")
def replay(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("recorded") / "trial"
    return recorded(folder, asked(1))


def asked(seed: int) -> Scenario:
    return router(variant="cubic", duration_s=1, seed=seed)


def run_into(lab: Laboratory, seed: int = 1) -> list[str]:
    """A command that replaces a trial in the laboratory's folder."""
    path = lab.state / f"{seed}.json"
    path.write_text(asked(seed).to_json())
    return ["run", str(path), "--engine", "guest", "--rerun", "--out", str(lab.out)]


@pytest.fixture
def lab(tmp_path: Path) -> Laboratory:
    return Laboratory(tmp_path / "lab")


@pytest.fixture
def disk(lab: Laboratory) -> Iterator[Callable[..., None]]:
    """Mount a separate disk for the results, or remount it."""

    def mount(*options: str) -> None:
        subprocess.run(["mount", "-t", "tmpfs", *options, "results", lab.out], check=True)

    yield mount
    subprocess.run(["umount", "--lazy", lab.out], check=False, capture_output=True)


def size_kib(folder: Path) -> int:
    return sum(-(-path.stat().st_size // 4096) * 4 for path in folder.rglob("*"))


@needs_root
def test_a_disk_that_fills_up(lab: Laboratory, disk: Callable[..., None], replay: Path) -> None:
    """Whole trials are kept, and the sweep goes on once there is room."""
    disk("-o", "size=1g")
    assert lab.run(*run_into(lab), replay=replay).status == 0
    kept = lab.whole()
    disk("-o", f"remount,size={size_kib(lab.out) + size_kib(replay) // 2}k")
    for seed in (1, 2):
        full = lab.run(*run_into(lab, seed), replay=replay)
        assert full.status == 1
        assert "the disk is full" in full.said, full.said
        assert "Traceback" not in full.said
        assert lab.left() == []
        assert lab.whole() == kept
    disk("-o", "remount,size=1g")
    assert lab.run(*run_into(lab, 2), replay=replay).status == 0
    assert len(lab.whole()) == 2


@needs_root
def test_a_read_only_disk(lab: Laboratory, disk: Callable[..., None], replay: Path) -> None:
    argv = run_into(lab)
    disk()
    lab.run(*argv, replay=replay)
    whole = lab.whole()
    disk("-o", "remount,ro")
    said = lab.run(*argv, replay=replay)
    assert said.status == 1
    assert said.said.splitlines()[1:] == [
        f"testbed: cannot write to {lab.out}: no right to, or a read-only file system",
        "    hint: name another folder with --out",
    ]
    assert lab.whole() == whole
    assert lab.left() == []


@needs_root
@pytest.mark.parametrize("how", ["unplugged", "removed"])
def test_a_disk_that_vanishes(
    lab: Laboratory, disk: Callable[..., None], tmp_path: Path, replay: Path, how: str
) -> None:
    disk()
    release = tmp_path / "release"
    lab.begin(*run_into(lab), replay=replay, released_by=release)
    wait_until(lambda: list(lab.out.glob(".*")))
    if how == "unplugged":
        subprocess.run(["umount", "--lazy", lab.out], check=True)
    else:
        shutil.rmtree(lab.out, ignore_errors=True)
    release.touch()
    ended = lab.end()
    assert ended.status == 1
    assert "Traceback" not in ended.said
    assert "testbed: " in ended.said, ended.said
    assert lab.left() == []


def test_two_sweeps_in_one_folder(lab: Laboratory, tmp_path: Path, replay: Path) -> None:
    """The second says whom it is waiting for."""
    other = Laboratory(tmp_path / "other", server=1)
    release = tmp_path / "release"
    lab.begin(*run_into(lab), replay=replay, released_by=release)
    wait_until(lambda: list(lab.out.glob(".*")))
    other.begin(*run_into(lab), replay=replay)
    wait_until(lambda: "is in use by process" in other.said())
    release.touch()
    first, second = lab.end(), other.end()
    assert "in use" not in first.said
    assert f"testbed: {lab.out} is in use by process" in second.said
    assert "Traceback" not in first.said + second.said
    assert len(lab.whole()) == 1
    assert lab.left() == other.left() == []


def clean_elsewhere(lab: Laboratory, program: str, *spaces: str) -> str:
    argv = ["unshare", *spaces, "--", sys.executable, "-c", program]
    environment = os.environ | lab.environment
    done = subprocess.run(
        argv, env=environment, cwd=ROOT, capture_output=True, text=True, check=True
    )
    return done.stdout


@needs_root
def test_clean_on_another_machine_and_in_a_container(
    lab: Laboratory, tmp_path: Path, replay: Path
) -> None:
    """Where folders are shared: what lives is left alone, and so is what died elsewhere."""
    machine = (ELSEWHERE, "--uts", "--pid", "--fork", "--mount-proc")
    container = (CLEAN, "--pid", "--fork", "--mount-proc")
    release = tmp_path / "release"
    lab.begin(*run_into(lab), replay=replay, released_by=release)
    wait_until(lambda: list(lab.out.glob(".*")))
    assert clean_elsewhere(lab, *machine) == "nothing was left behind\n"
    assert list(lab.out.glob(".*"))
    (tmp_path / "kill").write_text(KILL)
    (tmp_path / "kill").rename(release)
    assert lab.end().status == KILLED
    left = lab.left()
    assert left
    assert "a run on another machine" in clean_elsewhere(lab, *machine)
    assert "a run in another container" in clean_elsewhere(lab, *container)
    assert lab.left() == left
    assert "removed unfinished" in lab.clean()
    assert lab.left() == []


# mount a small disk below the working folder, for the results and the temporary files
ON_DISK = (
    "mkdir disk && mount -t tmpfs -o size=$0 disk disk && mkdir disk/tmp || exit; "
    'TMPDIR=$PWD/disk/tmp "$@" 2>&1 >/dev/null; echo "status $?"; find disk -mindepth 1'
)
IN_NAMESPACE = ("unshare", "-U", "--map-current-user", "--keep-caps", "-m", "sh", "-c", ON_DISK)
SCRIPT = "head -c 8000000 /dev/urandom >large"


@pytest.mark.skipif(
    bool(subprocess.run([*IN_NAMESPACE[:-1], "true"], check=False, capture_output=True).returncode),
    reason="needs a user namespace, to mount a disk",
)
@pytest.mark.parametrize(
    ("size", "words", "place"),
    [
        ("100k", ("exec", "--out", "disk/x", "--", "true"), "disk/tmp"),
        ("4m", ("exec", "--out", "disk/x", "--", "sh", "-c", SCRIPT), "disk"),
        ("600k", ("run", "asked.json", "--engine", "guest", "--out", "disk/out"), "disk/out"),
    ],
    ids=["temporary-files", "a-program", "a-trial"],
)
def test_a_disk_that_is_too_small_is_one_line(
    tmp_path: Path, size: str, words: tuple[str, ...], place: str
) -> None:
    """The guest cannot tell beforehand: it sees a disk of a fixed size, whatever the host's has."""
    large = router(variant="cubic", duration_s=3, rate_mbit=20)
    (tmp_path / "asked.json").write_text(large.to_json())
    environment = os.environ | {"XDG_STATE_HOME": str(tmp_path / "state")}
    done = subprocess.run(
        [*IN_NAMESPACE, size, sys.executable, "-m", "experiments", *words],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    said = done.stdout.splitlines()
    first = next((n for n, each in enumerate(said) if each.startswith("testbed: ")), 0)
    line, hint, status, *left = said[first:]
    assert line.endswith(f"{place}: the disk is full")
    assert hint.startswith("    hint: ")
    assert "make room, or name another" in hint
    assert status == "status 1"
    assert {"disk/tmp"} <= set(left) <= {"disk/tmp", "disk/out"}
