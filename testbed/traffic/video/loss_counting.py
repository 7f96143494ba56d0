"""The congestion controls of a QUIC server, extended to count the losses reported to them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from aioquic.quic.congestion.base import QuicCongestionControl, register_congestion_control
from aioquic.quic.congestion.cubic import CubicCongestionControl
from aioquic.quic.congestion.reno import RenoCongestionControl
from aioquic.quic.packet_builder import QuicSentPacket


@dataclass
class Counts:
    """Totals over all connections of this process."""

    lost_packets: int = 0
    persistent_congestion: int = 0  # RFC 9002, 7.6: how often declared


COUNTS = Counts()


class _LossCounting(QuicCongestionControl):
    def on_packets_lost(self, *, now: float, packets: Iterable[QuicSentPacket]) -> None:
        lost = list(packets)
        COUNTS.lost_packets += len(lost)
        super().on_packets_lost(now=now, packets=lost)  # type: ignore[safe-super]

    def on_persistent_congestion(self) -> None:
        COUNTS.persistent_congestion += 1
        super().on_persistent_congestion()  # type: ignore[safe-super]


class _Reno(_LossCounting, RenoCongestionControl):
    pass


class _Cubic(_LossCounting, CubicCongestionControl):
    pass


def register() -> None:
    """Register the counting controls under the names of aioquic's own."""
    register_congestion_control("reno", _Reno)
    register_congestion_control("cubic", _Cubic)


def register_bbr() -> None:
    """Register ours, of which aioquic has none."""
    from testbed.traffic.video.bbr import BbrCongestionControl

    class _Bbr(_LossCounting, BbrCongestionControl):
        pass

    register_congestion_control("bbr", _Bbr)
