"""Random and adversarial TCP conversations, for holding our reader against tshark.

Two kinds: a *plausible* one is what two hosts might say to each other, seen through a network
that loses, repeats and reorders, and a capture that misses packets; a *wild* one draws every
field from the few values at which the analysis changes its mind.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from random import Random

from tests.pcap_writer import Frame, ethernet, ip

FIN, SYN, RST, PSH, ACK, URG, ECE, CWR = (1 << bit for bit in range(8))
START_NS = 1_700_000_000_000_000_000
US, MS = 1_000, 1_000_000
SPACE = 2**32

ADDRESSES_4 = ("10.0.0.1", "10.0.0.2", "192.0.2.7", "172.16.5.9")
ADDRESSES_6 = ("2001:db8::1", "2001:db8::2", "fe80::1:2")


@dataclass(frozen=True)
class End:
    """One end of a conversation."""

    address: str
    port: int


@dataclass(frozen=True)
class Segment:
    """A TCP segment before it has addresses."""

    seq: int
    ack: int
    flags: int
    window: int = 1000
    payload: int = 0
    options: bytes = b""
    ecn: int = 0
    header_words: int | None = None  # None: as many as the options need

    def encode(self, src: End, dst: End) -> bytes:
        """Its header and payload; the checksum is left 0."""
        options = self.options + bytes(-len(self.options) % 4)
        words = 5 + len(options) // 4 if self.header_words is None else self.header_words
        header = struct.pack(
            "!HHIIBBHHH",
            src.port,
            dst.port,
            self.seq % SPACE,
            self.ack % SPACE,
            words << 4 & 0xFF,
            self.flags & 0xFF,
            self.window,
            0,
            0,
        )
        return header + options + bytes(self.payload)


def packet(src: End, dst: End, segment: Segment, ip_id: int) -> bytes:
    """The segment in an IP packet."""
    body = segment.encode(src, dst)
    return ip(src.address, dst.address, socket.IPPROTO_TCP, body, ip_id=ip_id, ecn=segment.ecn)


# Options


def sack(*edges: int) -> bytes:
    """A SACK option; an odd number of edges is malformed."""
    words = b"".join(struct.pack("!I", edge % SPACE) for edge in edges)
    return b"\x01\x01" + bytes((5, 2 + len(words))) + words


def scale(shift: int) -> bytes:
    """A window scale option."""
    return bytes((3, 3, shift, 1))


MSS = bytes.fromhex("020405b4")
SACK_PERMITTED = bytes.fromhex("04020101")
TIMESTAMPS = bytes.fromhex("0101080a 00000001 00000002")
ODD_OPTIONS = (
    bytes.fromhex("030401ff"),  # a window scale of the wrong length
    bytes.fromhex("fe06aabb ccdd0000"),  # an experiment
    bytes.fromhex("08010000"),  # too short to be an option
    bytes.fromhex("050affff"),  # goes past the header's end
    bytes.fromhex("0101050200000000"),  # SACK without blocks
    bytes.fromhex("0000030307010101"),  # something behind the end
    bytes.fromhex("1d04aabb"),
)


# Wild conversations


@dataclass
class Wild:
    """Draws segments around a few sequence numbers of each side."""

    rng: Random
    base: tuple[int, int] = (0, 0)
    time_ns: int = START_NS
    next_seq: list[int] = field(default_factory=list)
    windows: list[int] = field(default_factory=lambda: [500, 500])

    def __post_init__(self) -> None:
        near_wrap = self.rng.random() < 0.3
        self.base = tuple(  # type: ignore[assignment]
            self.rng.randrange(SPACE - 3000, SPACE) if near_wrap else self.rng.randrange(SPACE)
            for _ in range(2)
        )
        if self.rng.random() < 0.05:
            self.base = (0, 0)
        self.next_seq = list(self.base)

    def segments(self, count: int) -> Iterator[tuple[int, int, Segment]]:
        """(side, time, segment)."""
        rng = self.rng
        for _ in range(count):
            side = rng.randrange(2)
            self.time_ns += rng.choice(
                (0, 1, 50 * US, 900 * US, 2 * MS, 3 * MS - 1, 3 * MS, 19 * MS, 20 * MS, 300 * MS)
            )
            if rng.random() < 0.02:
                self.time_ns -= 5 * MS
            yield side, self.time_ns, self._segment(side)

    def _segment(self, side: int) -> Segment:
        rng = self.rng
        flags = rng.choice((ACK,) * 12 + (ACK | PSH,) * 4 + (SYN, SYN | ACK, FIN | ACK, RST, 0))
        if rng.random() < 0.05:
            flags ^= rng.choice((FIN, SYN, RST, PSH, ACK, URG, ECE, CWR))
        payload = rng.choice((0, 0, 0, 0, 1, 1, 2, 10, 100, 100, 100))
        seq = self._near(self.next_seq[side], self.base[side])
        ack = self._near(self.next_seq[1 - side], self.base[1 - side])
        if flags & SYN and rng.random() < 0.7:
            seq, payload = self.base[side], rng.choice((0, 0, 0, payload))
        if flags & SYN and rng.random() < 0.2:
            self.base = (rng.randrange(SPACE), self.base[1])
        if rng.random() < 0.7:
            end = seq + payload + bool(flags & (SYN | FIN))
            if (end - self.next_seq[side]) % SPACE < SPACE // 2:
                self.next_seq[side] = end % SPACE
        if rng.random() < 0.2:
            self.windows[side] = rng.choice((0, 0, 1, 100, 500, 501, 65535))
        ecn = rng.choice((0, 0, 0, 1, 2, 3))
        header_words = rng.randrange(16) if rng.random() < 0.01 else None
        options = self._options(flags, ack)
        return Segment(seq, ack, flags, self.windows[side], payload, options, ecn, header_words)

    def _near(self, expected: int, base: int) -> int:
        rng = self.rng
        if rng.random() < 0.55:
            return expected
        if rng.random() < 0.04:
            return rng.choice((0, base, base + 2**31, base + 2**31 - 1, base - 2**30, 1))
        return (expected + rng.choice((-1, 1, -100, 100, -200, 10, -10, -2, 2, -1000, 500))) % SPACE

    def _options(self, flags: int, ack: int) -> bytes:
        rng = self.rng
        if flags & SYN:
            parts = [MSS, SACK_PERMITTED, scale(rng.choice((0, 2, 7, 14, 15)))]
            return b"".join(part for part in parts if rng.random() < 0.7)
        draw = rng.random()
        if draw < 0.15:
            edges = [ack + rng.choice((-100, 10, 100, 110, 200, 300)) for _ in range(8)]
            return sack(*edges[: rng.choice((2, 2, 2, 4, 4, 6, 8, 1, 3))])
        if draw < 0.18:
            return rng.choice(ODD_OPTIONS)
        if draw < 0.19:
            return scale(rng.randrange(16))
        return TIMESTAMPS if draw < 0.5 else b""


def wild(rng: Random, ends: tuple[End, End]) -> Iterator[Frame]:
    """A conversation in which anything may happen."""
    source = Wild(rng, time_ns=START_NS + rng.randrange(1000) * MS)
    for number, (side, time_ns, segment) in enumerate(source.segments(rng.randrange(1, 60))):
        yield Frame(time_ns, ethernet(packet(ends[side], ends[1 - side], segment, number)))


# Plausible conversations


@dataclass
class Host:
    """One end's state, as far as a conversation needs it."""

    next_seq: int
    expects: int = 0
    window: int = 64
    received: list[tuple[int, int]] = field(default_factory=list)  # beyond a hole

    def take(self, seq: int, size: int) -> None:
        """Receive some bytes."""
        self.received.append((seq, seq + size))
        for begin, end in sorted(self.received):
            if begin <= self.expects < end:
                self.expects = end
        self.received = [part for part in self.received if part[1] > self.expects]

    def blocks(self) -> bytes:
        """What it has beyond the hole, newest first."""
        edges = [edge for part in self.received[:-4:-1] for edge in part]
        return sack(*edges) if edges else b""


