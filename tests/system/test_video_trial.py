"""A short video as a trial's flow, over TCP and over QUIC, on the shaped line and a bad radio."""

from __future__ import annotations

from pathlib import Path

import pytest

from analysis.video import video_measures
from testbed.viewing import Transport
from tests.lab import capture_hashes, run_trials
from tests.scenarios import video


@pytest.mark.parametrize("transport", [Transport.HTTPS, Transport.QUIC])
def test_on_the_shaped_line(tmp_path: Path, transport: Transport) -> None:
    """Every byte of it, in the time that the line takes; twice the same to the last packet."""
    trials = []
    for name in ("once", "again"):
        trials += run_trials([video(transport)], tmp_path / name)
    one, again = trials
    assert capture_hashes(one) == capture_hashes(again)
    played = [(trial.path / "flows" / "video.json").read_text() for trial in trials]
    assert played[0] == played[1]
    row = video_measures([one]).iloc[0]
    assert (row["transport"], row["why"], row["segments"]) == (transport, "", 3)
    assert row["bytes"] == 330_000 * 12 / 8
    assert 1 < (row["loaded_s"] - row["page_s"]) / (row["bytes"] * 8 / 1.024e6) < 1.25
    assert row["ended_s"] == pytest.approx(row["startup_s"] + 12)
    (flow,) = one.record.flows
    assert flow.stopped_s == pytest.approx(row["ended_s"], abs=0.01)
    assert flow.control == flow.variant_seen == ("cubic" if transport == "https" else "")


@pytest.mark.parametrize("transport", [Transport.HTTPS, Transport.QUIC])
def test_on_a_radio_that_loses(tmp_path: Path, transport: Transport) -> None:
    """The verdict takes neither its losses nor its varying delay for faults."""
    scenario = video(transport, "wifi-weak", rule="480p", viewer_variant="vegas")
    (trial,) = run_trials([scenario], tmp_path)
    row = video_measures([trial]).iloc[0]
    assert (row["why"], row["segments"]) == ("", 3)


def test_a_trial_that_is_over_before_the_video(tmp_path: Path) -> None:
    (trial,) = run_trials([video(length_s=60, duration_s=20)], tmp_path)
    row = video_measures([trial]).iloc[0]
    assert row["why"] == "stopped"
    assert 0 < row["segments"] < 15
    (flow,) = trial.record.flows
    assert flow.stopped_s == pytest.approx(20)
