"""Datagrams and packets without an identification of IP, compared at both ends."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest

from analysis.captures.packet_matching import lost_packets, match_data, pair
from analysis.captures.tcp import PacketArrays, read_capture
from analysis.metrics.datagrams import interarrival_jitter, overtaken
from tests.pcap_writer import Endpoints, Frame, tcp, udp, write_pcap

MS = 1_000_000
CALL = Endpoints("10.0.0.1", 4000, "10.0.1.1", 5000)
CALL_6 = Endpoints("2001:db8::1", 4000, "2001:db8:1::1", 5000)


def captured(path: Path, frames: Iterable[Frame]) -> PacketArrays:
    write_pcap(path, list(frames))
    return read_capture(path).part


def datagram(ends: Endpoints, number: int, at_ms: float) -> Frame:
    """A datagram of a program that sends without a connection: it has no identification."""
    return udp(ends, int(at_ms * MS), payload=160, begins=struct.pack("!I", number))


def test_jitter_is_that_of_rfc_3550() -> None:
    """J = J + (|D| - J)/16: delays of 10, 10, 26, 10 differ by 0, 16 and 16."""
    found = interarrival_jitter(np.array([10.0, 10.0, 26.0, 10.0]))
    assert found.tolist() == [0, 0, 1, 1 + 15 / 16]
    assert len(interarrival_jitter(np.zeros(0))) == 0


def test_the_one_that_comes_late_is_overtaken() -> None:
    """The third was sent first: RFC 4737 calls it reordered, not those that came before it."""
    assert overtaken(np.array([1, 2, 0, 3])).tolist() == [False, False, True, False]


@pytest.mark.parametrize("ends", [CALL, CALL_6], ids=["ipv4", "ipv6"])
def test_datagrams_without_identification_are_known_by_their_content(
    tmp_path: Path, ends: Endpoints
) -> None:
    sent = captured(tmp_path / "a.pcap", (datagram(ends, i, 20 * i) for i in range(6)))
    came = [(0, 30), (2, 70), (1, 75), (3, 90), (5, 131)]  # the fifth is lost
    arrived = captured(tmp_path / "b.pcap", (datagram(ends, i, at) for i, at in came))
    found = match_data(sent, arrived)
    assert found.before_row.tolist() == [i for i, _ in came]
    assert (found.delay_ns / MS).tolist() == [at - 20 * i for i, at in came]
    assert (lost_packets(sent, arrived)["time_ns"] / MS).tolist() == [80]
    assert pair(sent, arrived).tolist() == [i for i, _ in came]


def test_a_retransmission_over_ipv6_is_another_packet(tmp_path: Path) -> None:
    """Its timestamp differs, and a network card may have filled in its checksum."""

    def segment(at_ms: float, stamp: int) -> Frame:
        options = b"\x01\x01\x08\x0a" + struct.pack("!II", stamp, 0)
        return tcp(CALL_6, int(at_ms * MS), seq=1, payload=100, options=options)

    def summed(frame: Frame) -> Frame:
        at = 14 + 40 + 16
        return Frame(frame.time_ns, frame.data[:at] + b"\xab\xcd" + frame.data[at + 2 :])

    sent = captured(tmp_path / "a.pcap", [segment(0, 100), segment(250, 350)])
    arrived = captured(tmp_path / "b.pcap", [summed(segment(300, 350))])
    assert match_data(sent, arrived).before_row.tolist() == [1]
    assert pair(sent, arrived).tolist() == [1]
