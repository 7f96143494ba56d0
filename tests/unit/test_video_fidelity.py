"""What the verdict says of a video that was not what was asked for, and the player's measures."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest

from analysis.trials.video import VIDEO_MEASURE_COLUMNS, video_measures
from analysis.verdict.checks import Check, Grade
from analysis.verdict.traffic import videos
from testbed.traffic.video.result import Load, Result, Segment
from testbed.video_site import Transport
from tests.scenarios import video
from tests.sealing import file_in

SIZES = {"index.html": 1000, "video/240p/1.m4s": 5000, "video/240p/2.m4s": 6000}


def result() -> Result:
    """A page, one segment that came whole, one of which a part did."""
    return Result(
        epoch_s=1e9,
        transport="quic",
        rule="240p",
        why="deadline",
        connected_s=0.1,
        page_s=0.5,
        startup_s=1.0,
        loaded_s=None,
        ended_s=None,
        stopped_s=9.0,
        stalls=((5.0, 9.0),),
        segments=(
            Segment(1, "240p", 330_000, 4.0, Load("video/240p/1.m4s", 0.5, 0.6, 1.0, 5000)),
            Segment(2, "240p", 330_000, 4.0, Load("video/240p/2.m4s", 1.0, 1.2, None, 2000)),
        ),
        page=(Load("index.html", 0.1, 0.2, 0.5, 1000),),
        levels=((1.0, 4.0), (5.0, 0.0)),
    )


def trial(folder: Path) -> Any:
    flows = folder / "flows"
    flows.mkdir()
    (flows / "video.json").write_text(result().to_json())
    (flows / "video.sizes.json").write_text(json.dumps(SIZES))
    return SimpleNamespace(path=folder, file=file_in(folder), scenario=video(Transport.QUIC))


def judged(found: Any, payload: int = 8000) -> list[Check]:
    captured = SimpleNamespace(data=pd.DataFrame({"payload": [payload]}))
    evidence: Any = SimpleNamespace(
        trial=found,
        virtual_time=True,
        flows=(SimpleNamespace(name="video", protocol="udp"),),
        packets=SimpleNamespace(flow=lambda _role, _flow: captured),
    )
    return list(videos(evidence))


def bad(found: list[Check]) -> set[str]:
    return {check.name for check in found if check.verdict is not Grade.VALID}


def test_a_sound_video_is_valid(tmp_path: Path) -> None:
    found = judged(trial(tmp_path))
    assert len(found) == 3
    assert not bad(found)
    (size,) = (check for check in found if check.name == "video bytes")
    assert size.measured == size.expected and size.expected == 8000


def edit(path: Path, change: Callable[[Any], object]) -> None:
    data = json.loads(path.read_text())
    change(data)
    path.write_text(json.dumps(data))


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("video", lambda data: data.update(rule="throughput")),
        ("video", lambda data: data.update(transport="https")),
        ("video bytes", lambda data: data["segments"][0]["load"].update(bytes=4999)),
        ("video bytes", lambda data: data["segments"][1]["load"].update(bytes=6001)),
        ("video bytes", lambda data: data["page"][0].update(bytes=1001)),
    ],
)
def test_what_did_not_come_as_asked(
    tmp_path: Path, name: str, change: Callable[[Any], object]
) -> None:
    found = trial(tmp_path)
    edit(tmp_path / "flows" / "video.json", change)
    assert bad(judged(found, payload=20_000)) == {name}


def test_bytes_that_no_packet_brought(tmp_path: Path) -> None:
    assert bad(judged(trial(tmp_path), payload=7999)) == {"video capture"}


def test_no_report_is_suspect(tmp_path: Path) -> None:
    found = trial(tmp_path)
    (tmp_path / "flows" / "video.json").unlink()
    assert {check.verdict for check in judged(found)} == {Grade.SUSPECT}
    assert video_measures([found]).empty


def test_the_players_measures_are_a_row(tmp_path: Path) -> None:
    table = video_measures([trial(tmp_path)])
    assert tuple(table.columns) == VIDEO_MEASURE_COLUMNS
    row = table.iloc[0]
    assert (row["transport"], row["rule"], row["why"]) == ("quic", "240p", "deadline")
    assert (row["page_s"], row["startup_s"], row["stalls"], row["stall_s"]) == (0.5, 1, 1, 4)
    assert pd.isna(row["loaded_s"])
    assert pd.isna(row["ended_s"])
    assert (row["segments"], row["bytes"], row["mean_mbps"]) == (1, 7000, 0.33)
