"""eBPF programs for the packet path: assembled here, loaded by bpf(2), attached by tc.

It covers only what the testbed needs of eBPF, so that no compiler has to be installed. An
instruction is eight bytes: an opcode, two registers, an offset and a constant.
"""

from __future__ import annotations

import array
import ctypes
import errno
import itertools
import os
import socket
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from testbed.errors import TestbedError
from testbed.machine.netlink import Netlink, attribute
from testbed.machine.netns import inside

_libc = ctypes.CDLL(None, use_errno=True)
_BPF_CALL = {"x86_64": 321, "aarch64": 280}  # of the system call
_MAP_CREATE, _MAP_LOOKUP, _PROG_LOAD, _MAP_UPDATE_BATCH = 0, 1, 5, 26
_ARRAY, _SCHED_CLS = 2, 3  # kinds of map and of program
_LOG_BYTES = 1 << 16

BPF_BYTE, BPF_HALF, BPF_WORD = 0x10, 0x08, 0x00  # sizes of a load or store
MAP_LOOKUP_ELEM = 1  # the helper
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


ADD, SUB, MUL, AND, LSH, RSH, MOD = 0x00, 0x10, 0x20, 0x50, 0x60, 0x70, 0x90


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


EQUAL, DIFFERENT, BELOW_SIGNED, AT_MOST_SIGNED = 0x10, 0x50, 0xC0, 0xD0


def jump(comparison: int, dst: int, value: int, target: str) -> Instruction:
    """Jump to the target if the comparison of dst's lower 32 bits with the value holds."""
    return Instruction(0x06 | comparison, dst, constant=value, target=target)


def jump_if_null(dst: int, target: str) -> Instruction:
    """Jump to the target if the pointer in dst is null."""
    return Instruction(0x05 | EQUAL, dst, target=target)


def jump_to(target: str) -> Instruction:
    """Jump to the target."""
    return Instruction(0x05, target=target)


def load_map(dst: int, descriptor: int) -> tuple[Instruction, Instruction]:
    """Set dst to the map of that descriptor."""
    return Instruction(0x18, dst, 1, constant=descriptor), Instruction(0)


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


def _bpf(command: int, attributes: bytes) -> int:
    buffer = ctypes.create_string_buffer(attributes, len(attributes))
    machine = os.uname().machine
    number = _BPF_CALL.get(machine)
    if number is None:
        raise TestbedError(f"no bpf(2) known on {machine}")
    result = int(_libc.syscall(number, command, buffer, len(attributes)))
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result


class Counters:
    """32-bit counters shared between a program and this process."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = tuple(names)
        self._bytes = 4 * len(names)
        self.descriptor = _bpf(_MAP_CREATE, struct.pack("=4I", _ARRAY, 4, self._bytes, 1))

    def read(self) -> dict[str, int]:
        """Return all counters by name."""
        key, value = ctypes.c_uint32(0), ctypes.create_string_buffer(self._bytes)
        where = (self.descriptor, ctypes.addressof(key), ctypes.addressof(value), 0)
        _bpf(_MAP_LOOKUP, struct.pack("=I4xQQQ", *where))
        return dict(zip(self._names, struct.unpack(f"={len(self._names)}I", value), strict=True))

    def close(self) -> None:
        """Release the counters."""
        os.close(self.descriptor)


def longs(content: Sequence[int]) -> int:
    """Create an array of 64-bit numbers for look-ups by index and return its descriptor."""
    return _filled(array.array("Q", content).tobytes())


def pairs(content: Sequence[tuple[int, int]]) -> int:
    """Create an array of pairs of 32-bit numbers and return its descriptor."""
    return _filled(array.array("I", itertools.chain.from_iterable(content)).tobytes())


def _filled(values: bytes) -> int:
    count = len(values) // 8
    descriptor = _bpf(_MAP_CREATE, struct.pack("=4I", _ARRAY, 4, 8, count))
    keys = array.array("I", range(count)).tobytes()
    where = (_address(keys), _address(values))
    try:
        # one call for all: system calls are expensive in the guest
        _bpf(_MAP_UPDATE_BATCH, struct.pack("=QQQQIIQQ", 0, 0, *where, count, descriptor, 0, 0))
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def _address(content: bytes) -> int:
    """Return the address of the bytes, valid while the buffer is referenced."""
    return ctypes.cast(ctypes.c_char_p(content), ctypes.c_void_p).value or 0


def load_program(lines: Sequence[Line]) -> int:
    """Have the kernel verify and load the program, and return its descriptor."""
    code = ctypes.create_string_buffer(assemble(lines))
    licence = ctypes.create_string_buffer(b"Dual MIT/GPL")
    log = ctypes.create_string_buffer(_LOG_BYTES)
    size = (len(code) - 1) // 8
    head = (_SCHED_CLS, size, ctypes.addressof(code), ctypes.addressof(licence))
    try:
        return _bpf(_PROG_LOAD, struct.pack("=IIQQIIQ", *head, 0, 0, 0))
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.EACCES):
            raise
        attributes = struct.pack("=IIQQIIQ", *head, 1, _LOG_BYTES, ctypes.addressof(log))
        try:
            return _bpf(_PROG_LOAD, attributes)
        except OSError:
            lines_of_log = log.value.decode(errors="replace").strip().splitlines()
            raise TestbedError(f"the kernel rejects a program: {lines_of_log[-1:]}") from error


_RTM_NEWTFILTER = 44
INGRESS, EGRESS = 0xFFFFFFF2, 0xFFFFFFF3  # of a clsact
_ALL_PROTOCOLS = 0x0300  # ETH_P_ALL in network order
_TCA_KIND, _TCA_OPTIONS = 1, 2
_TCA_BPF_FD, _TCA_BPF_NAME, _TCA_BPF_FLAGS = 6, 7, 8
_DIRECT_ACTION = 1


def attach(pid: int | None, interface: str, side: int, program: int, name: str) -> None:
    """Attach the program to an interface with a clsact: on ingress, or on egress before the queue.

    It stays until the interface is removed.
    """
    with inside(pid):
        index = socket.if_nametoindex(interface)
    options: Iterable[bytes] = (
        attribute(_TCA_BPF_FD, struct.pack("=I", program)),
        attribute(_TCA_BPF_NAME, name.encode() + b"\0"),
        attribute(_TCA_BPF_FLAGS, struct.pack("=I", _DIRECT_ACTION)),
    )
    message = struct.pack("=B3xiIII", 0, index, 0, side, 1 << 16 | _ALL_PROTOCOLS)
    message += attribute(_TCA_KIND, b"bpf\0") + attribute(_TCA_OPTIONS, b"".join(options))
    netlink = Netlink(socket.NETLINK_ROUTE, pid)
    try:
        netlink.create(_RTM_NEWTFILTER, message)
    finally:
        netlink.close()
