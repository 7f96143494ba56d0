"""A little of what tests/soak.py does at length, and that it sees what should not be."""

from __future__ import annotations

from pathlib import Path

from testbed.store import trial_paths
from tests.soak import Growth, Soak, differences


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


def test_growth_is_a_fault() -> None:
    steady = Growth([10] * 40, [100.0] * 40)
    assert steady.faults() == []
    growing = Growth(list(range(40)), [float(n * 10) for n in range(40)])
    assert [fault.split()[2] for fault in growing.faults()] == ["descriptors", "MB"]
