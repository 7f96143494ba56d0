"""Capture files: compressed, in pieces, damaged, and no captures at all."""

from __future__ import annotations

import gzip
import os
import struct
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from analysis.captures import pcap as reader
from analysis.captures import tcp
from analysis.captures.native import Core
from analysis.captures.pcap import feed
from analysis.captures.tcp import read_capture
from testbed.errors import TestbedError
from testbed.machine.process import run
from tests.conversations import conversations
from tests.flow_rows import capture_flows
from tests.heavy_captures import flows, zstd
from tests.pcap_writer import ETHERNET, Frame, ethernet, pcap, write_pcap
from tests.wrappings import (
    V4,
    block,
    enhanced,
    frames,
    interface,
    pcapng,
    section,
    udp_packets,
)

FRAME = frames(ETHERNET, 1)[0]


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Some conversations."""
    return write_pcap(tmp_path_factory.mktemp("capture") / "x.pcap", conversations(5, 100))


def lz4(content: bytes) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "lz4") as stream:
        stream.write(content)
    return bytes(sink.getvalue().to_pybytes())


def twice_gzip(content: bytes) -> bytes:
    """Two members, as `cat a.gz b.gz` makes them."""
    return gzip.compress(content[:1000]) + gzip.compress(content[1000:])


@pytest.mark.parametrize("pack", [gzip.compress, twice_gzip, zstd, lz4])
def test_compressed(capture: Path, tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    packed = tmp_path / "packed"
    packed.write_bytes(pack(capture.read_bytes()))
    pd.testing.assert_frame_equal(read_capture(packed).rows, read_capture(capture).rows)


@pytest.mark.parametrize("pack", [gzip.compress, zstd, lz4])
def test_compressed_and_cut_short(
    capture: Path, tmp_path: Path, pack: Callable[[bytes], bytes]
) -> None:
    packed = tmp_path / "packed"
    content = pack(capture.read_bytes())
    packed.write_bytes(content[: len(content) * 2 // 3])
    warnings = [text for text in read_capture(packed).warnings if "ends in the middle" in text]
    assert len(warnings) == 1


def test_pieces_make_no_difference(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    capture = write_pcap(tmp_path / "x.pcap", conversations(5, 12))
    whole, flows = read_capture(capture).rows, capture_flows(capture)
    monkeypatch.setattr(reader, "WINDOW", 1)
    monkeypatch.setattr(tcp, "MAX_CHUNK", 10)
    monkeypatch.setattr(tcp, "CHUNK_ROWS", 7)
    pd.testing.assert_frame_equal(read_capture(capture).rows, whole)
    pd.testing.assert_frame_equal(capture_flows(capture), flows)


def test_a_large_capture_is_stored_beside_its_dissection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows from two threads are all there, each in its place, when the columns are full."""
    path = flows(tmp_path / "x.pcap", 25_000)
    layout = [("s", "<u4"), ("ns", "<u4"), ("sizes and packet", "V62")]
    records = np.frombuffer(path.read_bytes(), layout, offset=24)
    monkeypatch.setattr(tcp, "MAX_CHUNK", 7_001)
    monkeypatch.setattr(tcp, "CHUNK_ROWS", 7_001)
    columns = tcp.read_arrays(path, ("frame", "time_ns", "relative_seq", "stream")).columns
    assert columns["frame"].tolist() == list(range(1, 75_001))
    assert (columns["time_ns"] == records["s"] * np.int64(10**9) + records["ns"]).all()
    assert (np.sort(columns["stream"]) == np.repeat(np.arange(25_000), 3)).all()
    table = capture_flows(path)
    assert len(table) == 25_000 and table["start_s"].is_monotonic_increasing


def test_arrays_are_as_compact_as_they_can_be(capture: Path) -> None:
    rows = read_capture(capture).rows
    assert rows.memory_usage(index=False).sum() / len(rows) < 130


PACKET = struct.pack("<IIIII", 0, 0, 0, 4, 4) + bytes(4)
DAMAGED = {
    "a packet of 2147483647 bytes": struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 0, 1)
    + struct.pack("<IIII", 0, 0, 2**31 - 1, 0),
    "which nobody writes": struct.pack("<IHHiIII", 0xA1B2C3D4, 9, 4, 0, 0, 0, 1),
    "of no known byte order": struct.pack("<III", 0x0A0D0D0A, 28, 7) + bytes(16),
    "section header of 0 bytes": struct.pack("<III", 0x0A0D0D0A, 0, 0x1A2B3C4D) + bytes(16),
    "interface 0, which is not described": section("<") + block("<", 6, PACKET),
    "in a shorter block": section("<")
    + interface("<", 1)
    + block("<", 6, PACKET[:12] + b"\xff" * 12),
    "before any interface": section("<") + block("<", 3, bytes(4)),
    "a block of 4294967295 bytes": section("<") + struct.pack("<III", 5, 2**32 - 1, 0),
    "a block of 4 bytes": section("<") + struct.pack("<III", 5, 4, 0),
    "whose two lengths differ": section("<")[:-4] + struct.pack("<I", 32),
    "an interface description of 12 bytes": section("<") + block("<", 1, b""),
    "a packet block of 12 bytes": section("<") + block("<", 6, b""),
}


