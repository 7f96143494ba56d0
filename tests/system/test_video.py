"""A short video over a line of 2 Mbit/s and 40 ms, in the guest, over TCP and over QUIC."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from testbed.scenario.losses import GilbertElliott
from testbed.scenario.model import Flow, FlowKind, Scenario
from testbed.scenario.named_networks import LinkSettings, router_bottleneck
from testbed.scenario.network import Direction, Queue
from testbed.scenario.video import LADDER, Video, Viewing
from testbed.store.names import playback_file
from testbed.store.reading import Trial
from testbed.traffic.video.result import Result
from testbed.video_site import QUIC_CONTROLS, Transport
from tests.lab import capture_hashes, run_trials

RATE_MBIT = 2.0
RTT_S = 0.040


def line(
    transport: str,
    *,
    rate_mbit: float = RATE_MBIT,
    loss: float = 0.0,
    rule: str = "480p",
    control: str = "reno",
    length_s: float = 10.0,
    duration_s: float = 40.0,
) -> Scenario:
    """Somebody watches a video behind a line, on which packets towards them are lost at random."""
    quic = transport == "quic"
    viewing = Viewing(Transport(transport), rule, length_s, control=control if quic else None)
    lossy = GilbertElliott(to_bad=loss, to_good=1 - loss) if loss else None
    return Scenario(
        experiment="test",
        label=f"{transport}-{viewing.control}",
        network=router_bottleneck(
            LinkSettings(rate_mbit, queue=Queue("pfifo", limit_packets=50)),
            access=LinkSettings(delay_ms=20, loss=lossy, reverse=Direction(delay_ms=20)),
        ),
        flows=(
            Flow(
                *("video", FlowKind.VIDEO, "sender1", "receiver"),
                variant=None if quic else "cubic",
                video=viewing,
            ),
        ),
        duration_s=duration_s,
    )


def watched(trial: Trial) -> Result:
    return Result.from_json((trial.path / playback_file("video")).read_text())


@pytest.mark.slow
def test_a_short_video(tmp_path: Path) -> None:
    transports = [each.value for each in Transport]
    trials = run_trials([line(each) for each in transports], tmp_path)
    sizes = Video(10).sizes(next(rung for rung in LADDER if rung.name == "480p"))
    for transport, trial in zip(transports, trials, strict=True):
        found = watched(trial)
        assert (found.why, found.stalls, found.switches) == ("", (), 0)
        assert tuple(each.load.bytes for each in found.segments) == sizes
        # a handshake: one round trip of TCP or QUIC, another for TLS over TCP, and what it sends
        trips = 2 if transport == "https" else 1
        assert found.connected_s == pytest.approx(trips * RTT_S, abs=0.03)
        # the page, then segment after segment, hardly slower than the line
        assert found.page_s and found.startup_s and found.loaded_s and found.ended_s
        page_bytes = sum(each.bytes for each in found.page)
        assert 1 < found.page_s / (page_bytes * 8e-6 / RATE_MBIT) < 1.25
        whole_s = found.loaded_s - found.page_s
        assert 1 < whole_s / (sum(sizes) * 8e-6 / RATE_MBIT) < 1.25
        assert found.startup_s == found.segments[0].load.last_byte_s
        assert found.ended_s == pytest.approx(found.startup_s + 10)
        # its clock is the trial's: nothing is sent before it begins
        (flow,) = trial.record.flows
        assert found.epoch_s == pytest.approx(trial.record.epoch_s + flow.started_s, abs=2e-3)


@pytest.mark.slow
def test_the_same_seed_gives_the_same_playback(tmp_path: Path, full: bool) -> None:
    """Bad luck with packets included: every time, every packet, every encrypted byte; over QUIC,
    too, in the full run."""
    for transport in ("https", "quic") if full else ("https",):
        scenario = line(transport, loss=0.01, rule="throughput", length_s=6)
        seen = []
        for name in "12":
            (trial,) = run_trials([scenario], tmp_path / transport / name)
            seen.append((watched(trial), capture_hashes(trial)))
        assert seen[0] == seen[1]


@pytest.mark.slow(but=1)
@pytest.mark.parametrize("transport", ["http", "quic"])
def test_a_line_that_is_too_slow(tmp_path: Path, transport: str) -> None:
    """A rung of 1 Mbit/s at 0.6: the picture stands still; what there is at SIGTERM is told."""
    scenario = line(transport, rate_mbit=0.6, length_s=60, duration_s=60)
    (trial,) = run_trials([scenario], tmp_path)
    found = watched(trial)
    assert (found.why, found.loaded_s, found.ended_s) == ("stopped", None, None)
    assert found.stopped_s == pytest.approx(60, abs=0.1)
    assert found.startup_s is not None
    assert len(found.stalls) >= 3
    # what came has been shown, or is too little to go on
    came_s = 4 * sum(each.complete for each in found.segments)
    shown_s = found.stopped_s - found.startup_s - found.stall_s
    assert -1e-6 <= came_s - shown_s < 8
    last = found.segments[-1]
    assert not last.complete
    assert last.load.requested_s < 60


@pytest.mark.slow
def test_the_controls_of_quic_differ(tmp_path: Path) -> None:
    """And BBR, which does not slow down at losses, is the first to have loaded it."""
    scenarios = [line("quic", loss=0.02, length_s=4, control=each) for each in QUIC_CONTROLS]
    trials = run_trials(scenarios, tmp_path)
    loaded = [watched(trial).loaded_s or math.inf for trial in trials]
    assert len(set(loaded)) == len(QUIC_CONTROLS)
    assert QUIC_CONTROLS[loaded.index(min(loaded))] == "bbr"