def plausible(rng: Random, ends: tuple[End, End]) -> Iterator[Frame]:
    """A transfer with losses, repetitions and reordering, in a capture that misses some."""
    rtt_ns = rng.choice((0, 100 * US, 2 * MS, 10 * MS, 60 * MS))
    missed = rng.choice((0, 0, 0, 0.02, 0.2))
    seen = list(_transfer(rng, rtt_ns))
    if rng.random() < 0.2:  # the capture begins too late
        seen = seen[rng.randrange(len(seen)) :]
    for number, (side, time_ns, segment) in enumerate(sorted(seen, key=lambda each: each[1])):
        if rng.random() >= missed:
            yield Frame(time_ns, ethernet(packet(ends[side], ends[1 - side], segment, number)))


def _transfer(rng: Random, rtt_ns: int) -> Iterator[tuple[int, int, Segment]]:
    sender = Host(rng.randrange(SPACE))
    receiver = Host(rng.randrange(SPACE))
    time_ns = START_NS + rng.randrange(1000) * MS
    shift = rng.choice((None, 0, 3, 7))
    options = MSS + SACK_PERMITTED + (scale(shift) if shift is not None else b"")
    ecn = rng.choice((0, 0, 2))
    for _ in range(1 + (rng.random() < 0.1)):  # the SYN may be repeated
        yield 0, time_ns, Segment(sender.next_seq, 0, SYN, 65535, options=options)
        time_ns += rtt_ns if rng.random() < 0.9 else 1000 * MS
    sender.next_seq += 1
    receiver.expects = sender.next_seq
    answer = options if rng.random() < 0.9 else MSS
    yield 1, time_ns, Segment(receiver.next_seq, sender.next_seq, SYN | ACK, 65535, options=answer)
    receiver.next_seq += 1
    time_ns += rng.choice((1 * US, rtt_ns))
    hello = Segment(sender.next_seq, receiver.next_seq, ACK, 64)
    yield 0, time_ns, hello
    lost: list[tuple[int, int]] = []
    for _ in range(rng.randrange(1, 12)):
        for _ in range(rng.randrange(1, 8)):  # a flight
            size = rng.choice((1000, 1000, 1000, 1448, 1, 37))
            data = replace(hello, seq=sender.next_seq, payload=size, ecn=ecn)
            data = replace(data, flags=ACK | PSH if rng.random() < 0.2 else ACK)
            late = rng.choice((0, 0, 0, 0, 0, 1 * MS, 5 * MS))  # reordering
            yield 0, time_ns + late, data
            sender.next_seq += size
            time_ns += 10 * US
            if rng.random() < 0.1:
                lost.append((data.seq, size))
                continue
            if rng.random() < 0.03:
                yield 0, time_ns + late, data  # repeated by the network
            receiver.take(data.seq, size)
            yield 1, time_ns + late + rtt_ns, _answer(rng, receiver, ecn)
        time_ns += rtt_ns
        if rng.random() < 0.5:
            for seq, size in lost:
                time_ns += rng.choice((10 * US, 25 * MS, 200 * MS))
                yield 0, time_ns, replace(hello, seq=seq, payload=size)
                receiver.take(seq, size)
                yield 1, time_ns + rtt_ns, _answer(rng, receiver, ecn)
            lost.clear()
        yield from _pause(rng, sender, receiver, time_ns)
        time_ns += 2 * rtt_ns + 3 * MS
    end = rng.choice((FIN | ACK, RST, RST | ACK, None))
    if end is not None:
        yield 0, time_ns, Segment(sender.next_seq, receiver.next_seq, end, 64)
        yield 1, time_ns + rtt_ns, Segment(receiver.next_seq, sender.next_seq + 1, FIN | ACK, 64)
        last = Segment(sender.next_seq + 1, receiver.next_seq + 1, ACK, 64)
        yield 0, time_ns + 2 * rtt_ns, last


