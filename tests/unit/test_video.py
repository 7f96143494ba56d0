"""The video, its buffer and its rules, with a clock that the test keeps."""

from __future__ import annotations

import asyncio
import dataclasses
import itertools
import json
from pathlib import Path

import pytest

from testbed.errors import TestbedError
from testbed.scenario.video import LADDER, Video, page, write_site
from testbed.traffic.video.adaptation import Situation, rule
from testbed.traffic.video.http1 import Http1
from testbed.traffic.video.playback import Playback, Stall, State
from testbed.traffic.video.player import objects_of, options_of
from testbed.traffic.video.result import Load, Result, Segment
from testbed.traffic.video.video_flow import nginx_config
from testbed.video_site import MANIFEST, PAGE, Manifest, Thresholds, Transport

BY_NAME = {rung.name: rung for rung in LADDER}
THRESHOLDS = Thresholds(start_s=4, resume_s=8, cap_s=20)


def test_each_rung_has_its_rate_on_average() -> None:
    video = Video()
    for rung in LADDER:
        sizes = video.sizes(rung)
        assert len(sizes) == 68  # 4:30 min in segments of 4 s; the last one of 2 s
        assert sum(sizes) * 8 / 270 == pytest.approx(rung.bit_per_s, rel=1e-5)


def test_segments_differ_and_neighbours_are_alike() -> None:
    sizes = Video().sizes(BY_NAME["480p"])[:-1]
    mean = sum(sizes) / len(sizes)
    apart = [abs(one - other) for one, other in itertools.pairwise(sizes)]
    anywhere = [abs(one - other) for one, other in itertools.combinations(sizes, 2)]
    assert 1.4 * mean < max(sizes) < 3 * mean
    assert 0.3 * mean < min(sizes) < 0.75 * mean
    assert sum(apart) / len(apart) < 0.9 * sum(anywhere) / len(anywhere)


def test_the_seed_alone_makes_the_video() -> None:
    rung = LADDER[0]
    assert Video(seed=2).sizes(rung) == Video(seed=2).sizes(rung) != Video(seed=1).sizes(rung)
    assert Video().sizes(rung)[:3] == (136221, 165267, 133165)  # as on every machine


def test_what_is_a_lot_to_see_is_so_at_every_rung() -> None:
    low, high = (Video().sizes(BY_NAME[name]) for name in ("240p", "1080p"))
    assert len(low) == len(Video().manifest.segments) > 10
    assert all(b / a == pytest.approx(10, rel=1e-3) for a, b in zip(low, high, strict=True))


def test_the_site_has_every_file_in_its_size_and_takes_no_room(tmp_path: Path) -> None:
    video = Video(duration_s=10)
    write_site(video, tmp_path)
    for rung in LADDER:
        found = [(tmp_path / video.manifest.path(rung, n)).stat().st_size for n in (1, 2, 3)]
        assert tuple(found) == video.sizes(rung)
    assert all((tmp_path / name).exists() for name in objects_of((tmp_path / PAGE).read_text()))
    on_disk = sum(path.stat().st_blocks * 512 for path in tmp_path.rglob("*") if path.is_file())
    apparent = sum(path.stat().st_size for path in tmp_path.rglob("*") if path.is_file())
    assert apparent > 9e6
    assert on_disk < 0.5e6


def test_the_page_names_what_is_on_it() -> None:
    assert len(page()) == 120_000
    assert objects_of(page())[:3] == ["style.css", "player.js", "poster.jpg"]
    assert len(objects_of(page())) == 9


@pytest.mark.parametrize("seconds", [(270.0, 4.0), (10.0, 2.5), (8.0, 4.0), (9.5, 4.0)])
def test_a_manifest_is_read_as_it_was_written(seconds: tuple[float, float]) -> None:
    manifest = Manifest(*seconds, LADDER)
    assert Manifest.from_xml(manifest.to_xml()) == manifest
    assert sum(manifest.segments) == pytest.approx(seconds[0])
    assert manifest.path(LADDER[1], 7) == "video/240p/7.m4s"
    assert MANIFEST.endswith(".mpd")


