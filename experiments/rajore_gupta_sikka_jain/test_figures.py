"""What the report draws of video-access, from tables made by hand."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from analysis.figures.figure import Figure, Panel, PointSeries, ShadedRange
from analysis.metrics.metric_rows import with_axes
from analysis.report.network_drawing import drawing
from analysis.results.experiment_results import ExperimentResults
from experiments.rajore_gupta_sikka_jain import figures
from experiments.rajore_gupta_sikka_jain import video_for_tests as made
from experiments.rajore_gupta_sikka_jain.video_access import EXPERIMENT


def results_of(rows: pd.DataFrame) -> ExperimentResults:
    return ExperimentResults(
        "video-access", "guest", (), rows, rows, pd.DataFrame(), definition=EXPERIMENT
    )


@pytest.fixture(scope="module")
def rows() -> pd.DataFrame:
    table = made.video_metrics(seeds=2).assign(kind="video", verdict="")
    return with_axes(table.assign(number=table["trial"].factorize()[0] + 1))


@pytest.fixture(scope="module")
def drawn(rows: pd.DataFrame) -> dict[str, Figure]:
    drawings = figures.draw(results_of(rows))
    return {figure.stem.removeprefix("video-access-guest-"): figure for figure in drawings}


def crosses(panel: Panel) -> dict[str, float]:
    (mark,) = (m for m in panel.marks if isinstance(m, PointSeries) and m.marker == "x")
    places = np.ravel(mark.y).astype(int)
    return dict(zip((panel.y.names[each] for each in places), np.ravel(mark.x), strict=True))


def test_the_papers_numbers_stand_beside_ours(drawn: dict[str, Figure]) -> None:
    assert list(drawn) == ["setting", "hall"]
    panels = drawn["setting"].all_panels
    assert [panel.title for panel in panels[:2]] == ["good WiFi", "Ethernet"]
    assert crosses(panels[0]) == {"veno": 109, "cubic": 122, "vegas": 124}
    assert crosses(panels[2]) == pytest.approx({"veno": 38.535, "cubic": 49.587, "vegas": 16.852})


def test_both_settings_are_drawn_for_each_variant(drawn: dict[str, Figure]) -> None:
    good = drawn["setting"].data.query("network == 'wifi-good'")
    assert set(zip(good["axis_variant"], good["axis_setting"], strict=True)) == {
        (variant, setting) for variant in made.THREE for setting in ("receiver", "sender")
    }
    assert "set on the laptop, as in the paper, by at most 1" in drawn["setting"].caption


def test_the_hall_has_the_papers_minutes(drawn: dict[str, Figure]) -> None:
    ranges = [m for p in drawn["hall"].all_panels for m in p.marks if isinstance(m, ShadedRange)]
    assert [(mark.start, mark.stop) for mark in ranges] == [(60, 120)]
    assert {"TCP veno", "QUIC cubic"} <= set(drawn["hall"].data["line"])
    assert set(drawn["hall"].data["network"]) == {"wifi-congested"}


def test_what_was_not_run_is_not_drawn(rows: pd.DataFrame) -> None:
    wired = rows[rows["axis_network"] == "ethernet"]
    (figure,) = figures.draw(results_of(wired))
    assert [panel.title for panel in figure.all_panels] == ["Ethernet"]
    assert not list(figures.draw(results_of(wired.drop(columns="axis_setting"))))


def test_networks_that_differ_are_said_to() -> None:
    points = list(EXPERIMENT.scenarios({}, 1, quick=False))
    whole = drawing(points)
    assert ">internet<" not in whole
    ours, netem = (
        drawing([each for each in points if each.axes["network"] == name])
        for name in ("wifi-congested", "netem-congested")
    )
    assert ">-80 dBm<" in ours and "50 % others" in ours
    assert ">1.89/0.01 Mbit/s<" in netem and "% lost" in netem
