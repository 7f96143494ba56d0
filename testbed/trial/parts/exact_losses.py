"""Exact losses: listed segments of a flow are dropped, each once.

An eBPF program at the first router's ingress counts the flow's segments of new data and drops
those with the listed numbers. Retransmissions pass. A capture on that interface sees a segment
before the program does, so the loss looks like one at the bottleneck.
"""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Mapping, Sequence

from testbed.machine import bpf
from testbed.machine.bpf import AND, BYTE, DIFFERENT, EQUAL, HALF, LSH, RSH, SUB, WORD, Line
from testbed.plan.losses import AtRouter, DropPlan

ETHERNET = 14
STARTED, NEXT_SEQUENCE, SEGMENTS, DROPPED = 0, 4, 8, 12  # indices of the counters


class Dropper:
    """A loaded program at a router's interface."""

    def __init__(self, plan: DropPlan, pid: int | None) -> None:
        self.plan = plan
        self._counters = bpf.Counters(("started", "next_sequence", "segments", "dropped"))
        program = bpf.load_program(listing(plan, self._counters.descriptor))
        try:
            bpf.attach(pid, plan.interface, bpf.INGRESS, program, "testbed-drops")
        finally:
            os.close(program)

    def counts(self) -> Mapping[str, int | str]:
        """The numbers of new-data segments seen and dropped."""
        found = self._counters.read()
        return {name: found[name] for name in ("segments", "dropped")}

    def complaint(self) -> str:
        """Describe drops that never happened; empty if all did."""
        found, asked = self._counters.read(), len(self.plan.segments)
        if found["dropped"] == asked:
            return ""
        return (
            f"{self.plan.flow}: {found['dropped']} of {asked} drops: "
            f"the flow sent {found['segments']} segments"
        )

    def close(self) -> None:
        """Release the counters; the program goes with its interface."""
        self._counters.close()


def data_segments(plan: AtRouter) -> Sequence[Line]:
    """A program's first part: packets without data of the connection go to "pass".

    For the others, r8 is the sequence number of the first byte and r9 the one after the last. r6 is
    the packet, as the load instructions require.
    """
    source, destination = (
        int(ipaddress.IPv4Address(each)) for each in (plan.src_address, plan.dst_address)
    )
    return (
        bpf.copy(6, 1),
        # is it TCP of this connection?
        bpf.packet(HALF, 12),
        bpf.jump(DIFFERENT, 0, 0x0800, "pass"),
        bpf.packet(BYTE, ETHERNET + 9),
        bpf.jump(DIFFERENT, 0, 6, "pass"),
        bpf.packet(WORD, ETHERNET + 12),
        bpf.jump(DIFFERENT, 0, source, "pass"),
        bpf.packet(WORD, ETHERNET + 16),
        bpf.jump(DIFFERENT, 0, destination, "pass"),
        bpf.packet(BYTE, ETHERNET),
        bpf.compute(AND, 0, 0xF),
        bpf.compute(LSH, 0, 2),
        bpf.copy(9, 0),  # r9: length of the IP header
        bpf.packet_from(9, HALF, ETHERNET),
        bpf.jump(DIFFERENT, 0, plan.src_port, "pass"),
        bpf.packet_from(9, HALF, ETHERNET + 2),
        bpf.jump(DIFFERENT, 0, plan.dst_port, "pass"),
        # r8, r9: the sequence numbers where its data begins and ends
        bpf.packet_from(9, WORD, ETHERNET + 4),
        bpf.copy(8, 0),
        bpf.packet(HALF, ETHERNET + 2),
        bpf.copy(7, 0),
        bpf.compute_with(SUB, 7, 9),
        bpf.packet_from(9, BYTE, ETHERNET + 12),
        bpf.compute(RSH, 0, 4),
        bpf.compute(LSH, 0, 2),
        bpf.compute_with(SUB, 7, 0),
        bpf.jump(EQUAL, 7, 0, "pass"),
        bpf.copy(9, 8),
        bpf.compute_with(bpf.ADD, 9, 7),
    )


def element(array: int, otherwise: str) -> Sequence[Line]:
    """r0 = the array's element with the index in r1; jump to `otherwise` if there is none."""
    return (
        bpf.store(10, -4, 1),
        *bpf.map_address(1, array),
        bpf.copy(2, 10),
        bpf.compute(bpf.ADD, 2, -4),
        bpf.call(bpf.MAP_LOOKUP_ELEM),
        bpf.jump_without(0, otherwise),
    )


def listing(plan: DropPlan, counters: int) -> Sequence[Line]:
    """The program."""
    return (
        *data_segments(plan),
        bpf.constant(1, 0),
        *element(counters, "pass"),
        bpf.load(1, 0, STARTED),
        bpf.jump(DIFFERENT, 1, 0, "started"),
        bpf.constant(1, 1),
        bpf.store(0, STARTED, 1),
        bpf.store(0, NEXT_SEQUENCE, 8),
        "started",
        # new data ends beyond the highest end seen; the signed difference allows for wrap-around
        bpf.load(1, 0, NEXT_SEQUENCE),
        bpf.copy(2, 9),
        bpf.compute_with(SUB, 2, 1),
        bpf.jump(bpf.AT_MOST_SIGNED, 2, 0, "pass"),
        bpf.store(0, NEXT_SEQUENCE, 9),
        bpf.load(1, 0, SEGMENTS),
        bpf.compute(bpf.ADD, 1, 1),
        bpf.store(0, SEGMENTS, 1),
        *(bpf.jump(EQUAL, 1, number, "drop") for number in plan.segments),
        "pass",
        bpf.constant(0, bpf.PASS),
        bpf.LEAVE,
        "drop",
        bpf.load(1, 0, DROPPED),
        bpf.compute(bpf.ADD, 1, 1),
        bpf.store(0, DROPPED, 1),
        bpf.constant(0, bpf.DROP),
        bpf.LEAVE,
    )
