"""A program in this machine's kernel, one packet at a time, by BPF_PROG_TEST_RUN."""

from __future__ import annotations

import ctypes
import os
import struct

from testbed import bpf

_PROG_TEST_RUN = 10


class Program:
    """A loaded program's descriptor, which becomes its own."""

    def __init__(self, descriptor: int) -> None:
        self._program = descriptor

    def run(self, frame: bytes) -> int:
        """What the program says of a packet."""
        data = ctypes.create_string_buffer(frame, len(frame))
        head = (self._program, 0, len(frame), 0, ctypes.addressof(data), 0, 1, 0)
        content = struct.pack("=IIIIQQII", *head) + bytes(64)
        buffer = ctypes.create_string_buffer(content, len(content))
        number = bpf._NUMBER[os.uname().machine]
        result = bpf._libc.syscall(number, _PROG_TEST_RUN, buffer, len(content))
        assert result == 0, os.strerror(ctypes.get_errno())
        return int(struct.unpack_from("=I", buffer, 4)[0])

    def close(self) -> None:
        """Let go of it."""
        os.close(self._program)
