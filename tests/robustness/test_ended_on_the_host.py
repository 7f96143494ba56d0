"""Trials that are stopped or killed, on this machine's kernel and in guests: nothing may stay.

None wants the machine for itself, as it is of no matter how long its packets take. But one at a
time, since each asks what is on the machine: no other file's tests may run trials on the host.
"""

from __future__ import annotations

import dataclasses
import os
import signal
import subprocess
from pathlib import Path

import pytest

from testbed.host.engine import HostEngine
from testbed.machine import tracefs
from testbed.machine.sysctl_guard import ALLOWED
from testbed.plan.plan import tasks
from testbed.scenario.model import Profile
from testbed.trial.make import RUNNER
from tests.lab import PATIENCE_S, has_no_tracing, wait_until
from tests.left_behind import HYSTART, browsers, commands_of, marks_of, seen
from tests.robustness.killing import KILLED, SHORT, Laboratory, moments, written
from tests.scenarios import near_video, router

pytestmark = pytest.mark.root("the host engine makes namespaces and queues")


def started(argv: list[str], env: dict[str, str]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, **env}
    )


def flowing(out: Path) -> bool:
    """Whether packets flow: a capture has grown."""
    return any(path.stat().st_size > 5000 for path in out.glob(".*/**/captures/*.pcap*"))


@pytest.mark.slow(but=2)
@pytest.mark.parametrize("engine", ["host", "guest"])
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_ended_in_mid_trial(tmp_path: Path, root: Path, engine: str, how: signal.Signals) -> None:
    """Killed or asked to stop: afterwards (and after `clean`, if killed) all is as before."""
    before = seen()
    env = {"XDG_STATE_HOME": str(tmp_path / "state")}
    scenario = tmp_path / "scenario.json"
    # long enough in either engine to be caught in the middle
    changing = router(variant="cubic", rate_mbit=100, duration_s=120, profile=Profile.NS2)
    scenario.write_text(changing.to_json())
    testbed = str(root / ".venv/bin/testbed")
    out = tmp_path / "out"
    run = started([testbed, "run", str(scenario), "--engine", engine, "--out", str(out)], env)
    wait_until(lambda: flowing(out))
    marks = marks_of(tmp_path / "state")
    assert seen(marks).beyond(before)
    if engine == "host":
        assert f"hystart: {HYSTART.read_text()}" not in before.settings
    run.send_signal(how)
    _, said = run.communicate(timeout=PATIENCE_S)
    if how is signal.SIGKILL:
        wait_until(lambda: not seen(marks).processes - before.processes)
        clean = started([testbed, "clean"], env)
        text, _ = clean.communicate(timeout=PATIENCE_S)
        assert "removed unfinished" in text
        assert clean.returncode == 0
    else:
        assert run.returncode == 130
        assert said.splitlines() == [
            "testbed: interrupted; complete trials are kept: repeat the command to continue"
        ]
    assert list(out.iterdir()) == []
    wait_until(lambda: seen(marks).beyond(before) == [])


def test_killed_inside_the_trial(tmp_path: Path, root: Path) -> None:
    """The trial's own process dies: the run says so, and everything else goes too."""
    before = seen()
    scenario = tmp_path / "scenario.json"
    scenario.write_text(router(variant="cubic", rate_mbit=10, duration_s=60).to_json())
    argv = [str(root / ".venv/bin/testbed"), "run", str(scenario), "--engine", "host", "--out"]
    run = started([*argv, str(tmp_path / "out")], {"XDG_STATE_HOME": str(tmp_path / "state")})
    wait_until(lambda: flowing(tmp_path / "out"))
    marks = marks_of(tmp_path / "state")
    (trial,) = [pid for pid, words in commands_of(marks).items() if words[0] == str(RUNNER)]
    os.kill(trial, signal.SIGKILL)
    text, _ = run.communicate(timeout=PATIENCE_S)
    assert run.returncode == 1
    assert "failed: the trial died (exit status -9)" in text.replace("\n", " ")
    wait_until(lambda: seen(marks).beyond(before) == [])


