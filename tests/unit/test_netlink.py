"""Questions to this machine's own kernel, about sockets of our own."""

from __future__ import annotations

import csv
import socket
import struct
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from testbed.machine.netlink import listening
from testbed.store import SOCKET_SAMPLES
from testbed.trial.parts.sampling import SampledSocket, Sampler, SocketId, SocketProbe

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


def asked(sampler: Sampler, folder: Path) -> list[dict[str, str]]:
    """The rows of the sample that is taken now."""
    before = len(rows(sampler, folder))
    sampler.sample(before)
    return rows(sampler, folder)[before:]


def rows(sampler: Sampler, folder: Path) -> list[dict[str, str]]:
    sampler.write(folder)
    with (folder / SOCKET_SAMPLES.file).open(newline="") as file:
        return list(csv.DictReader(file))


def test_a_connection_and_the_very_socket(connection: socket.socket, tmp_path: Path) -> None:
    with closing(Sampler([probe(connection)], [])) as sampler:
        for _ in range(3):
            (row,) = asked(sampler, tmp_path)
            assert (row["flow"], row["state"], row["ca_state"]) == ("tcp", "established", "open")
        (seen,) = sampler.sampled_sockets()
    control = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16)
    assert seen.variant.encode() == control.rstrip(b"\0")
    assert seen.options
    (cookie,) = struct.unpack("=Q", connection.getsockopt(socket.SOL_SOCKET, SO_COOKIE, 8))
    assert seen.cookie == cookie


def test_a_row_follows_its_socket(connection: socket.socket, tmp_path: Path) -> None:
    with closing(Sampler([probe(connection)], [])) as sampler:
        assert asked(sampler, tmp_path)[0]["bytes_acked"] == "1"  # the SYN
        connection.sendall(bytes(500))
        assert asked(sampler, tmp_path)[0]["bytes_acked"] == "501"  # through the loopback, at once
        connection.shutdown(socket.SHUT_WR)
        assert asked(sampler, tmp_path)[0]["state"].startswith("fin-wait")


def test_each_answer_belongs_to_its_question(connection: socket.socket, tmp_path: Path) -> None:
    there, nowhere, again = probe(connection), probe(connection, src_port=1), probe(connection)
    nowhere.flow, again.flow = "nowhere", "again"
    with closing(Sampler([there, nowhere, again], [])) as sampler:
        for _ in range(2):
            one, other = asked(sampler, tmp_path)
            assert (one.pop("flow"), other.pop("flow")) == ("tcp", "again")
            assert one == other
        assert [bool(each.variant) for each in sampler.sampled_sockets()] == [True, False, True]


def test_no_such_connection(connection: socket.socket, tmp_path: Path) -> None:
    with closing(Sampler([probe(connection, src_port=1)], [])) as sampler:
        assert asked(sampler, tmp_path) == []
        assert sampler.sampled_sockets() == [SampledSocket("tcp", "", None, cookie=0)]


def test_without_the_guests_kernel_nothing_is_asked_ahead(connection: socket.socket) -> None:
    with closing(Sampler([probe(connection)], [])) as sampler:
        sampler.rehearse()
        assert sampler.sample_at(range(1, 10), float) == 0


def test_who_listens(connection: socket.socket) -> None:
    assert listening(None, connection.getpeername()[1])
    assert not listening(None, connection.getsockname()[1])
