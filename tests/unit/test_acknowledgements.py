"""When the player acknowledges over QUIC: as Chromium does."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from aioquic.quic.rangeset import RangeSet
from aioquic.tls import Epoch

from testbed.traffic.video.http3 import Acknowledgements


class Client:
    """aioquic's client, as far as it acknowledges."""

    def __init__(self, round_trip_s: float) -> None:
        self.space = SimpleNamespace(ack_at=None, ack_queue=RangeSet())
        loss = SimpleNamespace(_rtt_min=round_trip_s)
        spaces = {Epoch.ONE_RTT: self.space}
        self.quic: Any = SimpleNamespace(_spaces=spaces, _loss=loss, _ack_delay=0.0)
        self.acks = Acknowledgements(cast(Any, self.quic))

    def take(self, number: int, now_s: float) -> bool:
        """A packet comes; whether it is acknowledged at once."""
        with self.acks.of_a_packet(now_s):
            self.space.ack_queue.add(number)
            if self.space.ack_at is None:
                self.space.ack_at = now_s + self.quic._ack_delay
        if self.space.ack_at > now_s:
            return False
        self.space.ack_at = None
        return True


def test_early_packets_by_two_later_ones_by_ten() -> None:
    client = Client(0.04)
    at_once = [number for number in range(1, 141) if client.take(number, 0.0)]
    assert at_once == [*range(2, 101, 2), 110, 120, 130, 140]


@pytest.mark.parametrize(("round_trip_s", "delay_s"), [(0.04, 0.01), (0.3, 0.025), (0.0002, 0.001)])
def test_a_quarter_of_the_round_trip(round_trip_s: float, delay_s: float) -> None:
    client = Client(round_trip_s)
    client.take(1, 0.0)
    assert client.space.ack_at == pytest.approx(0.025)
    for number in range(2, 101):
        client.take(number, 0.0)
    client.take(101, 1.0)
    assert client.space.ack_at == pytest.approx(1 + delay_s)


def test_a_gap_at_once() -> None:
    client = Client(0.04)
    for number in range(1, 101):
        client.take(number, 0.0)
    assert not client.take(101, 1.0)
    assert client.take(103, 1.0)
    assert not client.take(104, 1.0)  # what is missing has been told
    assert client.take(107, 1.0)