def has_instance(mark: str) -> bool:
    """Whether the kernel has a trace instance of that run."""
    root = tracefs._mount()
    try:
        return (tracefs._instances(root) / tracefs.instance_name(mark)).exists()
    finally:
        os.close(root)


def mounts(own: Path) -> list[str]:
    """What is mounted, without what other tests mount in their folders at the same time."""
    lines = Path("/proc/mounts").read_text().splitlines()
    return [line for line in lines if f"/{own.parents[1].name}/" not in line or str(own) in line]


@pytest.mark.slow(but=1)
@pytest.mark.skipif(has_no_tracing(), reason="this kernel has no tracing")
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_no_trace_instance_and_no_mount_stay(
    tmp_path: Path, root: Path, how: signal.Signals
) -> None:
    before = mounts(tmp_path)
    env = {"XDG_STATE_HOME": str(tmp_path / "state")}
    scenario = tmp_path / "scenario.json"
    scenario.write_text(router(variant="linux-reno", rate_mbit=10, duration_s=60).to_json())
    testbed = str(root / ".venv/bin/testbed")
    argv = [testbed, "run", str(scenario), "--engine", "host", "--out", str(tmp_path / "out")]
    run = started(argv, env)
    wait_until(lambda: flowing(tmp_path / "out"))
    (journal,) = wait_until(lambda: list((tmp_path / "state").rglob("*.journal")))
    wait_until(lambda: has_instance(journal.stem))
    assert mounts(tmp_path) == before
    run.send_signal(how)
    run.communicate(timeout=PATIENCE_S)
    if how is signal.SIGKILL:
        said, _ = started([testbed, "clean"], env).communicate(timeout=PATIENCE_S)
        assert f"trace instance {tracefs.instance_name(journal.stem)}" in said
    assert not has_instance(journal.stem)
    assert mounts(tmp_path) == before


@pytest.mark.slow
def test_trials_that_are_killed_at_random_moments(tmp_path: Path, full: bool) -> None:
    """Cubic as ns-2 has it changes a parameter of the kernel's."""
    lab = Laboratory(tmp_path)
    scenario = dataclasses.replace(SHORT, profile=Profile.NS2)
    if HostEngine().missing(tasks([scenario])[0].plan.needs):
        pytest.skip("this kernel has no cubic")
    before = (HYSTART.read_text(), ALLOWED.read_text())
    argv = ("run", written(tmp_path, scenario), "--engine", "host", "--rerun", "--out")
    first = lab.run(*argv, str(lab.out))  # a busy machine makes the trial invalid, no matter
    trials, killed = set(lab.whole()), 0
    assert len(trials) == 1, first.said
    for moment in moments(200 if full else 2, first.seconds):
        killed += lab.run(*argv, str(lab.out), kill_s=moment).status == KILLED
        said = lab.clean()
        assert lab.left() == [], (moment, said)
        assert set(lab.whole()) == trials, (moment, said)
        assert (HYSTART.read_text(), ALLOWED.read_text()) == before, (moment, said)
        if full:
            print(f"{killed} trials on the host killed", flush=True)


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_a_browser_ends_with_its_trial(tmp_path: Path, root: Path, how: signal.Signals) -> None:
    """Stopped, or killed and cleaned up: no process and no file of it stays."""
    path = tmp_path / "scenario.json"
    path.write_text(near_video("https", "chromium", length_s=60).to_json())
    testbed = str(root / ".venv/bin/testbed")
    env = {"XDG_STATE_HOME": str(tmp_path / "state")}
    out = tmp_path / "out"
    run = started([testbed, "run", str(path), "--engine", "host", "--out", str(out)], env)
    wait_until(lambda: any(file.stat().st_size > 50_000 for file in out.glob(".*/captures/*")))
    marks = marks_of(tmp_path / "state")
    assert browsers(marks)
    run.send_signal(how)
    run.communicate(timeout=PATIENCE_S)
    if how is signal.SIGKILL:
        wait_until(lambda: not browsers(marks))
        clean = started([testbed, "clean"], env)
        clean.communicate(timeout=PATIENCE_S)
        assert clean.returncode == 0
    assert browsers(marks) == []
    assert list(out.iterdir()) == []
