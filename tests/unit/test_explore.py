"""`testbed explore` without trials: sliders, positions, and what a page may ask for."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from analysis.report.explore_page import Json
from testbed.errors import UsageError
from testbed.runs import explore
from testbed.runs.explore import (
    LATTICE,
    USUAL_DOCUMENT,
    USUAL_SLIDERS,
    Exploration,
    LiveExploration,
    Position,
    exploration,
    whole_page,
)
from testbed.runs.orchestration import RunListener, RunOptions
from tests.scenarios import router

RATE = "topology.bottleneck.rate_mbit"


@pytest.fixture
def found() -> Exploration:
    return exploration(None, {}, whole=False)


def test_a_position_is_a_scenario(found: Exploration) -> None:
    scenario = found.scenario((0, 5, 2, 2, 1, 2))
    assert scenario.network.bottleneck_mbit == 1 and scenario.network.longest_rtt_ms == 200
    assert scenario.network.bottleneck_queue.discipline == "codel"
    assert scenario.network.bottleneck_queue.limit_bdp == 1
    assert [flow.variant for flow in scenario.flows] == ["linux-reno", "bbr"]


def test_every_value_of_the_sliders_is_valid(found: Exploration) -> None:
    first = tuple(each.first for each in USUAL_SLIDERS)
    for number, slider in enumerate(USUAL_SLIDERS):
        for at in range(len(slider.values)):
            found.scenario((*first[:number], at, *first[number + 1 :]))


def test_the_page_opens_at_the_document(found: Exploration) -> None:
    chosen = [slider.values[slider.first] for slider in found.sliders]
    assert chosen == ["10", "50", "1", "pfifo", "cubic", "bbr"]
    lattice = exploration(None, {}, whole=True)
    assert len(lattice.positions()) == 324
    assert [s.values[s.first] for s in lattice.sliders] == [
        "10",
        "20",
        "1",
        "pfifo",
        "cubic",
        "bbr",
    ]


def test_values_can_be_named(found: Exploration) -> None:
    named = exploration(None, {RATE: ("3", "10"), "duration_s": ("2", "4")}, whole=False)
    rate, *_, duration = named.sliders
    assert (rate.values, rate.first, rate.label) == (("3", "10"), 1, "rate, Mbit/s")
    assert (duration.place, duration.label) == ("duration_s", "duration_s")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({RATE: ("fast",)}, "rate_mbit"),
        ({RATE: ("10", "-1")}, "rate_mbit"),
        ({"topology.bottleneck.queue.discipline": ("pfifo", "fifo")}, "unknown queue"),
        ({"flows.one.colour": ("red",)}, "colour"),
        ({"seed": ("1", "2")}, "not a field to set"),
    ],
)
def test_a_value_that_cannot_be_is_refused(
    settings: dict[str, tuple[str, ...]], message: str
) -> None:
    with pytest.raises(UsageError) as raised:
        exploration(None, settings, whole=False)
    assert message in str(raised.value)


def test_a_file_of_ones_own(tmp_path: Path) -> None:
    file = tmp_path / "own.json"
    file.write_text(json.dumps({**USUAL_DOCUMENT, "flows": USUAL_DOCUMENT["flows"][::-1]}))  # type: ignore[index]
    own = exploration(file, {"flows.one.variant": ("cubic", "vegas")}, whole=True)
    assert own.explored.title == "own: other beside one" and len(own.positions()) == 2
    with pytest.raises(UsageError, match="what is to be moved"):
        exploration(file, {}, whole=False)
    file.write_text(router().to_json())
    with pytest.raises(UsageError, match="two flows are compared"):
        exploration(file, {"duration_s": ("1", "2")}, whole=False)


@pytest.mark.parametrize(
    "at",
    [
        *("", "0", "0.0.0.0.0", "0.0.0.0.0.0.0", "6.0.0.0.0.0", "-1.0.0.0.0.0", "0.0.0.0.0.x"),
        *("1e1.0.0.0.0.0", "0.0.0.0.0.\u0660", "0" * 5000),
    ],
)
def test_only_positions_can_be_asked_for(found: Exploration, at: str) -> None:
    live = LiveExploration(found)
    assert live.news({"at": [at]}) == {"fault": "There is no such position."}
    assert live.news({}) == {"fault": "There is no such position."}


class Runs:
    """Stands in for trials: notes what runs, and lets the test do something meanwhile."""

    def __init__(self) -> None:
        self.ran: list[Position] = []
        self.out: list[Path] = []
        self.meanwhile = threading.Event()

    def __call__(
        self, _found: Exploration, at: Sequence[Position], options: RunOptions, _l: RunListener
    ) -> dict[Position, Json]:
        assert options.out and options.out.parent.is_dir()
        self.out.append(options.out.parent)
        self.ran += at
        return {each: {"rows": [list(each)]} for each in at}


def test_the_latest_position_wins(found: Exploration, monkeypatch: pytest.MonkeyPatch) -> None:
    runs, live = Runs(), LiveExploration(found)
    monkeypatch.setattr(explore, "run_positions", runs)
    for rate in (0, 1, 2):
        assert live.news({"at": [f"{rate}.0.0.0.0.0"]}) == {"waiting": True}
    live.run_next()
    assert runs.ran == [(2, 0, 0, 0, 0, 0)]
    assert live.news({"at": ["2.0.0.0.0.0"]}) == {"rows": [[2, 0, 0, 0, 0, 0]]}
    assert not any(each.exists() for each in runs.out)


def test_a_position_that_cannot_run_says_why(
    found: Exploration, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> dict[Position, Json]:
        raise UsageError("no kernel is built")

    monkeypatch.setattr(explore, "run_positions", refuse)
    live = LiveExploration(found)
    live.news({"at": ["0.0.0.0.0.0"]})
    live.run_next()
    assert live.news({"at": ["0.0.0.0.0.0"]})["fault"].startswith("no kernel is built")


def test_a_page_has_its_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    many = exploration(None, {RATE: [str(n) for n in range(1, 100)]}, whole=True)
    with pytest.raises(UsageError, match="16,038 positions; a page has at most 5,000"):
        whole_page(many, RunOptions(), RunListener())
    few = exploration(None, {place: values[:1] for place, values in LATTICE.items()}, whole=True)

    def large(_: object, positions: Sequence[Position], *__: object) -> dict[Position, Json]:
        return {each: {"series": "A" * 10_000_000} for each in positions}

    monkeypatch.setattr(explore, "run_positions", large)
    with pytest.raises(UsageError, match="MB; it is to have at most 10"):
        whole_page(few, RunOptions(), RunListener())
