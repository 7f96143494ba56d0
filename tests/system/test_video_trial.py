"""A short video as a trial's flow, over TCP and over QUIC, on the shaped line and a bad radio."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path

import pytest

from analysis.captures.tables import length_tables
from analysis.metrics.video_columns import spikes
from analysis.results.reduction import reduce_trial
from analysis.trials.video import video_measures
from testbed.store.reading import Trial
from testbed.video_site import Transport
from tests.lab import ON_FIRST, capture_hashes, packets, run_trials, samples
from tests.scenarios import video
from tests.wireshark_tables import as_wireshark_writes, frames_per_second, lengths


@pytest.mark.slow(but=1)
@pytest.mark.parametrize("transport", [Transport.QUIC, Transport.HTTPS])
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
    most = 1.25 if ON_FIRST else 1.3  # 6.12 takes 1.254 over HTTPS, 6.1 1.059
    assert (row["transport"], row["why"], row["segments"]) == (transport, "", 3)
    assert row["bytes"] == 330_000 * 12 / 8
    assert 1 < (row["loaded_s"] - row["page_s"]) / (row["bytes"] * 8 / 1.024e6) < most
    assert row["ended_s"] == pytest.approx(row["startup_s"] + 12)
    (flow,) = one.record.flows
    assert flow.stopped_s == pytest.approx(row["ended_s"], abs=0.01)
    assert flow.control == flow.variant_seen == ("cubic" if transport == "https" else "")
    # nothing is left to wait for: it does not go on to its 40 s
    last_s = float(samples(one, "queues")[-1]["time_s"])
    assert flow.stopped_s < last_s < flow.stopped_s + 5.3


@pytest.fixture(scope="module", params=[Transport.HTTPS, Transport.QUIC])
def lossy(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Trial:
    """On a radio that loses; with a sound verdict, which takes neither its losses nor its varying
    delay for faults."""
    chosen = video(request.param, "wifi-weak", rule="480p", viewer_variant="vegas")
    scenario = dataclasses.replace(chosen, seed=4)
    (trial,) = run_trials([scenario], tmp_path_factory.mktemp("lossy"))
    return trial


@pytest.mark.slow(but=1)
def test_on_a_radio_that_loses(lossy: Trial) -> None:
    row = video_measures([lossy]).iloc[0]
    assert (row["why"], row["segments"]) == ("", 3)


@pytest.mark.slow(but=1)
def test_its_packet_lengths_are_wiresharks(lossy: Trial) -> None:
    path = station(lossy)
    (reduced,) = length_tables([path], tunnels=False)
    ours, theirs = reduced.table.to_pandas(), lengths(path)
    assert not reduced.warnings
    assert len(theirs) == len(ours) == 11
    for _, row in ours.iterrows():
        assert as_wireshark_writes(row) == theirs[row["lengths"]], row["lengths"]


@pytest.mark.slow(but=1)
def test_its_columns_are_what_the_captures_say(lossy: Trial) -> None:
    row = reduce_trial(lossy).flows.iloc[0]
    graph = frames_per_second(station(lossy), "frame")
    tall = spikes(graph)
    assert (row["spikes"], row["largest_spike_pps"]) == (tall.count, tall.largest)
    # all has drained, so that what is not there is lost
    assert row["lost_packets"] == row["sent_packets"] - row["received_packets"] > 0
    assert 0 < row["lost_packets_peak"] <= row["lost_packets"]
    sizes = [packet.length for packet in packets(lossy, "receiver:video", "frame")]
    assert row["mean_packet_bytes"] == pytest.approx(sum(sizes) / len(sizes))
    if lossy.record.flows[0].protocol == "udp":
        assert row[["error_packets", "error_packets_peak", "retransmitted_bytes"]].isna().all()
        # its server noticed: but for acknowledgements alone, and what a probe sent again first
        assert row["quic_lost_packets"] == pytest.approx(row["lost_packets"], rel=0.1)
        return
    assert math.isnan(row["quic_lost_packets"])
    errors = frames_per_second(station(lossy), "tcp.analysis.flags && !tcp.analysis.window_update")
    assert (row["error_packets"], row["error_packets_peak"]) == (sum(errors), max(errors))
    marked = "tcp.srcport == 443 && (tcp.analysis.retransmission || tcp.analysis.out_of_order)"
    again = packets(lossy, "sender:video", marked)
    assert row["retransmitted_bytes"] == sum(packet.length for packet in again)
    assert len(again) == row["retransmitted"] > 0  # by the kernel's own count


def station(trial: Trial) -> Path:
    """What was captured at the viewer's."""
    path = trial.capture("receiver:video")
    assert path is not None
    return path


def test_a_trial_that_is_over_before_the_video(tmp_path: Path) -> None:
    (trial,) = run_trials([video(length_s=60, duration_s=20)], tmp_path)
    row = video_measures([trial]).iloc[0]
    assert row["why"] == "stopped"
    assert 0 < row["segments"] < 15
    (flow,) = trial.record.flows
    assert flow.stopped_s == pytest.approx(20)
