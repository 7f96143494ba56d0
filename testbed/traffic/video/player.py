"""A model of a viewer's player: `python -m testbed.traffic.video.player … RESULT`.

Loads the page and its objects, then segment after segment as far ahead as the buffer's cap
allows. Ends after the video, at the deadline, or at SIGTERM, and writes its result.
"""

from __future__ import annotations

import argparse
import asyncio
import html.parser
import signal
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from testbed.errors import TestbedError
from testbed.traffic.video import adaptation, http1
from testbed.traffic.video.adaptation import Rule, Situation
from testbed.traffic.video.playback import Playback, State
from testbed.traffic.video.result import Load, Result, Segment
from testbed.traffic.video.transfer import Client, Transfer
from testbed.video_site import MANIFEST, PAGE, Manifest, Rung, Site, Thresholds, Transport

Connect = Callable[[Site], Awaitable[Client]]


class Player:
    """One playback."""

    def __init__(self, rule: Rule, thresholds: Thresholds) -> None:
        self._rule = rule
        self._thresholds = thresholds
        self._loop = asyncio.get_running_loop()
        self._zero_s = self._loop.time()
        self._epoch_s = time.time_ns() / 1e9
        self._page: list[Transfer] = []
        self._segments: list[tuple[int, Rung, float, Transfer]] = []
        self._measured: list[float] = []
        self._playback = Playback(0.0)
        self._connected_s: float | None = None
        self._page_s: float | None = None

    @property
    def _now_s(self) -> float:
        return self._loop.time() - self._zero_s

    async def play(self, connect: Connect, site: Site) -> None:
        """Load the page, then play the video to its end."""
        client = await connect(site)
        self._connected_s = self._now_s
        try:
            await self._load_page(client)
            manifest = await self._load_manifest(client)
            await self._load_video(client, manifest)
            await self._watch_to_the_end()
        finally:
            client.close()

    async def _load_page(self, client: Client) -> None:
        text = await self._load(client, PAGE)
        objects = [client.request(path) for path in objects_of(text)]
        self._page += objects
        for each in objects:
            await each.done
        self._page_s = self._now_s

    async def _load_manifest(self, client: Client) -> Manifest:
        manifest = Manifest.from_xml(await self._load(client, MANIFEST))
        self._playback = Playback(manifest.duration_s, self._thresholds)
        return manifest

    async def _load(self, client: Client, path: str) -> str:
        transfer = client.request(path, keep=True)
        self._page.append(transfer)
        await transfer.done
        return transfer.body.decode()

    async def _load_video(self, client: Client, manifest: Manifest) -> None:
        for number, seconds in enumerate(manifest.segments, 1):
            await self._wait_for_room(seconds)
            rung = self._rule(self._situation(manifest))
            transfer = client.request(manifest.path(rung, number))
            self._segments.append((number, rung, seconds, transfer))
            await transfer.done
            self._playback.append(self._now_s, seconds)
            self._measure(transfer)

    async def _wait_for_room(self, seconds: float) -> None:
        self._playback.advance(self._now_s)
        if wait_s := self._playback.wait_s(seconds):
            await asyncio.sleep(wait_s)
            self._playback.advance(self._now_s)

    def _situation(self, manifest: Manifest) -> Situation:
        return Situation(
            rungs=manifest.rungs,
            current=self._segments[-1][1] if self._segments else None,
            level_s=self._playback.level_s,
            cap_s=self._thresholds.cap_s,
            measured_bit_per_s=self._measured,
        )

    def _measure(self, transfer: Transfer) -> None:
        """Throughput as browsers measure it: from the request on, response time included."""
        assert transfer.last_byte_s is not None
        taken_s = max(transfer.last_byte_s - transfer.requested_s, 1e-6)
        self._measured.append(8 * transfer.received / taken_s)

    async def _watch_to_the_end(self) -> None:
        while self._playback.state is not State.ENDED:
            await asyncio.sleep(self._playback.level_s + 1e-3)  # not a hair too early
            self._playback.advance(self._now_s)

    def result(self, transport: Transport, rule: str, why: str) -> Result:
        """Describe the playback up to now."""
        now_s = self._now_s
        self._playback.advance(now_s)
        segments = tuple(
            Segment(number, rung.name, rung.bit_per_s, seconds, self._seen(transfer))
            for number, rung, seconds, transfer in self._segments
        )
        shown = self._playback
        return Result(
            epoch_s=self._epoch_s,
            transport=transport.value,
            rule=rule,
            why=why,
            connected_s=self._connected_s,
            page_s=self._page_s,
            startup_s=shown.started_s,
            loaded_s=segments[-1].load.last_byte_s if segments and shown.complete else None,
            ended_s=shown.ended_s,
            stopped_s=now_s,
            stalls=tuple(
                (each.begin_s, now_s if each.end_s is None else each.end_s) for each in shown.stalls
            ),
            segments=segments,
            page=tuple(self._seen(transfer) for transfer in self._page),
            levels=tuple(shown.levels),
        )

    def _seen(self, transfer: Transfer) -> Load:
        def since(loop_s: float | None) -> float | None:
            return None if loop_s is None else loop_s - self._zero_s

        return Load(
            transfer.path,
            transfer.requested_s - self._zero_s,
            since(transfer.first_byte_s),
            since(transfer.last_byte_s),
            transfer.received,
        )


