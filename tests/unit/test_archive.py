"""Captures after their reduction: kept, compressed or dropped, and the numbers the same."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pandas as pd
import pytest

from analysis.results import background_reduction, reduction
from analysis.results.background_reduction import MANY, ReductionQueue, settle
from analysis.results.reduction import reduce_trial, reduction_of
from testbed.errors import TestbedError, UsageError
from testbed.machine import safe_files
from testbed.store.names import REDUCED
from testbed.store.reading import Trial, open_trial
from tests.lab import wait_until
from tests.trial_writer import write_trial


@pytest.fixture
def trial(tmp_path: Path) -> Trial:
    return open_trial(write_trial(tmp_path / "results" / "trial", samples=True))


def files(trial: Trial) -> set[str]:
    return {path.suffix for path in (trial.path / "captures").iterdir()}


def test_compressed_captures_give_the_same_numbers(trial: Trial) -> None:
    before = reduce_trial(trial).flows
    size = sum(path.stat().st_size for path in (trial.path / "captures").iterdir())
    settle(trial, "zstd")
    packed = open_trial(trial.path)
    assert files(packed) == {".zst"}
    assert sum(path.stat().st_size for path in (trial.path / "captures").iterdir()) < size
    pd.testing.assert_frame_equal(reduce_trial(packed).flows, before)
    settle(packed, "zstd")
    assert files(packed) == {".zst"}


def test_dropped_captures_leave_their_numbers(trial: Trial) -> None:
    before = reduction_of(trial).flows
    settle(trial, "drop")
    dropped = open_trial(trial.path)
    assert files(dropped) == set()
    assert dropped.capture("sender:tcp") is None
    assert [capture.node for capture in dropped.record.captures] == [
        capture.node for capture in trial.record.captures
    ]
    pd.testing.assert_frame_equal(reduction_of(dropped).flows, before)


def test_numbers_that_cannot_be_made_anew_are_kept_and_told(
    trial: Trial, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = reduction_of(trial).flows
    settle(trial, "drop")
    monkeypatch.setattr(reduction, "REVISION", 10_000)
    older = reduction_of(open_trial(trial.path))
    assert "captures were dropped" in older.warnings[0]
    pd.testing.assert_frame_equal(older.flows, before)


def test_kept_captures_are_left_alone(trial: Trial) -> None:
    before = {path: path.stat().st_mtime_ns for path in trial.path.rglob("*")}
    settle(trial, "keep")
    assert {path: path.stat().st_mtime_ns for path in trial.path.rglob("*")} == before


def test_an_interrupted_settling_loses_nothing(
    trial: Trial, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The record changes before the files go."""

    def fail(_path: Path, _write: object, **_how: bool) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(background_reduction, "replace", fail)
    with pytest.raises(KeyboardInterrupt):
        settle(trial, "drop")
    assert open_trial(trial.path).record == trial.record
    assert files(trial) == {".pcap"}


def test_the_record_is_on_the_disk_before_captures_are_removed(
    trial: Trial, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a power cut a record that still names captures would have none."""
    steps: list[str] = []

    def sync(file: int) -> None:
        os.fsync(file)
        steps.append("synced")

    def remove(path: Path) -> None:
        path.unlink()
        steps.append("removed")

    monkeypatch.setattr(safe_files, "sync", sync)
    monkeypatch.setattr(background_reduction, "remove_file", remove)
    settle(trial, "drop")
    assert steps == ["synced"] + ["removed"] * len(trial.record.captures)


def test_unknown_ways() -> None:
    with pytest.raises(UsageError) as caught:
        ReductionQueue("zst")
    assert caught.value.hint == "did you mean 'zstd'?"


def test_trials_are_reduced_as_they_come(trial: Trial) -> None:
    with ReductionQueue("drop") as incoming:
        incoming.add(trial.path, is_fresh=True)
    assert (trial.path / REDUCED).is_file()
    assert files(trial) == set()


def test_what_goes_wrong_is_raised(tmp_path: Path) -> None:
    with pytest.raises(TestbedError, match="not a trial"), ReductionQueue("keep") as incoming:
        incoming.add(tmp_path, is_fresh=True)
        incoming.add(tmp_path, is_fresh=True)


def copies(trial: Trial, count: int) -> list[Path]:
    paths = [trial.path.with_name(f"trial{number}") for number in range(count)]
    for path in paths:
        shutil.copytree(trial.path, path)
    return paths


def test_many_trials_are_reduced_in_other_processes(
    trial: Trial, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _pid: set(range(4)))
    monkeypatch.setattr(background_reduction, "reduction_of", None)  # not in this one
    flows = []
    paths = copies(trial, 3)
    with ReductionQueue(
        "zstd", lambda _scenario, rows: flows.append(rows), trials=MANY
    ) as incoming:
        for path in paths:
            incoming.add(path, is_fresh=True)
    assert sorted(rows["trial"][0] for rows in flows) == [path.name for path in paths]
    expected = reduce_trial(trial).flows
    for rows in flows:
        same = [name for name in expected if name != "trial"]
        pd.testing.assert_frame_equal(rows[same], expected[same])
    for path in paths:
        assert files(open_trial(path)) == {".zst"}


@pytest.mark.slow
def test_a_process_that_is_killed_is_replaced(
    trial: Trial, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _pid: {0, 1})
    first, second = copies(trial, 2)
    with ReductionQueue("keep", trials=MANY) as incoming:
        incoming.add(first, is_fresh=True)
        wait_until((first / REDUCED).exists)
        wait_until(lambda: bool(incoming._workers._all))  # it has answered
        process = incoming._workers._all[0]._process
        assert process is not None
        process.kill()
        incoming.add(second, is_fresh=True)
    assert (second / REDUCED).is_file()


def test_a_process_that_is_always_killed_is_an_error(
    trial: Trial, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _pid: {0, 1})
    monkeypatch.setattr(sys, "executable", "false")
    with (
        pytest.raises(TestbedError, match="trial: the process that works on it was killed"),
        ReductionQueue("keep", trials=MANY) as incoming,
    ):
        incoming.add(trial.path, is_fresh=True)


def test_what_goes_wrong_in_a_process_is_raised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _pid: {0, 1})
    with (
        pytest.raises(TestbedError, match="not a trial"),
        ReductionQueue("keep", trials=MANY) as incoming,
    ):
        incoming.add(tmp_path, is_fresh=True)
