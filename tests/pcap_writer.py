"""Captures made by hand: TCP and UDP frames of known times and sizes, written as pcap."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

NANOSECOND_MAGIC = 0xA1B23C4D
ETHERNET = 1
FLAGS = {"F": 1, "S": 2, "R": 4, "P": 8, "A": 16}
MACS = bytes.fromhex("020000000001 020000000002")
WHOLE = 65535  # more bytes than a frame has


@dataclass(frozen=True)
class Frame:
    """A frame, when it was captured, and how many of its bytes were kept."""

    time_ns: int
    data: bytes
    kept: int = WHOLE

    def at(self, time_ns: int) -> Frame:
        """The same frame, seen at another time."""
        return replace(self, time_ns=time_ns)


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


def udp(
    ends: Endpoints, time_ns: int, *, payload: int, ip_id: int = 0, begins: bytes = b""
) -> Frame:
    """A UDP datagram of zeros, but for what it begins with."""
    header = struct.pack("!HHHH", ends.src_port, ends.dst_port, 8 + payload, 0)
    body = begins + bytes(payload - len(begins))
    return _frame(ends, time_ns, socket.IPPROTO_UDP, header + body, ip_id)


def icmp_unreachable(ends: Endpoints, time_ns: int, about: Frame) -> Frame:
    """The error that quotes a packet's IP header and the 8 bytes behind it."""
    quoted = about.data[14 : 14 + (20 if ":" not in ends.src else 40) + 8]
    return _frame(ends, time_ns, socket.IPPROTO_ICMP, struct.pack("!BBHI", 3, 3, 0, 0) + quoted, 0)


def in_tunnel(ends: Endpoints, inner: Frame) -> Frame:
    """A frame's IP packet within another one, from one end of a tunnel to the other."""
    return _frame(ends, inner.time_ns, socket.IPPROTO_IPIP, inner.data[14:], 0)


def _frame(ends: Endpoints, time_ns: int, protocol: int, body: bytes, ip_id: int) -> Frame:
    return Frame(time_ns, ethernet(ip(ends.src, ends.dst, protocol, body, ip_id=ip_id)))


def ip(
    src: str,
    dst: str,
    protocol: int,
    body: bytes,
    *,
    ip_id: int = 7,
    ecn: int = 0,
    options: bytes = b"",
) -> bytes:
    """An IP packet; its checksum is left 0, and options are of IPv4."""
    if ":" in src:
        ends = b"".join(socket.inet_pton(socket.AF_INET6, each) for each in (src, dst))
        return struct.pack("!IHBB", 6 << 28 | ecn << 20, len(body), protocol, 64) + ends + body
    words = 5 + len(options) // 4
    sizes = (4 * words + len(body), ip_id % 2**16)
    head = struct.pack("!BBHHHBBH", 0x40 | words, ecn, *sizes, 0x4000, 64, protocol, 0)
    return head + socket.inet_aton(src) + socket.inet_aton(dst) + options + body


def etype(packet: bytes) -> bytes:
    """The Ethernet type of an IP packet."""
    return b"\x08\x00" if packet[0] >> 4 == 4 else b"\x86\xdd"


def ethernet(packet: bytes) -> bytes:
    """A frame around an IP packet."""
    return MACS + etype(packet) + packet


def pcap(
    frames: Iterable[Frame],
    link: int = ETHERNET,
    order: str = "<",
    *,
    nano: bool = True,
    snaplen: int = WHOLE,
) -> bytes:
    """A pcap file of the frames in the order given, each cut to what was kept and the snaplen."""
    magic, unit = (NANOSECOND_MAGIC, 1) if nano else (0xA1B2C3D4, 1000)
    out = [struct.pack(order + "IHHiIII", magic, 2, 4, 0, 0, snaplen, link)]
    for frame in frames:
        seconds, rest = divmod(frame.time_ns, 10**9)
        data = frame.data[: min(frame.kept, snaplen)]
        sizes = (len(data), len(frame.data))
        out.append(struct.pack(order + "IIII", seconds, rest // unit, *sizes) + data)
    return b"".join(out)


def write_pcap(path: Path, frames: Iterable[Frame], snaplen: int = WHOLE) -> Path:
    """Write the frames as pcap, with nanoseconds."""
    path.write_bytes(pcap(frames, snaplen=snaplen))
    return path
