"""The kernel's list of TCP sockets (inet_diag), read without a process."""

from __future__ import annotations

import socket
import struct

from testbed.machine.netlink import Netlink

NETLINK_SOCK_DIAG = 4
SOCK_DIAG_BY_FAMILY = 20
TCP_LISTEN = 10
DIAG_REQUEST = struct.Struct("=BBBBI")


def listening(pid: int | None, port: int) -> bool:
    """True if a process of this node listens on a TCP port, also by an IPv6 socket (iperf3)."""
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
