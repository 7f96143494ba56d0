"""What a real browser is given, what it is told, and what becomes of what it says."""

from __future__ import annotations

import asyncio
import itertools
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from testbed.errors import TestbedError
from testbed.machine.process import end_all, start_told
from testbed.scenario.video import LADDER, OBJECTS, PAGE_BYTES, Video, page, write_site
from testbed.traffic.video.browser import Tab, address, flags, result
from testbed.traffic.video.webm import Film, film, segment, write_browser_files

VOID, CLUSTER, BLOCK, TIMESTAMP = "ec", "1f43b675", "a3", "e7"
TO_THE_END = (1 << 56) - 1


def elements(data: bytes) -> Iterator[tuple[str, bytes]]:
    """EBML, read anew: identifier and content; what has no end is gone into."""
    while data:
        width = 9 - data[0].bit_length()
        name, data = data[:width].hex(), data[width:]
        width = 9 - data[0].bit_length()
        size = int.from_bytes(data[:width], "big") & ((1 << 7 * width) - 1)
        data = data[width:]
        if size == TO_THE_END:
            continue
        assert size <= len(data)
        yield name, data[:size]
        data = data[size:]


def small(frames: int = 25) -> Film:
    return Film(32, 16, tuple(bytes([number]) * 10 for number in range(frames)))


@pytest.mark.parametrize("size", [20_000, 20_001, 123_457])
def test_a_segment_has_its_pictures_and_its_size(size: int) -> None:
    data = segment(small(), begin_s=8, seconds=4, size=size)
    assert len(data) == size
    cluster = dict(elements(data))[CLUSTER]
    inside = list(elements(cluster))
    assert inside[0] == (TIMESTAMP, (8000).to_bytes(8, "big"))
    blocks = [content for name, content in inside if name == BLOCK]
    assert [int.from_bytes(block[1:3], "big") for block in blocks] == list(range(0, 4000, 40))
    assert [block[4] for block in blocks] == [number % 25 for number in range(200, 300)]
    gaps = [len(content) for name, content in inside if name == VOID]
    assert len(gaps) == len(blocks)
    assert max(gaps) - min(gaps) <= 1


def test_a_segment_too_small_for_its_pictures() -> None:
    with pytest.raises(AssertionError, match="too few"):
        segment(small(), 0, 4, 3000)


def test_pictures_are_key_frames_of_the_size_and_differ() -> None:
    """RFC 6386: the frame's tag, a start code, and 14 bits each for width and height."""
    shown = film(426, 240)
    for frame in shown.frames:
        assert frame[0] & 1 == 0
        assert frame[3:6] == b"\x9d\x01\x2a"
        assert int.from_bytes(frame[6:8], "little") & 0x3FFF == 426
        assert int.from_bytes(frame[8:10], "little") & 0x3FFF == 240
    assert all(one != other for one, other in itertools.pairwise(shown.frames))


def test_the_browsers_site_is_as_large_as_the_models(tmp_path: Path) -> None:
    video = Video(10)
    write_site(video, tmp_path)
    sizes = {path: path.stat().st_size for path in tmp_path.rglob("*") if path.is_file()}
    write_browser_files(video, "144p", tmp_path)
    assert {p: p.stat().st_size for p in tmp_path.rglob("*") if p.is_file()} == sizes
    assert (tmp_path / "video/144p/3.m4s").read_bytes().startswith(b"\x1a\x45\xdf\xa3")
    assert (tmp_path / "player.js").read_bytes().rstrip().endswith(b"})();")
    assert len(page()) + sum(size for _, size in OBJECTS) == PAGE_BYTES == 932_000


@pytest.mark.parametrize("rung", LADDER)
def test_every_bitrate_has_room_for_its_pictures(tmp_path: Path, rung: Any) -> None:
    """The paper's whole video, without its pictures: their sizes are what matters."""
    longest = max(map(len, film(rung.width, rung.height).frames))
    sizes = Video().sizes(rung)
    assert min(sizes[:-1]) > 100 * (longest + 30) + 500
    assert sizes[-1] > 50 * (longest + 30) + 500


def options(**changes: object) -> Any:
    usual = {
        "transport": "https",
        "address": "10.1.1.2",
        "port": 443,
        "authority": "",
        "rule": "240p",
        "cap_s": 150.0,
    }
    return SimpleNamespace(**{**usual, **changes})


