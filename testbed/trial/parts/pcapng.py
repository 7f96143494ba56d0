"""Captures as pcapng, which can name the interface and the node.

The guest's kernel writes pcapng behind a beginning from here. tcpdump writes only the older format:
its packets are converted by pcapng.c, a piece at a time, so that a capture of any size takes a few
megabytes of memory, and ^C is heard after each piece.
"""

from __future__ import annotations

import ctypes
import functools
import io
import os
import struct
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from testbed.engine import Cancelled
from testbed.errors import TestbedError
from testbed.machine.compiled import LIBRARIES, load

PCAPNG_LIBRARY = LIBRARIES / "testbed-pcapng.so"  # built from pcapng.c
LINK_TYPE_ETHERNET = 1
NANOSECOND_MAGIC = 0xA1B23C4D
PIECE_BYTES = 1 << 20  # a packet has at most 256 KiB
_GROWTH = 3  # the most that a piece grows by, see pcapng.c
_FILE_HEADER = struct.Struct("=IHHiIII")


@dataclass(frozen=True)
class Source:
    """The origin of a capture, for the pcapng interface description."""

    interface: str
    node: str
    application: str


def convert(pcap: Path, pcapng: Path, source: Source, cancel: threading.Event) -> None:
    """Write the same packets as pcapng, without an incomplete last record."""
    with _opened(pcap) as file, pcapng.open("xb") as out:
        for piece in _pcapng(file, pcap.name, source):
            if cancel.is_set():
                raise Cancelled("cancelled")
            out.write(piece)


def _opened(pcap: Path) -> io.FileIO:
    """Open a capture, but not through a link that the guest could have put in its place."""
    return io.FileIO(pcap, opener=lambda path, flags: os.open(path, flags | os.O_NOFOLLOW))


def _pcapng(file: io.FileIO, name: str, source: Source) -> Iterator[bytes | memoryview]:
    header = file.read(_FILE_HEADER.size)
    if len(header) < _FILE_HEADER.size:
        raise TestbedError(f"{name}: tcpdump wrote no header")
    magic, *_, snaplen, link_type = _FILE_HEADER.unpack(header)
    if magic != NANOSECOND_MAGIC:
        raise TestbedError(f"{name}: not a pcap with nanoseconds (magic {magic:#x})")
    yield beginning(source, snaplen, link_type)
    yield from _packets(file, name)


def _packets(file: io.FileIO, name: str) -> Iterator[memoryview]:
    """Yield the enhanced packet blocks, in pieces; each is overwritten by the next."""
    records, blocks = bytearray(PIECE_BYTES), bytearray(_GROWTH * PIECE_BYTES)
    source, target = ((ctypes.c_char * len(b)).from_buffer(b) for b in (records, blocks))
    used = ctypes.c_size_t(0)
    kept = 0
    while count := file.readinto(memoryview(records)[kept:]):
        filled = kept + count
        made = _library().pcapng_blocks(source, filled, target, ctypes.byref(used))
        if not made and filled == PIECE_BYTES:
            raise TestbedError(f"{name}: a packet is longer than {PIECE_BYTES} bytes")
        yield memoryview(blocks)[:made]
        kept = filled - used.value
        records[:kept] = records[used.value : filled]


@functools.cache
def _library() -> ctypes.CDLL:
    library = load(PCAPNG_LIBRARY)
    library.pcapng_blocks.argtypes = (
        *(ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p),
        ctypes.POINTER(ctypes.c_size_t),
    )
    library.pcapng_blocks.restype = ctypes.c_size_t
    return library


def beginning(source: Source, snaplen: int, link_type: int = LINK_TYPE_ETHERNET) -> bytes:
    """Return what precedes the packets: a section, and the interface that they are from."""
    return _section(source) + _interface(source, link_type, snaplen)


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
