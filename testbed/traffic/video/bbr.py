"""BBR, version 1, for aioquic: the model and the constants of Linux's tcp_bbr.c.

aioquic paces at its congestion window over the smoothed round trip, and asks the congestion
control for nothing but that window. So the window here is pacing gain × bandwidth × smoothed round
trip, which makes aioquic pace as BBR wants to, and never more than BBR may have in flight. Two
things of Linux's are missing: the phase in which probing begins is not drawn but the first, and a
round trip with losses does not send what was delivered and no more.
"""

from __future__ import annotations

import enum
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

from aioquic.quic.congestion.base import QuicCongestionControl
from aioquic.quic.packet_builder import QuicSentPacket

HIGH_GAIN = 2.885  # 2/ln 2: doubles what is delivered in each round trip
WINDOW_GAIN = 2.0
CYCLE = (1.25, 0.75, *(1.0,) * 6)  # pacing gains, one smallest round trip each
BANDWIDTH_ROUNDS = len(CYCLE) + 2  # the bandwidth is the maximum of this number of round trips
# The pipe is full if three round trips did not bring as much more.
STARTUP_GROWTH, FULL_ROUNDS = 1.25, 3
MIN_PACKETS = 4
MIN_RTT_S, PROBE_RTT_S = 10.0, 0.2  # how long a smallest round trip holds; how long it is probed


class Mode(enum.Enum):
    """The states of BBR."""

    STARTUP = enum.auto()
    DRAIN = enum.auto()
    PROBE_BW = enum.auto()
    PROBE_RTT = enum.auto()


@dataclass(frozen=True)
class _Sent:
    """The bytes that had been delivered when a packet left."""

    at: float
    first_at: float  # when the packet that was delivered last had left
    delivered: int
    delivered_at: float
    limited: bool  # by the application, not by the network


class Bandwidth:
    """The most that was delivered per second in the latest round trips."""

    def __init__(self) -> None:
        self._seen: deque[tuple[int, float]] = deque()  # round trip and rate, falling

    @property
    def most(self) -> float:
        """The highest rate, in bytes per second; 0 before anything was delivered."""
        return self._seen[0][1] if self._seen else 0.0

    def add(self, number: int, rate: float) -> None:
        """Add a rate that was measured in this round trip."""
        while self._seen and self._seen[-1][1] <= rate:
            self._seen.pop()
        self._seen.append((number, rate))
        while self._seen[0][0] <= number - BANDWIDTH_ROUNDS:
            self._seen.popleft()


