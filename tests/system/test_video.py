"""A short video over a line of 2 Mbit/s and 40 ms, in the guest, over TCP and over QUIC."""

from __future__ import annotations

import hashlib
import math
import os
import sys
import threading
from pathlib import Path

import pytest

from testbed.engine import Job
from testbed.guest.engine import GuestEngine
from testbed.runs.engine_choice import choose
from testbed.scenario.video import LADDER, QUIC_CONTROLS, Transport, Video
from testbed.traffic.video.result import Result

TRANSPORTS = [each.value for each in Transport]
RATE_BIT = 2e6
RTT_S = 0.040
PATIENCE_S = 600.0


def watch(folder: Path, *words: str) -> Result:
    """Play in a guest."""
    engine = choose("guest", ()).engine
    assert isinstance(engine, GuestEngine)
    folder.mkdir()
    core = min(os.sched_getaffinity(0))
    job = Job(1, core, threading.Event())
    outcome = engine.boot(
        folder, [sys.executable, "-m", "tests.video_lab", *words], job, PATIENCE_S
    )
    assert outcome.status == 0, outcome.errors
    return Result.from_json((folder / "result.json").read_text())


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_short_video(tmp_path: Path, transport: str) -> None:
    folder = tmp_path / transport
    found = watch(folder, transport)
    assert (found.why, found.stalls, found.switches) == ("", (), 0)
    sizes = Video(10).sizes(next(rung for rung in LADDER if rung.name == "480p"))
    assert tuple(each.load.bytes for each in found.segments) == sizes
    # a handshake: one round trip of TCP or QUIC, another for TLS over TCP, and a window to send
    trips = 2 if transport == "https" else 1
    assert found.connected_s == pytest.approx(trips * RTT_S, abs=0.03)
    # the page, then segment after segment, hardly slower than the line
    assert found.page_s and found.startup_s and found.loaded_s and found.ended_s
    page_bytes = sum(each.bytes for each in found.page)
    assert 1 < found.page_s / (page_bytes * 8 / RATE_BIT) < 1.25
    whole_s = found.loaded_s - found.page_s
    assert 1 < whole_s / (sum(sizes) * 8 / RATE_BIT) < 1.25
    assert found.startup_s == found.segments[0].load.last_byte_s
    assert found.ended_s == pytest.approx(found.startup_s + 10)
    # its clock is the capture's: nothing is sent before it begins
    begun_s = int((folder / "begun").read_text()) / 1e9
    assert found.epoch_s == pytest.approx(begun_s, abs=2e-3)


def test_the_same_seed_gives_the_same_playback(tmp_path: Path, full: bool) -> None:
    """Bad luck with packets included: every time, every packet, every encrypted byte. As trials do
    that too (test_video_trial.py), over QUIC in the full run."""
    for transport in ("https", "quic") if full else ("https",):
        words = (transport, "--loss", "1", "--rule", "throughput", "--duration-s", "6")
        seen = []
        for name in ("once", "again"):
            folder = tmp_path / f"{transport}-{name}"
            watch(folder, *words)
            files = (folder / "result.json", folder / "st.pcap")
            seen.append([hashlib.sha256(file.read_bytes()).hexdigest() for file in files])
        assert seen[0] == seen[1]


@pytest.mark.parametrize("transport", ["http", "quic"])
def test_a_line_that_is_too_slow(tmp_path: Path, transport: str) -> None:
    """A rung of 1 Mbit/s at 0.6: the picture stands still; what there is at SIGTERM is told."""
    words = (transport, "--rate-mbit", "0.6", "--duration-s", "60", "--stop-s", "60")
    found = watch(tmp_path / "slow", *words)
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


def test_the_controls_of_quic_differ(tmp_path: Path) -> None:
    """And BBR, which does not slow down at losses, is the first to have loaded it."""
    words = ("quic", "--loss", "2", "--duration-s", "4")
    loaded = {
        control: watch(tmp_path / control, *words, "--control", control).loaded_s or math.inf
        for control in QUIC_CONTROLS
    }
    assert len(set(loaded.values())) == len(QUIC_CONTROLS)
    assert min(loaded, key=loaded.__getitem__) == "bbr"