def _answer(rng: Random, receiver: Host, ecn: int) -> Segment:
    if rng.random() < 0.1:
        receiver.window = rng.choice((0, 1, 32, 64, 64, 500))
    flags = ACK | ECE if ecn and rng.random() < 0.1 else ACK
    return Segment(
        receiver.next_seq, receiver.expects, flags, receiver.window, options=receiver.blocks()
    )


def _pause(
    rng: Random, sender: Host, receiver: Host, time_ns: int
) -> Iterator[tuple[int, int, Segment]]:
    """Keep-alives, probes of a closed window, updates of it."""
    probe = Segment(sender.next_seq - 1, receiver.next_seq, ACK, 64)
    answer = Segment(receiver.next_seq, receiver.expects, ACK, receiver.window)
    draw = rng.random()
    if draw < 0.1:
        yield 0, time_ns, replace(probe, payload=rng.randrange(2))
        yield 1, time_ns + US, answer
    elif draw < 0.2:
        shut = replace(answer, window=0)
        yield 1, time_ns, shut
        yield 0, time_ns + US, replace(probe, seq=sender.next_seq, payload=1)
        yield 1, time_ns + 2 * US, shut
        if rng.random() < 0.5:
            yield 1, time_ns + 3 * US, answer


# Captures


def _ends(rng: Random, number: int) -> tuple[End, End]:
    family = ADDRESSES_6 if rng.random() < 0.2 else ADDRESSES_4
    one, other = rng.choice(family), rng.choice(family)
    server = rng.choice((5201, 41001))
    # few ports, so that some are used again
    return End(one, 42000 + number % 997 * 3 + rng.randrange(3)), End(other, server)


def conversations(seed: int, count: int) -> list[Frame]:
    """So many conversations in one capture, by time."""
    rng = Random(seed)
    frames: list[Frame] = []
    for number in range(count):
        ends = _ends(rng, number)
        kind = wild if rng.random() < 0.6 else plausible
        shift_ns = rng.randrange(count) * 20 * MS
        snaplen = rng.randrange(50, 110) if rng.random() < 0.1 else 65535
        frames += (Frame(each.time_ns + shift_ns, each.data, snaplen) for each in kind(rng, ends))
    return sorted(frames, key=lambda each: each.time_ns) if rng.random() < 0.9 else frames
