"""A little of what tests/soak.py does at length, and that it sees what should not be."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from testbed.store.reading import trial_paths
from tests.lab import wait_until
from tests.robustness.killing import ROOT, guests_in, processes_in, processes_with
from tests.soak import Growth, Soak, differences


@pytest.mark.as_root  # for whom a disk is too small in each third round
@pytest.mark.slow
def test_sweeps_that_are_killed_come_to_the_same(tmp_path: Path) -> None:
    """Two at once in one folder; what is missing or otherwise afterwards is named."""
    soak = Soak(tmp_path / "soak", trials=2, sweeps=2)
    killed, faults = soak.round(1, kills=2)
    assert faults == [] and sum(killed.values()) > 0
    wanted, _ = soak.undisturbed()
    assert differences(wanted, wanted) == []
    trials = trial_paths(wanted)
    assert differences(tmp_path, wanted) == [f"{trial.name}: missing" for trial in trials]
    (tmp_path / trials[0].name).symlink_to(trials[1])
    (tmp_path / trials[1].name).symlink_to(trials[1])
    (only,) = differences(tmp_path, wanted)
    assert only == f"{trials[0].name}: other captures or numbers"


@pytest.mark.slow
def test_a_soak_that_is_ended_ends_its_sweeps_and_leaves_nothing(tmp_path: Path) -> None:
    argv = [sys.executable, "-m", "tests.soak", str(tmp_path), "--round", "50"]
    with subprocess.Popen(argv, cwd=ROOT, start_new_session=True) as soak:
        try:
            wait_until(lambda: guests_in(tmp_path), 300)
        finally:
            os.killpg(soak.pid, signal.SIGTERM)  # the whole group, as a terminal does
    assert soak.returncode == 130
    assert not processes_in(tmp_path) and not processes_with(str(tmp_path))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["asked.json", "rounds.jsonl"]


def test_growth_is_a_fault() -> None:
    steady = Growth([10] * 40, [100.0] * 40)
    assert steady.faults() == []
    growing = Growth(list(range(40)), [float(n * 10) for n in range(40)])
    assert [fault.split()[2] for fault in growing.faults()] == ["descriptors", "MB"]
