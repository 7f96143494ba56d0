"""eBPF programs for the packet path: assembled here, loaded and attached by the runner.

It covers only what the testbed needs of eBPF, so that no compiler has to be installed. An
instruction is eight bytes: an opcode, two registers, an offset and a constant.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

from testbed.machine.netlink import NLM_F_CREATE, TCA_KIND, TCA_OPTIONS, attribute
from testbed.runner.programme import Programme

BPF_BYTE, BPF_HALF, BPF_WORD = 0x10, 0x08, 0x00  # sizes of a load or store
# helpers (linux/bpf.h)
MAP_LOOKUP_ELEM, STORE_BYTES, L3_CHECKSUM, L4_CHECKSUM, CLONE_REDIRECT = 1, 9, 10, 11, 13
ETHERNET_BYTES = 14  # of the header in front of IP
PASS, DROP = 0xFFFFFFFF, 2  # TC_ACT_UNSPEC, so that the next program decides; TC_ACT_SHOT


@dataclass(frozen=True)
class Instruction:
    """One instruction; `target` is the label that it jumps to."""

    opcode: int
    dst: int = 0
    src: int = 0
    offset: int = 0
    constant: int = 0
    target: str = ""


Line = Instruction | str  # a string is a label for the next instruction


def load_packet(size: int, offset: int) -> Instruction:
    """Load the packet's value at `offset` into r0; a shorter packet ends the program and passes."""
    return Instruction(0x20 | size, constant=offset)


def load_packet_at(register: int, size: int, offset: int) -> Instruction:
    """Like `load_packet`, with the register's value added to the offset."""
    return Instruction(0x40 | size, src=register, constant=offset)


def set_constant(dst: int, value: int) -> Instruction:
    """Set dst to a value."""
    return Instruction(0xB7, dst, constant=value)


def move(dst: int, src: int) -> Instruction:
    """Set dst to src."""
    return Instruction(0xBF, dst, src)


def low_word(dst: int) -> Instruction:
    """Clear the upper 32 bits of dst."""
    return Instruction(0xBC, dst, dst)


def to_network_order(dst: int, bits: int) -> Instruction:
    """Set dst to its lower 16 or 32 bits in the order of the network."""
    return Instruction(0xDC, dst, constant=bits)


ADD, SUB, MUL, DIV, AND, LSH, RSH, MOD = 0x00, 0x10, 0x20, 0x30, 0x50, 0x60, 0x70, 0x90


def alu(operation: int, dst: int, value: int) -> Instruction:
    """Set dst to `dst operation value`."""
    return Instruction(0x07 | operation, dst, constant=value)


def alu_reg(operation: int, dst: int, src: int) -> Instruction:
    """Set dst to `dst operation src`."""
    return Instruction(0x0F | operation, dst, src)


def load(dst: int, src: int, offset: int) -> Instruction:
    """Load the 32 bits at src + offset into dst."""
    return Instruction(0x61, dst, src, offset)


def store(dst: int, offset: int, src: int) -> Instruction:
    """Store 32 bits of src at dst + offset."""
    return Instruction(0x63, dst, src, offset)


def load64(dst: int, src: int, offset: int) -> Instruction:
    """Load the 64 bits at src + offset into dst."""
    return Instruction(0x79, dst, src, offset)


def store64(dst: int, offset: int, src: int) -> Instruction:
    """Store src at dst + offset, 64 bits."""
    return Instruction(0x7B, dst, src, offset)


EQUAL, DIFFERENT, BELOW_SIGNED, AT_MAX_SIGNED = 0x10, 0x50, 0xC0, 0xD0


def jump(comparison: int, dst: int, value: int, target: str) -> Instruction:
    """Jump to the target if the comparison of dst's lower 32 bits with the value holds."""
    return Instruction(0x06 | comparison, dst, constant=value, target=target)


def jump_if_null(dst: int, target: str) -> Instruction:
    """Jump to the target if the pointer in dst is null."""
    return Instruction(0x05 | EQUAL, dst, target=target)


def jump_to(target: str) -> Instruction:
    """Jump to the target."""
    return Instruction(0x05, target=target)


def load_map(dst: int, array: int) -> tuple[Instruction, Instruction]:
    """Set dst to an array, by its place among those that a programme makes."""
    return Instruction(0x18, dst, 1, constant=array), Instruction(0)


def call(helper: int) -> Instruction:
    """Call a helper: r0 = helper(r1, …)."""
    return Instruction(0x85, constant=helper)


EXIT = Instruction(0x95)  # with r0


def assemble(lines: Sequence[Line]) -> bytes:
    """Return the program's bytes with its labels resolved."""
    places: dict[str, int] = {}
    code: list[Instruction] = []
    for line in lines:
        if isinstance(line, str):
            places[line] = len(code)
        else:
            code.append(line)
    return b"".join(
        struct.pack(
            "=BBhI",
            each.opcode,
            each.dst | each.src << 4,
            places[each.target] - index - 1 if each.target else each.offset,
            each.constant & 0xFFFFFFFF,
        )
        for index, each in enumerate(code)
    )


_RTM_NEWTFILTER = 44
INGRESS, EGRESS = 0xFFFFFFF2, 0xFFFFFFF3  # of a clsact
_ALL_PROTOCOLS = 0x0300  # ETH_P_ALL in network order
_TCA_BPF_FD, _TCA_BPF_NAME, _TCA_BPF_FLAGS = 6, 7, 8
_DIRECT_ACTION = 1


class BpfArrays:
    """The arrays of a programme, which its eBPF programs know by their places."""

    def __init__(self, programme: Programme) -> None:
        self._programme = programme
        self._count = 0

    def add(self, name: str, value_bytes: int, values: bytes) -> int:
        """Make an array of these values and return its place."""
        count = len(values) // value_bytes
        self._programme.add("array", name, value_bytes, count, values.hex())
        self._count += 1
        return self._count - 1


def attach(
    programme: Programme, node: str, interface: str, side: int, program: str, name: str
) -> None:
    """Attach a program to an interface with a clsact: on ingress, or on egress before the queue.

    It stays until the interface is removed.
    """
    options = b"".join(
        (
            attribute(_TCA_BPF_FD, bytes(4)),
            attribute(_TCA_BPF_NAME, name.encode() + b"\0"),
            attribute(_TCA_BPF_FLAGS, struct.pack("=I", _DIRECT_ACTION)),
        )
    )
    message = struct.pack("=B3xiIII", 0, 0, 0, side, 1 << 16 | _ALL_PROTOCOLS)
    message += attribute(TCA_KIND, b"bpf\0")
    descriptor = len(message) + 8  # behind the heads of the options and of the first of them
    message += attribute(TCA_OPTIONS, options)
    places = (("index", 4, interface), ("program", descriptor, program))
    fault = f"{node}: cannot attach a program to {interface}"
    programme.send(node, _RTM_NEWTFILTER, NLM_F_CREATE, message, *places, fault=fault)
