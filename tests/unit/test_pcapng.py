"""pcap to pcapng: the same packets, and the interface's name."""

from __future__ import annotations

import struct
import subprocess
from pathlib import Path

import pytest

from testbed.errors import TestbedError
from testbed.runs.pcapng import NANOSECOND_MAGIC, Source, convert

SOURCE = Source("router-eth0", "router", "tcpdump 4.99")
PACKETS = [
    (1_700_000_000_123_456_789 + i, bytes([i % 256]) * (54 + i % 7), 1514) for i in range(50)
]


def pcap(packets: list[tuple[int, bytes, int]], magic: int = NANOSECOND_MAGIC) -> bytes:
    out = struct.pack("<IHHiIII", magic, 2, 4, 0, 0, 144, 1)
    for stamp, data, length in packets:
        seconds, nanoseconds = divmod(stamp, 10**9)
        out += struct.pack("<IIII", seconds, nanoseconds, len(data), length) + data
    return out


def read_back(path: Path) -> list[tuple[int, bytes, int]]:
    """By a reader that knows nothing of the writer: block by block."""
    data, here, found = path.read_bytes(), 0, []
    while here < len(data):
        kind, size = struct.unpack_from("<II", data, here)
        assert struct.unpack_from("<I", data, here + size - 4)[0] == size
        if kind == 6:
            _, high, low, captured, length = struct.unpack_from("<IIIII", data, here + 8)
            packet = data[here + 28 : here + 28 + captured]
            found.append((high << 32 | low, packet, length))
        here += size
    return found


def test_the_same_packets(tmp_path: Path) -> None:
    (tmp_path / "a.pcap").write_bytes(pcap(PACKETS))
    convert(tmp_path / "a.pcap", tmp_path / "a.pcapng", SOURCE)
    assert read_back(tmp_path / "a.pcapng") == PACKETS


def test_an_empty_capture(tmp_path: Path) -> None:
    (tmp_path / "a.pcap").write_bytes(pcap([]))
    convert(tmp_path / "a.pcap", tmp_path / "a.pcapng", SOURCE)
    assert read_back(tmp_path / "a.pcapng") == []


def test_a_record_that_is_cut_short_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "a.pcap").write_bytes(pcap(PACKETS)[:-3])
    convert(tmp_path / "a.pcap", tmp_path / "a.pcapng", SOURCE)
    assert read_back(tmp_path / "a.pcapng") == PACKETS[:-1]


@pytest.mark.parametrize(
    ("content", "said"),
    [(b"", "wrote no header"), (pcap(PACKETS, magic=0xA1B2C3D4), "not a pcap with nanoseconds")],
)
def test_what_is_not_tcpdumps(tmp_path: Path, content: bytes, said: str) -> None:
    (tmp_path / "a.pcap").write_bytes(content)
    with pytest.raises(TestbedError, match=said):
        convert(tmp_path / "a.pcap", tmp_path / "a.pcapng", SOURCE)


def test_wireshark_reads_the_interface(tmp_path: Path) -> None:
    (tmp_path / "a.pcap").write_bytes(pcap(PACKETS))
    convert(tmp_path / "a.pcap", tmp_path / "a.pcapng", SOURCE)
    argv = [
        "tshark",
        "-r",
        str(tmp_path / "a.pcapng"),
        "-T",
        "fields",
        "-e",
        "frame.interface_name",
    ]
    argv += ["-e", "frame.len", "-e", "frame.time_epoch"]
    lines = subprocess.run(argv, capture_output=True, text=True, check=True).stdout.splitlines()
    assert len(lines) == len(PACKETS)
    assert lines[0].split("\t") == ["router-eth0", "1514", "1700000000.123456789"]
