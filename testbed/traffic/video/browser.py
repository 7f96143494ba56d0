"""The viewer as a real browser: `python -m testbed.traffic.video.browser … RESULT`.

Takes the player's command line and leaves the same result. Chromium is there, with an empty page,
before the clock starts. What the page does is in watch.js.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import contextlib
import itertools
import json
import os
import signal
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

from testbed.errors import TestbedError
from testbed.machine.process import CHROMIUM, Process, end_all, start_told
from testbed.traffic.video.player import options_of, told_to_begin
from testbed.traffic.video.result import Load, Result, Segment
from testbed.traffic.video.transfer import NAME
from testbed.video_site import PAGE, Transport

_FLAGS = (
    "--headless",
    "--no-sandbox",  # root has none, and the page is our own
    "--disable-gpu",
    "--mute-audio",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--disable-breakpad",
    "--autoplay-policy=no-user-gesture-required",
    "--remote-debugging-pipe",
)
_BINDING = "report"  # as watch.js calls it
_PROTOCOLS = {Transport.HTTP: "http/1.1", Transport.HTTPS: "h2", Transport.QUIC: "h3"}
# BoringSSL would take keys from RDRAND, which no seed decides: bit 30 of CPUID's ECX, after EDX
_WITHOUT_RDRAND = "~0x4000000000000000"
_PATIENCE_S = 10.0
_LONGEST = 1 << 26  # bytes of a message
_MESSAGE_END = b"\0"

_Reply = dict[str, Any]


class Tab:
    """A page in the browser, controlled by Chromium's DevTools protocol over a pair of pipes.

    `told` becomes what the page reports by the binding of that name.
    """

    def __init__(self, process: Process, binding: str) -> None:
        assert process.stdin and process.stdout
        loop = asyncio.get_running_loop()
        self._process = process
        self._binding = binding
        self._numbers = itertools.count(1)
        self._session = ""
        self._waiting: dict[int, asyncio.Future[_Reply]] = {}
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

    async def call(self, method: str, **params: object) -> _Reply:
        """Send a command and wait for its answer."""
        number = next(self._numbers)
        message: dict[str, object] = {"id": number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        answer: asyncio.Future[_Reply] = asyncio.get_running_loop().create_future()
        self._waiting[number] = answer
        assert self._process.stdin
        self._process.stdin.write(json.dumps(message).encode() + _MESSAGE_END)
        self._process.stdin.flush()
        return await answer

    async def _listen(self) -> None:
        try:
            while True:
                text = await self._reader.readuntil(_MESSAGE_END)
                self._take(json.loads(text[: -len(_MESSAGE_END)]))
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


def flags(options: argparse.Namespace, profile: str) -> list[str]:
    """Chromium's flags: find and trust the server, and contact nothing else."""
    found = [
        *_FLAGS,
        f"--user-data-dir={profile}",
        f"--host-resolver-rules=MAP {NAME} {options.address}",
    ]
    if options.authority:
        found.append(
            f"--ignore-certificate-errors-spki-list={fingerprint(Path(options.authority))}"
        )
    if options.transport == Transport.QUIC:
        found += ["--enable-quic", f"--origin-to-force-quic-on={NAME}:{options.port}"]
    return found


def fingerprint(certificate: Path) -> str:
    """Return the SHA-256 of the certificate's public key in base64, as Chromium takes it."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization

    key = x509.load_pem_x509_certificate(certificate.read_bytes()).public_key()
    digest = hashes.Hash(hashes.SHA256())
    digest.update(
        key.public_bytes(
            serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
        )
    )
    return base64.b64encode(digest.finalize()).decode()


def address(options: argparse.Namespace) -> str:
    """Return the page's URL, with the playback options as its fragment."""
    scheme = "http" if options.transport == Transport.HTTP else "https"
    settings = f"rule={options.rule}&cap={options.cap_s:g}"
    return f"{scheme}://{NAME}:{options.port}/{PAGE}#{settings}"


@contextlib.asynccontextmanager
async def browser(options: argparse.Namespace) -> AsyncIterator[Tab]:
    """Run a browser with a temporary profile; both are gone when the context ends."""
    with tempfile.TemporaryDirectory(dir=".", ignore_cleanup_errors=True) as profile:
        # all that it writes goes there, also what its libraries keep at home
        own = {"HOME": profile, "TMPDIR": profile, "OPENSSL_ia32cap": _WITHOUT_RDRAND}
        environment = {**os.environ, **own}
        process = start_told([CHROMIUM, *flags(options, profile)], environment)
        try:
            tab = Tab(process, _BINDING)
            await tab.open()
            yield tab
            with contextlib.suppress(TestbedError, TimeoutError):
                await asyncio.wait_for(tab.call("Browser.close"), _PATIENCE_S)
        finally:
            end_all(process)


async def watch(options: argparse.Namespace) -> Result:
    """Play until the end, the deadline or SIGTERM, and return the result."""
    async with browser(options) as tab:
        if options.ready:
            await told_to_begin(options.ready)
        epoch_s = time.time_ns() / 1e9
        over = asyncio.Event()
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, over.set)
        visit = asyncio.ensure_future(tab.call("Page.navigate", url=address(options)))
        stopped = asyncio.ensure_future(over.wait())
        await asyncio.wait(
            (tab.told, stopped),
            timeout=options.deadline_s,
            return_when=asyncio.FIRST_COMPLETED,
        )
        stopped.cancel()
        if not tab.told.done():
            why = "stopped" if over.is_set() else "deadline"
            await tab.call("Runtime.evaluate", expression=f"watching.end({why!r})")
        await visit
        return result(options, json.loads(await tab.told), epoch_s)


def result(options: argparse.Namespace, seen: dict[str, Any], epoch_s: float) -> Result:
    """Convert what the page reported; times count from the start of playback."""
    transport = Transport(options.transport)
    if seen["protocol"] != _PROTOCOLS[transport]:
        wanted = _PROTOCOLS[transport]
        raise TestbedError(f"the page came by {seen['protocol'] or 'nothing'}, not by {wanted}")
    late_s = seen["origin_s"] - epoch_s

    def since(page_s: float | None) -> float | None:
        return None if page_s is None else page_s + late_s

    def load(each: dict[str, Any]) -> Load:
        times = {key: since(value) for key, value in each.items() if key.endswith("_s")}
        return Load(**{**each, **times})

    segments = tuple(Segment(**{**each, "load": load(each["load"])}) for each in seen["segments"])
    stopped_s = seen["stopped_s"] + late_s
    stalls = tuple((begin + late_s, since(end) or stopped_s) for begin, end in seen["stalls"])
    moments = ("connected_s", "page_s", "startup_s", "loaded_s", "ended_s")
    return Result(
        epoch_s=epoch_s,
        transport=options.transport,
        rule=options.rule,
        why=seen["why"],
        **{name: since(seen[name]) for name in moments},
        stopped_s=stopped_s,
        stalls=stalls,
        segments=segments,
        page=tuple(map(load, seen["page"])),
        levels=tuple((time_s + late_s, level) for time_s, level in seen["levels"]),
    )


def main(argv: list[str]) -> int:
    """Watch and write the result; the exit status is 0 if a picture was shown."""
    options = options_of(argv)
    found = asyncio.run(watch(options))
    options.result.write_text(found.to_json())
    return 0 if found.startup_s is not None else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
