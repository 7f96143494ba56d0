"""Questions to this machine's own kernel, about sockets of our own."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator

import pytest

from testbed.machine.netlink_batch import Batch
from testbed.machine.sockets import listening
from testbed.store import SOCKETS
from testbed.trial.parts.sampling import SocketId, SocketProbe

SO_COOKIE = 57  # asm-generic/socket.h


@pytest.fixture
def connection() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)) as client, server.accept()[0]:
            yield client


def probe(connection: socket.socket, src_port: int | None = None) -> SocketProbe:
    (src, own), (dst, port) = connection.getsockname(), connection.getpeername()
    return SocketProbe("tcp", None, SocketId(src, src_port or own, dst, port))


def test_a_connection_and_the_very_socket(connection: socket.socket) -> None:
    asked = probe(connection)
    for _ in range(3):  # each answer belongs to its question
        row = asked.row(1.5, asked.question.ask())
        assert row is not None
        seen = dict(zip(SOCKETS.columns, row, strict=True))
        assert (seen["time_s"], seen["flow"], seen["state"]) == ("1.500000", "tcp", "established")
        assert asked.variant
    (cookie,) = struct.unpack("=Q", connection.getsockopt(socket.SOL_SOCKET, SO_COOKIE, 8))
    assert asked.cookie == cookie
    asked.close()


def test_questions_that_are_asked_together(connection: socket.socket) -> None:
    there, nowhere = probe(connection), probe(connection, src_port=1)
    batch = Batch([there.question, nowhere.question, there.question])
    for _ in range(2):
        found, missing, again = batch.answers()
        assert missing is None
        assert found is not None
        assert found == again
        assert there.row(0, found) is not None
    there.close()
    nowhere.close()


def test_no_such_connection(connection: socket.socket) -> None:
    asked = probe(connection, src_port=1)
    assert asked.row(0, asked.question.ask()) is None
    assert asked.cookie is None
    asked.close()


def test_who_listens(connection: socket.socket) -> None:
    assert listening(None, connection.getpeername()[1])
    assert not listening(None, connection.getsockname()[1])
