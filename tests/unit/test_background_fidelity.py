"""What the verdict says of background traffic that was not what was asked for."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest

from analysis.trials.background import read_files, read_traffic
from analysis.verdict.background import PRESSURE, background
from analysis.verdict.checks import Check, Grade
from testbed.store import FlowRecord, QueueRecord
from tests import scenarios

QUEUE = QueueRecord("left", "left-eth0", 15, 1514, "pfifo", 99, "packets", False, True)
HELD_MS = 100 * 1514 * 8e-3 / 15  # by 99 packets and the one in service
SOUND: dict[str, Any] = {
    "rtt_ms": 100.0,
    "rtt_min_ms": 100.0,
    "window_bytes": 64_000,
    "failures": 0,
    "resets": 0,
}
RECORD = FlowRecord(
    "background", "tcp", "10.1.2.2", "10.2.2.2", (), 0, 0.0, 10.0, 0.0, 10.0, "reno", "reno"
)


def evidence(folder: Path, sessions: list[dict[str, Any]], **changes: Any) -> Any:
    """A trial of four sessions, one of them long."""
    (folder / "samples").mkdir()
    totals = {"load_mbit": 3.0, "share_of_link": 0.2, "loss_rate": 0.01}
    text = json.dumps({**totals, "sessions": sessions})
    (folder / "samples" / "background.json").write_text(text)
    record = SimpleNamespace(background=dataclasses.replace(RECORD, **changes), queues=(QUEUE,))
    scenario = scenarios.background(4)
    counters: dict[str, dict[str, int]] = {"sender2": {}, "receiver2": {}}
    (folder / "samples" / "counters.json").write_text(json.dumps(counters))
    return SimpleNamespace(
        trial=SimpleNamespace(scenario=scenario, record=record, path=folder),
        virtual_time=True,
    )


def four() -> list[dict[str, Any]]:
    return [{**SOUND, "kind": kind} for kind in ("web", "long", "web", "web")]


def bad(found: list[Check]) -> set[str]:
    return {check.name for check in found if check.verdict is not Grade.VALID}


def test_sound_traffic_is_valid(tmp_path: Path) -> None:
    found = list(background(evidence(tmp_path, four())))
    assert not bad(found) and len(found) == 8


def test_a_scenario_without_it_is_not_asked(tmp_path: Path) -> None:
    case = evidence(tmp_path, four())
    case.trial.scenario = scenarios.router()
    assert not list(background(case))


def _with(**changes: Any) -> Callable[[list[dict[str, Any]]], None]:
    return lambda sessions: sessions[2].update(changes)


@pytest.mark.parametrize(
    ("change", "name"),
    [
        (_with(kind="long"), "background sessions"),
        (lambda sessions: sessions.pop(), "background sessions"),
        (_with(rtt_min_ms=99.0), "background RTT"),
        (_with(rtt_min_ms=101.0 + HELD_MS), "background RTT"),
        (_with(window_bytes=64_001), "background window"),
        (_with(failures=1), "background failures"),
        (_with(resets=1), "background failures"),
    ],
)
def test_each_fault_is_named(
    tmp_path: Path, change: Callable[[list[dict[str, Any]]], None], name: str
) -> None:
    sessions = four()
    change(sessions)
    assert bad(list(background(evidence(tmp_path, sessions)))) == {name}


def test_a_round_trip_may_have_met_queues_and_may_be_unknown(tmp_path: Path) -> None:
    sessions = four()
    sessions[0]["rtt_min_ms"] = 100.0 + HELD_MS - 0.1
    sessions[1]["rtt_min_ms"] = None
    assert not bad(list(background(evidence(tmp_path, sessions))))


@pytest.mark.parametrize(
    ("change", "name"),
    [({"variant_seen": "cubic+reno"}, "variant"), ({"stopped_s": 9.0}, "stop")],
)
def test_the_record_counts_too(tmp_path: Path, change: dict[str, Any], name: str) -> None:
    assert bad(list(background(evidence(tmp_path, four(), **change)))) == {name}


def test_memory_that_ran_short(tmp_path: Path) -> None:
    case = evidence(tmp_path, four())
    counters = {"receiver2": {PRESSURE: 1}}
    (tmp_path / "samples" / "counters.json").write_text(json.dumps(counters))
    assert bad(list(background(case))) == {"memory"}


def test_the_reader_tells_load_and_loss_of_an_interval(tmp_path: Path) -> None:
    case = evidence(tmp_path, four())
    columns = ["time_s", "sent_packets", "sent_bytes", "delivered_packets", "delivered_bytes"]
    rows = [(0, 0, 0, 0, 0), (1, 500, 0, 500, 500_000), (2, 1500, 0, 1400, 1_400_000)]
    table = pd.DataFrame(rows, columns=columns)
    table.to_csv(tmp_path / "samples" / "background.csv", index=False)
    traffic = read_traffic(case.trial)
    assert traffic is not None and len(traffic.sessions) == 4
    assert traffic.whole.loss_rate == 0.01
    second = traffic.load(1.01, 2)
    assert second.mbit == pytest.approx(7.2) and second.share == pytest.approx(7.2 / 15)
    assert second.loss_rate == pytest.approx(0.1)
    assert traffic.load(1, 1).mbit == 0


def test_the_reader_lists_files(tmp_path: Path) -> None:
    case = evidence(tmp_path, four())
    (tmp_path / "flows").mkdir()
    sessions = [{"files": []}, {"files": [[1_500_000_000, 250_000_000, 8000]]}]
    (tmp_path / "flows" / "background.client.json").write_text(json.dumps({"sessions": sessions}))
    files = read_files(case.trial)
    assert files.to_dict("records") == [
        {"session": 1, "begun_s": 1.5, "took_s": 0.25, "bytes": 8000}
    ]
