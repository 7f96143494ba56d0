"""Captures that cost a careless reader far more than their size."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pyarrow as pa

from tests.pcap_writer import ETHERNET, MACS, pcap
from tests.wrappings import block, interface, section

START_S = 1_700_000_000
MAX_BLOCK = 16 << 20


def zstd(content: bytes) -> bytes:
    """Compressed."""
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(content)
    return bytes(sink.getvalue().to_pybytes())


def large_blocks(path: Path, count: int) -> Path:
    """pcapng blocks of zeros, each as large as a block may be: compressed, 1.6 KB each."""
    large = block("<", 0x7777, bytes(MAX_BLOCK - 12))
    path.write_bytes(zstd(section("<") + interface("<", ETHERNET) + large * count))
    return path


def fragments(path: Path, count: int) -> Path:
    """Fragments of one datagram that never becomes whole, from its end to its beginning; each
    round, they are longer."""
    numbers = np.arange(count)
    offsets = 8191 - numbers % 8191
    sizes = 1 + numbers // 8191
    parts = [pcap(())]
    for offset, size in zip(offsets.tolist(), sizes.tolist(), strict=True):
        head = struct.pack("!BBHHHBBH", 0x45, 0, 20 + size, 7, 0x2000 | offset, 64, 17, 0)
        data = MACS + b"\x08\x00" + head + bytes((10, 0, 0, 1, 10, 0, 0, 2)) + bytes(size)
        parts.append(struct.pack("<IIII", START_S, 0, len(data), len(data)) + data)
    path.write_bytes(b"".join(parts))
    return path


def flows(path: Path, count: int, packets: int = 3) -> Path:
    """TCP flows between different addresses, each with a handshake and as many packets as asked
    for, a microsecond after each other and a tenth of a second within a flow."""
    size = 14 + 20 + 20
    layout = np.dtype(
        [("s", "<u4"), ("ns", "<u4"), ("sizes", "<u4", 2), ("macs", "V12"), ("type", ">u2")]
        + [("ip", "V12"), ("ends", ">u4", 2), ("ports", ">u2", 2)]
        + [("seq", ">u4"), ("ack", ">u4"), ("flags", ">u2"), ("window", ">u2"), ("rest", ">u4")]
    )
    records = np.zeros((packets, count), layout)
    numbers = np.arange(count, dtype=np.int64)
    clients, servers = 0x0A000000 + numbers % (1 << 20), 0xC0A80000 + numbers % 251
    ports = 1024 + numbers // (1 << 20)
    for index, row in enumerate(records):
        times = numbers * 1000 + index * 100_000_000
        row["s"], row["ns"] = START_S + times // 10**9, times % 10**9
        row["sizes"] = size
        row["macs"], row["type"] = MACS, 0x0800
        row["ip"] = struct.pack("!BBHHHBBH", 0x45, 0, 40, 0, 0, 64, 6, 0)
        back = index == 1
        ends = (servers, clients) if back else (clients, servers)
        row["ends"] = np.stack(ends, axis=1)
        row["ports"] = np.stack(
            (np.full(count, 80), ports) if back else (ports, np.full(count, 80)), axis=1
        )
        row["seq"], row["ack"] = (900, 101) if back else (100 + (index > 0), 901 if index else 0)
        row["flags"] = 0x5000 | (0x02, 0x12, 0x10)[min(index, 2)]
        row["window"] = 8000
    ordered = records.reshape(-1)
    ordered = ordered[
        np.argsort(ordered["s"].astype(np.int64) * 10**9 + ordered["ns"], kind="stable")
    ]
    path.write_bytes(pcap(()) + ordered.tobytes())
    return path
