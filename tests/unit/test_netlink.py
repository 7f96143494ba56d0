"""Questions to this machine's own kernel, about sockets of our own."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator

import pytest

from testbed.machine.netlink_batch import Rounds
from testbed.machine.sockets import listening
from testbed.store import SOCKETS
from testbed.trial.parts.sampling.socket_probe import SocketId, SocketProbe

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


def asked(*probes: SocketProbe) -> list[str]:
    """What each has to say after all were asked at once."""
    rounds = Rounds([each.question for each in probes])
    rounds.ask()
    pairs = zip(probes, rounds.places(0), strict=True)
    rows = [each.row(rounds.answers, place) for each, place in pairs]
    rounds.close()
    return rows


def fields(row: str) -> dict[str, str]:
    assert row.endswith("\r\n")
    return dict(zip(SOCKETS.columns[1:], row.strip().split(","), strict=True))


def test_a_connection_and_the_very_socket(connection: socket.socket) -> None:
    one = probe(connection)
    for _ in range(3):
        seen = fields(asked(one)[0])
        assert (seen["flow"], seen["state"]) == ("tcp", "established")
    assert one.variant
    assert one.options
    (cookie,) = struct.unpack("=Q", connection.getsockopt(socket.SOL_SOCKET, SO_COOKIE, 8))
    assert one.cookie == cookie
    one.close()


def test_a_row_follows_its_socket(connection: socket.socket) -> None:
    one = probe(connection)
    assert fields(asked(one)[0])["bytes_acked"] == "1"  # the SYN
    connection.sendall(bytes(500))
    assert fields(asked(one)[0])["bytes_acked"] == "501"  # through the loopback, at once
    connection.shutdown(socket.SHUT_WR)
    assert fields(asked(one)[0])["state"].startswith("fin-wait")
    one.close()


def test_each_answer_belongs_to_its_question(connection: socket.socket) -> None:
    there, nowhere = probe(connection), probe(connection, src_port=1)
    for _ in range(2):
        found, missing, again = asked(there, nowhere, there)
        assert missing == ""
        assert found == again != ""
    there.close()
    nowhere.close()


def test_no_such_connection(connection: socket.socket) -> None:
    one = probe(connection, src_port=1)
    assert asked(one) == [""]
    assert one.cookie is None
    one.close()


def test_without_the_guests_kernel_nothing_is_asked_ahead(connection: socket.socket) -> None:
    one = probe(connection)
    rounds = Rounds([one.question])
    rounds.ask()
    assert rounds.ask_at(range(1, 10)) == 0
    rounds.close()
    one.close()


def test_who_listens(connection: socket.socket) -> None:
    assert listening(None, connection.getpeername()[1])
    assert not listening(None, connection.getsockname()[1])
