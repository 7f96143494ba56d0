"""Packets of real trials: the same for the same seed, and in pyshark's hands."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import testbed
from analysis.statistics.packet_comparison import compare_packets
from experiments.command import main
from testbed.store import trials_in
from tests.scenarios import router


def test_a_trial_that_runs_again_sends_the_same_packets(tmp_path: Path) -> None:
    scenario = router(variant="cubic", duration_s=3)
    for name in ("a", "b"):
        testbed.run(scenario, engine="guest", out=tmp_path / name, quiet=True)
    assert compare_packets(tmp_path / "a", tmp_path / "b").agrees
    assert main(["compare", "--packets", str(tmp_path / "a"), str(tmp_path / "b")]) == 0


def test_pyshark_reads_a_trials_packets(tmp_path: Path) -> None:
    scenario = router(variant="cubic", duration_s=3)
    flow = dataclasses.replace(scenario.flows[0], drops=(20, 21))
    scenario = dataclasses.replace(scenario, flows=(flow,))
    rows = testbed.run(scenario, engine="guest", out=tmp_path, quiet=True)
    (trial,) = testbed.open_results(rows).trials
    assert trial.path == next(trials_in(tmp_path)).path
    again = trial.packets("tcp.analysis.retransmission")
    assert len(again) == rows["retransmitted"].iloc[0] > 0
    table = trial.packet_table()
    assert [int(p.number) for p in again] == list(table.loc[table["retransmission"], "frame"])
