"""What eBPF programs on packets' way share: the selection of one connection, and their state."""

from __future__ import annotations

import ipaddress
import struct
from collections.abc import Sequence

from testbed.plan.ebpf_plans import AtInterface
from testbed.runner import bpf
from testbed.runner.bpf import (
    AND,
    BPF_BYTE,
    BPF_HALF,
    BPF_WORD,
    DIFFERENT,
    EQUAL,
    ETHERNET_BYTES,
    LSH,
    RSH,
    SUB,
    Line,
)

PASSED: Sequence[Line] = ("pass", bpf.set_constant(0, bpf.PASS), bpf.EXIT)


class ProgramState:
    """A program's state: numbers of 32 bits by name, whose address is in a register."""

    def __init__(self, register: int, names: Sequence[str]) -> None:
        self._register = register
        self._places = {name: 4 * number for number, name in enumerate(names)}

    @property
    def at_first(self) -> bytes:
        """Return zero for every counter."""
        return bytes(4 * len(self._places))

    def values(self, state: bytes) -> dict[str, int]:
        """Return the numbers by name."""
        return dict(zip(self._places, struct.unpack(f"={len(self._places)}I", state), strict=True))

    def find(self, array: int) -> Sequence[Line]:
        """Set the register to the address of the array's one element."""
        return (
            bpf.set_constant(1, 0),
            *element(array, "pass"),
            bpf.move(self._register, 0),
        )

    def load(self, register: int, name: str) -> Line:
        """Load a number."""
        return bpf.load(register, self._register, self._places[name])

    def store(self, name: str, register: int) -> Line:
        """Store a number."""
        return bpf.store(self._register, self._places[name], register)

    def count(self, name: str) -> Sequence[Line]:
        """Add one to a number, by way of r1."""
        return (self.load(1, name), bpf.alu(bpf.ADD, 1, 1), self.store(name, 1))


def data_segments(plan: AtInterface, no_data: str = "pass") -> Sequence[Line]:
    """Return the program's first part: packets without data of the connection go to "pass".

    For the others, r8 is the sequence number of the first byte and r9 the one after the last. r6 is
    the packet, as the load instructions require.
    """
    return (
        *of_connection(plan),
        # r8, r9: the sequence numbers where its data begins and ends
        bpf.load_packet_at(9, BPF_WORD, ETHERNET_BYTES + 4),
        bpf.move(8, 0),
        bpf.load_packet(BPF_HALF, ETHERNET_BYTES + (4 if is_ipv6(plan) else 2)),
        bpf.move(7, 0),
        *(() if is_ipv6(plan) else (bpf.alu_reg(SUB, 7, 9),)),  # whose length is without the header
        bpf.load_packet_at(9, BPF_BYTE, ETHERNET_BYTES + 12),
        bpf.alu(RSH, 0, 4),
        bpf.alu(LSH, 0, 2),
        bpf.alu_reg(SUB, 7, 0),
        bpf.jump(EQUAL, 7, 0, no_data),
        bpf.move(9, 8),
        bpf.alu_reg(bpf.ADD, 9, 7),
    )


def of_connection(plan: AtInterface) -> Sequence[Line]:
    """Return what lets all packets but the connection's go to "pass".

    r6 is the packet, and r9 the length of its IP header.
    """
    return (
        bpf.move(6, 1),
        *(_of_ipv6(plan) if is_ipv6(plan) else _of_ipv4(plan)),
        bpf.load_packet_at(9, BPF_HALF, ETHERNET_BYTES),
        bpf.jump(DIFFERENT, 0, plan.src_port, "pass"),
        bpf.load_packet_at(9, BPF_HALF, ETHERNET_BYTES + 2),
        bpf.jump(DIFFERENT, 0, plan.dst_port, "pass"),
    )


def is_ipv6(plan: AtInterface) -> bool:
    """Return whether the connection is over IPv6."""
    return ":" in plan.src_address


def _of_ipv4(plan: AtInterface) -> Sequence[Line]:
    source, destination = (
        int(ipaddress.IPv4Address(each)) for each in (plan.src_address, plan.dst_address)
    )
    return (
        bpf.load_packet(BPF_HALF, 12),
        bpf.jump(DIFFERENT, 0, 0x0800, "pass"),
        bpf.load_packet(BPF_BYTE, ETHERNET_BYTES + 9),
        bpf.jump(DIFFERENT, 0, 6, "pass"),
        bpf.load_packet(BPF_WORD, ETHERNET_BYTES + 12),
        bpf.jump(DIFFERENT, 0, source, "pass"),
        bpf.load_packet(BPF_WORD, ETHERNET_BYTES + 16),
        bpf.jump(DIFFERENT, 0, destination, "pass"),
        bpf.load_packet(BPF_BYTE, ETHERNET_BYTES),
        bpf.alu(AND, 0, 0xF),
        bpf.alu(LSH, 0, 2),
        bpf.move(9, 0),
    )


def _of_ipv6(plan: AtInterface) -> Sequence[Line]:
    ends = (ipaddress.IPv6Address(each).packed for each in (plan.src_address, plan.dst_address))
    words = struct.unpack("!8i", b"".join(ends))
    return (
        bpf.load_packet(BPF_HALF, 12),
        bpf.jump(DIFFERENT, 0, 0x86DD, "pass"),
        bpf.load_packet(BPF_BYTE, ETHERNET_BYTES + 6),
        bpf.jump(DIFFERENT, 0, 6, "pass"),
        *(
            line
            for place, word in enumerate(words)
            for line in (
                bpf.load_packet(BPF_WORD, ETHERNET_BYTES + 8 + 4 * place),
                bpf.jump(DIFFERENT, 0, word, "pass"),
            )
        ),
        bpf.set_constant(9, 40),
    )


def element(array: int, otherwise: str) -> Sequence[Line]:
    """Look up the array's element number r1: r0 points to it; without one, jump to `otherwise`."""
    return (
        bpf.store(10, -4, 1),
        *bpf.load_map(1, array),
        bpf.move(2, 10),
        bpf.alu(bpf.ADD, 2, -4),
        bpf.call(bpf.MAP_LOOKUP_ELEM),
        bpf.jump_if_null(0, otherwise),
    )
