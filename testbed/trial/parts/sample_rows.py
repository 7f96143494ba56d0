"""The kernel's answers as rows of CSV: the interface of sample_rows.c."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

from testbed.machine.compiled import LIBRARIES, load
from testbed.store.writing import csv_text

SAMPLES_LIBRARY = LIBRARIES / "testbed-samples.so"  # built from sample_rows.c
MARK_COUNTERS = 2  # of a queue discipline, at most
NO_COUNTER = -1


class TableKind(IntEnum):
    """The tables of samples, by their numbers in sample_rows.c."""

    SOCKETS = 0
    QUEUES = 1


class SocketState(ctypes.Structure):
    """What samples showed of a socket: struct seen of sample_rows.c."""

    cookie: int  # the kernel's unique number of the socket; 0: it has not been there
    options: int  # of TCP_INFO once it was established; negative: it never was
    variant: bytes
    _fields_ = (
        ("cookie", ctypes.c_uint64),
        ("options", ctypes.c_int32),
        ("variant", ctypes.c_char * 20),
    )


@dataclass(frozen=True)
class QueueRow:
    """A queue's first columns, and where its discipline's statistics count marks."""

    node: str
    interface: str
    marks: tuple[int, ...]


class Rows:
    """The rows of a trial's sockets and queues, in the order of their requests."""

    def __init__(self, flows: Sequence[str], queues: Sequence[QueueRow]) -> None:
        heads = [csv_text((flow,)) for flow in flows]
        heads += [csv_text((each.node, each.interface)) for each in queues]
        packed = [head.removesuffix("\r\n").encode() for head in heads]
        self._heads = (ctypes.c_char_p * len(packed))(*packed)  # the library reads them there
        places = [(*each.marks, *[NO_COUNTER] * MARK_COUNTERS)[:MARK_COUNTERS] for each in queues]
        flat = [place for each in places for place in each]
        self._library = _library()
        marks = (ctypes.c_int32 * len(flat))(*flat)
        self._rows = self._library.rows_new(len(flows), len(queues), self._heads, marks)
        if not self._rows:
            raise MemoryError

    def read(self, rounds: bytes) -> None:
        """Add a row for each answer of each round that the runner has written."""
        if not self._library.rows_read(self._rows, rounds, len(rounds)):
            raise MemoryError

    def socket_state(self, number: int) -> SocketState:
        """Return what samples showed of a socket."""
        state: SocketState = self._library.rows_seen(self._rows, number).contents
        return state

    def text(self, table: TableKind) -> bytes:
        """Return all rows of a table."""
        size = ctypes.c_size_t()
        begin = self._library.rows_text(self._rows, table, ctypes.byref(size))
        return ctypes.string_at(begin, size.value) if size.value else b""

    def close(self) -> None:
        """Free all memory; the object must not be used afterwards."""
        self._library.rows_free(self._rows)


@functools.cache
def _library() -> ctypes.CDLL:
    library = load(SAMPLES_LIBRARY)
    pointer, size = ctypes.c_void_p, ctypes.c_size_t
    for name, result, arguments in (
        ("rows_new", pointer, (size, size, pointer, pointer)),
        ("rows_free", None, (pointer,)),
        ("rows_read", ctypes.c_bool, (pointer, ctypes.c_char_p, size)),
        ("rows_seen", ctypes.POINTER(SocketState), (pointer, size)),
        ("rows_text", pointer, (pointer, ctypes.c_int, pointer)),
    ):
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library
