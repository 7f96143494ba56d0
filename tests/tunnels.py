"""Links and tunnels besides Ethernet and IP in IP, and what each carries."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from random import Random

from tests.conversations import End
from tests.pcap_writer import ETHERNET, MACS, WHOLE, Frame, ethernet, etype, pcap
from tests.wrappings import MS, START_NS, V4, V6, Packet, variety, wrap

PPP, PPP_SERIAL, PPP_ETHER, CISCO_HDLC, PPP_DIRECTION, NFLOG = 9, 50, 51, 104, 204, 239
ENDS = (End("10.7.0.1", 5000), End("10.7.0.2", 5001))

Wrap = Callable[[Packet, Random], bytes]


def ppp(whole: Packet, rng: Random) -> bytes:
    """With a protocol of one byte or two, and an address before it or none."""
    protocol = b"\x21" if whole[0] >> 4 == 4 else b"\x57"
    before = rng.choice((b"", b"\0", b"\xff\x03", b"\xff\x03\0"))
    return before + protocol + whole


def pppoe(whole: Packet, rng: Random) -> bytes:
    """A session's packet, sometimes with a trailer."""
    inner = b"\0" + (b"\x21" if whole[0] >> 4 == 4 else b"\x57") + whole
    return struct.pack("!BBHH", 0x11, 0, 1, len(inner)) + inner + bytes(rng.choice((0, 6)))


def mpls(whole: Packet, rng: Random) -> bytes:
    """One to three labels."""
    return struct.pack("!I", 0x10040) * rng.randrange(3) + struct.pack("!I", 0x20140) + whole


def gre(whole: Packet, rng: Random) -> Packet:
    """With or without a checksum, a key and a number, around a packet, a frame or labels."""
    flags = rng.choice((0, 0x8000, 0x2000, 0x1000, 0xB000, 0x3000))
    options = bytes(4 * (flags & 0xB000).bit_count())
    kind, inner = rng.choice(
        (
            (etype(whole), whole),
            (b"\x65\x58", ethernet(whole)),
            (b"\x88\x47", mpls(whole, rng)),
        )
    )
    return wrap(*rng.choice((V4, V6)), 47, struct.pack("!H", flags) + kind + options + inner)


def pptp(whole: Packet, rng: Random) -> Packet:
    """GRE's version 1, around PPP."""
    inner, acked = ppp(whole, rng), rng.choice((0, 0x80))
    head = struct.pack("!HHHHI", 0x3001 | acked, 0x880B, len(inner), 1, 1)
    return wrap(*V4, 47, head + bytes(4 if acked else 0) + inner)


def _over_udp(port: int, inner: bytes) -> Packet:
    head = struct.pack("!HHHH", 5000, port, 8 + len(inner), 0)
    return wrap(*ENDS, 17, head + inner)


def vxlan(whole: Packet, _rng: Random) -> Packet:
    """A frame of a virtual network."""
    return _over_udp(4789, struct.pack("!II", 0x08000000, 0x100) + ethernet(whole))


def geneve(whole: Packet, rng: Random) -> Packet:
    """A frame or a packet, with or without options."""
    words = rng.randrange(3)
    kind, inner = rng.choice(((etype(whole), whole), (b"\x65\x58", ethernet(whole))))
    head = bytes((words, 0)) + kind + struct.pack("!I", 0x100) + b"\1\2\3\0" * words
    return _over_udp(6081, head + inner)


def cisco_hdlc(whole: Packet, _rng: Random) -> bytes:
    """As on a serial line of Cisco's."""
    return b"\x0f\0" + etype(whole) + whole


def nflog(order: str) -> Wrap:
    """As netfilter logs a packet."""

    def field(kind: int, value: bytes) -> bytes:
        head = struct.pack(order + "HH", 4 + len(value), kind)
        return head + value + bytes(-len(value) % 4)

    def wrapped(whole: Packet, _rng: Random) -> bytes:
        head = bytes((2 if whole[0] >> 4 == 4 else 10, 0, 0, 5))
        return head + field(1, b"\x08\0\0\0") + field(10, b"name\0") + field(9, whole)

    return wrapped


def _tagged(kind: bytes, inner: Wrap) -> Wrap:
    return lambda whole, rng: MACS + kind + inner(whole, rng)


def _framed(inner: Wrap) -> Wrap:
    return lambda whole, rng: ethernet(inner(whole, rng))


READ: Mapping[str, tuple[int, Wrap]] = {
    "gre": (ETHERNET, _framed(gre)),
    "pptp": (ETHERNET, _framed(pptp)),
    "mpls": (ETHERNET, _tagged(b"\x88\x47", mpls)),
    "pppoe": (ETHERNET, _tagged(b"\x88\x64", pppoe)),
    "pppoe link": (PPP_ETHER, pppoe),
    "ppp": (PPP, ppp),
    "ppp serial": (PPP_SERIAL, ppp),
    "ppp direction": (PPP_DIRECTION, lambda whole, rng: b"\1" + ppp(whole, rng)),
    "cisco": (CISCO_HDLC, cisco_hdlc),
    "cisco serial": (PPP_SERIAL, cisco_hdlc),
    "nflog <": (NFLOG, nflog("<")),
    "nflog >": (NFLOG, nflog(">")),
}
OPTIONAL: Mapping[str, tuple[int, Wrap]] = {
    "vxlan": (ETHERNET, _framed(vxlan)),
    "geneve": (ETHERNET, _framed(geneve)),
}


def capture(name: str, packets: list[Packet], rng: Random, *, cut: float = 0.0) -> bytes:
    """Packets in a wrapping, as a file; so many of them cut by the snaplen."""
    link, wrapping = {**READ, **OPTIONAL}[name]
    seen = [
        Frame(
            START_NS + number * MS,
            wrapping(whole, rng),
            rng.randrange(20, 140) if rng.random() < cut else WHOLE,
        )
        for number, whole in enumerate(packets)
    ]
    return pcap(seen, link, ">" if name.endswith(">") else "<")


def whole_variety(name: str, seed: int) -> bytes:
    """A variety of packets, half of them cut."""
    rng = Random(seed)
    return capture(name, variety(rng), rng, cut=0.5)
