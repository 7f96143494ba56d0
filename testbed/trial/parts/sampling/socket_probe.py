"""TCP_INFO of one connection, as `ss -i` shows it: the question."""

from __future__ import annotations

import socket
import struct
from dataclasses import dataclass

from testbed.machine.netlink import (
    DIAG_REQUEST,
    NETLINK_SOCK_DIAG,
    SOCK_DIAG_BY_FAMILY,
    Netlink,
    request_message,
)
from testbed.machine.netlink_batch import Request

INET_DIAG_INFO = 2
INET_DIAG_CONG = 4
INET_DIAG_NOCOOKIE = b"\xff" * 8


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
    """Asks for TCP_INFO of one connection."""

    def __init__(self, flow: str, pid: int | None, connection: SocketId) -> None:
        self.flow = flow
        self._netlink = Netlink(NETLINK_SOCK_DIAG, pid)
        wanted = 1 << (INET_DIAG_INFO - 1) | 1 << (INET_DIAG_CONG - 1)
        head = DIAG_REQUEST.pack(socket.AF_INET, socket.IPPROTO_TCP, wanted, 0, 0xFFFFFFFF)
        request = request_message(SOCK_DIAG_BY_FAMILY, head + connection.packed())
        self.request = Request(self._netlink, request)

    def close(self) -> None:
        """Close the netlink socket."""
        self._netlink.close()
