"""Packet lengths against Wireshark's own table, and spikes counted by hand."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from analysis.captures.lengths import packet_lengths
from analysis.metrics.video_columns import Spikes, spikes
from tests.pcap_writer import Endpoints, Frame, udp, write_pcap
from tests.wireshark_tables import as_wireshark_writes, lengths

ENDS = Endpoints("10.0.0.1", 1000, "10.0.0.2", 2000)


@pytest.mark.parametrize("seed", range(6))
def test_the_table_is_wiresharks(tmp_path: Path, seed: int) -> None:
    """Random lengths at random times: some together, some far apart."""
    dice = np.random.default_rng(seed)
    gaps = dice.exponential([0.1, 1, 5, 30, 200, 2][seed], 400) * 1e6
    times = 1_700_000_000 * 10**9 + np.cumsum(gaps).astype(np.int64)
    sizes = dice.choice([60, 79, 80, 159, 160, 319, 320, 639, 640, 1279, 1280, 2000], 400)
    frames: list[Frame] = [
        udp(ENDS, int(time), payload=int(size) - 42, ip_id=1)
        for time, size in zip(times, sizes, strict=True)
    ]
    # the rates are those of the packets, the bursts those since the capture's first frame
    first = Frame(int(times[0]) - 123_000_000 * seed, bytes(12) + b"\x08\x06" + bytes(28))
    path = tmp_path / "lengths.pcap"
    write_pcap(path, [first, *frames], 96)
    ours = packet_lengths(times, sizes, first.time_ns)
    theirs = lengths(path, "udp")
    assert len(theirs) == len(ours) == 11
    for _, row in ours.iterrows():
        assert as_wireshark_writes(row) == theirs[row["lengths"]], row["lengths"]


def test_lengths_of_nothing() -> None:
    table = packet_lengths(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), 0)
    assert list(table["count"]) == [0] * 11
    assert math.isnan(table["average"][0])


@pytest.mark.parametrize(
    ("values", "threshold", "found"),
    [
        ([10, 100, 20], 50, Spikes(1, 80)),
        ([10, 70, 20], 50, Spikes(1, 50)),  # no more than the threshold is enough
        ([10, 69, 20], 50, Spikes(0, 0)),
        ([100, 90, 100], 50, Spikes(0, 0)),  # high, but not above the neighbours
        ([60, 0, 0, 300], 50, Spikes(2, 300)),  # nothing before the first, nor after the last
        ([0, 100, 100, 0], 50, Spikes(0, 0)),
        ([10, 100, 20], 81, Spikes(0, 0)),
        ([], 50, Spikes(0, 0)),
    ],
)
def test_spikes(values: list[float], threshold: float, found: Spikes) -> None:
    assert spikes(values, threshold) == found