@pytest.mark.parametrize("reason", DAMAGED)
def test_damage_is_named(tmp_path: Path, reason: str) -> None:
    (tmp_path / "x").write_bytes(DAMAGED[reason])
    with pytest.raises(TestbedError, match=reason) as caught:
        read_capture(tmp_path / "x")
    assert "damaged at byte" in caught.value.message and caught.value.hint
    assert len(caught.value.message.splitlines()) == 1


def test_what_came_before_the_damage_is_kept(tmp_path: Path) -> None:
    good = section("<") + interface("<", 1) + enhanced("<", FRAME, 0, 0)
    (tmp_path / "x").write_bytes(good + block("<", 6, b"") + enhanced("<", FRAME, 0, 0))
    packets = read_capture(tmp_path / "x")
    assert packets.rows["frame"].tolist() == [1]
    (told,) = packets.warnings
    assert f"x: damaged at byte {len(good)}, after frame 1: a packet block of 12" in told
    assert told.endswith("what follows is not read")


def test_a_snoop_capture_is_named(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"snoop\0\0\0" + bytes(20))
    with pytest.raises(TestbedError, match="a snoop capture") as caught:
        read_capture(tmp_path / "x")
    assert caught.value.hint.startswith("editcap -F pcapng ")


def test_what_is_no_capture_may_be_another_programs(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"some text")
    with pytest.raises(TestbedError, match="not a pcap or pcapng capture") as caught:
        read_capture(tmp_path / "x")
    assert "if another program captured it" in caught.value.hint


@pytest.mark.parametrize("size", [4, 10, 23, 27])
def test_a_header_cut_short(tmp_path: Path, size: int) -> None:
    (tmp_path / "x").write_bytes(section("<")[:size])
    with pytest.raises(TestbedError, match="ends within its header"):
        read_capture(tmp_path / "x")


def test_every_cut_gives_what_is_whole(tmp_path: Path) -> None:
    content = pcapng(3)
    counts = []
    for size in range(200, 4000, 97):
        (tmp_path / "x").write_bytes(content[:size])
        counts.append(len(read_capture(tmp_path / "x").rows))
    assert counts == sorted(counts) and counts[-1] > 3


def test_a_capture_that_shrinks_while_it_is_read(
    capture: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shrinking = tmp_path / "x.pcap"
    shrinking.write_bytes(capture.read_bytes())
    monkeypatch.setattr(reader, "WINDOW", 5000)

    def supply() -> None:
        os.truncate(shrinking, 10_000)

    with closing(Core(with_flows=True)) as core:
        warnings = feed(shrinking, core, supply)
        assert "ends in the middle" in warnings[0]
        assert 0 < core.state.frames < len(read_capture(capture).rows)


def test_a_datagram_of_many_fragments(tmp_path: Path) -> None:
    """From its end to its beginning; of each place a short one comes before a longer one."""
    head, body = (whole := udp_packets(V4)[1])[:20], whole[20:]
    seen = []
    for begin in reversed(range(0, len(body), 16)):
        for stop in (begin + 8, min(begin + 16, len(body))):
            more = 0x2000 if stop < len(body) else 0
            fields = struct.pack("!HHH", 20 + stop - begin, 7, more | begin // 8)
            piece = head[:2] + fields + head[8:] + body[begin:stop]
            seen.append(Frame(0, ethernet(piece)))
    (tmp_path / "x").write_bytes(pcap(seen, ETHERNET))
    rows = read_capture(tmp_path / "x").rows
    assert rows["frame"].tolist() == [len(seen)]
    assert rows["payload"].tolist() == [900]


def test_the_core_compiles_without_a_warning(root: Path, tmp_path: Path) -> None:
    sources = [str(path) for path in sorted((root / "analysis" / "captures" / "core").glob("*.c"))]
    flags = ("-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC")
    run(["gcc", *flags, "-o", str(tmp_path / "x.so"), *sources])


@pytest.mark.slow
def test_damaged_captures_break_nothing(root: Path) -> None:
    """A little of what tests/fuzz/run does at length."""
    done = run([str(root / "tests" / "fuzz" / "run"), "3000", "7"], check=False)
    assert done.status == 0, done.stdout + done.stderr
    assert done.stdout.startswith("3000 inputs")


def test_what_the_fuzzer_found(root: Path) -> None:
    """Times whose difference does not fit its type: they wrap around, whatever they mean."""
    rows = read_capture(root / "tests/fuzz/corpus/captures/absurd-times.pcapng").rows
    assert len(rows) == 4 and rows["payload"].tolist() == [0, 0, 0, 1000]
