"""Packets in everything that a capture may wrap them in: link layers, tags, tunnels, fragments,
extension headers, ICMP errors; and files of every format and byte order."""

from __future__ import annotations

import gzip
import socket
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

from tests.conversations import ACK, FIN, PSH, SYN, End, Segment, packet
from tests.pcap_writer import ETHERNET, MACS, WHOLE, Frame, etype, ip, pcap

V4 = (End("10.1.0.1", 40001), End("10.1.0.2", 41001))
V6 = (End("2001:db8::a", 40002), End("2001:db8::b", 41002))
START_NS = 1_700_000_000_123_456_000
MS = 1_000_000
PAYLOAD = bytes(range(256)) * 12

# link types
NULL, RAW, LOOP, COOKED, IPV4, IPV6, COOKED_2 = 0, 101, 108, 113, 228, 229, 276

Packet = bytes  # an IP packet


def segments() -> Iterator[tuple[int, Segment]]:
    """A short conversation with a bit of everything: (side, segment)."""
    yield 0, Segment(100, 0, SYN, 8000, options=bytes.fromhex("020405b4 03030701"), ecn=2)
    yield 1, Segment(900, 101, SYN | ACK, 8000, options=bytes.fromhex("020405b4 03030201"))
    yield 0, Segment(101, 901, ACK, 500)
    for seq in (101, 1101, 3101, 4101, 2101, 1101):
        yield 0, Segment(seq, 901, ACK | PSH, 500, 1000, ecn=2 + seq % 2)
        yield 1, Segment(901, min(seq, 2101), ACK, 500)
    yield 1, Segment(901, 5101, ACK, 0)
    yield 0, Segment(5101, 901, ACK, 500, 1)
    yield 0, Segment(5101, 901, FIN | ACK, 500)


def tcp_packets(ends: tuple[End, End]) -> list[Packet]:
    """The conversation as IP packets."""
    return [
        packet(ends[side], ends[1 - side], segment, number)
        for number, (side, segment) in enumerate(segments())
    ]


def udp_packets(ends: tuple[End, End]) -> list[Packet]:
    """Datagrams both ways, one of them longer than its packet."""
    return [
        wrap(ends[way], ends[1 - way], 17, udp(ends[way], ends[1 - way], size, claim))
        for way, size, claim in (
            (0, 50, 0),
            (1, 900, 0),
            (0, 0, 0),
            (0, 20, 7),
            (1, 4, -9),
            (0, 9, 0),
        )
    ]


def udp(src: End, dst: End, size: int, claim: int = 0) -> bytes:
    """A datagram; `claim` is added to the length that its header tells."""
    return struct.pack("!HHHH", src.port, dst.port, 8 + size + claim, 0) + PAYLOAD[:size]


def wrap(src: End, dst: End, protocol: int, body: bytes, options: bytes = b"") -> Packet:
    """A body in an IP packet."""
    return ip(src.address, dst.address, protocol, body, options=options)


# What a packet may be wrapped in