def test_where_the_browser_goes() -> None:
    assert address(options()) == "https://video.test:443/index.html#rule=240p&cap=150"
    words = flags(options(), "profile")
    assert "--host-resolver-rules=MAP video.test 10.1.1.2" in words
    assert "--user-data-dir=profile" in words
    assert not any("quic" in word for word in words)
    words = flags(options(transport="quic", port=444), "profile")
    assert "--origin-to-force-quic-on=video.test:444" in words


def seen(**changes: object) -> dict[str, Any]:
    load = {"requested_s": 1.0, "first_byte_s": 1.5, "last_byte_s": 2.0, "bytes": 10}
    whole = {"number": 1, "rung": "240p", "bit_per_s": 330_000, "duration_s": 4}
    return {
        "why": "",
        "protocol": "h2",
        "origin_s": 1000.25,
        "connected_s": 0.1,
        "page_s": 0.5,
        "startup_s": 2.1,
        "loaded_s": 4.0,
        "ended_s": None,
        "stopped_s": 9.0,
        "stalls": [[5.0, 6.0], [8.0, None]],
        "segments": [
            {**whole, "load": {"path": "1.m4s", **load}},
            {**whole, "number": 2, "load": {"path": "2.m4s", **load, "last_byte_s": None}},
        ],
        "page": [{"path": "index.html", **load}],
        "levels": [[2.0, 4.0]],
        **changes,
    }


def test_the_pages_times_count_from_the_click() -> None:
    """The page's clock began a quarter of a second after it."""
    found = result(options(), seen(), 1000.0)
    assert (found.connected_s, found.page_s, found.startup_s) == (0.35, 0.75, 2.35)
    assert (found.loaded_s, found.ended_s, found.stopped_s) == (4.25, None, 9.25)
    assert found.stalls == ((5.25, 6.25), (8.25, 9.25))
    assert found.segments[0].load.last_byte_s == 2.25
    assert [each.complete for each in found.segments] == [True, False]
    assert found.page[0].requested_s == 1.25
    assert found.levels == ((2.25, 4.0),)


@pytest.mark.parametrize(
    ("transport", "protocol"), [("quic", "h2"), ("https", "http/1.1"), ("quic", "")]
)
def test_another_protocol_than_was_asked_for_is_a_failure(transport: str, protocol: str) -> None:
    with pytest.raises(TestbedError, match="the page came by"):
        result(options(transport=transport), seen(protocol=protocol), 1000.0)


BROWSER = """
import json, os, sys
def listen():
    text = b""
    while byte := os.read(3, 1):
        if byte != b"\\0":
            text += byte
            continue
        yield json.loads(text)
        text = b""
def say(**message):
    os.write(4, json.dumps(message).encode() + b"\\0")
answers = {"Target.createTarget": {"targetId": "t"}, "Target.attachToTarget": {"sessionId": "s"}}
for told in listen():
    if told["method"] == "Page.navigate":
        say(method="Runtime.bindingCalled", params={"payload": told["params"]["url"]})
        say(id=told["id"], result={"session": told["sessionId"]})
    elif told["method"] == "Browser.close":
        sys.exit()
    elif told["method"] == "Page.crash":
        say(id=told["id"], error={"message": "no"})
    else:
        say(id=told["id"], result=answers.get(told["method"], {}))
"""


async def talk() -> tuple[str, dict[str, Any]]:
    process = start_told([sys.executable, "-c", BROWSER], dict(os.environ))
    try:
        tab = Tab(process, "report")
        await tab.open()
        answer = await tab.call("Page.navigate", url="there")
        with pytest.raises(TestbedError, match="the browser: no"):
            await tab.call("Page.crash")
        with pytest.raises(TestbedError, match="the browser ended"):
            await tab.call("Browser.close")
        return await tab.told, answer
    finally:
        end_all(process)


def test_the_browser_is_told_and_tells() -> None:
    assert asyncio.run(talk()) == ("there", {"session": "s"})


def test_a_page_that_goes_wrong_is_told_of() -> None:
    script = re.sub(
        r"say\(method=.*\)\n",
        'say(method="Runtime.exceptionThrown", params={"exceptionDetails": '
        '{"text": "Uncaught", "exception": {"description": "TypeError: x"}}})\n',
        BROWSER,
    )

    async def watch() -> None:
        process = start_told([sys.executable, "-c", script], dict(os.environ))
        try:
            tab = Tab(process, "report")
            await tab.open()
            await tab.call("Page.navigate", url="there")
            await tab.told
        finally:
            end_all(process)

    with pytest.raises(TestbedError, match="the page: TypeError: x"):
        asyncio.run(watch())
