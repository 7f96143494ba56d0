"""Samples of the senders' sockets and of the queues that flows cross, at a fixed interval."""

from __future__ import annotations

import ctypes
import functools
import socket
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from pathlib import Path

from testbed.machine import safe_files
from testbed.machine.compiled import LIBRARIES, load
from testbed.machine.netlink import (
    DIAG_REQUEST,
    NETLINK_ROUTE,
    NETLINK_SOCK_DIAG,
    NLM_F_DUMP,
    NLM_F_REQUEST,
    RTM_GETQDISC,
    SOCK_DIAG_BY_FAMILY,
    attribute,
    request_message,
)
from testbed.plan.commands import LEAF
from testbed.plan.flows import ANY_PORT
from testbed.runner.programme import Answers
from testbed.scenario.queues import DISCIPLINES
from testbed.store.names import QUEUE_SAMPLES, RAW_SAMPLES, SOCKET_SAMPLES
from testbed.store.records import Record
from testbed.store.writing import csv_text, write_text
from testbed.trial.parts.part import Part, PlannedTrial, TrialTimeline

INET_DIAG_INFO = 2
INET_DIAG_CONG = 4
INET_DIAG_SKMEMINFO = 7
INET_DIAG_REQ_BYTECODE = 1
INET_DIAG_BC_S_EQ, INET_DIAG_BC_D_EQ = 11, 12
INET_DIAG_NOCOOKIE = b"\xff" * 8
SOCKET_PARTS = sum(
    1 << (each - 1) for each in (INET_DIAG_INFO, INET_DIAG_CONG, INET_DIAG_SKMEMINFO)
)
OPEN_STATES = sum(1 << state for state in (1, 4, 5, 8, 9, 11))  # those that may have data to send
OPTION_BITS = {"timestamps": 1, "sack": 2, "paced": 1 << 16}  # of TCP_INFO's options, and PACED


@dataclass(frozen=True)
class SocketProbe:
    """A TCP connection as its sender sees it, and the flow that it belongs to."""

    flow: str
    node: str
    src: str
    src_port: int
    dst: str
    dst_port: int

    @property
    def request(self) -> bytes:
        """The request for the connection's TCP_INFO and memory, as `ss -im` shows them."""
        ports = struct.pack("!HH", self.src_port, self.dst_port)
        family = socket.AF_INET6 if ":" in self.src else socket.AF_INET
        packed = (socket.inet_pton(family, each) for each in (self.src, self.dst))
        ends = b"".join(each.ljust(16, b"\0") for each in packed)
        head = DIAG_REQUEST.pack(family, socket.IPPROTO_TCP, SOCKET_PARTS, 0, 0xFFFFFFFF)
        connection = ports + ends + bytes(4) + INET_DIAG_NOCOOKIE
        return request_message(SOCK_DIAG_BY_FAMILY, head + connection)


@dataclass(frozen=True)
class ProgramProbe:
    """The TCP connections of a program at their sender, by the server's port."""

    flow: str
    node: str
    port: int
    at_server: bool  # the server sends
    is_ipv6: bool

    @property
    def request(self) -> bytes:
        """The request for all of them that are open."""
        family = socket.AF_INET6 if self.is_ipv6 else socket.AF_INET
        head = DIAG_REQUEST.pack(family, socket.IPPROTO_TCP, SOCKET_PARTS, 0, OPEN_STATES)
        code = INET_DIAG_BC_S_EQ if self.at_server else INET_DIAG_BC_D_EQ
        # jump behind both words where the port is equal, else too far, which leaves a socket out
        wanted = struct.pack("=BBHBBH", code, 8, 12, 0, 0, self.port)
        payload = head + bytes(48) + attribute(INET_DIAG_REQ_BYTECODE, wanted)
        return request_message(SOCK_DIAG_BY_FAMILY, payload, NLM_F_REQUEST | NLM_F_DUMP)


# for the statistics of the queue below an interface's shaper, whose index the runner fills in
QUEUE_REQUEST = request_message(RTM_GETQDISC, struct.pack("=B3xiIII", 0, 0, LEAF.number, 0, 0))


