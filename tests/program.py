"""A program in this machine's kernel, one packet at a time, by BPF_PROG_TEST_RUN."""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Callable, Iterator
from typing import TypeVar

import pytest

from testbed.machine import bpf

_PROG_TEST_RUN = 10
CONTEXT_BYTES = 192  # of struct __sk_buff


class Program:
    """A loaded program's descriptor, which becomes its own."""

    def __init__(self, descriptor: int) -> None:
        self._program = descriptor

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
        content = struct.pack("=IIIIQQII", *head) + struct.pack("=IIQQ", *tail)
        buffer = ctypes.create_string_buffer(content, len(content))
        number = bpf._BPF_CALL[os.uname().machine]
        result = bpf._libc.syscall(number, _PROG_TEST_RUN, buffer, len(content))
        assert result == 0, os.strerror(ctypes.get_errno())
        return int(struct.unpack_from("=I", buffer, 4)[0]), context.raw

    def close(self) -> None:
        """Let go of it."""
        os.close(self._program)


Made = TypeVar("Made", bound=Program)


def loaded(make: Callable[[], Made]) -> Iterator[Made]:
    """A fixture's program, where this user and this kernel can load one."""
    if os.geteuid() != 0:
        pytest.skip("loading a program takes root; the guest's tests run it for anyone")
    try:
        made = make()
    except OSError as error:
        pytest.skip(f"this kernel loads no programs: {error}")
    yield made
    made.close()
