"""HTTP/1.1 over TCP, with or without TLS: one connection with pipelined requests.

Requests do not wait for responses, so a page's objects take as many round trips as with HTTP/2,
which multiplexes its streams over one connection too.
"""

from __future__ import annotations

import asyncio
import ssl
from collections import deque

from testbed.traffic.video.transfer import NAME, Transfer
from testbed.video_site import Site

_ROOM = 1 << 18  # bytes that one read may take: in the guest each read is paid for in wall time
_HEAD_END = b"\r\n\r\n"


class Http1(asyncio.BufferedProtocol):
    """The client end of a connection."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        # a view: TLS fills it piece by piece, and a slice of a bytearray would be a copy
        self._room = memoryview(bytearray(_ROOM))
        self._waiting: deque[Transfer] = deque()
        self._head = bytearray()
        self._missing = 0  # bytes of the current body still to come
        self._transport: asyncio.Transport | None = None
        self._over = ""  # why the connection is unusable

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Note that the connection is open."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def request(self, path: str, *, keep: bool = False) -> Transfer:
        """Send a request."""
        assert self._transport is not None
        transfer = Transfer(path, keep, self._loop.time())
        if self._over:
            transfer.fail(self._over)
            return transfer
        self._waiting.append(transfer)
        head = f"GET /{path} HTTP/1.1\r\nHost: {NAME}\r\nAccept: */*\r\n\r\n"
        self._transport.write(head.encode())
        return transfer

    def close(self) -> None:
        """Hang up."""
        if self._transport is not None:
            self._transport.close()

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return the buffer for the next read."""
        return self._room

    def buffer_updated(self, nbytes: int) -> None:
        """Parse received bytes, which may span the end of one response and the next."""
        now_s = self._loop.time()
        data = self._room[:nbytes]
        while data:
            data = self._take_body(data, now_s) if self._missing else self._take_head(data, now_s)

    def connection_lost(self, exc: Exception | None) -> None:
        """Fail all outstanding requests."""
        self._fail(f"the connection ended ({exc or 'closed by the server'})")

    def _take_body(self, data: memoryview, now_s: float) -> memoryview:
        part = data[: self._missing]
        self._waiting[0].take(part, now_s)
        self._missing -= len(part)
        if not self._missing:
            self._waiting.popleft().finish(now_s)
        return data[len(part) :]

    def _take_head(self, data: memoryview, now_s: float) -> memoryview:
        before = len(self._head)
        self._head += data
        end = self._head.find(_HEAD_END)
        if end < 0:
            return data[:0]
        used = end + len(_HEAD_END) - before
        length = _length(bytes(self._head[:end]))
        if length is None:
            # anything after that is ignored
            self._fail(bytes(self._head[:end]).partition(b"\r")[0].decode("latin-1"))
            self.close()
            return data[:0]
        self._missing = length
        self._head.clear()
        if not length:
            self._waiting.popleft().finish(now_s)
        return data[used:]

    def _fail(self, why: str) -> None:
        self._over = self._over or why
        for transfer in self._waiting:
            transfer.fail(self._over)
        self._waiting.clear()


def _length(head: bytes) -> int | None:
    """Return the body's length; None if the response is not the requested file."""
    status, *lines = head.decode("latin-1").split("\r\n")
    pairs = (line.partition(":") for line in lines)
    fields = {key.strip().lower(): value.strip() for key, _, value in pairs}
    if status.split(" ")[1:2] != ["200"] or "content-length" not in fields:
        return None
    return int(fields["content-length"])


async def connect(site: Site) -> Http1:
    """Open a connection."""
    trust = ssl.create_default_context(cafile=site.authority) if site.authority else None
    _, client = await asyncio.get_running_loop().create_connection(
        Http1,
        site.address,
        site.port,
        ssl=trust,
        server_hostname=NAME if trust else None,
        local_addr=site.local,
    )
    return client
