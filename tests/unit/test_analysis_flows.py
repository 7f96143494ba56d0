"""Any capture as flows, and files that are no captures."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from analysis.captures import native
from analysis.captures.flow_tables import HEADINGS
from analysis.captures.tcp import read_capture
from analysis.results.reduction import reduce_trial
from analysis.trials import packets
from analysis.trials.packets import read_cached
from analysis.trials.tcp_stream import round_trips
from testbed.errors import TestbedError
from testbed.store.reading import open_trial
from tests.flow_rows import capture_flows
from tests.pcap_writer import Endpoints, Frame, icmp_unreachable, in_tunnel, tcp, udp, write_pcap
from tests.trial_writer import ISN, captures, write_trial

MS = 1_000_000
BASE = 1_700_000_000_000_000_000
SIX = Endpoints("2001:db8::1", 1000, "2001:db8::2", 80)
DNS = Endpoints("10.0.0.9", 5353, "10.0.0.53", 53)


def download() -> list[Frame]:
    """Over IPv6, the side that answers sends the data: 100 bytes, then 50 bytes."""
    back = SIX.back
    return [
        tcp(SIX, BASE, seq=10, flags="S"),
        tcp(back, BASE + 10 * MS, seq=20, ack=11, flags="SA"),
        tcp(SIX, BASE + 20 * MS, seq=11, ack=21, payload=30, flags="PA"),
        tcp(back, BASE + 30 * MS, seq=21, ack=41, payload=100, flags="PA"),
        tcp(SIX, BASE + 34 * MS, seq=41, ack=121),
        tcp(back, BASE + 40 * MS, seq=121, ack=41, payload=50, flags="PA"),
        tcp(SIX, BASE + 48 * MS, seq=41, ack=171),
    ]


def question() -> list[Frame]:
    """A question that no one answers, but for a router's ICMP error."""
    asked = udp(DNS, BASE - 5 * MS, payload=40, ip_id=1)
    return [asked, icmp_unreachable(DNS.back, BASE - 4 * MS, asked)]


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """Both flows as rows, the question first."""
    path = write_pcap(tmp_path_factory.mktemp("flows") / "x.pcap", [*question(), *download()], 90)
    table = capture_flows(path)
    assert list(table.columns) == list(HEADINGS)
    assert table.attrs["warnings"] == []
    return [{str(name): value for name, value in row.items()} for row in table.to_dict("records")]


EXPECTED: list[dict[str, Any]] = [
    {
        "file": "x.pcap",
        "flow": 0,
        "kind": "udp",
        "src": "10.0.0.9:5353",
        "dst": "10.0.0.53:53",
        "start_s": 0.0,
        "duration_s": 0.0,  # the ICMP error is not the flow's
        "sent_packets": 1,
        "throughput_mbps": math.nan,
        "goodput_mbps": math.nan,
        "wireshark_retransmissions": math.nan,
        "rtt_mean_ms": math.nan,
    },
    {
        "file": "x.pcap",
        "flow": 0,
        "kind": "tcp",
        "src": "[2001:db8::2]:80",
        "dst": "[2001:db8::1]:1000",
        "start_s": 0.005,
        "duration_s": 0.048,
        "sent_packets": 2,
        "throughput_mbps": (3 * 74 + 150) * 8 / 0.048 / 1e6,
        "goodput_mbps": 150 * 8 / 0.048 / 1e6,
        "wireshark_retransmissions": 0,
        "wireshark_fast_retransmissions": 0,
        "wireshark_spurious_retransmissions": 0,
        "out_of_order": 0,
        "duplicate_acks": 0,
        "rtt_min_ms": 4,
        "rtt_mean_ms": 6,
        "rtt_p95_ms": 7.8,
    },
]
SAME_AS_METRICS = (
    *("sent_packets", "out_of_order", "duplicate_acks", "rtt_min_ms", "rtt_mean_ms", "rtt_p95_ms"),
    *(f"wireshark_{kind}retransmissions" for kind in ("", "fast_", "spurious_")),
)
CASES = [(i, name) for i, expected in enumerate(EXPECTED) for name in expected]


@pytest.mark.parametrize(("index", "name"), CASES)
def test_flow(rows: list[dict[str, Any]], index: int, name: str) -> None:
    expected, found = EXPECTED[index][name], rows[index][name]
    if isinstance(expected, str):
        assert found == expected
    else:
        assert found == pytest.approx(expected, nan_ok=True)


