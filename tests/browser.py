"""Chromium without a window, told what to do over a pair of pipes (the DevTools protocol)."""

from __future__ import annotations

import base64
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from testbed.cli.watch_film import FILM_FLAGS
from testbed.machine.process import Process, end_all, start_told

NAMES = ("chromium-headless-shell", "chromium")
FLAGS = (*FILM_FLAGS, "--no-sandbox")  # root has none, and the pages are our own


class Tab:
    """A page in the browser; `requests` and `complaints` gather what it loaded and said."""

    def __init__(self, process: Process) -> None:
        assert process.stdin and process.stdout
        self._descriptor, self._out = process.stdout.fileno(), process.stdin
        self._number = 0
        self._session = ""
        self._rest = b""
        self._seen: list[dict[str, Any]] = []
        self.requests: list[str] = []
        self.complaints: list[str] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    def close(self) -> None:
        """End the browser, and wait until it has ended."""
        self._session = ""
        self.call("Browser.close")
        while os.read(self._descriptor, 1 << 16):
            pass

    def call(self, method: str, **params: object) -> dict[str, Any]:
        """Send a command and wait for its answer."""
        self._number += 1
        message: dict[str, object] = {"id": self._number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        self._out.write(json.dumps(message).encode() + b"\0")
        self._out.flush()
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                result: dict[str, Any] = answer["result"]
                return result

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            part = os.read(self._descriptor, 1 << 16)
            assert part, "the browser ended"
            self._rest += part
        text, _, self._rest = self._rest.partition(b"\0")
        message: dict[str, Any] = json.loads(text)
        self._note(message.get("method", ""), message.get("params", {}))
        self._seen.append(message)
        return message

    def _note(self, method: str, params: dict[str, Any]) -> None:
        if method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])
        elif method == "Runtime.exceptionThrown":
            self.complaints.append(str(params["exceptionDetails"]))
        elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning"):
            self.complaints.append(str(params["args"]))
        elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            self.complaints.append(params["entry"]["text"])

    def open(self, page: Path, width: int, *, dark: bool = False) -> None:
        """Load a page from disk in a window of this width, and wait until it is there."""
        self.visit(page.resolve().as_uri(), width, dark=dark)

    def visit(self, url: str, width: int, *, dark: bool = False) -> None:
        """The same with an address."""
        self.resize(width)
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.call("Emulation.setEmulatedMedia", features=scheme)
        self._seen.clear()
        self.call("Page.navigate", url=url)
        self.wait_for("Page.loadEventFired")

    def wait_for(self, event: str) -> dict[str, Any]:
        """Wait until the browser has told of an event; return what it said."""
        while not (told := [e["params"] for e in self._seen if e.get("method") == event]):
            self._next()
        found: dict[str, Any] = told[-1]
        return found

    def resize(self, width: int) -> None:
        """As wide as a phone, or a screen."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=800,
            deviceScaleFactor=1,
            mobile=False,
        )

    def run(self, script: str) -> Any:
        """What an expression gives; promises are waited for."""
        found = self.call(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def picture(self, path: Path, *, whole: bool = True) -> None:
        """A PNG of the page."""
        taken = self.call("Page.captureScreenshot", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(taken["data"]))

    def print(self, path: Path) -> None:
        """A PDF on A4."""
        made = self.call(
            "Page.printToPDF", paperWidth=8.27, paperHeight=11.69, preferCSSPageSize=True
        )
        path.write_bytes(base64.b64decode(made["data"]))


@contextmanager
def browser() -> Iterator[Tab]:
    """A tab of a browser of its own, which ends with the context."""
    program = next(filter(None, map(shutil.which, NAMES)), None)
    if program is None:
        pytest.fail(f"there is no Chromium: apt-get install {NAMES[0]}")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        process = start_told([program, *FLAGS, f"--user-data-dir={profile}"], os.environ)
        try:
            tab = Tab(process)
            yield tab
            tab.close()  # killed, it leaves helpers that write into the profile while it is removed
        finally:
            end_all(process)
