"""Time series of sockets and queues, read by netlink from one process.

The data are those of `ss -i` and `tc -s qdisc`: TCP_INFO of every flow's sending sockets, and the
statistics of the queues at the bottleneck.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from testbed.machine.netlink import Netlink, attributes, question
from testbed.machine.netlink_batch import Batch, Question
from testbed.machine.netns import inside
from testbed.machine.sockets import DIAG_REQUEST, NETLINK_SOCK_DIAG, SOCK_DIAG_BY_FAMILY
from testbed.plan.commands import LEAF
from testbed.scenario.queues import DISCIPLINES
from testbed.store import QUEUE_COUNTERS, QUEUES, SOCKETS, write_table

NETLINK_ROUTE = 0
INET_DIAG_INFO = 2
INET_DIAG_CONG = 4
INET_DIAG_NOCOOKIE = b"\xff" * 8
TCP_STATES = {
    1: "established",
    2: "syn-sent",
    3: "syn-recv",
    4: "fin-wait-1",
    5: "fin-wait-2",
    6: "time-wait",
    7: "close",
    8: "close-wait",
    9: "last-ack",
    10: "listen",
    11: "closing",
}
TCP_ESTABLISHED = 1
OPTIONS = {"timestamps": 1, "sack": 2}  # offsets in TCP_INFO
CA_STATES = ("open", "disorder", "cwr", "recovery", "loss")
_DIAG_MESSAGE_BYTES = 72
_DIAG_COOKIE = 44  # where it stands in the message
INFINITE_SSTHRESH = 0x7FFFFFFF


@dataclass(frozen=True)
class SocketId:
    """A TCP connection as its sender sees it."""

    src: str
    src_port: int
    dst: str
    dst_port: int

    def packed(self) -> bytes:
        """Return the id in inet_diag's binary form."""
        ports = struct.pack("!HH", self.src_port, self.dst_port)
        ends = socket.inet_aton(self.src) + bytes(12) + socket.inet_aton(self.dst) + bytes(12)
        return ports + ends + bytes(4) + INET_DIAG_NOCOOKIE


class SocketProbe:
    """Reads TCP_INFO of one connection."""

    def __init__(self, flow: str, pid: int | None, connection: SocketId) -> None:
        self.flow = flow
        self._netlink = Netlink(NETLINK_SOCK_DIAG, pid)
        wanted = 1 << (INET_DIAG_INFO - 1) | 1 << (INET_DIAG_CONG - 1)
        head = DIAG_REQUEST.pack(socket.AF_INET, socket.IPPROTO_TCP, wanted, 0, 0xFFFFFFFF)
        request = question(SOCK_DIAG_BY_FAMILY, head + connection.packed())
        self.question = Question(self._netlink, request)
        self.variant = ""
        self.options: frozenset[str] | None = None  # that the connection has agreed on
        self.cookie: int | None = None  # the kernel's unique number of the socket

    def row(self, time_s: float, answer: bytes | None) -> tuple[object, ...] | None:
        """Return one row, or None while the connection does not exist."""
        if answer is None:
            return None
        (self.cookie,) = struct.unpack_from("=Q", answer, _DIAG_COOKIE)
        found = attributes(answer, _DIAG_MESSAGE_BYTES)
        info = found.get(INET_DIAG_INFO)
        if info is None:
            return None
        if info[0] == TCP_ESTABLISHED:
            self.options = frozenset(name for name, bit in OPTIONS.items() if info[5] & bit)
        if INET_DIAG_CONG in found:
            self.variant = found[INET_DIAG_CONG].rstrip(b"\0").decode()
        return (f"{time_s:.6f}", self.flow, *read_tcp_info(info))

    def close(self) -> None:
        """Close the netlink socket."""
        self._netlink.close()


def read_tcp_info(info: bytes) -> tuple[object, ...]:
    """Convert struct tcp_info (linux/tcp.h) to the columns after time and flow."""
    (rto,) = struct.unpack_from("=I", info, 8)
    unacked, _sacked, lost, retrans = struct.unpack_from("=4I", info, 24)
    rtt, rttvar, ssthresh, cwnd = struct.unpack_from("=4I", info, 68)
    (total_retrans,) = struct.unpack_from("=I", info, 100)
    (pacing,) = struct.unpack_from("=Q", info, 104)
    (acked,) = struct.unpack_from("=Q", info, 120)
    (min_rtt,) = struct.unpack_from("=I", info, 148)
    (delivery,) = struct.unpack_from("=Q", info, 160)
    return (
        TCP_STATES.get(info[0], info[0]),
        CA_STATES[info[1]] if info[1] < len(CA_STATES) else info[1],
        cwnd,
        "" if ssthresh >= INFINITE_SSTHRESH else ssthresh,
        rtt / 1e3,
        rttvar / 1e3,
        rto / 1e3,
        info[4],
        "" if min_rtt == 0xFFFFFFFF else min_rtt / 1e3,
        retrans,
        total_retrans,
        lost,
        "" if pacing == 0xFFFFFFFFFFFFFFFF else pacing * 8e-6,
        delivery * 8e-6,
        unacked,
        acked,
    )


