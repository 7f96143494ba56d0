"""TCP_INFO of one connection, as `ss -i` shows it: the question, and its answer as a row.

Trials have tens of thousands of these answers. Where their fields stand is therefore learned once,
and a row is written anew only if one of them has changed.
"""

from __future__ import annotations

import socket
import struct
from dataclasses import dataclass
from typing import Any

from testbed.machine.netlink import Netlink, attribute_places, question
from testbed.machine.netlink_batch import ANSWER_BYTES, Question
from testbed.machine.sockets import DIAG_REQUEST, NETLINK_SOCK_DIAG, SOCK_DIAG_BY_FAMILY
from testbed.store import csv_text

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
INFINITE_SSTHRESH = 0x7FFFFFFF
_HEAD = "=IH"  # of a netlink message: its length and type
_HEADER_BYTES = 16
_COOKIE_AT = _HEADER_BYTES + 44
_ATTRIBUTES_AT = _HEADER_BYTES + 72
# struct tcp_info (linux/tcp.h) as far as it is used: state, ca_state, backoff, options, rto,
# unacked, lost, retrans, rtt, rttvar, ssthresh, cwnd, total_retrans, pacing, acked, min_rtt,
# delivery
_INFO = "BB2xBB2xI12xI4xII28x4I16xIQ8xQ20xI8xQ"
_INFO_BYTES = struct.calcsize("=" + _INFO)


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
        self._form = struct.Struct(_HEAD)
        self._shape: tuple[object, ...] = ()  # the length and type that the form is for
        self._seen: tuple[object, ...] = ()  # all fields of the form
        self._row = ""

    def row(self, answers: bytearray, place: int) -> str:
        """The columns after the time as a line of CSV; empty while the connection does not exist.

        `place` is where in `answers` the answer begins.
        """
        seen = self._form.unpack_from(answers, place)
        if seen == self._seen:
            return self._row
        if seen[:2] != self._shape:
            if not self._learn(answers, place):
                return ""
            seen = self._form.unpack_from(answers, place)
        self._seen = seen
        self._note(seen)
        self._row = csv_text((self.flow, *columns(seen[3:20])))
        return self._row

    def _learn(self, answers: bytearray, place: int) -> bool:
        """Find the fields in an answer of another shape; False if it does not have them."""
        length, kind = shape = struct.unpack_from(_HEAD, answers, place)
        if kind != SOCK_DIAG_BY_FAMILY:
            return False
        (self.cookie,) = struct.unpack_from("=Q", answers, place + _COOKIE_AT)
        found = attribute_places(answers[place : place + min(length, ANSWER_BYTES)], _ATTRIBUTES_AT)
        if INET_DIAG_INFO not in found:
            return False
        info, _size = found[INET_DIAG_INFO]
        form = f"{_HEAD}{_COOKIE_AT - struct.calcsize(_HEAD)}xQ{info - _COOKIE_AT - 8}x{_INFO}"
        if INET_DIAG_CONG in found:  # the kernel puts it behind TCP_INFO
            name, size = found[INET_DIAG_CONG]
            form += f"{name - info - _INFO_BYTES}x{(size + 3) & ~3}s"
        self._form, self._shape = struct.Struct(form), shape
        return True

    def _note(self, seen: tuple[Any, ...]) -> None:
        """Keep what the trial's record says of the connection."""
        _length, _type, self.cookie, state, _ca_state, _backoff, options, *others = seen
        if state == TCP_ESTABLISHED:
            self.options = frozenset(name for name, bit in OPTIONS.items() if options & bit)
        if isinstance(name := others[-1], bytes):
            self.variant = name.partition(b"\0")[0].decode()

    def close(self) -> None:
        """Close the netlink socket."""
        self._netlink.close()


def columns(info: tuple[int, ...]) -> tuple[object, ...]:
    """Convert the fields of struct tcp_info to the columns after time and flow."""
    state, ca_state, backoff, _options, rto, unacked, lost, retrans = info[:8]
    rtt, rttvar, ssthresh, cwnd, total_retrans, pacing, acked, min_rtt, delivery = info[8:]
    return (
        TCP_STATES.get(state, state),
        CA_STATES[ca_state] if ca_state < len(CA_STATES) else ca_state,
        cwnd,
        "" if ssthresh >= INFINITE_SSTHRESH else ssthresh,
        rtt / 1e3,
        rttvar / 1e3,
        rto / 1e3,
        backoff,
        "" if min_rtt == 0xFFFFFFFF else min_rtt / 1e3,
        retrans,
        total_retrans,
        lost,
        "" if pacing == 0xFFFFFFFFFFFFFFFF else pacing * 8e-6,
        delivery * 8e-6,
        unacked,
        acked,
    )