def fragmented(whole: Packet, rng: Random, size: int = 400) -> list[Packet]:
    """An IPv4 packet in pieces, in any order, some of them twice or overlapping."""
    head, body = whole[:20], whole[20:]
    number = rng.randrange(65536)
    pieces = []
    for begin in range(0, len(body), size):
        stop = min(begin + size + rng.choice((0, 0, 0, 8)), len(body))
        more = 0x2000 if stop < len(body) else 0
        fields = struct.pack("!HHH", 20 + stop - begin, number, more | begin // 8)
        pieces.append(head[:2] + fields + head[8:] + body[begin:stop])
    pieces += rng.sample(pieces, rng.randrange(min(2, len(pieces)) + 1))
    if rng.random() < 0.7:
        rng.shuffle(pieces)
    if rng.random() < 0.2:
        pieces.pop()
    return pieces


def fragmented_6(whole: Packet, rng: Random, size: int = 400) -> list[Packet]:
    """The same for IPv6."""
    head, body = whole[:40], whole[40:]
    number = rng.randrange(2**32)
    pieces = []
    for begin in range(0, len(body), size):
        part = body[begin : begin + size]
        more = begin + size < len(body)
        extension = struct.pack("!BBHI", head[6], 0, begin | more, number)
        length = struct.pack("!HB", 8 + len(part), 44)
        pieces.append(head[:4] + length + head[7:] + extension + part)
    rng.shuffle(pieces)
    return pieces


def extended(whole: Packet, rng: Random) -> Packet:
    """An IPv6 packet with extension headers."""
    head, body, following = whole[:40], whole[40:], whole[6]
    for kind in rng.choice(((60,), (0, 60), (43,), (0, 43, 60), (44,), (51,))):
        fill = bytes((1, 4, 0, 0, 0, 0))
        if kind == 43:
            route = socket.inet_pton(socket.AF_INET6, "2001:db8::cc")
            extension = bytes((following, 2, 0, rng.randrange(2))) + bytes(4) + route
        elif kind == 44:
            extension = bytes((following,)) + bytes(7)
        elif kind == 51:
            extension = bytes((following, 4)) + bytes(22)
        else:
            extension = bytes((following, 0)) + fill
        body, following = extension + body, kind
    return head[:4] + struct.pack("!HB", len(body), following) + head[7:] + body


def with_options(whole: Packet, rng: Random) -> Packet:
    """An IPv4 packet with options."""
    routed = b"\x83\x07\x08" + socket.inet_aton("10.9.9.9") + b"\0"
    options = rng.choice((b"\x01\x01\x01\0", b"\x94\x04\0\0", routed, b"\x07\x0b\x04" + bytes(9)))
    head, body = whole[:20], whole[20:]
    length = struct.pack("!H", len(whole) + len(options))
    return bytes((0x45 + len(options) // 4,)) + head[1:2] + length + head[4:] + options + body


def tunnelled(whole: Packet, rng: Random) -> Packet:
    """A packet in another one."""
    outer = rng.choice((V4, V6))
    return wrap(*outer, 4 if whole[0] >> 4 == 4 else 41, whole)


def quoted(whole: Packet, rng: Random) -> Packet:
    """An ICMP error about a packet: it is none of the flow's, and yet changes its state."""
    if whole[0] >> 4 == 4:
        kind = rng.choice((3, 11, 12, 4, 5))
        quote = whole[: rng.choice((28, 60, 200))]
        return wrap(*V4, 1, struct.pack("!BBHI", kind, 0, 0, 0) + quote)
    quote = whole[: rng.choice((48, 100))]
    return wrap(*V6, 58, struct.pack("!BBHI", rng.randrange(1, 5), 0, 0, 0) + quote)


def variety(rng: Random) -> list[Packet]:
    """Packets of all those kinds, mixed but in the order of their conversations."""
    lines: list[list[Packet]] = [tcp_packets(V4), tcp_packets(V6), udp_packets(V4), udp_packets(V6)]
    mixed: list[Packet] = []
    while any(lines):
        line = rng.choice([line for line in lines if line])
        whole = line.pop(0)
        four = whole[0] >> 4 == 4
        draw = rng.random()
        if draw < 0.15:
            mixed += fragmented(whole, rng) if four else fragmented_6(whole, rng)
        elif draw < 0.3:
            mixed.append(with_options(whole, rng) if four else extended(whole, rng))
        elif draw < 0.45:
            mixed.append(tunnelled(whole, rng))
        else:
            mixed.append(whole)
        if rng.random() < 0.1:
            mixed.append(quoted(whole, rng))
    return mixed


# Link layers

Link = Callable[[Packet, Random], bytes]


def tagged_ethernet(whole: Packet, rng: Random) -> bytes:
    """With tags, a trailer, or SNAP now and then."""
    tags = rng.choice((b"",) * 6 + (b"\x81\x00\x00\x05", b"\x88\xa8\x00\x07\x81\x00\x00\x05"))
    if rng.random() < 0.05 and len(whole) < 1400:
        return (
            MACS + struct.pack("!H", 8 + len(whole)) + b"\xaa\xaa\x03\0\0\0" + etype(whole) + whole
        )
    trailer = bytes(rng.choice((0, 0, 0, 6)))
    return MACS + tags + etype(whole) + whole + trailer


def cooked(whole: Packet, _rng: Random) -> bytes:
    """Linux's `any` device."""
    return struct.pack("!HHH8s", 0, 1, 6, MACS[6:]) + etype(whole) + whole


def cooked_2(whole: Packet, _rng: Random) -> bytes:
    """Its second version."""
    return etype(whole) + struct.pack("!HIHBB8s", 0, 2, 1, 0, 6, MACS[6:]) + whole


def null(whole: Packet, rng: Random) -> bytes:
    """BSD's loopback, of a machine of either byte order."""
    family = 2 if whole[0] >> 4 == 4 else rng.choice((24, 28, 30))
    return struct.pack(rng.choice("<>") + "I", family) + whole


def loop(whole: Packet, _rng: Random) -> bytes:
    """OpenBSD's."""
    return struct.pack("!I", 2 if whole[0] >> 4 == 4 else 24) + whole


def raw(whole: Packet, _rng: Random) -> bytes:
    """Nothing around it."""
    return whole


LINKS: dict[int, Link] = {
    ETHERNET: tagged_ethernet,
    COOKED: cooked,
    COOKED_2: cooked_2,
    NULL: null,
    LOOP: loop,
    RAW: raw,
}


def frames(link: int, seed: int) -> list[Frame]:
    """A variety of packets on a link, a tenth of them cut by the snaplen."""
    rng = Random(seed)
    return [
        Frame(
            START_NS + number * rng.choice((MS, 3 * MS)),
            LINKS[link](whole, rng),
            rng.randrange(14, 120) if rng.random() < 0.1 else WHOLE,
        )
        for number, whole in enumerate(variety(rng))
    ]


# Files


def block(order: str, kind: int, body: bytes) -> bytes:
    """A block of a pcapng file."""
    body += bytes(-len(body) % 4)
    length = struct.pack(order + "I", 12 + len(body))
    return struct.pack(order + "I", kind) + length + body + length


def section(order: str) -> bytes:
    """A section header."""
    return block(order, 0x0A0D0D0A, struct.pack(order + "IHHq", 0x1A2B3C4D, 1, 0, -1))


def interface(order: str, link: int, resolution: int | None = None, offset_s: int = 0) -> bytes:
    """An interface description, with the options that differ from the default."""
    options = b""
    if resolution is not None:
        options += struct.pack(order + "HHB3x", 9, 1, resolution)
    if offset_s:
        options += struct.pack(order + "HHq", 14, 8, offset_s)
    if options:
        options += bytes(4)
    return block(order, 1, struct.pack(order + "HHI", link, 0, 0) + options)


def enhanced(order: str, frame: Frame, number: int, units: int) -> bytes:
    """A packet; `units` is its time."""
    data = frame.data[: frame.kept]
    head = struct.pack(
        order + "IIIII", number, units >> 32, units % 2**32, len(data), len(frame.data)
    )
    return block(order, 6, head + data)


def pcapng(seed: int) -> bytes:
    """Two sections of either byte order, several interfaces each, blocks that hold no packet."""
    rng = Random(seed)
    out = []
    for order in "<>":
        links = [(link, frames(link, seed + link)) for link in LINKS]
        resolutions = ((None, 10**6, 0), (9, 10**9, 0), (0x80 | 20, 2**20, 0), (6, 10**6, 1000))
        kinds = [rng.choice(resolutions) for _ in links]
        out.append(section(order))
        for (link, _), (resolution, _, offset_s) in zip(links, kinds, strict=True):
            out.append(interface(order, link, resolution, offset_s))
        waiting = [(frame, n) for n, (_, seen) in enumerate(links) for frame in seen]
        waiting.sort(key=lambda each: each[0].time_ns)
        for frame, number in waiting:
            _, per_s, offset_s = kinds[number]
            seconds, rest = divmod(frame.time_ns, 10**9)
            units = (seconds - offset_s) * per_s + rest * per_s // 10**9
            out.append(enhanced(order, frame, number, units))
            if rng.random() < 0.05:
                out.append(block(order, rng.choice((4, 5, 0x7777)), bytes(16)))
    return b"".join(out)


def write_all(folder: Path, seed: int) -> list[Path]:
    """A file of each kind."""
    made = {"mixed.pcapng": pcapng(seed)}
    for link in LINKS:
        made[f"link-{link}.pcap"] = pcap(frames(link, seed), link)
    for order, name in (("<", "little"), (">", "big")):
        seen = frames(ETHERNET, seed + 1)
        made[f"{name}-us.pcap"] = pcap(seen, ETHERNET, order, nano=False)
        made[f"{name}-ns.pcap"] = pcap(seen, ETHERNET, order)
    made["packed.pcap.gz"] = gzip.compress(made["link-1.pcap"])
    for name, content in made.items():
        (folder / name).write_bytes(content)
    return [folder / name for name in made]
