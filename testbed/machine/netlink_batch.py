"""The same requests to several netlink sockets, repeated at given instants.

The guest's kernel takes a whole series by one system call (kernel/patches/0022): it sleeps until
the next instant, notes the time and makes all requests, then does so for the instant after.
The process is not woken in between, which would cost far more than the requests.
"""

from __future__ import annotations

import ctypes
import errno
import os
import socket
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from time import CLOCK_MONOTONIC

from testbed.machine.netlink import Netlink
from testbed.machine.timer import NS, TIMER_ABSTIME

_BATCH = 4096  # the system call, in the guest
# system calls of x86-64, the only architecture
_SENDTO, _RECVFROM, _RECVMSG, _CLOCK_NANOSLEEP = 44, 45, 47, 230
_SO_TIMESTAMPNS = 35
_ANY_RESULT = 2**62
# struct batched_call of the patch, in longs: number, six arguments, least, most, result
_LONGS, _LEAST, _RESULT = 10, 7, 9
_CALL_BYTES = 8 * _LONGS
_TIMED = 3  # calls of a round before its requests: sleep, send a stamp, receive it
_MESSAGE_HEADER = array("q", (0, 0, 0, 0, 0, 0, 0))  # struct msghdr
_HEADER_CONTROL, _HEADER_SIZE = 4, 5
_STAMP = 4  # longs: struct cmsghdr, and a struct timespec
ANSWER_BYTES = 4096  # more than any answer takes
_BUFFER_BYTES = 1 << 19  # of the answers that are fetched by one system call
_MAX_ROUNDS = 64

_libc = ctypes.CDLL(None, use_errno=True)
_libc.syscall.argtypes = [ctypes.c_long] * 7
_libc.syscall.restype = ctypes.c_long


@dataclass(frozen=True)
class Request:
    """A request with a single answer, and the socket that it is sent by."""

    netlink: Netlink
    message: bytes

    def ask(self) -> bytes | None:
        """Return the answer, or None if the object does not exist."""
        self.netlink.send(self.message)
        self.netlink.receive()
        return self.netlink.answer()


class BatchedRequests:
    """Requests that are made together, now or at given instants, in rounds of one each."""

    def __init__(self, requests: Sequence[Request]) -> None:
        self._count = len(requests)
        room = _BUFFER_BYTES // ANSWER_BYTES // max(1, self._count)
        self._most = min(max(1, room), _MAX_ROUNDS)
        self.answers = bytearray(self._most * max(1, self._count) * ANSWER_BYTES)
        self._alone = not requests
        self._times = array("q", bytes(16 * self._most))
        self._headers = _MESSAGE_HEADER * self._most
        self._stamps = array("q", bytes(8 * _STAMP * self._most))
        self._sender, self._stamped = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._stamped.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
        self._messages = [ctypes.create_string_buffer(each.message) for each in requests]
        self._calls = array("q")
        for number in range(self._most):
            self._add_round(number, requests)

    def _add_round(self, number: int, requests: Sequence[Request]) -> None:
        times, headers, stamps = (
            each.buffer_info()[0] for each in (self._times, self._headers, self._stamps)
        )
        header = headers + 8 * len(_MESSAGE_HEADER) * number
        place = len(_MESSAGE_HEADER) * number
        self._headers[place + _HEADER_CONTROL] = stamps + 8 * _STAMP * number
        sleep = (CLOCK_MONOTONIC, TIMER_ABSTIME, times + 16 * number, 0, 0, 0)
        self._calls.extend((_CLOCK_NANOSLEEP, *sleep, 0, 0, 0))
        self._calls.extend((_SENDTO, self._sender.fileno(), 0, 0, 0, 0, 0, 0, 0, 0))
        self._calls.extend((_RECVMSG, self._stamped.fileno(), header, 0, 0, 0, 0, 0, 0, 0))
        answers = ctypes.addressof(ctypes.c_char.from_buffer(self.answers))
        answers += number * self._count * ANSWER_BYTES
        for index, (request, message) in enumerate(zip(requests, self._messages, strict=True)):
            descriptor, size = request.netlink.descriptor, len(request.message)
            sent = (descriptor, ctypes.addressof(message), size, 0, 0, 0)
            received = (descriptor, answers + index * ANSWER_BYTES, ANSWER_BYTES, 0, 0, 0)
            self._calls.extend((_SENDTO, *sent, size, size, 0))
            self._calls.extend((_RECVFROM, *received, 1, _ANY_RESULT, 0))

    @property
    def _calls_each(self) -> int:
        return _TIMED + 2 * self._count

    def ask(self) -> None:
        """Make all requests now, as round 0."""
        made = self._made_at_once(_TIMED, self._calls_each)
        self._make_singly(_TIMED + made, self._calls_each)

    def ask_at(self, due_ns: Sequence[int]) -> int:
        """Make all requests at the first of these instants of the monotonic clock.

        Returns the number of instants: 0 without the guest's kernel, fewer if a signal came.
        """
        due = due_ns[: self._most]
        if self._alone or not due:
            return 0
        self._times[: 2 * len(due)] = array("q", [part for at in due for part in divmod(at, NS)])
        self._headers[_HEADER_SIZE :: len(_MESSAGE_HEADER)] = array("q", [8 * _STAMP] * self._most)
        rounds, begun = divmod(self._made_at_once(0, len(due) * self._calls_each), self._calls_each)
        if begun:
            first = rounds * self._calls_each
            self._make_singly(first + begun, first + self._calls_each)
        return rounds + bool(begun)

    def real_ns(self, number: int) -> int:
        """Return the wall clock when a round of `ask_at` began."""
        seconds, ns = self._stamps[_STAMP * number + 2 : _STAMP * number + 4]
        return seconds * NS + ns

    def place(self, number: int) -> int:
        """Return the offset of a round's answers, each of ANSWER_BYTES with its header."""
        return number * self._count * ANSWER_BYTES

    def _made_at_once(self, first: int, end: int) -> int:
        """Make these calls by one system call and return how many it made, all without a signal."""
        if self._alone:
            return 0
        begin = self._calls.buffer_info()[0] + first * _CALL_BYTES
        made: int = _libc.syscall(_BATCH, begin, end - first, 0, 0, 0, 0)
        if made < 0:
            self._alone = ctypes.get_errno() == errno.ENOSYS  # no kernel of ours
            return 0
        last = (first + made - 1) * _LONGS
        least, most, result = self._calls[last + _LEAST : last + _LONGS]
        return made if least <= result <= most else made - 1

    def _make_singly(self, first: int, end: int) -> None:
        """Make the calls one by one, each again if a signal came."""
        for place in range(first * _LONGS, end * _LONGS, _LONGS):
            while _libc.syscall(*self._calls[place : place + _LEAST]) < 0:
                if (number := ctypes.get_errno()) != errno.EINTR:
                    raise OSError(number, os.strerror(number))

    def close(self) -> None:
        """Close the sockets of the time stamps."""
        self._sender.close()
        self._stamped.close()
