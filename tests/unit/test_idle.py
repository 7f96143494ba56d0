"""Echo requests over the idle path."""

from __future__ import annotations

import struct
from pathlib import Path

from testbed.store import IDLE_RTTS
from testbed.trial.parts.idle_rtt import Idle, echo_request, is_reply, write_idle


def reply(number: int, kind: int = 0, options: bytes = b"") -> bytes:
    """An IP packet that answers a request."""
    header = bytes([0x45 + len(options) // 4]) + bytes(19) + options
    return header + bytes([kind]) + echo_request(number)[1:]


def test_a_request_is_whole() -> None:
    words = struct.unpack("!32H", echo_request(7))
    total = sum(words)
    assert (total & 0xFFFF) + (total >> 16) == 0xFFFF  # RFC 1071: sum and checksum cancel
    assert words[3] == 7


def test_only_the_reply_to_this_request_counts() -> None:
    assert is_reply(reply(2), 2)
    assert is_reply(reply(2, options=bytes(8)), 2)
    assert not is_reply(reply(1), 2)
    assert not is_reply(reply(2, kind=8), 2)


def test_a_lost_request_has_no_round_trip(tmp_path: Path) -> None:
    rows = [Idle("tcp", "a", "b", 60.0001, 60), Idle("tcp", "a", "b", None, 60)]
    write_idle(rows, tmp_path)
    assert (tmp_path / IDLE_RTTS.file).read_text().splitlines()[1:] == [
        "tcp,a,b,60.000100,60,0,0",
        "tcp,a,b,,60,0,0",
    ]
