"""The compiled core (analysis/captures/core, built by setup.sh), as Python sees it.

Without numpy, which takes longer to load than a small capture to read.
"""

from __future__ import annotations

import ctypes
import functools
import socket
import sys
from collections.abc import Mapping
from enum import IntEnum
from pathlib import Path

from testbed.errors import TestbedError

LIBRARY = Path(sys.prefix) / "lib" / "testbed-capture.so"

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
}


class Stop(IntEnum):
    """The core's reason to stop reading a piece."""

    HUNGRY = 0  # for the next piece
    FULL = 1  # the columns
    CUT_SHORT = 2  # the file ends within a record
    CORRUPT = 3
    NO_MEMORY = 4


class State(ctypes.Structure):
    """The reader's progress."""

    _fields_ = (
        ("stop", ctypes.c_uint32),
        ("frames", ctypes.c_int32),
        ("rows", ctypes.c_uint64),
        ("cut", ctypes.c_uint64),
        ("offset", ctypes.c_uint64),
        ("start_ns", ctypes.c_int64),
        ("addresses", ctypes.c_uint32),
        ("flows", ctypes.c_uint32),
        ("sacks", ctypes.c_uint32),
        ("reason", ctypes.c_char * 120),
    )


class Side(ctypes.Structure):
    """The sums over one end's packets."""

    _fields_ = (
        *(
            (name, ctypes.c_uint64)
            for name in (
                "packets",
                "data_packets",
                "bytes",
                "payload",
                "retransmissions",
                "fast_retransmissions",
                "spurious_retransmissions",
                "out_of_order",
                "duplicate_acks",
                "ce",
            )
        ),
        ("delivered", ctypes.c_int64),  # bytes in order, each once; -1: not known
        ("rtts", ctypes.c_uint64),
        ("rtt_low_ms", ctypes.c_double),
        ("rtt_mean_ms", ctypes.c_double),
        ("address", ctypes.c_int32),
        ("port", ctypes.c_int32),
    )


class Flow(ctypes.Structure):
    """A connection's sums."""

    _fields_ = (
        ("first_ns", ctypes.c_int64),
        ("last_ns", ctypes.c_int64),
        ("initial_rtt_ns", ctypes.c_int64),
        ("stream", ctypes.c_int32),
        ("protocol", ctypes.c_uint8),
        ("began", ctypes.c_uint8),  # the side
        ("completeness", ctypes.c_uint8),
        ("sides", Side * 2),
    )


class Block(ctypes.Structure):
    """A block of a selective acknowledgement."""

    _fields_ = (
        ("frame", ctypes.c_int32),
        ("left", ctypes.c_uint32),
        ("right", ctypes.c_uint32),
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


class _Address(ctypes.Structure):
    _fields_ = (("family", ctypes.c_uint8), ("bytes", ctypes.c_uint8 * 16))


class Core:
    """One capture's reduction."""

    def __init__(self, *, with_flows: bool) -> None:
        self._library = _library()
        self._core = self._library.core_new(with_flows)
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
    def state(self) -> State:
        """The state after the last piece."""
        state: State = self._library.core_state(self._core).contents
        return state

    def addresses(self) -> list[str]:
        """The texts of all addresses, by their number in the columns."""
        found = self._library.core_addresses(self._core)
        return [_text(found[number]) for number in range(self.state.addresses)]

    def flows(self) -> list[Flow]:
        """The connections, in the order of their first packets."""
        found = self._library.core_flows(self._core)
        return [found[number] for number in range(self.state.flows)]

    def sacks(self) -> ctypes.Array[Block]:
        """A copy of all blocks of selective acknowledgements, in the order of the frames."""
        count = self.state.sacks
        copy: ctypes.Array[Block] = (Block * count)()
        if count:
            ctypes.memmove(copy, self._library.core_sacks(self._core), ctypes.sizeof(copy))
        return copy

    def flow_rtt_ms(self, flow: int, side: int, quantile: float) -> float:
        """A quantile of a flow's round-trip times."""
        return float(self._library.core_flow_rtt(self._core, flow, side, quantile))


def _text(address: _Address) -> str:
    if address.family == 4:
        return socket.inet_ntop(socket.AF_INET, bytes(address.bytes[:4]))
    return socket.inet_ntop(socket.AF_INET6, bytes(address.bytes))


@functools.cache
def _library() -> ctypes.CDLL:
    try:
        library = ctypes.CDLL(str(LIBRARY))
    except OSError as error:
        raise TestbedError(
            f"{LIBRARY}: {'not built' if not LIBRARY.exists() else error}", "./setup.sh builds it"
        ) from error
    pointer, size = ctypes.c_void_p, ctypes.c_uint64
    library.core_new.argtypes = (ctypes.c_bool,)
    library.core_new.restype = pointer
    library.core_free.argtypes = (pointer,)
    library.core_free.restype = None
    library.core_feed.argtypes = (pointer, pointer, size, ctypes.c_bool, pointer)
    library.core_feed.restype = size
    library.core_state.argtypes = (pointer,)
    library.core_state.restype = ctypes.POINTER(State)
    library.core_addresses.argtypes = (pointer,)
    library.core_addresses.restype = ctypes.POINTER(_Address)
    library.core_flows.argtypes = (pointer,)
    library.core_flows.restype = ctypes.POINTER(Flow)
    library.core_sacks.argtypes = (pointer,)
    library.core_sacks.restype = pointer
    library.core_flow_rtt.argtypes = (pointer, ctypes.c_uint32, ctypes.c_uint32, ctypes.c_double)
    library.core_flow_rtt.restype = ctypes.c_double
    library.core_flow_size.restype = ctypes.c_size_t
    assert library.core_flow_size() == ctypes.sizeof(Flow), (
        "analysis/captures/core was changed: ./setup.sh"
    )
    return library
