"""The radio link in the guest: the kernel's own 802.11, valid, the same for the same seed, and as
fast as its signal lets it be."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from analysis.captures.packet_matching import NOWHERE, pair
from analysis.trials.packets import TrialPackets
from testbed.scenario.model import Scenario
from testbed.scenario.network import Radio
from testbed.store.reading import Trial
from tests.lab import ON_FIRST, capture_hashes, report, run_trials
from tests.scenarios import access, video, with_link


def medium(trial: Trial) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((trial.path / "samples" / "radio.json").read_text())
    return found


def received_mbit(trial: Trial) -> float:
    return float(report(trial, "tcp", "server")["end"]["sum_received"]["bits_per_second"]) / 1e6


def with_signal(signal_dbm: int) -> Scenario:
    scenario = access("wifi-good", duration_s=8)
    return with_link(scenario, "ap-station", radio=Radio(signal_dbm))


@pytest.mark.slow
def test_the_same_seed_is_the_same_to_the_byte(tmp_path: Path) -> None:
    scenario = access("wifi-congested", duration_s=10)
    one, again = (run_trials([scenario], tmp_path / name)[0] for name in ("once", "again"))
    assert capture_hashes(one) == capture_hashes(again)
    assert medium(one) == medium(again)
    assert not (one.path / "radio").exists()
    other = run_trials([dataclasses.replace(scenario, seed=2)], tmp_path / "other")[0]
    assert medium(one) != medium(other)


@pytest.mark.slow
def test_a_weaker_signal_is_slower(tmp_path: Path) -> None:
    strong, weak = run_trials([with_signal(-40), with_signal(-80)], tmp_path)
    # 72.2 and 7.2 Mbit/s on the air, less headers, preambles, turns and acknowledgements
    assert 38 < received_mbit(strong) < (60 if ON_FIRST else 72.2 * 1448 / 1538)
    assert 4 < received_mbit(weak) < 6.5
    # rate control has found them
    for trial, mcs in ((strong, 7), (weak, 0)):
        attempts = medium(trial)["radios"][0]["attempts_by_mcs"]
        assert attempts.index(max(attempts)) == mcs


def test_frames_keep_their_order_and_are_lost_by_the_queue_or_the_medium(tmp_path: Path) -> None:
    (trial,) = run_trials([access("wifi-congested", duration_s=10)], tmp_path)
    packets, flow = TrialPackets(trial), trial.record.flows[0]
    before, behind = (packets.flow(role, flow) for role in ("bottleneck-out", "receiver"))
    assert before is not None
    assert behind is not None
    places = pair(before.data, behind.data)
    assert (places != NOWHERE).all()
    assert (places[1:] > places[:-1]).all()
    radios = medium(trial)["radios"]
    assert sum(each["failed"] for each in radios) > 0
    assert all(each["overflows"] == 0 for each in radios)


@pytest.mark.slow
def test_a_video_over_the_radio(tmp_path: Path) -> None:
    (trial,) = run_trials([video(network="wifi-weak")], tmp_path)
    playback = json.loads((trial.path / "flows" / "video.json").read_text())
    assert playback["ended_s"] is not None  # it was watched to its end
