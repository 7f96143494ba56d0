"""The program that delays sessions: the kernel running it on packets made by hand."""

from __future__ import annotations

import array
import struct
import time
from collections.abc import Iterator

import pytest

from testbed.scenario.workload import MAX_SESSIONS
from testbed.trial.parts.session_delays import NO_SESSION, TSTAMP, listing
from tests.pcap_writer import Endpoints, tcp, udp
from tests.program import Program, Table, loaded, loads_programs

SERVER, CLIENT = "10.1.2.2", "10.2.2.2"
FIRST_PORT = 61_000
DELAYS_NS = (5_000_000, 220_000_000, 70_000_000_000)
LINK_NS = 1_000_000
SLACK_NS = 1_000_000_000  # between the program's look at the clock and ours


class Runner(Program):
    """The program with its table of delays."""

    def __init__(self) -> None:
        table = Table(8, array.array("Q", DELAYS_NS).tobytes())
        super().__init__(listing(0, FIRST_PORT, LINK_NS), [table])

    def delay_ns(self, frame: bytes) -> float:
        """How much later than now the packet may leave, to a second or so."""
        before = time.monotonic_ns()
        _, written = self.ask(frame)
        (leaves,) = struct.unpack_from("=Q", written, TSTAMP)
        return float(leaves - before)


@pytest.fixture
def runner() -> Iterator[Runner]:
    yield from loaded(Runner)


@pytest.mark.parametrize("session", [0, 1, 2])
@loads_programs
def test_a_sessions_packets_wait_both_ways(runner: Runner, session: int) -> None:
    ends = Endpoints(SERVER, FIRST_PORT + session, CLIENT, 50_001)
    for each in (ends, ends.back):
        waited = runner.delay_ns(tcp(each, 0, seq=1, payload=100).data)
        assert DELAYS_NS[session] <= waited < DELAYS_NS[session] + SLACK_NS


@loads_programs
def test_what_belongs_to_no_session_waits_for_the_link(runner: Runner) -> None:
    others = [Endpoints(SERVER, port, CLIENT, 50_001) for port in (FIRST_PORT + 3, FIRST_PORT - 1)]
    frames = [tcp(each, 0, seq=1).data for each in others]
    frames.append(udp(Endpoints(SERVER, FIRST_PORT + 2, CLIENT, 7), 0, payload=9, ip_id=1).data)
    for frame in frames:
        assert LINK_NS <= runner.delay_ns(frame) < LINK_NS + SLACK_NS


@loads_programs
def test_options_in_the_ip_header_do_not_confuse_it(runner: Runner) -> None:
    frame = tcp(Endpoints(SERVER, FIRST_PORT + 2, CLIENT, 50_001), 0, seq=1).data
    ip, rest = bytearray(frame[14:34]), frame[34:]
    ip[0] = 0x46
    assert runner.delay_ns(frame[:14] + bytes(ip) + b"\1\1\1\1" + rest) >= DELAYS_NS[2]


def test_no_sessions_hash_is_that_of_the_others() -> None:
    assert MAX_SESSIONS <= NO_SESSION < 1024  # fq's ten bits
