"""Trials in folders: whole or not there, found again, given reasons; with an engine made up."""

from __future__ import annotations

import dataclasses
import hashlib
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from testbed.cli.run import print_missing_features
from testbed.engine import Cancelled, Job, Missing, ProcessOutcome
from testbed.errors import TestbedError
from testbed.plan.plan import Task, make_plan, tasks
from testbed.plan.requirements import Need
from testbed.runs.engine_choice import Choice
from testbed.runs.identity import identify
from testbed.runs.sweep import SweepEvent, TrialFinished, TrialStarted, in_order, run_all
from testbed.scenario.reading import read_scenario
from testbed.store.names import RECORD
from testbed.store.reading import trials_in
from testbed.store.records import CaptureRecord, Record, Status
from tests.lab import PATIENCE_S
from tests.pcap_writer import write_pcap
from tests.scenarios import router

MANY = ("tahoe", "reno", "newreno", "sack", "vegas", "veno", "cubic", "bbr")


class FakeEngine:
    """Does what a test says instead of a trial."""

    name = "fake"
    virtual_time = True
    remote = False

    def __init__(self, act: Callable[[Path, Job], None], lacks: Sequence[str] = ()) -> None:
        self._act = act
        self._lacks = lacks
        self.kernel = "one"

    def ready(self) -> str:
        return ""

    def with_kernel(self, _name: str) -> FakeEngine:
        return self

    def version(self) -> str:
        return self.kernel

    def missing(self, needs: Sequence[Need]) -> list[Missing]:
        return [Missing(need, "buy a new one") for need in needs if need.name in self._lacks]

    def controls(self) -> frozenset[str]:
        return frozenset({"reno"})

    def try_out(self) -> str:
        return ""

    def jobs(self, _tasks: Sequence[Task]) -> int:
        return 2

    def run(self, folder: Path, _task: Task, job: Job) -> ProcessOutcome:
        self._act(folder, job)
        return ProcessOutcome(0, 12.5, "last words", ("1 thing was not taken",))


def succeed(folder: Path, job: Job) -> None:
    (folder / RECORD).write_text(Record(Status.OK, seed=job.seed).to_json())


def sweep(
    out: Path, engine: FakeEngine, seeds: int = 2, jobs: int = 1, rerun: bool = False
) -> list[TrialFinished]:
    scenarios = [router(seed=seed) for seed in range(1, seeds + 1)]
    return run_all(
        tasks(scenarios), Choice(engine, "a test"), out, lambda _event: None, jobs, rerun
    )


def names(out: Path) -> list[str]:
    return sorted(path.name for path in out.iterdir())


def test_each_trial_has_a_folder_and_a_record(tmp_path: Path) -> None:
    sweep(tmp_path / "out", FakeEngine(succeed))
    trials = list(trials_in(tmp_path / "out"))
    assert [t.record.seed for t in trials] == [1, 2]
    assert {(t.record.engine, t.record.virtual_time) for t in trials} == {("fake", True)}
    assert {t.record.peak_memory_mb for t in trials} == {12.5}
    assert all(t.record.versions["iperf3"][0].isdigit() for t in trials)


def test_what_is_there_is_not_run_again(tmp_path: Path) -> None:
    sweep(tmp_path / "out", FakeEngine(succeed))

    def never(_folder: Path, _job: Job) -> None:
        raise AssertionError("ran again")

    again = sweep(tmp_path / "out", FakeEngine(never))
    assert [each.fresh for each in again] == [False, False]


def test_all_is_run_again_when_asked(tmp_path: Path) -> None:
    sweep(tmp_path / "out", FakeEngine(succeed))
    again = sweep(tmp_path / "out", FakeEngine(succeed), rerun=True)
    assert [each.fresh for each in again] == [True, True]
    assert len(names(tmp_path / "out")) == 2


def test_more_seeds_add_only_those(tmp_path: Path) -> None:
    sweep(tmp_path / "out", FakeEngine(succeed), seeds=1)
    more = sweep(tmp_path / "out", FakeEngine(succeed), seeds=3)
    assert {each.scenario.seed: each.fresh for each in more} == {1: False, 2: True, 3: True}


