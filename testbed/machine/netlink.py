"""The bytes of netlink messages and of their attributes."""

from __future__ import annotations

import struct

NLM_F_REQUEST = 1
NLM_F_ECHO = 8
NLM_F_DUMP = 0x300  # all that there are
NLM_F_CREATE = 0x600  # which may not exist yet
NETLINK_ROUTE = 0
RTM_NEWLINK = 16
RTM_GETQDISC = 38
NETLINK_SOCK_DIAG = 4
SOCK_DIAG_BY_FAMILY = 20
TCA_KIND, TCA_OPTIONS = 1, 2  # linux/rtnetlink.h
DIAG_REQUEST = struct.Struct("=BBBBI")
_HEADER = struct.Struct("=IHHII")  # length, type, flags, sequence, port
_ATTRIBUTE = struct.Struct("=HH")  # length, type


# rtnetlink answers a qdisc's request only as an echo
ONE_ANSWER = NLM_F_REQUEST | NLM_F_ECHO


def request_message(kind: int, payload: bytes, flags: int = ONE_ANSWER) -> bytes:
    """Return the message of a request, with a single answer unless `flags` ask for more."""
    return _HEADER.pack(_HEADER.size + len(payload), kind, flags, 0, 0) + payload


def attribute(kind: int, data: bytes) -> bytes:
    """Return one attribute, padded."""
    return _ATTRIBUTE.pack(_ATTRIBUTE.size + len(data), kind) + data + bytes(-len(data) % 4)


def attributes(data: bytes, offset: int = 0) -> dict[int, bytes]:
    """Return the attributes of a message by type."""
    by_type: dict[int, bytes] = {}
    while offset + _ATTRIBUTE.size <= len(data):
        length, kind = _ATTRIBUTE.unpack_from(data, offset)
        if length < _ATTRIBUTE.size:
            break
        by_type[kind & 0x3FFF] = data[offset + _ATTRIBUTE.size : offset + length]
        offset += (length + 3) & ~3
    return by_type
