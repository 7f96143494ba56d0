"""Which frames are read, and what the user is told of the others."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from analysis.captures.tcp import read_capture
from analysis.captures.tshark import verify
from experiments.command import main
from tests import tunnels
from tests.conversations import End
from tests.flow_rows import capture_flows
from tests.installed import followed_wireshark
from tests.pcap_writer import ETHERNET, MACS, Frame, ethernet, pcap
from tests.wrappings import (
    NULL,
    START_NS,
    V4,
    V6,
    block,
    enhanced,
    interface,
    section,
    tcp_packets,
    udp,
    udp_packets,
    wrap,
)

GTP = End("10.1.0.2", 2152)
FRAMES = [ethernet(packet) for packet in tcp_packets(V4)]


def written(tmp_path: Path, content: bytes) -> Path:
    (tmp_path / "x").write_bytes(content)
    return tmp_path / "x"


MORE_IN_NEWER = "nflog <", "nflog >"  # Wireshark 4.4 reads more of them


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[followed_wireshark] if name in MORE_IN_NEWER else [])
        for name in tunnels.READ
    ],
)
def test_links_and_tunnels(tmp_path: Path, name: str) -> None:
    verdict = verify(written(tmp_path, tunnels.whole_variety(name, 7)))
    assert not verdict.differences, "\n".join(map(str, verdict.differences[:10]))
    assert verdict.packets > 15


@pytest.mark.slow(but=1)
@pytest.mark.parametrize("name", tunnels.OPTIONAL)
def test_tunnels_that_are_optional(tmp_path: Path, name: str) -> None:
    packets = [*tcp_packets(V4), *tcp_packets(V6), *udp_packets(V4)[:3]]
    path = written(tmp_path, tunnels.capture(name, packets, Random(3)))
    for read in (False, True):
        verdict = verify(path, tunnels=read)
        assert not verdict.differences, "\n".join(map(str, verdict.differences[:10]))
        assert verdict.packets == len(packets)
    assert set(capture_flows(path)["kind"]) == {"udp"}
    (told,) = read_capture(path).warnings
    assert f"{len(packets)} {name.upper()} (read as UDP); --tunnels reads" in told
    inner = capture_flows(path, tunnels=True)
    assert set(inner["kind"]) == {"tcp", "udp"} and set(inner["unread"]) == {""}


def of_type(number: int, packet: bytes = b"") -> bytes:
    return MACS + number.to_bytes(2) + (packet or bytes(60))


def in_ip(protocol: int) -> bytes:
    return ethernet(wrap(*V4, protocol, bytes(40)))


UNREAD = {
    "5 NSH": [of_type(0x894F)] * 5,
    "2 MACsec": [of_type(0x88E5)] * 2,
    "1 802.1ah": [of_type(0x88E7)],
    "1 ERSPAN": [ethernet(wrap(*V4, 47, b"\x10\0\x88\xbe" + bytes(50)))],
    "1 ESP": [in_ip(50)],
    "1 MPLS without IP": [of_type(0x8847, b"\0\2\1\x40" + bytes(60))],
    "1 with headers cut short or malformed": [MACS + b"\x08\0" + bytes(40)],
    "1 GTP (read as UDP)": [ethernet(wrap(*V4, 17, udp(V4[0], GTP, 20)))],
    "": [of_type(0x0806), in_ip(2)],  # ARP and IGMP carry nothing
}


@pytest.mark.slow(but=4)
@pytest.mark.parametrize("what", UNREAD)
def test_what_is_not_read_is_told(tmp_path: Path, what: str) -> None:
    frames = [Frame(START_NS, frame) for frame in (*FRAMES[:2], *UNREAD[what])]
    path = written(tmp_path, pcap(frames, ETHERNET))
    told = read_capture(path).warnings
    count = len(UNREAD[what])
    expected = f"x: {count} of {len(frames)} frames are not read: {what}"
    assert told == ((expected,) if what else ())
    assert set(capture_flows(path)["unread"]) == {what}


def test_an_unknown_link(tmp_path: Path) -> None:
    path = written(tmp_path, pcap([Frame(START_NS, frame) for frame in FRAMES], 105))
    (told,) = read_capture(path).warnings
    assert told.endswith(f"frames are not read: {len(FRAMES)} 802.11 (link type 105)")
    path = written(tmp_path, pcap([Frame(START_NS, FRAMES[0])], 147))
    assert "1 of link type 147" in read_capture(path).warnings[0]


def test_fragments_of_datagrams_that_are_not_whole(tmp_path: Path) -> None:
    whole = udp_packets(V4)[1]
    first = whole[:6] + b"\x20\0" + whole[8:]
    path = written(tmp_path, pcap([Frame(START_NS, ethernet(first))], ETHERNET))
    (told,) = read_capture(path).warnings
    assert told.endswith("1 fragments of datagrams that are not whole")


@pytest.mark.slow(but=1)
@pytest.mark.parametrize("kind", [0xBAD, 0x40000BAD, 0x204, 0x216, 0x221])
def test_blocks_that_count_as_frames(tmp_path: Path, kind: int) -> None:
    frame = Frame(START_NS, FRAMES[0])
    head, packet = section("<") + interface("<", ETHERNET), enhanced("<", frame, 0, 0)
    path = written(tmp_path, head + block("<", kind, b"\xd9\x7e\0\0" + bytes(36)) + packet)
    packets = read_capture(path)
    assert packets.rows["frame"].tolist() == [2] and packets.frames == 2
    assert f"1 blocks of type {kind:#x} that are not packets" in packets.warnings[0]
    assert not verify(path).differences


def test_headers_of_loopbacks_and_short_options(tmp_path: Path) -> None:
    """As Wireshark takes them: families of 16 bits, PPP in their place, options cut short."""
    heads = ("00020000", "02000000", "00000002", "0002abcd", "ff030021", "00000800", "1e000000")
    seen = [bytes.fromhex(head) + packet for head in heads for packet in udp_packets(V4)[:2]]
    for link in (NULL, 108):
        path = written(tmp_path, pcap([Frame(START_NS, frame) for frame in seen], link))
        assert not verify(path).differences
    route = b"\x83\x07\x08\x0a\x09\x09\x09"
    seen = [
        ethernet(wrap(*V4, 17, udp(*V4, 20), (option + route).ljust(20, b"\0")))
        for kind in (7, 25, 68, 82, 130, 131, 133, 134, 136, 137, 148, 94)
        for option in (bytes((kind, size)) + bytes(size - 2) for size in range(2, 13))
    ]
    path = written(tmp_path, pcap([Frame(START_NS, frame) for frame in seen], ETHERNET))
    verdict = verify(path)
    assert not verdict.differences and 0 < verdict.packets < len(seen)


def test_lengths_and_times_that_no_frame_has(tmp_path: Path) -> None:
    frame = Frame(0, FRAMES[0])
    head = section("<") + interface("<", ETHERNET, 0)
    path = written(tmp_path, head + enhanced("<", frame, 0, 2**63) + enhanced("<", frame, 0, 1))
    assert verify(path).packets == 2
    content = bytearray(pcap([frame], ETHERNET))
    content[36:40] = b"\xff\xff\xff\xff"
    path = written(tmp_path, bytes(content))
    assert read_capture(path).rows["length"].tolist() == [2**31 - 1]
    assert not verify(path).differences


def test_the_user_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    frames = [Frame(START_NS, frame) for frame in (*FRAMES[:2], of_type(0x894F))]
    path = written(tmp_path, pcap(frames, ETHERNET))
    assert main(["reduce", str(path), "--format", "csv"]) == 0
    said = capsys.readouterr()
    assert said.err == "testbed: warning: x: 1 of 3 frames are not read: 1 NSH\n"
    assert said.out.splitlines()[1].endswith(",1 NSH")