def test_another_kernel_makes_another_trial(tmp_path: Path) -> None:
    sweep(tmp_path / "out", FakeEngine(succeed))
    other = FakeEngine(succeed)
    other.kernel = "two"
    told: list[object] = []
    scenarios = [router(seed=seed) for seed in (1, 2)]
    again = run_all(tasks(scenarios), Choice(other, "a test"), tmp_path / "out", told.append)
    assert [each.fresh for each in again] == [True, True]
    assert [event.stale for event in told if isinstance(event, TrialStarted)] == [True, True]
    assert len(names(tmp_path / "out")) == 2


def test_engines_have_trials_of_their_own(tmp_path: Path) -> None:
    sweep(tmp_path / "out", FakeEngine(succeed), seeds=1)
    other = FakeEngine(succeed)
    other.name = "other"
    sweep(tmp_path / "out", other, seeds=1)
    assert [name.rpartition("-")[2] for name in names(tmp_path / "out")] == ["fake", "other"]


def run_python(argv: list[str], env: dict[str, str]) -> str:
    done = subprocess.run(argv, env=env, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_what_identifies_a_trial() -> None:
    """The same in every process; other if anything that matters is."""
    engine = FakeEngine(succeed)
    one = identify(router(), make_plan(router()), engine)
    program = (
        "from tests.scenarios import router; from tests.unit.test_sweep import *;"
        "print(identify(router(), make_plan(router()), FakeEngine(succeed)))"
    )
    for seed in ("1", "2"):
        env = {**os.environ, "PYTHONHASHSEED": seed}
        argv = [sys.executable, "-c", program]
        assert run_python(argv, env) == one
    again = read_scenario(router().to_json())  # whole numbers have become floats
    assert identify(again, make_plan(again), engine) == one
    other = router(duration_s=6)
    assert identify(other, make_plan(other), engine) != one
    shorter = dataclasses.replace(make_plan(router()), end_s=1)
    assert identify(router(), shorter, engine) != one


def test_the_order_is_shuffled_repeat_by_repeat() -> None:
    listed = tasks(router(variant=name, seed=seed) for seed in (1, 2, 3) for name in MANY)
    assert in_order(listed, None) == listed
    mixed = in_order(listed, 1)
    assert mixed != listed and in_order(listed, 1) == mixed != in_order(listed, 2)
    assert [task.scenario.seed for task in mixed] == [task.scenario.seed for task in listed]
    blocks = [mixed[: len(MANY)], mixed[len(MANY) : 2 * len(MANY)]]
    assert all({s.scenario.flows[0].variant for s in block} == set(MANY) for block in blocks)
    first, second = ([s.scenario.flows[0].variant for s in block] for block in blocks)
    assert first != second


def test_captures_are_known_by_their_hashes(tmp_path: Path) -> None:
    def capture(folder: Path, job: Job) -> None:
        (folder / "captures").mkdir()
        write_pcap(folder / "captures" / "a.pcap", [], 96)
        record = CaptureRecord("captures/a.pcapng", "a", "a-eth0", (), 96, 0, 0)
        (folder / RECORD).write_text(Record(Status.OK, captures=(record,)).to_json())

    done = sweep(tmp_path / "out", FakeEngine(capture), seeds=1)[0]
    found = hashlib.sha256((done.path / "captures" / "a.pcapng").read_bytes()).hexdigest()
    assert done.record.captures[0].sha256 == found


def test_a_failed_trial_is_kept_with_its_reason_and_run_again(tmp_path: Path) -> None:
    def fail(_folder: Path, _job: Job) -> None:
        raise TestbedError("the cable fell out", "push it in")

    first = sweep(tmp_path / "out", FakeEngine(fail), seeds=1)
    assert (first[0].record.status, first[0].record.reason) == (Status.FAILED, "the cable fell out")
    second = sweep(tmp_path / "out", FakeEngine(succeed), seeds=1)
    assert second[0].record.status is Status.OK
    assert len(names(tmp_path / "out")) == 1


def test_a_trial_that_dies_without_a_record_says_its_last_words(tmp_path: Path) -> None:
    done = sweep(tmp_path / "out", FakeEngine(lambda _folder, _job: None), seeds=1)
    assert done[0].record.reason == "the trial died (exit status 0): last words"
    assert done[0].record.warnings == ("1 thing was not taken",)


def test_unsupported_names_the_feature(tmp_path: Path) -> None:
    done = sweep(tmp_path / "out", FakeEngine(succeed, lacks=["reno", "bfifo"]), seeds=1)
    record = done[0].record
    assert record.status is Status.UNSUPPORTED
    assert record.reason == (
        "the fake's kernel has no congestion control reno, no queue discipline bfifo"
    )
    assert record.hint == "buy a new one"


def test_what_was_unsupported_is_summed_up(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    engine = FakeEngine(succeed, lacks=["reno", "netem"])
    done = sweep(tmp_path / "out", engine, seeds=2)
    print_missing_features(engine, done)
    assert capsys.readouterr().err.splitlines() == [
        "testbed: unsupported: the fake's kernel has no congestion control reno (2 of 2)",
        "    hint: buy a new one",
    ]
    print_missing_features(FakeEngine(succeed), done)
    assert not capsys.readouterr().err


def test_cancelling_keeps_whole_trials_and_nothing_else(tmp_path: Path) -> None:
    def second_is_cancelled(folder: Path, job: Job) -> None:
        succeed(folder, job)
        if job.seed == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sweep(tmp_path / "out", FakeEngine(second_is_cancelled), seeds=3)
    assert [t.record.seed for t in trials_in(tmp_path / "out")] == [1]
    assert len(names(tmp_path / "out")) == 1


def test_the_others_are_told_to_stop(tmp_path: Path) -> None:
    began = threading.Barrier(2)

    def one_stops_the_other(_folder: Path, job: Job) -> None:
        began.wait(PATIENCE_S)
        if job.seed == 1:
            raise KeyboardInterrupt
        assert job.cancel.wait(PATIENCE_S), "was not told"
        raise Cancelled("cancelled")

    with pytest.raises(KeyboardInterrupt):
        sweep(tmp_path / "out", FakeEngine(one_stops_the_other), jobs=2)
    assert names(tmp_path / "out") == []


def test_side_by_side_trials_have_cores_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _pid: {3, 5})
    began, cores = threading.Barrier(2), []

    def note(folder: Path, job: Job) -> None:
        began.wait(PATIENCE_S)
        cores.append(job.core)
        succeed(folder, job)

    sweep(tmp_path / "out", FakeEngine(note), jobs=2)
    assert sorted(cores) == [3, 5]


def test_events_tell_of_every_trial(tmp_path: Path) -> None:
    events: list[SweepEvent] = []
    scenarios = [router(seed=1)]
    run_all(tasks(scenarios), Choice(FakeEngine(succeed), ""), tmp_path / "out", events.append)
    assert [type(event) for event in events] == [TrialStarted, TrialFinished]


def test_a_folder_with_other_things_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.doc").touch()
    with pytest.raises(TestbedError, match=r"holds something other than results: thesis.doc"):
        sweep(tmp_path, FakeEngine(succeed))


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "out").touch()
    with pytest.raises(TestbedError, match="is a file"):
        sweep(tmp_path / "out", FakeEngine(succeed))


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    with pytest.raises(TestbedError, match="cannot write to /proc/results"):
        sweep(Path("/proc/results"), FakeEngine(succeed))


def test_a_full_disk_stops_everything_with_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Finished trials stay; the one that had no room goes."""
    sweep(tmp_path / "out", FakeEngine(succeed), seeds=1)
    full = type("Usage", (), {"free": 4096})
    monkeypatch.setattr("shutil.disk_usage", lambda _path: full)

    def fail(_folder: Path, _job: Job) -> None:
        raise OSError(28, "No space left on device")

    with pytest.raises(TestbedError, match="the disk is full"):
        sweep(tmp_path / "out", FakeEngine(fail), seeds=3)
    assert [t.record.seed for t in trials_in(tmp_path / "out")] == [1]
    assert len(names(tmp_path / "out")) == 1
