"""The library that is preloaded into tcpdump, so that it writes in large pieces."""

from __future__ import annotations

import os
import socket
import subprocess

from testbed.trial.parts.capture import TCPDUMP_PRELOAD


def test_captures_are_written_in_large_pieces() -> None:
    """Each write is a datagram: the numbers of seq, which writes by stdio as tcpdump does."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    theirs.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
    env = {**os.environ, "LD_PRELOAD": str(TCPDUMP_PRELOAD)}
    with ours, theirs:
        subprocess.run(["seq", "20000"], stdout=theirs.fileno(), env=env, check=True)
        whole = "".join(f"{number}\n" for number in range(1, 20001)).encode()
        assert ours.recv(1 << 20) == whole