def playback(duration_s: float = 100.0) -> Playback:
    return Playback(duration_s, THRESHOLDS)


def test_the_picture_moves_when_there_is_enough() -> None:
    shown = playback()
    shown.append(1, 2)
    shown.advance(9)
    assert (shown.state, shown.position_s, shown.started_s) == (State.STARTING, 0, None)
    shown.append(10, 2)
    assert (shown.state, shown.started_s) == (State.PLAYING, 10)
    shown.advance(11.5)
    assert (shown.position_s, shown.level_s) == (1.5, 2.5)


def test_it_stands_still_when_there_is_none_and_goes_on_with_more() -> None:
    shown = playback()
    shown.append(0, 4)
    shown.append(7, 4)  # three seconds late
    assert shown.stalls == [Stall(4)]  # it stood still at 4 s, whenever we looked
    shown.append(9, 4)
    assert shown.stalls == [Stall(4, 9)]
    shown.advance(10)
    assert shown.level_s == 7
    assert shown.levels == [(0, 0), (0, 4), (4, 0), (7, 0), (7, 4), (9, 4), (9, 8)]


def test_a_segment_at_the_last_moment_comes_too_late() -> None:
    """The buffer was empty: a picture that has stood still for no time has stood still."""
    shown = playback()
    shown.append(0, 4)
    shown.append(3.999, 4)
    assert shown.stalls == []
    shown.append(8, 4)
    assert shown.stalls == [Stall(8)]


def test_the_end_of_the_video_is_no_stall() -> None:
    shown = playback(duration_s=10)
    shown.append(0, 4)
    shown.append(1, 6)
    shown.advance(50)
    assert (shown.state, shown.ended_s, shown.stalls) == (State.ENDED, 10, [])


def test_the_last_segment_is_enough_whatever_the_thresholds() -> None:
    shown = playback(duration_s=6)
    shown.append(0, 4)
    shown.append(5, 2)  # it resumes at 8 s of video, of which there are none
    assert shown.state is State.PLAYING
    shown.advance(8)
    assert shown.ended_s == 7


def test_no_more_is_loaded_than_the_cap_allows() -> None:
    shown = playback()
    for _ in range(5):
        assert shown.wait_s(4) == 0
        shown.append(0, 4)
    assert shown.wait_s(4) == 4
    shown.advance(1.5)
    assert shown.wait_s(4) == 2.5


def situation(level_s: float = 0, current: str = "", measured: tuple[float, ...] = ()) -> Situation:
    return Situation(LADDER, BY_NAME.get(current), level_s, 100, measured)


def test_by_throughput() -> None:
    by_throughput = rule("throughput")
    assert by_throughput(situation()).name == "360p"  # 0.9 of the first guess
    assert by_throughput(situation(measured=(1.2e6,) * 4)).name == "480p"
    assert by_throughput(situation(measured=(1.0e6,) * 4)).name == "360p"
    # the last four count, and a slow one for more than a fast one
    assert by_throughput(situation(measured=(1e3, *(4e6,) * 4))).name == "1080p"
    assert by_throughput(situation(measured=(4e6, 4e6, 4e6, 0.3e6))).name == "360p"
    assert by_throughput(situation(measured=(1e3,))).name == "144p"


def test_by_buffer() -> None:
    by_buffer = rule("buffer")
    assert by_buffer(situation(50)).name == "144p"  # the first, whatever there is
    assert by_buffer(situation(30, "144p")).name == "144p"  # in the reservoir
    assert by_buffer(situation(95, "144p")).name == "1080p"  # beyond the cushion
    # 50 s: a rate of 0.94 Mbit/s, between 360p and 480p
    assert by_buffer(situation(50, "240p")).name == "360p"
    assert by_buffer(situation(50, "360p")).name == "360p"
    assert by_buffer(situation(50, "480p")).name == "480p"  # not yet down to 360p's rate
    assert by_buffer(situation(50, "720p")).name == "480p"
    assert by_buffer(situation(10, "1080p")).name == "144p"


def test_a_fixed_rung() -> None:
    assert rule("480p")(situation(99, "1080p", (9e9,))).name == "480p"


