"""A server for one reader on this machine: a page and its news, behind a token.

It listens on 127.0.0.1 alone. Who does not know the token in the address learns nothing, not even
that there is a page; a name that somebody made point to 127.0.0.1 is refused by its Host header;
and it only answers GET. A reader who is slow, or opens many connections, takes up neither threads
nor descriptors for long: the oldest connections are closed.
"""

from __future__ import annotations

import contextlib
import hmac
import json
import secrets
import socket
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any
from urllib.parse import parse_qs, urlsplit

LOOPBACK = "127.0.0.1"
TOKEN_BYTES = 24
REQUEST_TIMEOUT_S = 5.0  # for a whole request with its answer
MAX_CONNECTIONS = 32  # at once; a browser opens one for each request, and has at most six
ACCEPT_S = 0.2  # between looks for connections that take too long
LAST_NEWS_S = 3.0  # that a reader who is there has for the last news
STILL_THERE_S = 3.0  # since a reader last asked

Query = Mapping[str, Sequence[str]]
News = Callable[[Query], dict[str, Any]]


class LoopbackServer:
    """A context in which the page is there; `url` has the token."""

    def __init__(self, page: str, policy: str, news: News) -> None:
        self._server = _Server((LOOPBACK, 0), _Handler)
        self._server.prepare(page.encode(), policy, news)
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(ACCEPT_S,), name="page", daemon=True
        )

    @property
    def url(self) -> str:
        """The page's address."""
        return f"http://{self._server.host}/{self._server.token}/"

    def __enter__(self) -> LoopbackServer:
        self._thread.start()
        return self

    def deliver(self) -> None:
        """Wait, not long, until a reader who is there has the last news."""
        server = self._server
        if time.monotonic() - server.asked_at < STILL_THERE_S:
            server.told_all.wait(LAST_NEWS_S)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128  # a connection beyond it would wait a second and more

    def __init__(self, address: tuple[str, int], handler: type[_Handler]) -> None:
        super().__init__(address, handler)
        self._lock = threading.Lock()
        self._opened: dict[socket.socket, float] = {}  # connection → when, the oldest first

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer in a thread; close the oldest connection if there are too many."""
        with self._lock:
            self._opened[request] = time.monotonic()
            for connection in list(self._opened)[:-MAX_CONNECTIONS]:
                self._hang_up(connection)
        super().process_request(request, client_address)

    def service_actions(self) -> None:
        """Close the connections whose time is over, however busy they are."""
        with self._lock:
            for connection, since in list(self._opened.items()):
                if time.monotonic() - since > REQUEST_TIMEOUT_S:
                    self._hang_up(connection)

    def _hang_up(self, connection: socket.socket) -> None:
        """End a connection, whose thread then ends by itself and closes it."""
        del self._opened[connection]
        with contextlib.suppress(OSError):  # the reader has gone
            connection.shutdown(socket.SHUT_RDWR)

    def close_request(self, request: Any) -> None:
        """Close a connection that has been answered."""
        with self._lock:  # so that its descriptor is not another file's when we hang up
            self._opened.pop(request, None)
            super().close_request(request)

    def prepare(self, page: bytes, policy: str, news: News) -> None:
        self.token = secrets.token_urlsafe(TOKEN_BYTES)
        self.host = f"{LOOPBACK}:{self.server_address[1]}"
        self.page, self.policy, self.news = page, policy, news
        self.told_all, self.asked_at = threading.Event(), float("-inf")

    def handle_error(self, *_: object) -> None:
        """Ignore a reader who goes away in the middle of an answer."""


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    timeout = REQUEST_TIMEOUT_S
    server_version, sys_version = "testbed", ""

    def do_GET(self) -> None:
        """Answer with the page or its news; with an error to whoever has no token."""
        server, address = self.server, urlsplit(self.path)
        _, token, name = [*address.path.split("/", 2), "", ""][:3]
        if not hmac.compare_digest(token.encode(), server.token.encode()) or not self._is_ours():
            self._answer(HTTPStatus.FORBIDDEN, b"403\n", "text/plain")
        elif name == "":
            self._answer(HTTPStatus.OK, server.page, "text/html; charset=utf-8")
        elif name == "now":
            self._news(address.query)
        else:
            self._answer(HTTPStatus.NOT_FOUND, b"404\n", "text/plain")

    def _is_ours(self) -> bool:
        port = self.server.host.partition(":")[2]
        return self.headers.get("Host") in (self.server.host, f"localhost:{port}")

    def _news(self, query: str) -> None:
        told = self.server.news(parse_qs(query))
        content = json.dumps(told, allow_nan=False).encode()
        self._answer(HTTPStatus.OK, content, "application/json")
        self.server.asked_at = time.monotonic()
        if told.get("over"):
            self.server.told_all.set()

    def _answer(self, status: HTTPStatus, content: bytes, kind: str) -> None:
        self.send_response(status)
        for name, value in (
            ("Content-Type", kind),
            ("Content-Length", str(len(content))),
            ("Content-Security-Policy", self.server.policy),
            ("Cache-Control", "no-store"),
            ("Referrer-Policy", "no-referrer"),
            ("X-Content-Type-Options", "nosniff"),
            ("Cross-Origin-Resource-Policy", "same-origin"),
        ):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def _refuse(self) -> None:
        self._answer(HTTPStatus.METHOD_NOT_ALLOWED, b"405\n", "text/plain")

    do_HEAD = do_POST = do_PUT = do_DELETE = do_PATCH = do_OPTIONS = do_TRACE = _refuse

    def log_message(self, *_: object) -> None:
        """Do not log requests: the terminal shows the run."""