RTM_GETQDISC = 38
TCA_STATS2 = 7
TCA_STATS_BASIC = 1
TCA_STATS_QUEUE = 3
TCA_STATS_APP = 4


class QueueProbe:
    """Reads the statistics of the queue below an interface's htb."""

    def __init__(self, node: str, interface: str, discipline: str, pid: int | None) -> None:
        self._key = (node, interface)
        marking = DISCIPLINES[discipline].marking
        places = (marking.counted_at, marking.step_counted_at) if marking else ()
        self._marks = [place for place in places if place is not None]
        self._netlink = Netlink(NETLINK_ROUTE, pid)
        with inside(pid):
            index = socket.if_nametoindex(interface)
        request = struct.pack("=B3xiIII", 0, index, LEAF.number, 0, 0)
        self.question = Question(self._netlink, question(RTM_GETQDISC, request))
        self._before = (0,) * len(QUEUE_COUNTERS)

    def begin(self) -> None:
        """Take the counters' present values as zero."""
        if found := self._read(self.question.ask()):
            self._before = found[1]

    def row(self, time_s: float, answer: bytes | None) -> tuple[object, ...] | None:
        """Return one row, or None if the queue is gone."""
        found = self._read(answer)
        if found is None:
            return None
        waiting, counters = found
        since = (now - before for now, before in zip(counters, self._before, strict=True))
        return (f"{time_s:.6f}", *self._key, *waiting, *since)

    def _read(self, answer: bytes | None) -> tuple[tuple[int, int], tuple[int, ...]] | None:
        """Read the backlog in bytes and packets, and the counters."""
        if answer is None:
            return None
        stats = attributes(attributes(answer, 20)[TCA_STATS2])
        sent_bytes, sent_packets = struct.unpack_from("=QI", stats[TCA_STATS_BASIC])
        length, backlog, drops, _requeues, over = struct.unpack_from("=5I", stats[TCA_STATS_QUEUE])
        own = stats.get(TCA_STATS_APP, b"")
        known = (place for place in self._marks if len(own) >= place + 4)
        marks = sum(struct.unpack_from("=I", own, place)[0] for place in known)
        return (backlog, length), (drops, marks, over, sent_bytes, sent_packets)

    def close(self) -> None:
        """Close the netlink socket."""
        self._netlink.close()


class Sampler:
    """All probes of a trial; rows are kept in memory and written when it ends."""

    def __init__(self, sockets: Iterable[SocketProbe], queues: Iterable[QueueProbe]) -> None:
        self.sockets = list(sockets)
        self.queues = list(queues)
        questions = [probe.question for probe in self.sockets]
        self._batch = Batch(questions + [probe.question for probe in self.queues])
        self._socket_rows: list[tuple[object, ...]] = []
        self._queue_rows: list[tuple[object, ...]] = []
        self._latest = ""  # time of the last sample, as written

    def rehearse(self) -> None:
        """Look up a socket in vain: the first look-up draws the random keys of the hash tables."""
        self.sample(0)
        self._socket_rows.clear()
        self._queue_rows.clear()
        self._latest = ""
        for queue_probe in self.queues:
            queue_probe.begin()

    def sample(self, time_s: float) -> None:
        """Read every probe once, at most once per instant."""
        if f"{time_s:.6f}" == self._latest:
            return
        self._latest = f"{time_s:.6f}"
        answers = self._batch.answers()
        for socket_probe in self.sockets:
            if row := socket_probe.row(time_s, next(answers)):
                self._socket_rows.append(row)
        for queue_probe in self.queues:
            if row := queue_probe.row(time_s, next(answers)):
                self._queue_rows.append(row)

    def variants_seen(self) -> dict[str, str]:
        """The congestion control of each flow's sockets, as the kernel names it."""
        seen: dict[str, set[str]] = {}
        for probe in self.sockets:
            if probe.variant:
                seen.setdefault(probe.flow, set()).add(probe.variant)
        return {flow: "+".join(sorted(names)) for flow, names in seen.items()}

    def options_seen(self) -> dict[str, frozenset[str]]:
        """The TCP options that all sockets of a flow have negotiated, by flow."""
        seen: dict[str, frozenset[str]] = {}
        for probe in self.sockets:
            if probe.options is not None:
                seen[probe.flow] = probe.options & seen.get(probe.flow, probe.options)
        return seen

    def write(self, folder: Path) -> None:
        """Write both tables of samples."""
        write_table(folder, SOCKETS, self._socket_rows)
        write_table(folder, QUEUES, self._queue_rows)

    def close(self) -> None:
        """Close all probes."""
        for socket_probe in self.sockets:
            socket_probe.close()
        for queue_probe in self.queues:
            queue_probe.close()
