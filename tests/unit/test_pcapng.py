"""pcap to pcapng: the same packets, and the interface's name."""

from __future__ import annotations

import struct
import subprocess
import threading
from pathlib import Path

import pytest

from testbed.engine import Cancelled
from testbed.errors import TestbedError
from testbed.trial.parts import pcapng

SOURCE = pcapng.Source("router-eth0", "router", "tcpdump 4.99")
PACKETS = [
    (1_700_000_000_123_456_789 + i, bytes([i % 256]) * (54 + i % 7), 1514) for i in range(50)
]


def pcap(packets: list[tuple[int, bytes, int]], magic: int = pcapng.NANOSECOND_MAGIC) -> bytes:
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


def converted(folder: Path, content: bytes) -> list[tuple[int, bytes, int]]:
    (folder / "a.pcap").write_bytes(content)
    pcapng.convert(folder / "a.pcap", folder / "a.pcapng", SOURCE, threading.Event())
    return read_back(folder / "a.pcapng")


def test_the_same_packets(tmp_path: Path) -> None:
    assert converted(tmp_path, pcap(PACKETS)) == PACKETS


def test_an_empty_capture(tmp_path: Path) -> None:
    assert converted(tmp_path, pcap([])) == []


def test_a_record_that_is_cut_short_is_left_out(tmp_path: Path) -> None:
    assert converted(tmp_path, pcap(PACKETS)[:-3]) == PACKETS[:-1]


@pytest.mark.parametrize(
    ("content", "said"),
    [(b"", "wrote no header"), (pcap(PACKETS, magic=0xA1B2C3D4), "not a pcap with nanoseconds")],
)
def test_what_is_not_tcpdumps(tmp_path: Path, content: bytes, said: str) -> None:
    with pytest.raises(TestbedError, match=said):
        converted(tmp_path, content)


def test_wireshark_reads_the_interface(tmp_path: Path) -> None:
    (tmp_path / "a.pcap").write_bytes(pcap(PACKETS))
    pcapng.convert(tmp_path / "a.pcap", tmp_path / "a.pcapng", SOURCE, threading.Event())
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


def test_packets_across_the_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pcapng, "PIECE_BYTES", 100)
    assert converted(tmp_path, pcap(PACKETS)) == PACKETS


def test_the_smallest_packets_grow_most(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pcapng, "PIECE_BYTES", 10_000)
    packets = [(i, bytes(i % 3), 1514) for i in range(2 * pcapng.PIECE_BYTES // 17)]
    assert converted(tmp_path, pcap(packets)) == packets


def test_a_length_that_cannot_be(tmp_path: Path) -> None:
    damaged = bytearray(pcap(PACKETS) + bytes(pcapng.PIECE_BYTES))
    struct.pack_into("=I", damaged, 24 + 8, pcapng.PIECE_BYTES)
    with pytest.raises(TestbedError, match="a packet is longer than"):
        converted(tmp_path, bytes(damaged))


def test_an_interrupt_ends_it_within_a_piece(tmp_path: Path) -> None:
    cancel = threading.Event()
    cancel.set()
    (tmp_path / "a.pcap").write_bytes(pcap(PACKETS))
    with pytest.raises(Cancelled):
        pcapng.convert(tmp_path / "a.pcap", tmp_path / "a.pcapng", SOURCE, cancel)


def test_links_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "private").write_bytes(pcap(PACKETS))
    (tmp_path / "a.pcap").symlink_to("private")
    with pytest.raises(OSError, match="symbolic links"):
        pcapng.convert(tmp_path / "a.pcap", tmp_path / "a.pcapng", SOURCE, threading.Event())
    (tmp_path / "b.pcapng").symlink_to("private")
    with pytest.raises(FileExistsError):
        pcapng.convert(tmp_path / "private", tmp_path / "b.pcapng", SOURCE, threading.Event())
