"""Listed losses: the program's bytes, and the kernel running it on packets made by hand."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import astuple
from pathlib import Path

import pytest

from testbed.plan.ebpf_plans import DropPlan
from testbed.runner import bpf
from testbed.runner.programme import NS, Programme
from testbed.runner.recorded_netlink import netlink_of
from testbed.trial.parts.losses import STATE, Rules, listed_runs, listing
from tests.obeyed import NEEDS_ROOT, obeyed
from tests.pcap_writer import Endpoints, tcp, udp
from tests.program import Program, Table, loaded, loads_programs

PLAN = DropPlan("tcp", "router", "router-eth1", "10.0.1.2", 40001, "192.168.0.2", 5201, (2, 4))
PASS, DROP = bpf.PASS, bpf.DROP
ENDS = Endpoints(PLAN.src_address, PLAN.src_port, PLAN.dst_address, PLAN.dst_port)


class Runner(Program):
    """The program with its counters."""

    def __init__(self) -> None:
        pairs = [number for run in listed_runs(PLAN.segments) for number in astuple(run)]
        tables = [
            Table(4 * len(STATE), bytes(4 * len(STATE))),
            Table(8, struct.pack(f"={len(pairs)}I", *pairs)),
        ]
        super().__init__(listing(PLAN, Rules(), 0, 1), tables)

    @property
    def counts(self) -> dict[str, int]:
        values = struct.unpack(f"={len(STATE)}I", self.tables[0].first())
        return dict(zip(STATE, values, strict=True))


@pytest.fixture
def runner() -> Iterator[Runner]:
    yield from loaded(Runner)


def segment(number: int, isn: int = 1000, size: int = 100, ends: Endpoints = ENDS) -> bytes:
    """The data segment of that number, from 1."""
    seq = (isn + size * (number - 1)) % 2**32
    return tcp(ends, 0, seq=seq, ack=1, payload=size, flags="PA").data


@pytest.mark.parametrize("isn", [1000, 2**32 - 250])
@loads_programs
def test_the_wanted_segments_are_lost_once(runner: Runner, isn: int) -> None:
    said = [runner.run(segment(n, isn)) for n in (1, 2, 3, 2, 4, 2, 3, 4, 5)]
    assert said == [PASS, DROP, PASS, PASS, DROP, PASS, PASS, PASS, PASS]
    counts = runner.counts
    assert (counts["segments"], counts["dropped"]) == (5, 2)


def test_neighbours_and_the_first_segment_may_be_listed() -> None:
    runs = listed_runs((1, 2, 7))
    assert [(run.passing, run.losing) for run in runs] == [(0, 1), (0, 1), (4, 1)]


@loads_programs
def test_other_packets_pass_and_do_not_count(runner: Runner) -> None:
    others = (
        Endpoints("10.0.1.3", 40001, "192.168.0.2", 5201),
        Endpoints("10.0.1.2", 40002, "192.168.0.2", 5201),
        Endpoints("10.0.1.2", 40001, "192.168.0.3", 5201),
        Endpoints("10.0.1.2", 40001, "192.168.0.2", 5202),
    )
    frames = [segment(n, ends=each) for each in others for n in (1, 2, 3)]
    frames += [tcp(ENDS, 0, seq=1, flags="S").data, tcp(ENDS, 0, seq=2, ack=1).data]
    frames += [udp(ENDS, 0, payload=100, ip_id=1).data, b"\0" * 20]
    assert [runner.run(frame) for frame in frames] == [PASS] * len(frames)
    assert runner.counts["segments"] == 0
    assert [runner.run(segment(n)) for n in (1, 2)] == [PASS, DROP]


@loads_programs
def test_options_in_the_headers_do_not_confuse_it(runner: Runner) -> None:
    """12 bytes of TCP options and 4 of IP's are no data."""
    frame = bytearray(tcp(ENDS, 0, seq=1, ack=1).data)
    ip, header = frame[14:34], frame[34:54]
    ip[0] = 0x46
    header[12] = 8 << 4
    packet = ip + b"\1\1\1\1" + header + b"\1" * 12
    packet[2:4] = struct.pack("!H", len(packet))
    assert runner.run(bytes(frame[:14] + packet)) == PASS
    assert runner.counts["segments"] == 0


@NEEDS_ROOT
def test_the_runner_counts_by_a_program_and_says_what_the_kernel_refuses(tmp_path: Path) -> None:
    """Echo requests and their replies cross the loopback's ingress."""
    programme = Programme()
    programme.add("node", "it")
    (up,) = netlink_of("ip", ("link set dev lo up",))
    programme.send("it", up.kind, up.flags, up.content, ("index", 4, "lo"))
    arrays = bpf.BpfArrays(programme)
    place = arrays.add("seen", 4, bytes(4))
    code: list[bpf.Line] = [
        *(bpf.set_constant(1, 0), bpf.store(10, -4, 1), *bpf.load_map(1, place)),
        *(bpf.move(2, 10), bpf.alu(bpf.ADD, 2, -4), bpf.call(bpf.MAP_LOOKUP_ELEM)),
        *(bpf.jump_if_null(0, "pass"), bpf.load(1, 0, 0), bpf.alu(bpf.ADD, 1, 1)),
        *(bpf.store(0, 0, 1), "pass", bpf.set_constant(0, bpf.PASS), bpf.EXIT),
    ]
    programme.add("program", "counts", bpf.assemble(code).hex())
    (clsact,) = netlink_of("tc", ("qdisc add dev lo clsact",))
    programme.send("it", clsact.kind, clsact.flags, clsact.content, ("index", 4, "lo"))
    bpf.attach(programme, "it", "lo", bpf.INGRESS, "counts", "counts")
    programme.add("echo", "it", "127.0.0.1", "127.0.0.1", 3, NS)
    counted = programme.add("counters", "seen")
    bad = programme.add("program", "bad", bpf.assemble([bpf.load(0, 3, 0), bpf.EXIT]).hex())
    answers = obeyed(tmp_path, programme)
    assert answers.failure and answers.failure[0] == bad  # r3 was never set
    assert "the kernel rejects a program" in answers.failure[1]
    assert answers.of(counted) == struct.pack("=I", 6)  # requests and replies


def test_labels_become_distances() -> None:
    code = bpf.assemble(["again", bpf.set_constant(0, -1), bpf.jump(bpf.EQUAL, 0, 7, "again")])
    assert struct.unpack("=BBhi", code[:8]) == (0xB7, 0, 0, -1)
    assert struct.unpack("=BBhi", code[8:]) == (0x16, 0, -2, 7)
