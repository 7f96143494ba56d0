"""Round-trip times by ICMP: echo requests and their replies, paired as Wireshark pairs them."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from analysis.captures.native import Core
from analysis.captures.pcap import feed


@dataclass(frozen=True)
class Ping:
    """A reply to an echo request."""

    frame: int
    request_frame: int
    time_ns: int  # of the reply
    src: str  # who replied
    dst: str
    rtt_ms: float


@dataclass(frozen=True)
class Pings:
    """A capture's, in the order of the replies, and what was wrong with the file."""

    replies: tuple[Ping, ...]
    warnings: tuple[str, ...]


def read_pings(path: Path) -> Pings:
    """Read a capture's echo replies; those whose request was not seen are left out."""
    with closing(Core(with_flows=False)) as core:
        warnings = feed(path, core, lambda: None)
        addresses = core.addresses()
        replies = (
            Ping(
                frame=each.frame,
                request_frame=each.request_frame,
                time_ns=each.time_ns,
                src=addresses[each.src],
                dst=addresses[each.dst],
                rtt_ms=each.rtt_ns / 1e6,
            )
            for each in core.pings()
        )
        return Pings(tuple(replies), warnings)
