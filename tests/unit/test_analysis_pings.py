"""Echo requests and replies are paired as tshark pairs them."""

from __future__ import annotations

import struct
from pathlib import Path
from random import Random

from analysis.captures.pings import read_pings
from testbed.machine.process import run
from tests.conversations import Captured
from tests.wrappings import ETHERNET, MS, START_NS, V4, V6, ethernet, pcap, wrap

FIELDS = ("frame.number", "icmp.resp_to", "icmpv6.resp_to", "icmp.resptime", "icmpv6.resptime")


def checksum(data: bytes) -> int:
    """The Internet's."""
    total: int = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total >> 16) + (total & 0xFFFF)
    return 0xFFFF - total


def echo(rng: Random, four: bool, asks: bool) -> bytes:
    """A request or a reply; few numbers, so that some repeat. IPv6's sum takes no pseudo-header."""
    kind = (8 if asks else 0) if four else (128 if asks else 129)
    rest = struct.pack("!HH", rng.randrange(2), rng.randrange(6)) + bytes(8)
    total = checksum(struct.pack("!BBH", kind, 0, 0) + rest)
    if rng.random() < 0.05:
        total = rng.choice((0, 0xFFFF, 0xF7FF))
    ends = V4 if four else V6
    src, dst = ends if asks else ends[::-1]
    return wrap(src, dst, 1 if four else 58, struct.pack("!BBH", kind, 0, total) + rest)


def test_pairs(tmp_path: Path) -> None:
    rng = Random(1)
    seen = [
        Captured(
            START_NS + number * MS // 7, ethernet(echo(rng, *rng.choices((True, False), k=2)), rng)
        )
        for number in range(1000)
    ]
    path = tmp_path / "x.pcap"
    path.write_bytes(pcap(seen, ETHERNET))
    argv = ["tshark", "-n", "-r", str(path), "-Y", "icmp.resptime or icmpv6.resptime", "-Tfields"]
    printed = run([*argv, *(word for field in FIELDS for word in ("-e", field))]).stdout
    theirs = [line.split() for line in printed.splitlines()]
    ours = read_pings(path).replies
    assert len(ours) > 200
    assert [(each.frame, each.request_frame) for each in ours] == [
        (int(frame), int(request)) for frame, request, _ in theirs
    ]
    assert all(
        abs(each.rtt_ms - float(time)) < 1e-6 for each, (*_, time) in zip(ours, theirs, strict=True)
    )
    assert {each.src for each in ours} == {V4[1].address, V6[1].address}