def test_there_are_no_other_flows(rows: list[dict[str, Any]]) -> None:
    assert len(rows) == len(EXPECTED)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A capture of a lossy flow."""
    frames = captures()["sender1-eth0"]
    return write_pcap(tmp_path_factory.mktemp("whole") / "whole.pcap", frames, 144)


def test_wiresharks_classes_of_a_lossy_flow(whole: Path) -> None:
    row = capture_flows(whole).iloc[0]
    assert row["wireshark_retransmissions"] == 2
    assert row["wireshark_fast_retransmissions"] == 1
    assert row["wireshark_spurious_retransmissions"] == 1
    assert row["duplicate_acks"] == 7


def test_sequence_numbers_are_those_of_the_headers(whole: Path) -> None:
    """Relative ones would depend on where a capture began."""
    rows = read_capture(whole).rows
    assert rows["seq"][0] == ISN and rows["ack"][1] == ISN + 1


def test_in_a_tunnel_the_flow_is_the_inner_one(tmp_path: Path) -> None:
    outer = Endpoints("192.0.2.1", 0, "192.0.2.2", 0)
    frame = in_tunnel(outer, udp(DNS, BASE, payload=100, ip_id=7))
    row = read_capture(write_pcap(tmp_path / "x.pcap", [frame])).rows.iloc[0]
    assert (row["src"], row["dst"]) == (DNS.src, DNS.dst)
    assert (row["ip_id"], row["payload"], row["length"]) == (7, 100, 162)


def test_times_and_sizes_are_exact(tmp_path: Path) -> None:
    """Nanoseconds of today's dates do not fit a double, and snaplen cuts no lengths."""
    times = [BASE + 123_456_789, BASE + 123_456_790, BASE + 87_000_000_000_001]
    frames = [udp(DNS, time, payload=1400, ip_id=65535) for time in times]
    rows = read_capture(write_pcap(tmp_path / "x.pcap", frames, 64)).rows
    assert rows["time_ns"].tolist() == times
    assert rows["length"].tolist() == [1442] * 3
    assert rows["payload"].tolist() == [1400] * 3
    assert rows["ip_id"].tolist() == [65535] * 3


def test_a_capture_cut_short_gives_what_is_whole(whole: Path, tmp_path: Path) -> None:
    cut = tmp_path / "cut.pcap"
    cut.write_bytes(whole.read_bytes()[:-1])
    packets = read_capture(cut)
    told = "cut.pcap: the capture ends in the middle of a packet, after frame 26 (byte 2924)"
    assert packets.warnings == (told,)
    assert len(packets.rows) == len(read_capture(whole).rows) - 1


def test_headers_cut_short_are_told(tmp_path: Path) -> None:
    frames = [tcp(SIX.back, BASE, seq=1, payload=9), udp(DNS, BASE, payload=9)]
    packets = read_capture(write_pcap(tmp_path / "x.pcap", frames, 42))
    assert packets.rows["protocol"].tolist() == ["udp"]
    path = write_pcap(tmp_path / "y.pcap", [tcp(DNS, BASE, seq=1, payload=9)], 44)
    packets = read_capture(path)
    assert packets.rows.empty
    told = "y.pcap: 1 of 1 frames are not read: 1 with headers cut short or malformed"
    assert packets.warnings == (told,)


def test_a_capture_without_packets(tmp_path: Path) -> None:
    table = capture_flows(write_pcap(tmp_path / "x.pcap", []))
    assert table.empty and list(table.columns) == list(HEADINGS)


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"hello, world\n", "not a pcap"), (b"", "not a pcap"), (None, "no such file")],
)
def test_no_capture(tmp_path: Path, content: bytes | None, message: str) -> None:
    path = tmp_path / "x.pcap"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(TestbedError, match=message) as caught:
        capture_flows(path)
    assert str(path) in caught.value.message and caught.value.hint


def test_a_folder_is_no_capture(tmp_path: Path) -> None:
    with pytest.raises(TestbedError, match="a folder"):
        capture_flows(tmp_path)


def test_a_capture_that_is_damaged_at_its_beginning_is_an_error(
    whole: Path, tmp_path: Path
) -> None:
    damaged = bytearray(whole.read_bytes())
    damaged[32:36] = b"\xff\xff\xff\x7f"  # the first packet's length
    (tmp_path / "x.pcap").write_bytes(damaged)
    with pytest.raises(TestbedError, match=r"x\.pcap") as caught:
        capture_flows(tmp_path / "x.pcap")
    assert caught.value.hint