def connector(transport: Transport) -> Connect:
    """Return the function that opens a connection; aioquic is imported only for QUIC."""
    if transport is Transport.QUIC:
        from testbed.traffic.video import http3

        return http3.connect
    return http1.connect


class _Objects(html.parser.HTMLParser):
    """Collects the files that a page refers to."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note the file that a tag refers to, if it does."""
        named = dict(attrs)
        path = named.get("href") if tag == "link" else named.get("src")
        if path:
            self.found.append(path)


def objects_of(text: str) -> list[str]:
    """Return the files that a page refers to, in document order."""
    parser = _Objects()
    parser.feed(text)
    return parser.found


async def watch(options: argparse.Namespace) -> Result:
    """Play until the end, the deadline or SIGTERM, and return the result."""
    transport = Transport(options.transport)
    connect = connector(transport)  # before the clock starts: loading a library is not watching
    site = Site(options.address, options.port, options.authority, options.own_port)
    thresholds = Thresholds(options.start_s, options.resume_s, options.cap_s)
    if options.ready:
        await told_to_begin(options.ready)
    player = Player(adaptation.rule(options.rule), thresholds)
    task = asyncio.ensure_future(player.play(connect, site))
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    why = await _ended(task, options.deadline_s)
    return player.result(transport, options.rule, why)


async def told_to_begin(ready: Path) -> None:
    """Signal readiness and wait for SIGUSR1, so that the first packet then leaves at once."""
    told = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, told.set)
    ready.touch()
    await told.wait()


async def _ended(task: asyncio.Future[None], deadline_s: float) -> str:
    """Wait for the end and return its reason; empty if the video was shown."""
    try:
        await asyncio.wait_for(task, deadline_s)
    except TimeoutError:
        return "deadline"
    except asyncio.CancelledError:
        return "stopped"
    except (TestbedError, OSError) as error:
        return f"{error}"
    return ""


def options_of(argv: list[str]) -> argparse.Namespace:
    """Parse the command line."""
    usual = Thresholds()
    parser = argparse.ArgumentParser(prog="player", description=__doc__)
    parser.add_argument("result", type=Path, help="where to write what became of it")
    parser.add_argument("--transport", choices=[each.value for each in Transport], required=True)
    parser.add_argument("--address", required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--own-port", type=int, default=0, help="to come from (0: any)")
    parser.add_argument("--authority", default="", help="the server's certificate (https, quic)")
    parser.add_argument("--rule", default="throughput", help="throughput, buffer, or a rung's name")
    parser.add_argument("--start-s", type=float, default=usual.start_s)
    parser.add_argument("--resume-s", type=float, default=usual.resume_s)
    parser.add_argument("--cap-s", type=float, default=usual.cap_s)
    parser.add_argument("--deadline-s", type=float, default=3600.0)
    parser.add_argument("--ready", type=Path, help="made when loaded; begins at SIGUSR1 then")
    options = parser.parse_args(argv)
    if options.transport != Transport.HTTP.value and not options.authority:
        parser.error(f"{options.transport} needs --authority")
    if options.cap_s < max(options.start_s, options.resume_s):
        parser.error("--cap-s is below --start-s or --resume-s: the picture would never move")
    return options


def main(argv: list[str]) -> int:
    """Watch and write the result; the exit status is 0 if a picture was shown."""
    options = options_of(argv)
    result = asyncio.run(watch(options))
    options.result.write_text(result.to_json())
    return 0 if result.startup_s is not None else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
