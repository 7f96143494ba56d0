"""Captures made by hand: TCP and UDP frames of known times and sizes, written as pcap."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

NANOSECOND_MAGIC = 0xA1B23C4D
ETHERNET = 1
FLAGS = {"F": 1, "S": 2, "R": 4, "P": 8, "A": 16}
_ETHERNET_HEADER = bytes.fromhex("020000000001 020000000002")


@dataclass(frozen=True)
class Frame:
    """A frame and when it was captured."""

    time_ns: int
    data: bytes

    def at(self, time_ns: int) -> Frame:
        """The same frame, seen at another time."""
        return Frame(time_ns, self.data)


@dataclass(frozen=True)
class Endpoints:
    """Addresses and ports of one direction."""

    src: str
    src_port: int
    dst: str
    dst_port: int

    @property
    def back(self) -> Endpoints:
        """The other direction."""
        return Endpoints(self.dst, self.dst_port, self.src, self.src_port)


def tcp(
    ends: Endpoints,
    time_ns: int,
    *,
    seq: int,
    ack: int = 0,
    payload: int = 0,
    flags: str = "A",
    ip_id: int = 0,
    window: int = 8192,
    options: bytes = b"",
) -> Frame:
    """A TCP segment; the payload is zeros. Options come in whole words of four bytes."""
    bits = sum(FLAGS[letter] for letter in flags)
    ports = (ends.src_port, ends.dst_port)
    size = 5 + len(options) // 4
    numbers = (seq % 2**32, ack % 2**32)
    header = struct.pack("!HHIIBBHHH", *ports, *numbers, size << 4, bits, window, 0, 0)
    return _frame(ends, time_ns, socket.IPPROTO_TCP, header + options + bytes(payload), ip_id)


def udp(ends: Endpoints, time_ns: int, *, payload: int, ip_id: int = 0) -> Frame:
    """A UDP datagram of zeros."""
    header = struct.pack("!HHHH", ends.src_port, ends.dst_port, 8 + payload, 0)
    return _frame(ends, time_ns, socket.IPPROTO_UDP, header + bytes(payload), ip_id)


def icmp_unreachable(ends: Endpoints, time_ns: int, about: Frame) -> Frame:
    """The error that quotes a packet's IP header and the 8 bytes behind it."""
    quoted = about.data[14 : 14 + (20 if ":" not in ends.src else 40) + 8]
    return _frame(ends, time_ns, socket.IPPROTO_ICMP, struct.pack("!BBHI", 3, 3, 0, 0) + quoted, 0)


def in_tunnel(ends: Endpoints, inner: Frame) -> Frame:
    """A frame's IP packet within another one, from one end of a tunnel to the other."""
    return _frame(ends, inner.time_ns, socket.IPPROTO_IPIP, inner.data[14:], 0)


def _frame(ends: Endpoints, time_ns: int, protocol: int, body: bytes, ip_id: int) -> Frame:
    if ":" in ends.src:
        addresses = b"".join(socket.inet_pton(socket.AF_INET6, a) for a in (ends.src, ends.dst))
        header = struct.pack("!IHBB", 6 << 28, len(body), protocol, 64) + addresses
        return Frame(time_ns, _ETHERNET_HEADER + b"\x86\xdd" + header + body)
    addresses = socket.inet_aton(ends.src) + socket.inet_aton(ends.dst)
    lengths = (20 + len(body), ip_id % 2**16)
    header = struct.pack("!BBHHHBBH", 0x45, 0, *lengths, 0x4000, 64, protocol, 0) + addresses
    return Frame(time_ns, _ETHERNET_HEADER + b"\x08\x00" + header + body)


def write_pcap(path: Path, frames: Iterable[Frame], snaplen: int = 65535) -> Path:
    """Write the frames in the order given, each cut to the snaplen."""
    out = [struct.pack("<IHHiIII", NANOSECOND_MAGIC, 2, 4, 0, 0, snaplen, ETHERNET)]
    for frame in frames:
        seconds, nanoseconds = divmod(frame.time_ns, 10**9)
        kept = frame.data[:snaplen]
        out.append(struct.pack("<IIII", seconds, nanoseconds, len(kept), len(frame.data)) + kept)
    path.write_bytes(b"".join(out))
    return path