class Sampling(Part):
    """Samples of the senders' sockets, and of the queues that flows cross."""

    def __init__(self, trial: PlannedTrial) -> None:
        super().__init__(trial)
        self._sockets: list[SocketProbe | ProgramProbe] = [
            SocketProbe(
                each.flow.name,
                each.flow.src,
                *(each.src_address, port),
                *(each.dst_address, each.dst_port),
            )
            for each in trial.plan.flows
            if each.flow.protocol == "tcp" and each.dst_port != ANY_PORT
            for port in each.src_ports
        ]
        self._sockets += [
            ProgramProbe(each.flow.name, each.flow.src, port, port != each.dst_port, each.is_ipv6)
            for each in trial.plan.flows
            if each.flow.command is not None and each.flow.protocol == "tcp"
            for port in ([each.dst_port] if each.dst_port != ANY_PORT else each.src_ports)
        ]
        self._queues = [queue for queue in trial.plan.queues if queue.sampled]
        self._sampled: list[SampledSocket] = []

    def wait_until_ready(self) -> None:
        """Open the probes and rehearse, before second 0 is a new beginning."""
        self._programme.add("samples", RAW_SAMPLES)
        for probe in self._sockets:
            self._programme.add("probe", probe.node, NETLINK_SOCK_DIAG, probe.request.hex())
        for queue in self._queues:
            words = (queue.node, NETLINK_ROUTE, QUEUE_REQUEST.hex(), queue.interface)
            self._programme.add("probe", *words)
        self._programme.add("rehearse")

    def schedule(self, timeline: TrialTimeline) -> None:
        """Sample at every interval."""
        self._programme.add("interval", round(self._trial.scenario.sample_interval_ms * 1e6))

    def schedule_end(self, timeline: TrialTimeline, end_s: float) -> None:
        """Sample once more when the queues are empty."""
        timeline.at(end_s, lambda _at: self._sample())

    def flow_ends(self, *_programs: str) -> None:
        """Sample a flow's last state, even in trials without an interval."""
        self._sample()

    def _sample(self) -> None:
        self._programme.add("sample")

    def write(self, folder: Path, answers: Answers) -> None:
        """Write sockets.csv and queues.csv."""
        raw = folder / RAW_SAMPLES
        rows = Rows(
            [probe.flow for probe in self._sockets],
            [
                QueueRow(queue.node, queue.interface, _marks(queue.hop.queue.discipline))
                for queue in self._queues
            ],
        )
        rows.read(safe_files.read_bytes(raw))
        write_text(folder, SOCKET_SAMPLES, rows.text(TableKind.SOCKETS))
        write_text(folder, QUEUE_SAMPLES, rows.text(TableKind.QUEUES))
        probes = enumerate(self._sockets)
        self._sampled = [_socket(probe.flow, rows.socket_state(number)) for number, probe in probes]
        rows.close()
        self._trial.cookies.update(each.cookie for each in self._sampled if each.cookie)

    def describe(self, record: Record, _answers: Answers) -> Record:
        """Add each flow's congestion control and negotiated options as sampled on its sockets."""
        ran, agreed = variants(self._sampled), options(self._sampled)
        return replace(
            record,
            flows=tuple(
                replace(
                    flow,
                    variant_seen=ran.get(flow.name, flow.variant_seen),
                    options_seen=tuple(sorted(agreed.get(flow.name, flow.options_seen))),
                )
                for flow in record.flows
            ),
        )

    def clean_up(self, folder: Path) -> None:
        """Remove the answers that the tables were made of."""
        (folder / RAW_SAMPLES).unlink(missing_ok=True)


def _marks(discipline: str) -> tuple[int, ...]:
    marking = DISCIPLINES[discipline].marking
    places = (marking.counted_at, marking.step_counted_at) if marking else ()
    return tuple(at for at in places if at is not None)


@dataclass(frozen=True)
class SampledSocket:
    """A flow's socket as its samples showed it."""

    flow: str
    variant: str  # as the kernel names it; empty: it was never sampled
    options: frozenset[str] | None  # that the connection has agreed on; None: it was never sampled
    cookie: int  # the kernel's unique number of the socket; 0: it was never sampled


def _socket(flow: str, state: SocketState) -> SampledSocket:
    agreed = None
    if state.options >= 0:
        agreed = frozenset(name for name, bit in OPTION_BITS.items() if state.options & bit)
    return SampledSocket(flow, state.variant.decode(), agreed, state.cookie)


def variants(sockets: Iterable[SampledSocket]) -> dict[str, str]:
    """Return the congestion control of each flow's sockets, as the kernel names it."""
    controls: dict[str, set[str]] = {}
    for each in sockets:
        if each.variant:
            controls.setdefault(each.flow, set()).update(each.variant.split("+"))
    return {flow: "+".join(sorted(names)) for flow, names in controls.items()}


def options(sockets: Iterable[SampledSocket]) -> dict[str, frozenset[str]]:
    """Return, by flow, the TCP options that all of its sockets have negotiated."""
    agreed: dict[str, frozenset[str]] = {}
    for each in sockets:
        if each.options is not None:
            agreed[each.flow] = each.options & agreed.get(each.flow, each.options)
    return agreed


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
        ("variant", ctypes.c_char * 64),
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
