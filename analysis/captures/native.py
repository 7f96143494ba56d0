"""The compiled core (analysis/captures/core, built by setup.sh), as Python sees it.

Without numpy, which takes longer to load than a small capture to read.
"""

from __future__ import annotations

import ctypes
import functools
import socket
import struct
from collections.abc import Mapping
from enum import IntEnum

from testbed.errors import TestbedError
from testbed.machine.compiled import BUILDS, LIBRARIES, load

LIBRARY = LIBRARIES / "testbed-capture.so"

# struct columns of core.h, in its order; types as numpy writes them
TYPES: Mapping[str, str] = {
    "frame": "i4",
    "time_ns": "i8",
    "length": "i4",
    "protocol": "u1",
    "stream": "i4",
    "src": "i4",
    "dst": "i4",
    "src_port": "u2",
    "dst_port": "u2",
    "ip_id": "i4",
    "seq": "u4",
    "ack": "u4",
    "payload": "i4",
    "flags": "u2",
    "marks": "u4",
    "ack_rtt_ms": "f8",
    "acked_frame": "i4",
    "initial_rtt_ms": "f8",
    "duplicate_ack_number": "u4",
    "duplicate_ack_frame": "i4",
    "bytes_in_flight": "u4",
    "push_bytes_sent": "u4",
    "relative_seq": "u4",
    "relative_ack": "u4",
    "window": "u4",
    "window_scale": "i2",
    "ecn": "u1",
    "completeness": "u1",
    "acked_data": "u1",
    "timed": "u1",
    "content": "u8",
}


class Stop(IntEnum):
    """The core's reason to stop reading a piece."""

    HUNGRY = 0  # for the next piece
    FULL = 1  # the columns
    CUT_SHORT = 2  # the file ends within a record
    CORRUPT = 3
    NO_MEMORY = 4


class CoreState(ctypes.Structure):
    """The reader's progress."""

    _fields_ = (
        ("stop", ctypes.c_uint32),
        ("frames", ctypes.c_int32),
        ("rows", ctypes.c_uint64),
        ("offset", ctypes.c_uint64),
        ("waiting", ctypes.c_uint64),  # fragments of datagrams that are not whole
        ("start_ns", ctypes.c_int64),
        ("addresses", ctypes.c_uint32),
        ("flows", ctypes.c_uint32),
        ("sacks", ctypes.c_uint32),
        ("skipped", ctypes.c_uint32),
        ("reason", ctypes.c_char * 120),
    )


class SideSums(ctypes.Structure):
    """The sums over one end's packets."""

    _fields_ = (
        ("bytes", ctypes.c_uint64),
        ("payload", ctypes.c_uint64),
        ("delivered", ctypes.c_int64),  # bytes in order, each once; -1: not known
        ("rtt_low_ms", ctypes.c_double),  # of data from this side, by Karn's rule; NaN: none
        ("rtt_mean_ms", ctypes.c_double),
        ("rtt_p95_ms", ctypes.c_double),
        ("ack_rtt_mean_ms", ctypes.c_double),
        ("packets", ctypes.c_uint32),
        ("data_packets", ctypes.c_uint32),
        ("retransmissions", ctypes.c_uint32),
        ("fast_retransmissions", ctypes.c_uint32),
        ("spurious_retransmissions", ctypes.c_uint32),
        ("out_of_order", ctypes.c_uint32),
        ("duplicate_acks", ctypes.c_uint32),
        ("ce", ctypes.c_uint32),
        ("address", ctypes.c_int32),
        ("port", ctypes.c_int32),
    )


class FlowSums(ctypes.Structure):
    """A connection's sums."""

    _fields_ = (
        ("first_ns", ctypes.c_int64),
        ("last_ns", ctypes.c_int64),
        ("stream", ctypes.c_int32),
        ("protocol", ctypes.c_uint8),
        ("began", ctypes.c_uint8),  # the side
        ("sides", SideSums * 2),
    )


class Block(ctypes.Structure):
    """A block of a selective acknowledgement."""

    _fields_ = (
        ("frame", ctypes.c_int32),
        ("left", ctypes.c_uint32),
        ("right", ctypes.c_uint32),
    )


class SkippedCount(ctypes.Structure):
    """A number of frames that were not read, and the reason."""

    _fields_ = (
        ("reason", ctypes.c_uint32),
        ("number", ctypes.c_uint32),
        ("frames", ctypes.c_uint64),
    )


