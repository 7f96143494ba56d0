"""A look at single packets with pyshark: as many as asked, and no tshark left behind."""

from __future__ import annotations

import asyncio
import itertools
import os
from pathlib import Path

import pytest
from pyshark.packet.packet import Packet

from analysis.captures.inspection import Point, View, pyshark_packets, view_of
from testbed.errors import TestbedError
from testbed.store.reading import open_trial
from tests.pcap_writer import tcp, write_pcap
from tests.trial_writer import TCP, captures, write_trial


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_trial(tmp_path / "trial")


@pytest.fixture
def view(folder: Path) -> View:
    """The first flow at its sender."""
    return view_of(open_trial(folder))


def children() -> set[str]:
    """Processes that we started and that are there still, ended ones included."""
    tasks = Path(f"/proc/{os.getpid()}/task").iterdir()
    return {pid for task in tasks for pid in (task / "children").read_text().split()}


@pytest.fixture(autouse=True)
def nothing_left_behind() -> object:
    before = children()
    yield
    assert children() == before


def first_packets(view: View, count: int) -> list[Packet]:
    with pyshark_packets(view) as packets:
        return list(itertools.islice(packets, count))


def test_as_many_as_asked(view: View) -> None:
    packets = first_packets(view, 4)
    assert [int(packet.number) for packet in packets] == [1, 2, 3, 4]
    assert packets[3].tcp.len == "1000"
    assert packets[3].tcp.seq == "1"  # relative, as in the profile


def test_fewer_than_asked(view: View) -> None:
    assert len(first_packets(view, 100)) == len(captures()["sender1-eth0"])


def test_a_flow_at_a_point(folder: Path) -> None:
    packets = first_packets(view_of(open_trial(folder), "cbr", Point.RECEIVER), 100)
    assert len(packets) == 4
    assert all(packet.udp.dstport == "5202" for packet in packets)


def test_a_narrower_filter(view: View) -> None:
    packets = first_packets(view.narrowed("tcp.analysis.retransmission"), 100)
    assert len(packets) == 2
    assert "analysis_fast_retransmission" in packets[0].tcp.field_names


def test_any_capture(folder: Path) -> None:
    view = View(folder / "captures/receiver-eth0.pcap")
    assert len(first_packets(view, 100)) == len(captures()["receiver-eth0"])
    assert len(first_packets(view.narrowed("udp"), 100)) == 4


def test_one_at_a_time(view: View) -> None:
    with pyshark_packets(view) as packets:
        lengths = [int(packet.length) for packet in itertools.islice(packets, 4)]
        assert len(children()) >= 1
    assert lengths == [54, 54, 54, 1054]


def test_an_error_in_the_block(view: View) -> None:
    with pytest.raises(ZeroDivisionError), pyshark_packets(view) as packets:
        next(packets)
        raise ZeroDivisionError


def test_within_an_event_loop(view: View) -> None:
    """As in a notebook, where one runs already."""

    async def cell() -> int:
        return len(first_packets(view, 3))

    assert asyncio.run(cell()) == 3


def test_no_more_is_read_than_asked(tmp_path: Path) -> None:
    """The first of many packets come without a wait for the last."""
    frames = (tcp(TCP, number, seq=number) for number in range(200_000))
    path = write_pcap(tmp_path / "long.pcap", frames)
    with pyshark_packets(View(path)) as packets:
        assert int(next(packets).number) == 1


def test_what_is_wrong_is_said(view: View, tmp_path: Path) -> None:
    with pytest.raises(TestbedError, match=r"tcp\.nonsense"):
        first_packets(view.narrowed("tcp.nonsense"), 1)
    with pytest.raises(TestbedError, match="no such file"):
        first_packets(View(tmp_path / "nothing.pcap"), 1)
    (tmp_path / "text").write_text("not a capture at all")
    with pytest.raises(TestbedError, match="not a pcap"):
        first_packets(View(tmp_path / "text"), 1)


def test_a_capture_that_ends_in_the_middle(view: View, tmp_path: Path) -> None:
    whole = view.capture.read_bytes()
    (tmp_path / "cut.pcap").write_bytes(whole[:-10])
    assert (
        len(first_packets(View(tmp_path / "cut.pcap"), 100)) == len(captures()["sender1-eth0"]) - 1
    )
