"""A flow in the formats of other viewers."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from analysis.export import formats
from analysis.figures.time_sequence.sequence_data import Sequence, Stretches


def stretches(*ranges: tuple[float, int, int]) -> Stretches:
    time_s, start, stop = (np.array(each) for each in zip(*ranges, strict=True))
    return Stretches(time_s.astype(float), start.astype(np.int64), stop.astype(np.int64))


@pytest.fixture
def trial(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Two segments, of which the second is lost and sent again."""
    again = stretches((0.3, 101, 201))
    found = Sequence(
        stretches((0.1, 1, 101), (0.2, 101, 201)),
        cast(Any, {"retransmission": again}),
        stretches((0.2, 101, 201)),
        again,
        np.array([0.15, 0.35]),
        np.array([101, 201]),
        None,
        np.array([], dtype=np.int64),
        1,
    )
    counters = {
        "cwnd (packets)": (np.array([0.1]), np.array([10.0])),
        "RTT (ms)": (np.array([0.1]), np.array([50.0])),
    }
    monkeypatch.setattr(formats, "sequence", lambda *_: found)
    monkeypatch.setattr(formats, "_counters", lambda *_: counters)
    scenario = SimpleNamespace(flow=lambda _name: SimpleNamespace(mss=100))
    return SimpleNamespace(path=SimpleNamespace(name="a-trial"), scenario=scenario)


FLOW = cast(Any, SimpleNamespace(name="tcp"))


def test_perfetto_has_counters_and_an_instant_for_each_loss_and_repair(trial: Any) -> None:
    events = json.loads(formats.as_perfetto(trial, FLOW))["traceEvents"]
    counters = [(e["name"], e["ts"], e["args"]["value"]) for e in events if e["ph"] == "C"]
    assert counters == [("cwnd (packets)", 1e5, 10), ("RTT (ms)", 1e5, 50)]
    instants = [(e["name"], e["ts"]) for e in events if e["ph"] == "i"]
    assert instants == [("lost", 2e5), ("sent again: retransmission", 3e5)]


def test_qlog_has_each_segment_in_order_of_time(trial: Any) -> None:
    (trace,) = json.loads(formats.as_qlog(trial, FLOW))["traces"]
    names = [(each["time"], each["name"].partition(":")[2]) for each in trace["events"]]
    assert names == sorted(names, key=lambda each: each[0])
    assert [name for _, name in names].count("packet_sent") == 3
    (lost,) = [e for e in trace["events"] if e["name"] == "recovery:packet_lost"]
    assert (lost["time"], lost["data"]["header"]["packet_number"]) == (200, 101)
    (metrics,) = [e["data"] for e in trace["events"] if e["name"] == "recovery:metrics_updated"]
    assert metrics == {"congestion_window": 1000, "smoothed_rtt": 50}


def test_xplot_draws_segments_losses_and_acknowledgements(trial: Any) -> None:
    lines = formats.as_xplot(trial, FLOW).splitlines()
    assert lines[0] == "double double" and lines[-1] == "go"
    assert lines.count("white") == 2 and lines.count("red") == 1
    assert lines[lines.index("orange") + 1] == "x 0.200000 101"
    assert lines[lines.index("green") + 1] == "line 0.150000 101 0.350000 101"