class Columns(ctypes.Structure):
    """The output columns: one address per column."""

    capacity: int
    used: int
    _fields_ = (
        ("capacity", ctypes.c_uint64),
        ("used", ctypes.c_uint64),
        *((name, ctypes.c_void_p) for name in TYPES),
    )


_ADDRESS = struct.Struct("16sQ")  # struct address of core.h


class Core:
    """One capture's reduction."""

    def __init__(self, *, with_flows: bool, tunnels: bool = False) -> None:
        self._library = _library()
        self._core = self._library.core_new(with_flows, tunnels)
        if not self._core:
            raise MemoryError

    def close(self) -> None:
        """Free its memory; nothing may be asked of it afterwards."""
        self._library.core_free(self._core)
        self._core = None

    def feed(self, address: int, size: int, *, last: bool, columns: Columns | None) -> int:
        """Read a piece of the file; returns how many of its bytes are done with."""
        into = ctypes.byref(columns) if columns else None
        return int(self._library.core_feed(self._core, address, size, last, into))

    @property
    def state(self) -> CoreState:
        """The state after the last piece."""
        state: CoreState = self._library.core_state(self._core).contents
        return state

    def addresses(self) -> list[str]:
        """Return the texts of all addresses, by their number in the columns."""
        size = _ADDRESS.size * self.state.addresses
        packed = ctypes.string_at(self._library.core_addresses(self._core), size) if size else b""
        return [_text(*each) for each in _ADDRESS.iter_unpack(packed)]

    def flows(self) -> ctypes.Array[FlowSums]:
        """Return the connections in the order of their first packets.

        The memory is the core's, and nothing can be read afterwards.
        """
        count = self.state.flows
        if not count:
            return (FlowSums * 0)()
        sums: ctypes.Array[FlowSums] = (FlowSums * count).from_address(
            self._library.core_flows(self._core)
        )
        return sums

    def skipped(self) -> list[SkippedCount]:
        """Return the number of frames that were not read, by reason."""
        counts = self._library.core_skipped(self._core)
        return [counts[number] for number in range(self.state.skipped)]

    def sacks(self) -> ctypes.Array[Block]:
        """Copy all blocks of selective acknowledgements, in the order of the frames."""
        count = self.state.sacks
        copy: ctypes.Array[Block] = (Block * count)()
        if count:
            ctypes.memmove(copy, self._library.core_sacks(self._core), ctypes.sizeof(copy))
        return copy


def _text(packed: bytes, family: int) -> str:
    if family == 4:
        return socket.inet_ntop(socket.AF_INET, packed[:4])
    return socket.inet_ntop(socket.AF_INET6, packed)


def contiguous(count: int, begins: int, ends: int, edge: int, edges: int) -> None:
    """Call the core's function of that name on arrays at these addresses."""
    if not _library().core_contiguous(count, begins, ends, edge, edges):
        raise MemoryError


@functools.cache
def _library() -> ctypes.CDLL:
    library = load(LIBRARY)
    pointer, size = ctypes.c_void_p, ctypes.c_uint64
    library.core_new.argtypes = (ctypes.c_bool, ctypes.c_bool)
    library.core_new.restype = pointer
    library.core_free.argtypes = (pointer,)
    library.core_free.restype = None
    library.core_feed.argtypes = (pointer, pointer, size, ctypes.c_bool, pointer)
    library.core_feed.restype = size
    library.core_state.argtypes = (pointer,)
    library.core_state.restype = ctypes.POINTER(CoreState)
    library.core_addresses.argtypes = (pointer,)
    library.core_addresses.restype = pointer
    library.core_flows.argtypes = (pointer,)
    library.core_flows.restype = pointer
    library.core_skipped.argtypes = (pointer,)
    library.core_skipped.restype = ctypes.POINTER(SkippedCount)
    library.core_sacks.argtypes = (pointer,)
    library.core_sacks.restype = pointer
    library.core_contiguous.argtypes = (size, pointer, pointer, ctypes.c_int64, pointer)
    library.core_contiguous.restype = ctypes.c_bool
    layout_size = getattr(library, "core_layout_size", lambda: 0)
    if layout_size() != ctypes.sizeof(FlowSums) + ctypes.sizeof(Columns):
        raise TestbedError("the compiled core is not of this checkout", BUILDS)
    return library
