"""Stored trials run again: what tells that a change has changed no packet."""

from __future__ import annotations

from pathlib import Path

from benchmarks import packets
from testbed.engines.choice import choose
from testbed.store import Trial
from tests.lab import planned_here, run_trials
from tests.scenarios import router


def test_trials_are_run_again_and_compared_with_their_hashes(tmp_path: Path) -> None:
    scenarios = [router(variant=variant, duration_s=3) for variant in ("cubic", "reno")]
    trials: list[Trial] = run_trials(scenarios, tmp_path / "out")
    packets.keep("run this --seeds 2", trials, tmp_path)
    packets.keep("run that", trials[:1], tmp_path)
    stored = packets.kept(["run this --seeds 2", "run that"], tmp_path)
    assert list(stored) == sorted(trial.scenario.name for trial in trials)
    planned = planned_here(scenarios, choose("guest", ()))
    sample = packets.again(planned, stored, 20, "a draw")
    assert sample == packets.Sample(2, 2, ())
    (first, second) = stored
    doctored = {first: stored[first], second: stored[first]}
    assert packets.again(planned, doctored, 20, "a draw").others == (second,)
