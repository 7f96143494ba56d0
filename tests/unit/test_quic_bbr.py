"""BBR for aioquic over a link of our own: a rate, a delay, a queue without a limit."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import pytest
from aioquic.quic.packet_builder import QuicSentPacket

from testbed.traffic.video.bbr import BANDWIDTH_ROUNDS, Bandwidth, BbrCongestionControl, Mode

PACKET = 1200
RATE, DELAY_S = 250_000.0, 0.05  # bytes per second; both ways together
PIPE = RATE * DELAY_S


@dataclass
class Packet:
    sent_time: float
    sent_bytes: int = PACKET


class Link:
    """A sender that always, or by turns, has data; aioquic's pacing, one packet at a time."""

    def __init__(self) -> None:
        self.control = BbrCongestionControl(max_datagram_size=PACKET)
        self.now = 1000.0  # of aioquic's clock, when the connection begins
        self.free_at = self.next_at = 0.0
        self.rtt_s = DELAY_S
        self.flying: deque[tuple[float, Packet]] = deque()
        self.delivered = 0
        self.queues: list[float] = []  # in bytes, at each packet

    def run(self, seconds: float, *, sending: bool = True) -> float:
        """The rate at which packets arrived meanwhile."""
        end, before = self.now + seconds, self.delivered
        while self.now < end:
            may = sending and self.control.bytes_in_flight < self.control.congestion_window
            due = max(self.next_at, self.now) if may else end
            arrival = self.flying[0][0] if self.flying else end
            self.now = min(due, arrival, end)
            if self.flying and arrival <= self.now:
                self._arrive()
            elif may and due <= self.now:
                self._send()
        return (self.delivered - before) / seconds

    def _send(self) -> None:
        packet = Packet(self.now)
        self.control.on_packet_sent(packet=as_sent(packet))
        self.free_at = max(self.free_at, self.now) + PACKET / RATE
        self.queues.append((self.free_at - self.now) * RATE)
        self.flying.append((self.free_at + DELAY_S, packet))
        self.next_at = self.now + PACKET * self.rtt_s / self.control.congestion_window

    def _arrive(self) -> None:
        _, packet = self.flying.popleft()
        self.delivered += PACKET
        rtt = self.now - packet.sent_time
        self.rtt_s = 7 / 8 * self.rtt_s + rtt / 8
        self.control.on_packet_acked(now=self.now, packet=as_sent(packet))
        self.control.on_rtt_measurement(now=self.now, rtt=rtt)


def as_sent(packet: Packet) -> QuicSentPacket:
    """aioquic's own type has more fields than a control reads."""
    return packet  # type: ignore[return-value]


@pytest.fixture
def link() -> Link:
    return Link()


def test_the_link_is_full_and_the_queue_short(link: Link) -> None:
    link.run(2)
    assert link.control.mode is Mode.PROBE_BW
    link.queues.clear()
    assert link.run(6) == pytest.approx(RATE, rel=0.03)
    assert max(link.queues) < 0.5 * PIPE
    assert sorted(link.queues)[len(link.queues) // 2] < 0.1 * PIPE + PACKET


def test_starting_up_doubles_the_rate_and_ends_when_it_grows_no_more(link: Link) -> None:
    link.run(2 * DELAY_S)
    assert link.control.mode is Mode.STARTUP
    assert 1.7 * link.run(DELAY_S) < link.run(DELAY_S)
    link.run(0.7)
    assert link.control.mode is not Mode.STARTUP
    assert max(link.queues) < 2 * 2.885 * PIPE


def test_the_smallest_round_trip_is_probed_every_ten_seconds(link: Link) -> None:
    modes = []
    for _ in range(250):
        link.run(0.05)
        modes.append(link.control.mode)
    probed = [n for n, mode in enumerate(modes) if mode is Mode.PROBE_RTT]
    assert probed and len(probed) <= 8
    assert modes[-1] is Mode.PROBE_BW


def test_a_sender_without_data_does_not_forget_the_rate(link: Link) -> None:
    link.run(3)
    known = link.control.congestion_window
    for _ in range(40):  # a packet or two, then a pause
        link.run(0.002)
        link.run(0.2, sending=False)
    assert link.control.congestion_window > 0.5 * known
    assert link.run(1) == pytest.approx(RATE, rel=0.1)


def test_a_loss_changes_nothing(link: Link) -> None:
    link.run(3)
    window = link.control.congestion_window
    _, lost = link.flying.pop()
    before = link.control.bytes_in_flight
    link.control.on_packets_lost(now=link.now, packets=[as_sent(lost)])
    assert link.control.congestion_window == window
    assert link.control.bytes_in_flight == before - PACKET
    link.control.on_persistent_congestion()
    assert link.control.congestion_window == 4 * PACKET
    assert link.run(2) == pytest.approx(RATE, rel=0.1)


def test_the_bandwidth_is_the_most_of_ten_rounds() -> None:
    seen = Bandwidth()
    assert seen.most == 0
    for number, rate in ((1, 5.0), (2, 9.0), (3, 4.0)):
        seen.add(number, rate)
    assert seen.most == 9
    seen.add(2 + BANDWIDTH_ROUNDS, 1.0)
    assert seen.most == 4
