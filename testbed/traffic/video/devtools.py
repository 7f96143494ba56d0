"""Control of a browser by Chromium's DevTools protocol over a pair of pipes."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Mapping
from typing import Any

from testbed.errors import TestbedError
from testbed.machine.process import Process

_LONGEST = 1 << 26  # bytes of a message
_END = b"\0"

Answer = dict[str, Any]


class Tab:
    """A page in the browser; `told` has what it reported by the binding of that name."""

    def __init__(self, process: Process, binding: str) -> None:
        assert process.stdin and process.stdout
        loop = asyncio.get_running_loop()
        self._process = process
        self._binding = binding
        self._numbers = itertools.count(1)
        self._session = ""
        self._waiting: dict[int, asyncio.Future[Answer]] = {}
        self._reader = asyncio.StreamReader(limit=_LONGEST)
        self._listening: asyncio.Task[None] | None = None
        self.told: asyncio.Future[str] = loop.create_future()

    async def open(self) -> None:
        """Attach to an empty page."""
        loop = asyncio.get_running_loop()
        await loop.connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(self._reader), self._process.stdout
        )
        self._listening = asyncio.create_task(self._listen())
        target = await self.call("Target.createTarget", url="about:blank")
        attached = await self.call(
            "Target.attachToTarget", targetId=target["targetId"], flatten=True
        )
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime"):
            await self.call(f"{domain}.enable")
        await self.call("Runtime.addBinding", name=self._binding)

    async def call(self, method: str, **params: object) -> Answer:
        """Send a command and wait for its answer."""
        number = next(self._numbers)
        message: dict[str, object] = {"id": number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiting[number] = answer
        assert self._process.stdin
        self._process.stdin.write(json.dumps(message).encode() + _END)
        self._process.stdin.flush()
        return await answer

    async def _listen(self) -> None:
        try:
            while True:
                text = await self._reader.readuntil(_END)
                self._take(json.loads(text[: -len(_END)]))
        except (asyncio.IncompleteReadError, OSError):
            for answer in self._waiting.values():
                _fail(answer, "the browser ended")
            self._waiting.clear()
            _fail(self.told, "the browser ended")

    def _take(self, message: Mapping[str, Any]) -> None:
        params = message.get("params", {})
        if (answer := self._waiting.pop(message.get("id", 0), None)) is not None:
            if "error" in message:
                answer.set_exception(TestbedError(f"the browser: {message['error']['message']}"))
            else:
                answer.set_result(message["result"])
        elif message.get("method") == "Runtime.bindingCalled" and not self.told.done():
            self.told.set_result(params["payload"])
        elif message.get("method") == "Runtime.exceptionThrown":
            said = params["exceptionDetails"]
            why = said.get("exception", said).get("description", said["text"])
            _fail(self.told, f"the page: {why}")


def _fail(awaited: asyncio.Future[Any], why: str) -> None:
    if not awaited.done():
        awaited.set_exception(TestbedError(why))
