"""aioquic's congestion controls, with a count of what they were told is lost."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from aioquic.quic.congestion.base import QuicCongestionControl, register_congestion_control
from aioquic.quic.congestion.cubic import CubicCongestionControl
from aioquic.quic.congestion.reno import RenoCongestionControl
from aioquic.quic.packet_builder import QuicSentPacket


@dataclass
class Counts:
    """Over all connections of this process."""

    lost_packets: int = 0
    persistent_congestion: int = 0  # how often all was lost for so long that it began anew


COUNTS = Counts()


class _Counted(QuicCongestionControl):
    def on_packets_lost(self, *, now: float, packets: Iterable[QuicSentPacket]) -> None:
        lost = list(packets)
        COUNTS.lost_packets += len(lost)
        super().on_packets_lost(now=now, packets=lost)  # type: ignore[safe-super]

    def on_persistent_congestion(self) -> None:
        COUNTS.persistent_congestion += 1
        super().on_persistent_congestion()  # type: ignore[safe-super]


class _Reno(_Counted, RenoCongestionControl):
    pass


class _Cubic(_Counted, CubicCongestionControl):
    pass


def register() -> None:
    """In place of aioquic's own, under their names."""
    register_congestion_control("reno", _Reno)
    register_congestion_control("cubic", _Cubic)