class BbrCongestionControl(QuicCongestionControl):
    """Bandwidth and smallest round trip determine what is sent, losses do not."""

    def __init__(self, *, max_datagram_size: int) -> None:
        super().__init__(max_datagram_size=max_datagram_size)
        self._least = MIN_PACKETS * max_datagram_size
        self._sent: dict[int, _Sent] = {}
        self._first_at = self._delivered_at = 0.0
        self._delivered = self._limited_until = self._round_ends = 0
        self._round, self._new_round = 0, False
        self._bandwidth = Bandwidth()
        self._full_rate, self._full_rounds = 0.0, 0
        self._rtt_s = self._least_rtt_s = self._least_rtt_at = 0.0
        self.mode = Mode.STARTUP
        self._phase, self._phase_at, self._probed_until = 0, 0.0, 0.0

    # what the recovery tells

    def on_packet_sent(self, *, packet: QuicSentPacket) -> None:
        """Note what has been delivered so far; a pause is no time of delivery."""
        now = packet.sent_time or 0.0
        if not self.bytes_in_flight:
            self._first_at = self._delivered_at = now
        self._sent[id(packet)] = _Sent(
            now,
            self._first_at,
            self._delivered,
            self._delivered_at,
            self._delivered < self._limited_until,
        )
        self.bytes_in_flight += packet.sent_bytes

    def on_packet_acked(self, *, now: float, packet: QuicSentPacket) -> None:
        """Measure the rate at which this packet and those since it left were delivered."""
        sent = self._sent.pop(id(packet))
        self.bytes_in_flight -= packet.sent_bytes
        self._delivered += packet.sent_bytes
        self._delivered_at, self._first_at = now, sent.at
        if sent.delivered >= self._round_ends:
            self._round_ends = self._delivered
            self._round += 1
            self._new_round = True
        took_s = max(now - sent.delivered_at, sent.at - sent.first_at)
        rate = (self._delivered - sent.delivered) / took_s if took_s > 0 else 0.0
        if rate >= self._bandwidth.most or not sent.limited:
            self._bandwidth.add(self._round, rate)
        if not self.bytes_in_flight:
            self._limited_until = self._delivered + 1  # there was no more to send

    def on_packets_expired(self, *, packets: Iterable[QuicSentPacket]) -> None:
        """Forget them."""
        for packet in packets:
            self._sent.pop(id(packet), None)
            self.bytes_in_flight -= packet.sent_bytes

    def on_packets_lost(self, *, now: float, packets: Iterable[QuicSentPacket]) -> None:
        """Forget them: a loss changes neither bandwidth nor round trip."""
        self.on_packets_expired(packets=packets)

    def on_persistent_congestion(self) -> None:
        """Send next to nothing until something arrives again."""
        self.congestion_window = self._least

    def on_rtt_measurement(self, *, now: float, rtt: float) -> None:
        """Set the window after an acknowledgement; aioquic paces by it."""
        self._rtt_s = 7 / 8 * self._rtt_s + rtt / 8 if self._rtt_s else rtt
        known = self._least_rtt_s > 0
        due = known and now > self._least_rtt_at + MIN_RTT_S
        if not known or rtt <= self._least_rtt_s or due:
            self._least_rtt_s, self._least_rtt_at = rtt, now
        if self._new_round:
            self._new_round = False
            self._look_whether_full()
        self._choose_mode(now, due)
        self.congestion_window = self._window()

    # the model

    @property
    def _pipe(self) -> float:
        """The bytes that fill the path and no queue."""
        return self._bandwidth.most * self._least_rtt_s

    def _look_whether_full(self) -> None:
        if self._bandwidth.most >= STARTUP_GROWTH * self._full_rate:
            self._full_rate, self._full_rounds = self._bandwidth.most, 0
        elif self._delivered >= self._limited_until:
            self._full_rounds += 1

    @property
    def _is_full(self) -> bool:
        return self._full_rounds >= FULL_ROUNDS

    def _choose_mode(self, now: float, due: bool) -> None:
        if self.mode is Mode.STARTUP and self._is_full:
            self.mode = Mode.DRAIN
        if self.mode is Mode.DRAIN and self.bytes_in_flight <= self._pipe:
            self._probe_bandwidth(now)
        if self.mode is Mode.PROBE_BW:
            self._next_phase(now)
        if self.mode is Mode.PROBE_RTT and now > self._probed_until:
            self._least_rtt_at = now
            if self._is_full:
                self._probe_bandwidth(now)
            else:
                self.mode = Mode.STARTUP
        elif due and self.mode is not Mode.PROBE_RTT:
            self.mode = Mode.PROBE_RTT
            self._probed_until = now + max(PROBE_RTT_S, self._rtt_s)

    def _probe_bandwidth(self, now: float) -> None:
        self.mode, self._phase, self._phase_at = Mode.PROBE_BW, 2, now

    def _next_phase(self, now: float) -> None:
        """Go to the next phase after a minimum round trip, with the pipe filled or drained."""
        gain = CYCLE[self._phase]
        is_over = now - self._phase_at > self._least_rtt_s
        if gain > 1:
            is_over &= self.bytes_in_flight >= gain * self._pipe - self._least
        elif gain < 1:
            is_over |= self.bytes_in_flight <= self._pipe
        if is_over:
            self._phase, self._phase_at = (self._phase + 1) % len(CYCLE), now

    def _window(self) -> int:
        paced = self._bandwidth.most * self._rtt_s
        if self.mode is Mode.PROBE_RTT:
            return self._least
        if self.mode is Mode.PROBE_BW:
            window = min(CYCLE[self._phase] * paced, WINDOW_GAIN * self._pipe)
        elif self.mode is Mode.DRAIN:
            window = paced / HIGH_GAIN
        else:
            window = HIGH_GAIN * self._pipe
        return max(int(window), self._least)
