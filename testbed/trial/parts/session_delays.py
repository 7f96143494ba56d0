"""A separate round trip for each session of a workload, on one shared link.

An eBPF program at both ends of the link reads the session's port and sets the packet's departure
time, until which fq holds it. It also gives each session its own hash: fq keeps packets of one hash
in one queue, where they wait for the first of them.

The link is the receiving host's. Unlike netem, fq does not detach a packet from the socket that
sent it: on the sending host's link packets would seem to wait in the host's own device, where TCP
allows only a few (TCP small queues). Forwarding by a router detaches them.
"""

from __future__ import annotations

import array
from collections.abc import Sequence

from testbed.runner import bpf
from testbed.runner.bpf import (
    ADD,
    AND,
    BPF_BYTE,
    BPF_HALF,
    DIFFERENT,
    ETHERNET_BYTES,
    LSH,
    SUB,
    Line,
)
from testbed.store.names import DELAY_NODE
from testbed.trial.parts.part import Part, PlannedTrial

TSTAMP = 152  # in struct __sk_buff: departure time on the clock of KTIME
KTIME, SET_HASH = 5, 48  # helpers
NO_SESSION = 1023  # the hash of packets outside all sessions: fq takes ten bits


class SessionRoundTrips(Part):
    """The programs that give sessions their own round trips."""

    @classmethod
    def wanted(cls, trial: PlannedTrial) -> bool:
        """Return whether a flow has sessions with their own round trips."""
        return bool(trial.plan.session_delays)

    def join(self) -> None:
        """Attach a program to both ends of each link on which sessions' packets wait."""
        for delays in self._trial.plan.session_delays:
            values = [delays.link_delay_ns + extra_ns for extra_ns in delays.extra_ns]
            name = f"delays of {delays.link}"
            table = self._trial.arrays.add(name, 8, array.array("Q", values).tobytes())
            code = bpf.assemble(listing(table, delays.first_port, delays.link_delay_ns))
            self._programme.add("program", name, code.hex())
            for interface in delays.ends:
                bpf.attach(
                    self._programme, DELAY_NODE, interface, bpf.EGRESS, name, "testbed-delays"
                )


def _look_up(table: int, first_port: int, otherwise: str) -> tuple[Line, ...]:
    """Set r7 to the session with port r0, r0 to its delay's address; jump if there is none."""
    return (
        bpf.move(7, 0),
        bpf.alu(SUB, 7, first_port),
        bpf.store(10, -4, 7),
        *bpf.load_map(1, table),
        bpf.move(2, 10),
        bpf.alu(ADD, 2, -4),
        bpf.call(bpf.MAP_LOOKUP_ELEM),
        bpf.jump_if_null(0, otherwise),
    )


def listing(table: int, first_port: int, otherwise_ns: int) -> Sequence[Line]:
    """Write the program; r6 is the packet, r7 its session, r8 its delay."""
    return (
        bpf.move(6, 1),
        # is it TCP? then the session is the port of one end or the other
        bpf.load_packet(BPF_HALF, 12),
        bpf.jump(DIFFERENT, 0, 0x0800, "none"),
        bpf.load_packet(BPF_BYTE, ETHERNET_BYTES + 9),
        bpf.jump(DIFFERENT, 0, 6, "none"),
        bpf.load_packet(BPF_BYTE, ETHERNET_BYTES),
        bpf.alu(AND, 0, 0xF),
        bpf.alu(LSH, 0, 2),
        bpf.move(9, 0),  # r9: length of the IP header
        bpf.load_packet_at(9, BPF_HALF, ETHERNET_BYTES),
        *_look_up(table, first_port, "other end"),
        bpf.jump_to("found"),
        "other end",
        bpf.load_packet_at(9, BPF_HALF, ETHERNET_BYTES + 2),
        *_look_up(table, first_port, "none"),
        "found",
        bpf.load64(8, 0, 0),
        bpf.jump_to("mark"),
        "none",
        bpf.set_constant(7, NO_SESSION),
        bpf.set_constant(8, otherwise_ns),
        "mark",
        bpf.move(1, 6),
        bpf.move(2, 7),
        bpf.call(SET_HASH),
        bpf.call(KTIME),
        bpf.alu_reg(ADD, 0, 8),
        bpf.store64(6, TSTAMP, 0),
        bpf.set_constant(0, bpf.PASS),
        bpf.EXIT,
    )