def test_without_the_compiled_core(whole: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    native._library.cache_clear()
    monkeypatch.setattr(native, "LIBRARY", Path("/nowhere/testbed-capture.so"))
    with pytest.raises(TestbedError, match="not built") as caught:
        capture_flows(whole)
    native._library.cache_clear()
    assert "setup.sh" in caught.value.hint


def test_a_capture_is_read_once_while_it_is_the_same(
    whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "x.pcap"
    path.write_bytes(whole.read_bytes())
    first = read_cached(path)
    assert read_cached(path) is first
    write_pcap(path, question())
    assert len(read_cached(path).rows) == 1
    monkeypatch.setattr(packets, "CACHED_BYTES", 10)
    assert read_cached(path) is not read_cached(path)


def test_round_trips_are_those_of_data(tmp_path: Path) -> None:
    """Those of SYN and SYN-ACK, which Wireshark shows too, are left out."""
    rows = read_capture(write_pcap(tmp_path / "x.pcap", download())).rows
    assert rows["ack_rtt_ms"].notna().sum() == 5
    for src, expected in (("2001:db8::1", [4, 8]), ("2001:db8::2", [10])):
        assert round_trips(rows[rows["src"] == src])["rtt_ms"].tolist() == expected


FOUR = Endpoints("10.0.0.1", 1000, "10.0.0.2", 80)
Step = tuple[int, str, int, int]  # ms, what, and of data: seq, payload; of an ACK: ack, window


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        # the ACK ends with the last of two segments
        (((0, "data", 0, 100), (2, "data", 100, 100), (10, "ack", 200, 1000)), [8]),
        # a hole, its repair, what came meanwhile; then new data again
        (
            (
                *((0, "data", 0, 100), (1, "data", 100, 100), (2, "data", 200, 100)),
                *((12, "ack", 0, 1000), (13, "data", 0, 100), (23, "ack", 300, 1000)),
                *((24, "data", 300, 100), (34, "ack", 400, 1000)),
            ),
            [10],
        ),
        # of two holes the second is not repaired: what lies between was sent once
        (
            (
                *((0, "data", 0, 100), (1, "data", 100, 100), (2, "data", 200, 100)),
                *((5, "data", 200, 100), (10, "ack", 100, 1000), (11, "ack", 200, 1000)),
                (12, "ack", 300, 1000),
            ),
            [10, 10],
        ),
        # the repair has new data behind the old, and an ACK ends between them
        (
            (
                *((0, "data", 0, 100), (5, "data", 0, 300), (10, "ack", 100, 1000)),
                *((11, "ack", 300, 1000), (12, "data", 300, 100), (20, "ack", 400, 1000)),
            ),
            [8],
        ),
        # the original was acknowledged before it was sent again: neither tells anything of the
        # other, and the answer to it acknowledges nothing
        (
            (
                *((0, "data", 0, 100), (10, "ack", 100, 1000), (11, "data", 0, 100)),
                *((12, "data", 100, 100), (21, "ack", 100, 1000), (22, "ack", 200, 1000)),
            ),
            [10, 10],
        ),
        # more segments than Wireshark remembers, so that it forgets the second transmission
        (
            (
                *((0, "data", number, 1) for number in range(10_001)),
                *((5, "data", 0, 1), (10, "ack", 1, 1000), (11, "ack", 2, 1000)),
            ),
            [11],
        ),
        # a byte probes a closed window and is sent again in the segment that follows
        (
            (
                *((0, "data", 0, 100), (10, "ack", 100, 0), (20, "data", 100, 1)),
                *((30, "ack", 100, 0), (31, "ack", 100, 1000), (32, "data", 100, 100)),
                *((42, "ack", 200, 1000), (43, "data", 200, 100), (53, "ack", 300, 1000)),
            ),
            [10, 10],
        ),
    ],
)
def test_bytes_that_were_sent_twice_tell_no_round_trip(
    tmp_path: Path, steps: tuple[Step, ...], expected: list[float]
) -> None:
    frames = [
        tcp(FOUR, BASE - 20 * MS, seq=9, flags="S"),
        tcp(FOUR.back, BASE - 10 * MS, seq=19, ack=10, flags="SA"),
        tcp(FOUR, BASE - 5 * MS, seq=10, ack=20),
    ]
    for at_ms, kind, first, second in steps:
        at_ns = BASE + at_ms * MS
        if kind == "data":
            frames.append(tcp(FOUR, at_ns, seq=10 + first, ack=20, payload=second, flags="A"))
        else:
            frames.append(tcp(FOUR.back, at_ns, seq=20, ack=10 + first, window=second))
    path = write_pcap(tmp_path / "x.pcap", frames)
    rows = read_capture(path).rows
    assert round_trips(rows[rows["src"] == "10.0.0.2"])["rtt_ms"].tolist() == expected
    flow = capture_flows(path).iloc[0]
    assert flow["rtt_mean_ms"] == pytest.approx(sum(expected) / len(expected))


def test_a_flows_numbers_are_those_of_its_trial(tmp_path: Path) -> None:
    trial = open_trial(write_trial(tmp_path / "trial"))
    metrics = reduce_trial(trial).flows.set_index("flow").loc["tcp"]
    capture = trial.capture("sender:tcp")
    assert capture is not None
    flow = capture_flows(capture).set_index("kind").loc["tcp"]
    for name in SAME_AS_METRICS:
        expected = metrics["out_of_order_sent" if name == "out_of_order" else name]
        assert flow[name] == pytest.approx(expected, rel=1e-9), name
    assert flow["duplicate_acks"] > 0 and flow["wireshark_retransmissions"] > 0
