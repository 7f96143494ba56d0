"""`testbed fit` on captures made by hand, whose numbers are known by arithmetic."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from analysis.statistics.fitting import HEADERS, _waits_when_full, fit
from tests.pcap_writer import Endpoints, Frame, tcp, write_pcap

MS = 1_000_000
SEGMENT, GAP_MS, RTT_MS = 1448, 2, 40
RATE_MBIT = (SEGMENT + HEADERS) * 8e-3 / GAP_MS
ENDS = Endpoints("10.0.0.1", 40_001, "10.0.0.2", 5201)
BESIDE = Endpoints("10.0.0.1", 40_002, "10.0.0.2", 5201)
LONG_EVERY = 20  # every 20th frame is two segments that the sender's card has yet to split


def flow(ends: Endpoints, segments: int, begin: int, long: bool = False) -> Iterator[Frame]:
    """A segment every 2 ms; each is acknowledged after a round trip, and none waits."""
    seq = begin
    for number in range(segments):
        payload = SEGMENT * (2 if long and number % LONG_EVERY == 0 else 1)
        sent_ns = number * GAP_MS * MS
        yield tcp(ends, sent_ns, seq=seq, ack=1, payload=payload)
        seq += payload
        yield tcp(ends.back, sent_ns + RTT_MS * MS, seq=1, ack=seq)


def written(path: Path, *flows: Iterator[Frame]) -> Path:
    """A capture of the flows, by the time of their frames."""
    frames = sorted((frame for each in flows for frame in each), key=lambda each: each.time_ns)
    return write_pcap(path, frames)


@pytest.mark.parametrize("begin", [1, 2**32 - 10 * SEGMENT], ids=["", "around the end"])
def test_the_rate_is_that_of_acknowledged_bytes(tmp_path: Path, begin: int) -> None:
    """Also where sequence numbers begin again, in the first of five windows."""
    fitted = fit(written(tmp_path / "x.pcap", flow(ENDS, 400, begin)))
    assert fitted.rate_mbit.value == pytest.approx(RATE_MBIT, rel=0.02)
    assert fitted.rtt_ms.value == pytest.approx(RTT_MS)
    assert fitted.sent_bytes == 400 * SEGMENT and fitted.waiting == 0
    assert [note.partition(":")[0] for note in fitted.notes] == ["packets hardly ever waited"]


def test_the_largest_flow_is_taken_and_others_are_named(tmp_path: Path) -> None:
    both = written(tmp_path / "x.pcap", flow(BESIDE, 120, 1), flow(ENDS, 400, 1))
    note, *_ = fit(both).notes
    assert fit(both).sent_bytes == 400 * SEGMENT
    assert note.startswith("other TCP flows carry 23 % of the capture's data")
    few = written(tmp_path / "y.pcap", flow(BESIDE, 30, 1), flow(ENDS, 400, 1))
    assert not any("other TCP flows" in each for each in fit(few).notes)


def test_frames_that_the_senders_card_cuts_later_are_named(tmp_path: Path) -> None:
    note, *_ = fit(written(tmp_path / "x.pcap", flow(ENDS, 400, 1, long=True))).notes
    assert note.startswith("5 % of the frames are longer than a packet")


def test_a_loss_has_the_wait_of_the_last_acknowledgement_before_it() -> None:
    """Every tenth acknowledgement waited long, and a loss follows each of them."""
    flow: Any = SimpleNamespace(acked_s=np.arange(100.0))
    wait_ms = np.where(np.arange(100) % 10 == 5, 10.0, 1.0)
    losses_s = np.arange(5.5, 100, 10)
    assert _waits_when_full(flow, wait_ms, losses_s, 10.0).tolist() == [10.0] * 10
    assert not len(_waits_when_full(flow, wait_ms, losses_s + 1, 10.0))
