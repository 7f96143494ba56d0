"""Newer versions beside 6.1, a kernel of one's own: the same bytes, the commit that changed them.

Building takes minutes: the versions are tested where they are built, the rest with --full.
"""

from __future__ import annotations

import dataclasses
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from testbed.guest import boot, kernels
from testbed.guest.engine import GuestEngine
from testbed.scenario.model import Scenario
from testbed.scenario.variations import on_kernels
from tests.lab import capture_hashes, run_trials
from tests.scenarios import router

OLDER, NEWER = "6.1", "6.12"
GOOD, TRIED = "test-good", "test-tried"
PLANTED = ("static int beta __read_mostly = 717;", "static int beta __read_mostly = 819;")


def on_newer(variant: str, version: str = NEWER) -> Scenario:
    (scenario,) = on_kernels([router(variant=variant, duration_s=2)], [version])
    return scenario


def needs(version: str) -> pytest.MarkDecorator:
    """Skip where a version is not built, and say what builds it."""
    is_built = kernels.built_folder(version) is not None
    return pytest.mark.skipif(not is_built, reason=f"testbed kernel build {version}")


newer_versions = pytest.mark.parametrize(
    "version", [pytest.param(each, marks=needs(each)) for each in kernels.versions()[1:]]
)


@newer_versions
def test_another_version_of_linux(version: str, tmp_path: Path) -> None:
    """Its trials are valid, and a second run gives the same bytes."""
    scenarios = [on_newer(variant, version) for variant in ("cubic", "tahoe", "sack")]
    first = run_trials(scenarios, tmp_path / "first")
    again = run_trials(scenarios, tmp_path / "again")
    assert [capture_hashes(t) for t in first] == [capture_hashes(t) for t in again]
    assert all(trial.record.kernel.split()[1].startswith(f"{version}.") for trial in first)


@needs(NEWER)
@needs(OLDER)
def test_two_versions_send_other_packets(tmp_path: Path) -> None:
    newer = on_newer("cubic")
    older = dataclasses.replace(newer, kernel=OLDER, label="before")
    trials = run_trials([older, newer], tmp_path)
    for trial, version in zip(trials, (OLDER, NEWER), strict=True):
        assert trial.record.kernel.split()[1].startswith(f"{version}.")
    assert capture_hashes(trials[0]) != capture_hashes(trials[1])


def git(folder: Path, *words: str) -> str:
    argv = ["git", "-c", "user.name=x", "-c", "user.email=x@y", *words]
    return subprocess.run(argv, cwd=folder, check=True, capture_output=True, text=True).stdout


def commit(folder: Path, file: str, old: str, new: str) -> str:
    path = folder / file
    path.write_text(path.read_text().replace(old, new, 1))
    git(folder, "commit", "-qam", f"{file}: {new}")
    return git(folder, "rev-parse", "HEAD").strip()


@pytest.fixture
def testbed(root: Path) -> Iterator[str]:
    """The command; the kernels that the test builds are removed after it."""
    command = str(root / ".venv/bin/testbed")
    yield command
    for name in (GOOD, TRIED):
        subprocess.run([command, "kernel", "remove", name], check=False, capture_output=True)


def test_the_commit_that_changed_the_packets(full: bool, testbed: str, tmp_path: Path) -> None:
    """A tree with a comment, a planted change and a comment: git finds the one in the middle."""
    if not full:
        pytest.skip("builds a kernel of one's own and bisects: --full")
    source = Path(f"/usr/src/linux-source-{NEWER}.tar.xz")
    if not source.exists():
        pytest.skip(f"testbed kernel build {NEWER}")
    tree = tmp_path / "linux"
    tree.mkdir()
    unpack = ["tar", "-xf", str(source), "--strip-components=1", "-C", str(tree)]
    subprocess.run([*unpack, "--exclude=*/Documentation/*/*"], check=True)
    git(tree, "init", "-q")
    git(tree, "add", "-A", "-f", "net/ipv4")
    git(tree, "commit", "-qm", "as it is")
    build = [testbed, "kernel", "build", "--source", str(tree), "--name", GOOD]
    subprocess.run(build, check=True)
    good = git(tree, "rev-parse", "HEAD").strip()
    include = "#include <net/tcp.h>"
    commit(tree, "net/ipv4/tcp_timer.c", include, f"/* A comment. */\n{include}")
    planted = commit(tree, "net/ipv4/tcp_cubic.c", *PLANTED)
    bad = commit(tree, "net/ipv4/tcp_output.c", include, f"/* Another. */\n{include}")
    git(tree, "bisect", "start", bad, good)
    ask = [testbed, "kernel", "same", "variants", "--source", ".", "--as", GOOD]
    ask += ["--name", TRIED, "--set", "variant=cubic", "--quick", "--out", str(tmp_path / "out")]
    assert f"{planted} is the first bad commit" in git(tree, "bisect", "run", *ask)


@pytest.mark.slow(but=1)
@pytest.mark.parametrize(
    "version", [pytest.param(each, marks=needs(each)) for each in kernels.versions()]
)
def test_traced_processes_send_the_same_packets(
    version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the guest is not confined; `testbed check` says which way processes stop."""
    both = [router(variant=each, rate_mbit=20, duration_s=3) for each in ("cubic", "bbr")]
    scenarios, engine = on_kernels(both, [version]), GuestEngine(version)
    turns, told = run_trials(scenarios, tmp_path / "turns"), engine.try_out()
    monkeypatch.setattr(boot, "why_not_confined", lambda: "a test")
    traced, told_then = run_trials(scenarios, tmp_path / "traced"), engine.try_out()
    assert "processes take turns" in told and "processes are traced" in told_then
    assert [capture_hashes(t) for t in turns] == [capture_hashes(t) for t in traced]
