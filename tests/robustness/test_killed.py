"""kill -9 at any moment: `clean` leaves nothing, no whole trial is lost, reruns are the same.

By default a few times; with --full, 600 guests, 200 trials on the host and 200 sweeps, 20 guests of
sweeps that live on, 150 of whole programs and 50 that gdb holds, and a run of the command before
each of its file operations.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import os
import shutil
import signal
import time
from pathlib import Path

import pytest

from testbed.guest import kernels
from testbed.store.reading import trials_in
from testbed.store.records import Status
from tests.lab import wait_until
from tests.robustness.killing import (
    KILLED,
    SHORT,
    Laboratory,
    guests_in,
    hashes,
    moments,
    recorded,
    written,
)

MIN_S = 0.15  # that a guest takes, in any case
SCENARIOS = [SHORT, *(dataclasses.replace(SHORT, seed=seed) for seed in (2, 3))]


@pytest.fixture
def lab(tmp_path: Path) -> Laboratory:
    return Laboratory(tmp_path)


@pytest.mark.slow
def test_before_each_file_operation(lab: Laboratory, tmp_path: Path, full: bool) -> None:
    """Of a command that replaces a trial; the trial itself is a recorded one."""
    replay = recorded(tmp_path / "recorded", SCENARIOS[0])
    argv = ("run", written(tmp_path), "--engine", "guest", "--rerun", "--out", str(lab.out))
    first = lab.run(*argv, replay=replay)
    assert first.status == 0, first.said
    whole = lab.whole()
    assert len(whole) == 1
    again = lab.run(*argv, replay=replay)
    assert again.operations > 50
    step = 1 if full else again.operations // 4
    for number in range(1, again.operations + 1, step):
        ended = lab.run(*argv, kill_at=number, replay=replay)
        assert ended.status in (KILLED, 0), (number, ended.said)
        said = lab.clean()
        assert lab.left() == [], (number, said)
        assert lab.whole() == whole, (number, said)
    last = lab.run(*argv, replay=replay)
    assert last.status == 0, last.said
    assert lab.whole() == whole
    print(f"killed before each {step}th of {again.operations} file operations")


@pytest.mark.slow
def test_guests_at_random_moments(lab: Laboratory, tmp_path: Path, full: bool) -> None:
    argv = ("run", written(tmp_path), "--engine", "guest", "--rerun", "--out", str(lab.out))
    first = lab.run(*argv)
    assert first.status == 0, first.said
    whole, killed = lab.whole(), 0
    for moment in moments(600 if full else 2, first.seconds):
        killed += lab.run(*argv, kill_s=moment).status == KILLED
        said = lab.clean()
        assert lab.left() == [], (moment, said)
        assert lab.whole() == whole, (moment, said)
        if full:
            print(f"{killed} guests killed", flush=True)
    assert lab.run(*argv).status == 0
    assert lab.whole() == whole


def sweep(lab: Laboratory) -> list[str]:
    """A command of two trials."""
    argv = ["run", "router-bottleneck", "--engine", "guest", "--out", str(lab.out)]
    for setting in ("variant=cubic,vegas", "duration_s=1", "queue=bfifo", "path=receiver"):
        argv += ["--set", setting]
    return argv


@pytest.mark.slow
def test_sweeps_go_on_where_they_were_killed(lab: Laboratory, tmp_path: Path, full: bool) -> None:
    argv = sweep(lab)
    first = lab.run(*argv)
    whole, killed = lab.whole(), 0
    assert len(whole) == 2, first.said
    for number, moment in enumerate(moments(200 if full else 2, first.seconds)):
        if number % 4 == 0:
            shutil.rmtree(lab.out)
            lab.out.mkdir()
        killed += lab.run(*argv, kill_s=moment).status == KILLED
        said = lab.clean()
        assert lab.left() == [], (moment, said)
        assert lab.whole().items() <= whole.items(), (moment, said)
        if full:
            print(f"{killed} sweeps killed", flush=True)
    lab.run(*argv)
    assert lab.whole() == whole


def test_a_sweep_outlives_its_guests(lab: Laboratory, full: bool) -> None:
    """The trial whose guest is killed has failed, the other is whole; and it is run again."""
    argv = sweep(lab)
    lab.run(*argv)
    whole = lab.whole()
    killed = 0
    for moment in moments(20, MIN_S):
        shutil.rmtree(lab.out)
        lab.out.mkdir()
        lab.begin(*argv)
        guest, *_ = wait_until(lambda: guests_in(lab.out))
        time.sleep(moment)
        with contextlib.suppress(ProcessLookupError):
            os.kill(guest, signal.SIGKILL)
        ended = lab.end()
        if ended.status == 0:  # the guest was quicker
            continue
        killed += 1
        assert ended.status == 1, ended.said
        assert lab.left() == [], ended.said
        trials = {trial.record.status: trial for trial in trials_in(lab.out)}
        assert trials.keys() == {Status.FAILED, Status.OK}, ended.said
        well = trials[Status.OK]
        assert hashes(well) == whole[well.path.name], ended.said
        assert lab.run(*argv).status == 0
        assert lab.whole() == whole
        if not full:
            break
    assert killed > 0


PROGRAM = """
echo begun; mkdir -p below; seq 2000 >below/numbers; sleep 5; echo 'rate 7'; echo done >result
"""
EXPECTED = """
[[expect]]
what = "rate"
pattern = 'rate (\\d+)'
at_least = 7
"""
VERBS = {  # whole programs, and a trial under gdb
    "exec": ("exec", "--in-place", "--", "bash", "lab.sh"),
    "mininet": ("mininet", "lab.sh"),
    "grade": ("grade", "lab.sh", "--expect", "lab.toml"),
    "rewind": ("rewind", "TRIAL", "--at", "0.2", "--trace", "tcp_retransmit_skb"),
}


def results(lab: Laboratory, verb: str) -> dict[str, str]:
    """The hashes of what a program left, but for its record, which has the wall time."""
    paths = [path for path in (lab.work / "programs").rglob("*") if path.suffix in ("", ".txt")]
    paths += [lab.work / "result", lab.work / "below" / "numbers"] if verb == "exec" else []
    return {
        str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in paths if path.is_file()
    }


@pytest.mark.slow
@pytest.mark.parametrize("verb", VERBS)
def test_verbs_at_random_moments(lab: Laboratory, tmp_path: Path, full: bool, verb: str) -> None:
    """What a program left before stays, or is replaced by the same; gdb and guests end."""
    kernel = kernels.built_folder(SHORT.kernel)
    if not full and verb != "exec":
        pytest.skip("--full: the others start programs in the same way")
    if verb == "rewind" and (kernel is None or not (kernel / kernels.SYMBOLS).exists()):
        pytest.skip("kernel/image.sh --symbols: minutes")
    (tmp_path / "lab.sh").write_text(PROGRAM)
    (tmp_path / "lab.toml").write_text(EXPECTED)
    if verb == "rewind":
        lab.run("run", written(tmp_path), "--engine", "guest", "--out", str(lab.out))
    trial = next(iter(lab.whole()), "")
    words = [str(lab.out / trial) if word == "TRIAL" else word for word in VERBS[verb]]
    argv = [words[0], "--out", str(tmp_path / "programs" / verb), *words[1:]]
    first = lab.run(*argv)
    assert first.status == 0, first.said
    before, trials, killed = results(lab, verb), lab.whole(), 0
    assert verb == "rewind" or len(before) > 1
    for moment in moments(50 if full else 1, first.seconds):
        killed += lab.run(*argv, kill_s=moment).status == KILLED
        said = lab.clean()
        assert lab.left() == [], (moment, said)
        assert (results(lab, verb), lab.whole()) == (before, trials), (moment, said)
        if full:
            print(f"{verb}: killed {killed} times", flush=True)
    assert lab.run(*argv).status == 0
