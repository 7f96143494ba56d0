"""A program in this machine's kernel, one packet at a time, by BPF_PROG_TEST_RUN."""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

import pytest

from testbed.runner import bpf

_MAP_CREATE, _MAP_LOOKUP, _MAP_UPDATE, _PROG_LOAD, _PROG_TEST_RUN = 0, 1, 2, 5, 10
_SYSCALL = 321  # of x86-64, the only architecture
_ARRAY, _SCHED_CLS = 2, 3
LOAD_MAP = 0x18
CONTEXT_BYTES = 192  # of struct __sk_buff
_libc = ctypes.CDLL(None, use_errno=True)


def call(command: int, form: str, *values: int) -> tuple[int, bytes]:
    """Make the system call bpf(); return its result, and the structure as it is afterwards."""
    content = struct.pack(form, *values)
    buffer = ctypes.create_string_buffer(content, len(content))
    result = _libc.syscall(_SYSCALL, command, buffer, len(content))
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result, buffer.raw


class Table:
    """An array in the kernel."""

    def __init__(self, value_bytes: int, values: bytes) -> None:
        self._bytes = value_bytes
        count = len(values) // value_bytes
        self.descriptor, _ = call(_MAP_CREATE, "=IIII", _ARRAY, 4, value_bytes, count)
        for number in range(count):
            part = values[number * value_bytes : (number + 1) * value_bytes]
            self._reach(_MAP_UPDATE, number, ctypes.create_string_buffer(part, value_bytes))

    def _reach(self, command: int, number: int, value: ctypes.Array[ctypes.c_char]) -> None:
        key = ctypes.c_uint32(number)
        places = ctypes.addressof(key), ctypes.addressof(value)
        call(command, "=I4xQQQ", self.descriptor, *places, 0)

    def first(self) -> bytes:
        """Return the first value."""
        value = ctypes.create_string_buffer(self._bytes)
        self._reach(_MAP_LOOKUP, 0, value)
        return value.raw


class Program:
    """A loaded program, whose code names its tables by their places."""

    def __init__(self, code: Sequence[bpf.Line], tables: Sequence[Table] = ()) -> None:
        self.tables = tables
        data = bytearray(bpf.assemble(code))
        for place in range(0, len(data), 8):
            if data[place] == LOAD_MAP:
                (number,) = struct.unpack_from("=I", data, place + 4)
                struct.pack_into("=I", data, place + 4, tables[number].descriptor)
        text = ctypes.create_string_buffer(bytes(data), len(data))
        license = ctypes.create_string_buffer(b"Dual MIT/GPL")
        places = ctypes.addressof(text), ctypes.addressof(license)
        self._program, _ = call(_PROG_LOAD, "=IIQQ", _SCHED_CLS, len(data) // 8, *places)

    def run(self, frame: bytes) -> int:
        """What the program says of a packet."""
        return self.ask(frame)[0]

    def ask(self, frame: bytes) -> tuple[int, bytes]:
        """What it says of a packet, and what it has written on it (struct __sk_buff)."""
        data = ctypes.create_string_buffer(frame, len(frame))
        context = ctypes.create_string_buffer(CONTEXT_BYTES)
        where = ctypes.addressof(context)
        head = (self._program, 0, len(frame), 0, ctypes.addressof(data), 0, 1, 0)
        tail = (CONTEXT_BYTES, CONTEXT_BYTES, where, where)
        _, written = call(_PROG_TEST_RUN, "=IIIIQQIIIIQQ", *head, *tail)
        return int(struct.unpack_from("=I", written, 4)[0]), context.raw

    def close(self) -> None:
        """Let go of it and of its tables."""
        for each in (self._program, *(table.descriptor for table in self.tables)):
            os.close(each)


Made = TypeVar("Made", bound=Program)
loads_programs = pytest.mark.root("loads a program into the kernel; guests run it for anyone")


def loaded(make: Callable[[], Made]) -> Iterator[Made]:
    """A fixture's program, where this kernel can load one."""
    try:
        made = make()
    except OSError as error:
        pytest.skip(f"this kernel loads no programs: {error}")
    yield made
    made.close()
