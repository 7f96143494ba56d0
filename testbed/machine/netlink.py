"""Netlink sockets inside a node's network namespace, and its list of TCP sockets (inet_diag)."""

from __future__ import annotations

import functools
import os
import socket
import struct
from collections.abc import Iterator

from testbed.machine.netns import inside

NLMSG_ERROR = 2
NLMSG_DONE = 3
NLM_F_REQUEST = 1
NLM_F_ACK = 4
NLM_F_ECHO = 8
NLM_F_DUMP = 0x300
NLM_F_CREATE = 0x600  # which may not exist yet
NETLINK_ROUTE = 0
RTM_GETQDISC = 38
NETLINK_SOCK_DIAG = 4
SOCK_DIAG_BY_FAMILY = 20
TCP_LISTEN = 10
DIAG_REQUEST = struct.Struct("=BBBBI")
RECEIVE_TIMEOUT = struct.pack("ll", 5, 0)  # seconds, microseconds
ANSWER_BUFFER_BYTES = 262144
_HEADER = struct.Struct("=IHHII")  # length, type, flags, sequence, port
_ATTRIBUTE = struct.Struct("=HH")  # length, type


class Netlink:
    """A netlink socket of one protocol in one node."""

    def __init__(self, protocol: int, pid: int | None) -> None:
        with inside(pid):
            self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, protocol)
        self._socket.bind((0, 0))
        # not settimeout(), which polls before every call: system calls are expensive in the guest
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, RECEIVE_TIMEOUT)
        self._sequence = 0

    @functools.cached_property
    def _buffer(self) -> bytearray:
        """The memory for answers, which the sockets of samples, one per connection, never need."""
        return bytearray(ANSWER_BUFFER_BYTES)

    def ask(self, kind: int, payload: bytes) -> bytes | None:
        """Send a request and return its single answer, or None if the object does not exist."""
        self.send(request_message(kind, payload))
        self.receive()
        return self.answer()

    def answer(self) -> bytes | None:
        """Return the answer that was received last, or None if the object does not exist."""
        length, answer, _flags, _sequence, _port = _HEADER.unpack_from(self._buffer)
        return None if answer == NLMSG_ERROR else bytes(self._buffer[_HEADER.size : length])

    def create(self, kind: int, payload: bytes) -> None:
        """Send a request that creates an object; raise the kernel's error, if any."""
        self._acknowledged(kind, payload, NLM_F_CREATE)

    def change(self, kind: int, payload: bytes) -> None:
        """Send a request that changes an object; raise the kernel's error, if any."""
        self._acknowledged(kind, payload, 0)

    def _acknowledged(self, kind: int, payload: bytes, flags: int) -> None:
        self._send(kind, payload, NLM_F_REQUEST | NLM_F_ACK | flags)
        self.receive()
        (code,) = struct.unpack_from("=i", self._buffer, _HEADER.size)
        if code:
            raise OSError(-code, os.strerror(-code))

    def dump(self, kind: int, payload: bytes) -> Iterator[bytes]:
        """Send a request that lists objects, and yield them."""
        self._send(kind, payload, NLM_F_REQUEST | NLM_F_DUMP)
        while True:
            size = self.receive()
            offset = 0
            while offset < size:
                length, answer, *_ = _HEADER.unpack_from(self._buffer, offset)
                if answer in (NLMSG_DONE, NLMSG_ERROR):
                    return
                yield bytes(self._buffer[offset + _HEADER.size : offset + length])
                offset += (length + 3) & ~3

    def receive(self) -> int:
        """Receive the next answer into the buffer and return its size."""
        return self._socket.recv_into(self._buffer)

    def _send(self, kind: int, payload: bytes, flags: int) -> None:
        self._sequence += 1
        self.send(_message(kind, payload, flags, self._sequence))

    def send(self, message: bytes) -> None:
        """Send a whole message."""
        self._socket.send(message)

    @property
    def descriptor(self) -> int:
        """The socket's file descriptor."""
        return self._socket.fileno()

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()


def request_message(kind: int, payload: bytes) -> bytes:
    """Return the message of a request with a single answer."""
    # rtnetlink answers a qdisc's request only as an echo
    return _message(kind, payload, NLM_F_REQUEST | NLM_F_ECHO, 0)


def _message(kind: int, payload: bytes, flags: int, sequence: int) -> bytes:
    return _HEADER.pack(_HEADER.size + len(payload), kind, flags, sequence, 0) + payload


def attribute(kind: int, data: bytes) -> bytes:
    """Return one attribute, padded."""
    return _ATTRIBUTE.pack(_ATTRIBUTE.size + len(data), kind) + data + bytes(-len(data) % 4)


def attributes(data: bytes, offset: int = 0) -> dict[int, bytes]:
    """Return the attributes of a message by type."""
    found: dict[int, bytes] = {}
    while offset + _ATTRIBUTE.size <= len(data):
        length, kind = _ATTRIBUTE.unpack_from(data, offset)
        if length < _ATTRIBUTE.size:
            break
        found[kind & 0x3FFF] = data[offset + _ATTRIBUTE.size : offset + length]
        offset += (length + 3) & ~3
    return found


def listening(pid: int | None, port: int) -> bool:
    """Return whether a process of this node listens on a TCP port, also by IPv6 (iperf3)."""
    netlink = Netlink(NETLINK_SOCK_DIAG, pid)
    try:
        for family in (socket.AF_INET, socket.AF_INET6):
            head = DIAG_REQUEST.pack(family, socket.IPPROTO_TCP, 0, 0, 1 << TCP_LISTEN)
            for message in netlink.dump(SOCK_DIAG_BY_FAMILY, head + bytes(48)):
                if struct.unpack_from("!H", message, 4)[0] == port:
                    return True
        return False
    finally:
        netlink.close()
