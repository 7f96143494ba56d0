"""The idle path: echo requests from every flow's sender to its receiver before any traffic.

They compare the delay of the unused path with the planned one: the floor of every delay measured
under load.
"""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from testbed.machine.netns import inside
from testbed.machine.process import Place
from testbed.machine.timer import sleep_until
from testbed.plan.network import radio_of
from testbed.plan.plan import Plan
from testbed.plan.radio import IDLE_MS
from testbed.store import IDLE_RTTS, write_table
from testbed.trial.parts.part import Part, RunningTrial

REQUESTS = 3
PING_PAYLOAD = bytes(56)  # as ping's: 98 bytes on the wire
PING_PATIENCE_S = 1.0  # beyond the path's own delay
ECHO_REQUEST, ECHO_REPLY = 8, 0
_ECHO = struct.Struct("!BBHHH")  # type, code, checksum, identifier, sequence


@dataclass(frozen=True)
class Idle:
    """One request: its round trip, None if no reply came, and the propagation delay both ways.

    Nothing is added for the bottleneck's rate: a full token bucket sends a first packet at once.
    The links' jitter may change the delay by up to `jitter_ms`, as may a chance to overtake, or a
    radio, the more so the busier its channel; on a `lossy` path the packet may be lost.
    """

    flow: str
    src: str
    dst: str
    rtt_ms: float | None
    expected_ms: float
    jitter_ms: float = 0.0
    lossy: bool = False


def idle_round_trips(plan: Plan, places: Mapping[str, Place]) -> list[Idle]:
    """Send a few requests for each flow, one after the other."""
    found = []
    for flow in plan.flows:
        path = plan.network.path(flow.flow.src, flow.flow.dst)
        expected_ms = sum(hop.link.both_delays_ms for hop in path)
        crossed = [each for hop in path for each in hop.link.directions]
        jitter_ms = sum(each.delay_ms if each.reorder else each.jitter_ms for each in crossed)
        radios = [radio for hop in path if (radio := radio_of(hop.link)) is not None]
        jitter_ms += sum(IDLE_MS / (1 - radio.busy) ** 2 for radio in radios)
        lossy = bool(radios) or any(each.loss for each in crossed)
        with inside(places[flow.flow.src].pid):
            link = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
        # a guest's process that makes many calls without sleeping pays for them: not in here
        sleep_until(time.monotonic_ns() + 1)
        with link:
            link.bind((flow.src_address, 0))
            link.connect((flow.dst_address, 0))
            for number in range(REQUESTS):
                rtt_ms = _ask(link, number, PING_PATIENCE_S + (expected_ms + jitter_ms) / 1e3)
                ends = (flow.src_address, flow.dst_address)
                asked = Idle(flow.flow.name, *ends, rtt_ms, expected_ms, jitter_ms, lossy)
                found.append(asked)
    return found


def _ask(link: socket.socket, number: int, patience_s: float) -> float | None:
    """Send one request and return its round-trip time in ms."""
    begun = time.monotonic()
    link.send(echo_request(number))
    while (left_s := begun + patience_s - time.monotonic()) > 0:
        link.settimeout(left_s)
        try:
            packet = link.recv(2048)
        except TimeoutError:
            return None
        if is_reply(packet, number):
            return (time.monotonic() - begun) * 1e3
    return None


def echo_request(number: int) -> bytes:
    """Return an ICMP message; its identifier may be 0, as the socket is connected to its peer."""
    bare = _ECHO.pack(ECHO_REQUEST, 0, 0, 0, number) + PING_PAYLOAD
    total = sum(struct.unpack(f"!{len(bare) // 2}H", bare))
    total = (total & 0xFFFF) + (total >> 16)
    return _ECHO.pack(ECHO_REQUEST, 0, ~total & 0xFFFF, 0, number) + PING_PAYLOAD


def is_reply(packet: bytes, number: int) -> bool:
    """Return whether an IP packet is the reply to the request with this number."""
    header = (packet[0] & 15) * 4
    kind, _, _, _, sequence = _ECHO.unpack_from(packet, header)
    return bool(kind == ECHO_REPLY and sequence == number)


def write_idle(rows: Sequence[Idle], folder: Path) -> None:
    """Write one row per request; the round-trip time of a lost one is empty."""
    write_table(folder, IDLE_RTTS, map(_line, rows))


def _line(row: Idle) -> tuple[object, ...]:
    rtt = "" if row.rtt_ms is None else f"{row.rtt_ms:.6f}"
    asked = (f"{row.expected_ms:g}", f"{row.jitter_ms:g}", int(row.lossy))
    return (row.flow, row.src, row.dst, rtt, *asked)


class IdleRtt(Part):
    """The round-trip times of every flow's idle path."""

    def __init__(self, trial: RunningTrial) -> None:
        super().__init__(trial)
        self._rows: list[Idle] = []

    def open(self) -> None:
        """Measure before any program is started."""
        self._rows = idle_round_trips(self._trial.plan, self._trial.places)

    def write(self, folder: Path) -> None:
        """Write the round trips."""
        write_idle(self._rows, folder)
