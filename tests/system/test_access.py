"""The access link in the guest: both rates, and a radio that varies, loses, and keeps the order."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest

from analysis.captures.packet_matching import NOWHERE, pair
from analysis.trials.packets import FlowTables, TrialPackets
from testbed.store.reading import Trial
from tests.lab import capture_hashes, run_trials
from tests.scenarios import access


def seen(trial: Trial, role: str) -> FlowTables:
    found = TrialPackets(trial).flow(role, trial.record.flows[0])
    assert found is not None
    return found


def test_a_line_with_two_rates(tmp_path: Path) -> None:
    (trial,) = run_trials([access("shaped", duration_s=20)], tmp_path)
    rates = {each.interface: each.rate_mbit for each in trial.record.queues}
    assert rates == {"isp-eth1": 1.024, "ap-eth0": 0.512}
    arrived = seen(trial, "receiver").data
    late = arrived[arrived["time_ns"] > arrived["time_ns"].iloc[0] + 5e9]
    span_s = (late["time_ns"].iloc[-1] - late["time_ns"].iloc[0]) / 1e9
    rate = late["length"].iloc[1:].sum() * 8e-6 / span_s
    assert rate == pytest.approx(1.024, rel=0.01)


def test_an_upload_has_the_other_rate(tmp_path: Path) -> None:
    scenario = access("shaped", duration_s=20)
    flow = dataclasses.replace(scenario.flows[0], src="station", dst="server")
    (trial,) = run_trials([dataclasses.replace(scenario, flows=(flow,))], tmp_path)
    left = seen(trial, "bottleneck-out").data
    late = left[left["time_ns"] > left["time_ns"].iloc[0] + 10e9]
    span_s = (late["time_ns"].iloc[-1] - late["time_ns"].iloc[0]) / 1e9
    assert late["length"].iloc[1:].sum() * 8e-6 / span_s == pytest.approx(0.512, rel=0.01)


def test_a_radio_loses_in_bursts_and_keeps_the_order(tmp_path: Path) -> None:
    trials = []
    for name in ("once", "again"):
        trials += run_trials([access("netem-weak", duration_s=30)], tmp_path / name)
    one, again = trials
    assert capture_hashes(one) == capture_hashes(again)
    before, behind = (seen(one, role).data for role in ("bottleneck-out", "receiver"))
    places = pair(before, behind)
    assert (places != NOWHERE).all()
    assert (np.diff(places) > 0).all()  # none has overtaken another
    delays_ms = (behind["time_ns"].to_numpy() - before["time_ns"].to_numpy()[places]) / 1e6
    assert delays_ms.min() > 2 + 10 - 8  # the line's delay, and the radio's
    assert delays_ms.max() > 2 + 10 + 5
    wires = json.loads((one.path / "samples" / "qdiscs.json").read_text())["wires"]
    lost = {q["dev"]: q["drops"] for q in wires if q["kind"] == "netem" and q["drops"]}
    assert "w2b" in lost  # the way down
    assert not lost.keys() - {"w2a", "w2b"}
    missing = np.setdiff1d(np.arange(len(before)), places)
    share = len(missing) / len(before)
    assert 0.002 < share < 0.05  # 1 % on average, and what the radio's queue dropped
    assert (np.diff(missing) == 1).any()  # in bursts


def test_a_radio_that_hardly_lets_anything_up(tmp_path: Path) -> None:
    (trial,) = run_trials([access("netem-congested", duration_s=20)], tmp_path)
    acks = seen(trial, "receiver").acks
    span_s = (acks["time_ns"].iloc[-1] - acks["time_ns"].iloc[0]) / 1e9
    assert acks["length"].sum() * 8e-3 / span_s < 12  # kbit/s