class Wire(asyncio.Transport):
    """A connection that only remembers."""

    def __init__(self) -> None:
        super().__init__()
        self.sent = b""
        self.closed = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.sent += bytes(data)

    def close(self) -> None:
        self.closed = True


ANSWERS = (
    b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhelloHTTP/1.1 200 OK\r\ncontent-length:0\r\n\r\n"
)


@pytest.mark.parametrize("piece", [1, 3, 39, 1000])
def test_http_in_pieces_of_any_size(piece: int) -> None:
    async def talk() -> None:
        wire, client = Wire(), Http1()
        client.connection_made(wire)
        first, second = client.request("a", keep=True), client.request("b")
        assert wire.sent.count(b"GET /") == 2  # the second does not wait for the first
        feed(client, ANSWERS, piece)
        await first.done
        await second.done
        assert (bytes(first.body), first.received, second.received) == (b"hello", 5, 0)

    asyncio.run(talk())


def feed(client: Http1, data: bytes, piece: int) -> None:
    """As asyncio's TLS does: several records into slices of one buffer, then one call."""
    for start in range(0, len(data), piece):
        part = data[start : start + piece]
        room = client.get_buffer(-1)
        for place, byte in enumerate(part):
            room[place:][:1] = bytes([byte])
        client.buffer_updated(len(part))


@pytest.mark.parametrize(
    "answer", [b"HTTP/1.1 404 Not Found\r\nContent-Length: 5\r\n\r\nhello", b""]
)
def test_an_answer_that_is_none(answer: bytes) -> None:
    async def talk() -> None:
        wire, client = Wire(), Http1()
        client.connection_made(wire)
        transfers = [client.request("a"), client.request("b")]
        feed(client, answer, 1000)
        client.connection_lost(None)
        assert wire.closed is bool(answer)
        for transfer in (*transfers, client.request("c")):
            with pytest.raises(TestbedError, match="404 Not Found" if answer else "closed by"):
                await transfer.done

    asyncio.run(talk())


def result() -> Result:
    segments = tuple(
        Segment(n, name, BY_NAME[name].bit_per_s, 4, Load(f"{n}", n, n, end, 1000))
        for n, name, end in (
            (1, "240p", 1.5),
            (2, "480p", 2.5),
            (3, "480p", 3.5),
            (4, "144p", None),
        )
    )
    page_loads = (Load("index.html", 0, 0.1, 0.2, 10),)
    levels = ((0.5, 0.0), (0.5, 4.0))
    return Result(
        *(1.7e9, "quic", "buffer", "deadline", 0.1, 0.2, 1.5, None, None, 30.0),
        *(((5.0, 7.5), (20.0, 30.0)), segments, page_loads, levels),
    )


def test_what_a_result_sums() -> None:
    sums = json.loads(result().to_json())["sums"]
    assert (sums["stalls"], sums["stall_s"], sums["switches"]) == (2, 12.5, 1)
    assert sums["mean_bit_per_s"] == pytest.approx((330e3 + 2 * 1e6) / 3)
    assert sums["bytes"] == 4000


def test_a_result_is_read_as_it_was_written() -> None:
    assert Result.from_json(result().to_json()) == result()
    assert Result.from_json(dataclasses.replace(result(), segments=()).to_json()).switches == 0


@pytest.mark.parametrize("transport", [Transport.HTTP, Transport.HTTPS])
def test_nginx_is_told_of_its_own_folder_only(transport: Transport) -> None:
    text = nginx_config(transport, 443)
    assert ("listen 443 ssl http2;" in text) is (transport is Transport.HTTPS)
    assert "daemon off;" in text
    assert not [word for word in text.split() if word.startswith("/") or ".." in word]


@pytest.mark.parametrize(
    "fault", [["--transport", "quic"], ["--transport", "http", "--cap-s", "3"]]
)
def test_a_command_line_that_makes_no_sense(fault: list[str]) -> None:
    with pytest.raises(SystemExit):
        options_of(["out.json", "--address", "10.0.0.2", "--port", "1", *fault])
