"""Conversion of tcpdump's pcap to pcapng, which can name the interface and the node.

tcpdump writes only the older format. All records of one length are copied at once, so that millions
of packets take a second or two.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from testbed.errors import TestbedError

NANOSECOND_MAGIC = 0xA1B23C4D
_FILE_HEADER = struct.Struct("=IHHiIII")
_RECORD_BYTES = 16
_BLOCK_HEAD = 28  # length of an enhanced packet block before the packet
_BLOCK_TAIL = 4


@dataclass(frozen=True)
class Source:
    """The origin of a capture, for the pcapng interface description."""

    interface: str
    node: str
    application: str


def convert(pcap: Path, pcapng: Path, source: Source) -> None:
    """Write the same packets as pcapng, without an incomplete last record."""
    data = np.fromfile(pcap, dtype=np.uint8)
    if len(data) < _FILE_HEADER.size:
        raise TestbedError(f"{pcap.name}: tcpdump wrote no header")
    magic, *_, snaplen, link_type = _FILE_HEADER.unpack(data[: _FILE_HEADER.size].tobytes())
    if magic != NANOSECOND_MAGIC:
        raise TestbedError(f"{pcap.name}: not a pcap with nanoseconds (magic {magic:#x})")
    with pcapng.open("wb") as out:
        out.write(_section(source))
        out.write(_interface(source, link_type, snaplen))
        _packets(data).tofile(out)


def _record_offsets(data: npt.NDArray[np.uint8]) -> npt.NDArray[np.int64]:
    """The offsets of all complete records, found by following their lengths."""
    view = memoryview(data.tobytes())
    length_of = struct.Struct("=I").unpack_from
    offsets = []
    here, end = _FILE_HEADER.size, len(view)
    while here + _RECORD_BYTES <= end:
        following = here + _RECORD_BYTES + length_of(view, here + 8)[0]
        if following > end:
            break
        offsets.append(here)
        here = following
    return np.array(offsets, dtype=np.int64)


def _packets(data: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """Build all enhanced packet blocks as one array."""
    starts = _record_offsets(data)
    if not len(starts):
        return np.empty(0, dtype=np.uint8)
    heads = data[starts[:, None] + np.arange(_RECORD_BYTES)].view("<u4")
    captured = heads[:, 2].astype(np.int64)
    padded = (captured + 3) & ~3
    sizes = _BLOCK_HEAD + padded + _BLOCK_TAIL
    targets = np.concatenate(([0], np.cumsum(sizes)[:-1]))
    stamps = heads[:, 0].astype(np.uint64) * 1_000_000_000 + heads[:, 1]
    out = np.zeros(int(sizes.sum()), dtype=np.uint8)
    for length in np.unique(captured):
        rows = np.flatnonzero(captured == length)
        size = int(sizes[rows[0]])
        block = np.zeros((len(rows), size), dtype=np.uint8)
        words = np.zeros((len(rows), _BLOCK_HEAD // 4), dtype="<u4")
        words[:, 0] = 6  # enhanced packet block
        words[:, 1] = size
        words[:, 2] = 0  # the only interface
        words[:, 3] = stamps[rows] >> 32
        words[:, 4] = stamps[rows] & 0xFFFFFFFF
        words[:, 5] = length
        words[:, 6] = heads[rows, 3]
        block[:, :_BLOCK_HEAD] = words.view(np.uint8)
        packet = starts[rows, None] + _RECORD_BYTES + np.arange(length)
        block[:, _BLOCK_HEAD : _BLOCK_HEAD + length] = data[packet]
        block[:, -_BLOCK_TAIL:] = np.array([size], dtype="<u4").view(np.uint8)
        out[targets[rows, None] + np.arange(size)] = block
    return out


def _section(source: Source) -> bytes:
    body = struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1) + _options((4, source.application.encode()))
    return _block(0x0A0D0D0A, body)


def _interface(source: Source, link_type: int, snaplen: int) -> bytes:
    options = _options(
        (2, source.interface.encode()),
        (3, f"{source.interface} of {source.node}".encode()),
        (9, b"\x09"),  # times in nanoseconds
    )
    return _block(1, struct.pack("<HHI", link_type, 0, snaplen) + options)


def _options(*options: tuple[int, bytes]) -> bytes:
    out = b""
    for code, value in options:
        out += struct.pack("<HH", code, len(value)) + value + bytes(-len(value) % 4)
    return out + struct.pack("<HH", 0, 0)


def _block(kind: int, body: bytes) -> bytes:
    size = struct.pack("<I", len(body) + 12)
    return struct.pack("<I", kind) + size + body + size
