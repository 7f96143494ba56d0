"""A request and its response as a player sees them, the same over TCP and QUIC."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Protocol

from testbed.errors import TestbedError

NAME = "video.test"  # the server's name in its certificate; RFC 6761 reserves .test


@dataclass
class Transfer:
    """One request and its answer; times in seconds of the event loop's clock."""

    path: str
    keep: bool  # whether the body is wanted, not just its arrival
    requested_s: float
    first_byte_s: float | None = None
    last_byte_s: float | None = None
    received: int = 0  # bytes of the body, so far
    body: bytearray = field(default_factory=bytearray)
    done: asyncio.Future[None] = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )

    def take(self, data: bytes | memoryview, now_s: float) -> None:
        """Take a received part of the body."""
        if self.first_byte_s is None:
            self.first_byte_s = now_s
        self.received += len(data)
        if self.keep:
            self.body += data

    def finish(self, now_s: float) -> None:
        """Mark the body as complete."""
        self.last_byte_s = now_s
        if not self.done.done():
            self.done.set_result(None)

    def fail(self, why: str) -> None:
        """Mark the transfer as failed."""
        if not self.done.done():
            self.done.set_exception(TestbedError(f"{self.path}: {why}"))


class Client(Protocol):
    """A persistent connection to a server."""

    def request(self, path: str, *, keep: bool = False) -> Transfer:
        """Request a file; several requests may be outstanding."""

    def close(self) -> None:
        """Close the connection."""
