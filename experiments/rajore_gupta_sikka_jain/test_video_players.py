"""The model beside the browser: which trials belong together, and when the two agree."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pandas as pd
import pytest

from analysis.results.experiment_results import ExperimentResults
from experiments.rajore_gupta_sikka_jain.video_players import scenario
from experiments.rajore_gupta_sikka_jain.video_players_figures import draw, pairs, table
from testbed.store.names import FLOWS_FOLDER, RECORD, SCENARIO
from testbed.store.reading import trials_in
from testbed.store.records import Record, Status
from testbed.traffic.video.result import Result
from tests.sealing import seal

PLAYED = Result(
    *(1e9, "https", "720p", "", 0.1, 8.0, 16.0, 39.0, 43.0, 43.0, ((20.0, 25.0), (30.0, 36.0))),
    *((), (), ((16.0, 0.0), (16.0, 4.0), (20.0, 0.0), (25.0, 0.0))),
)


def add(results: Path, player: str, played: Result = PLAYED, rule: str = "720p") -> None:
    wanted = scenario(
        network="shaped", rule=rule, transport="https", player=player, length_s=16, seed=1
    )
    axes = {"network": "shaped", "rule": rule, "player": player, "length_s": "16"}
    folder = results / f"{rule}-{player}"
    (folder / FLOWS_FOLDER).mkdir(parents=True)
    (folder / SCENARIO).write_text(dataclasses.replace(wanted, axes=axes).to_json())
    (folder / RECORD).write_text(Record(Status.OK).to_json())
    (folder / FLOWS_FOLDER / "video.json").write_text(played.to_json())
    seal(folder)


def results(results: Path) -> ExperimentResults:
    none = pd.DataFrame()
    return ExperimentResults("video-players", "guest", tuple(trials_in(results)), none, none, none)


def test_a_video_that_only_one_has_seen_is_no_pair(tmp_path: Path) -> None:
    add(tmp_path, "model")
    add(tmp_path, "chromium")
    add(tmp_path, "model", rule="240p")
    (pair,) = pairs(trials_in(tmp_path))
    assert pair.axes == {"network": "shaped", "rule": "720p", "length_s": "16"}
    assert pair.seconds("stall_s") == (11.0, 11.0)
    assert pair.name == "shaped, 720p, 16 s"


@pytest.mark.parametrize(
    ("later_s", "agree"), [(0.49, True), (-0.49, True), (1.9, True), (2.3, False), (-2.3, False)]
)
def test_agreement_is_half_a_second_or_five_per_cent(
    tmp_path: Path, later_s: float, agree: bool
) -> None:
    add(tmp_path, "chromium")
    add(tmp_path, "model", dataclasses.replace(PLAYED, loaded_s=39 + later_s))
    (pair,) = pairs(trials_in(tmp_path))
    assert pair.agrees("loaded_s") is agree
    assert pair.agrees("startup_s")
    shown = table(results(tmp_path))
    verdicts = {row[-5]: row[-1] for row in shown.rows}
    assert verdicts["loaded s"] == ("agree" if agree else "differ")
    assert verdicts["stalls"] == ""
    assert shown.note.endswith("5 of 5" if agree else "4 of 5")


def test_low_bitrates_come_first(tmp_path: Path) -> None:
    for rule in ("1080p", "240p"):
        add(tmp_path, "model", rule=rule)
        add(tmp_path, "chromium", rule=rule)
    assert [pair.axes["rule"] for pair in pairs(trials_in(tmp_path))] == ["240p", "1080p"]


def test_the_figure_is_drawn(tmp_path: Path) -> None:
    assert list(draw(results(tmp_path))) == []
    add(tmp_path, "model")
    add(tmp_path, "chromium")
    (figure,) = draw(results(tmp_path))
    assert figure.stem == "video-players-guest-buffer"
    assert set(figure.data["player"]) == {"model", "chromium"}
