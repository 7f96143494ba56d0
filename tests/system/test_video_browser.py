"""Chromium watches what the model watches: in the guest, exactly; on the host, in real time."""

from __future__ import annotations

from pathlib import Path

import pytest

from analysis.trials.video import video_measures
from experiments.rajore_gupta_sikka_jain.video_players_figures import WITHIN_S
from testbed.machine.journal import JOURNAL
from testbed.scenario.video import PlayerKind
from testbed.store.reading import Trial
from testbed.video_site import Transport
from tests.lab import capture_hashes, run_trials
from tests.left_behind import browsers
from tests.scenarios import near_video, video

MEASURES = ("page_s", "startup_s", "loaded_s", "ended_s", "stall_s")


def agree(trials: list[Trial], seconds: float, share: float = 0.0) -> None:
    """The model is as near to the browser as is said, in each measure; stalls are as many."""
    model, browser = video_measures(trials).to_dict("records")
    assert (model["why"], browser["why"]) == ("", "")
    assert model["bytes"] == browser["bytes"]
    assert model["stalls"] == browser["stalls"]
    for name in MEASURES:
        assert model[name] == pytest.approx(browser[name], abs=seconds, rel=share), name


@pytest.mark.slow
def test_the_model_is_as_the_browser_in_virtual_time(tmp_path: Path, full: bool) -> None:
    """On the shaped line, with its delays, at twice the rate that it carries. Over TLS, which in
    real time is compared below, in the full run."""
    for transport in (Transport.QUIC, Transport.HTTPS) if full else (Transport.QUIC,):
        pair = [video(transport, rule="720p", length_s=8, player=player) for player in PlayerKind]
        trials = run_trials(pair, tmp_path / transport)
        agree(trials, WITHIN_S)
        assert (video_measures(trials)["stalls"] > 0).all()


@pytest.mark.slow
def test_the_browser_does_the_same_each_time(tmp_path: Path) -> None:
    """Real TLS, a real browser of many processes: the same packets at the same nanosecond.

    And it may be told to stop before the video has ended.
    """
    scenario = video(length_s=40, duration_s=12, player=PlayerKind.CHROMIUM)
    once, again = (run_trials([scenario], tmp_path / name)[0] for name in ("once", "again"))
    assert capture_hashes(once) == capture_hashes(again)
    row = video_measures([once]).iloc[0]
    assert row["why"] == "stopped"
    assert 0 < row["segments"] < 10
    assert row["startup_s"] < 12


@pytest.mark.host
@pytest.mark.root("the host engine makes namespaces and queues")
def test_the_browser_in_real_time_is_as_the_model(tmp_path: Path, full: bool) -> None:
    """Real time takes its time: the model's in the full run alone, else it runs in the guest. QUIC
    too in the full run."""
    marks = frozenset(JOURNAL.marker.values())
    for transport in ("https", "quic") if full else ("https",):
        model = run_trials(
            [near_video(transport, PlayerKind.MODEL)], tmp_path, "host" if full else "guest"
        )
        browser = run_trials([near_video(transport, PlayerKind.CHROMIUM)], tmp_path, "host")
        agree(model + browser, 1.0, 0.05)
        assert browsers(marks) == []
    assert not [path for trial in model + browser for path in trial.path.glob("testbed-video-*")]
