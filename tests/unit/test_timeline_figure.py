"""A flow on one time axis: from the trial made by hand, whose every event is known."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure as DrawnFigure

from analysis.captures.inspection import flow_record
from analysis.figures import static_renderer
from analysis.figures.figure import (
    Annotation,
    Boxes,
    Curve,
    Figure,
    Panel,
    PointSeries,
    ReferenceLine,
)
from analysis.figures.timeline import timeline_figure as drawing
from analysis.figures.timeline.timeline_data import Timeline, TimeSpan, flow_span, table, timeline
from analysis.figures.timeline.timeline_events import Kind
from analysis.figures.timeline.timeline_text import footer, outcome, stem, title, trust_note
from analysis.verdict.checks import Grade
from analysis.verdict.verdict import Verdict
from testbed.errors import TestbedError, UsageError
from testbed.scenario.named_networks import described
from testbed.scenario.network import Direction, Link, Node, Queue
from testbed.store.reading import Trial, open_trial
from testbed.store.records import QueueRecord
from tests.scenarios import router
from tests.sealing import seal
from tests.trial_writer import ROLES, write_trial


@pytest.fixture(scope="module")
def trial(tmp_path_factory: pytest.TempPathFactory) -> Trial:
    return open_trial(write_trial(tmp_path_factory.mktemp("timeline") / "reno", samples=True))


def story(trial: Trial, start_s: float | None = None, stop_s: float | None = None) -> Timeline:
    flow = flow_record(trial)
    return timeline(trial, flow, flow_span(flow, start_s, stop_s))


def made(trial: Trial, found: Timeline | None = None) -> Figure:
    figure = drawing.drawn(trial, flow_record(trial), found or story(trial), "tcp")
    assert figure is not None
    return figure


def panels(trial: Trial, found: Timeline | None = None) -> list[Panel]:
    return made(trial, found).all_panels


def words(panel: Panel) -> list[str]:
    return [mark.text for mark in panel.marks if isinstance(mark, Annotation)]


def points(panel: Panel, series: str) -> list[tuple[float, float]]:
    """What the lines and points of this series go through."""
    return [
        (round(float(x), 6), float(y))
        for mark in panel.marks
        if isinstance(mark, Curve | PointSeries) and mark.series == series
        for x, y in zip(np.asarray(mark.x), np.asarray(mark.y), strict=True)
    ]


def events(found: Timeline) -> dict[str, list[float]]:
    seen_at = {kind: times for kind, times in found.events.items() if len(times)}
    return {kind: [round(time_s, 4) for time_s in times] for kind, times in seen_at.items()}


def test_every_event_at_its_time(trial: Trial) -> None:
    found = story(trial)
    assert events(found) == {
        Kind.DROP: [2.031],  # when it came to the router
        Kind.FAST: [2.165],
        Kind.SPURIOUS: [3.0],
        Kind.DUPLICATE_ACK: [2.14, 2.15, 2.16, 2.17, 2.18, 2.19, 3.12],
    }
    assert set(found.events) == set(Kind)  # the others are known not to have been


def test_window_states_and_round_trips(trial: Trial) -> None:
    found = story(trial)
    assert found.window is not None and found.states is not None and found.rtts is not None
    assert found.window["cwnd"].tolist() == [10, 12, 5]
    assert found.window["ssthresh"].isna().tolist() == [True, True, False]
    assert found.states.to_numpy().tolist() == [[2.0, 3.0, "open"], [3.0, 11.0, "recovery"]]
    first = found.rtts.iloc[0]
    assert (round(first["time_s"], 4), round(first["rtt_ms"], 4)) == (2.1, 100)


def test_a_span_cuts_and_the_window_before_it_holds(trial: Trial) -> None:
    found = story(trial, 2.5, 3.05)
    assert events(found) == {Kind.SPURIOUS: [3.0]}
    assert found.window is not None and found.states is not None
    assert found.window[["time_s", "cwnd"]].to_numpy().tolist() == [[2.5, 12], [3, 5]]
    assert found.states["start_s"].tolist() == [2.5, 3]
    assert found.states["stop_s"].tolist() == [3, 3.05]


def test_spans(trial: Trial) -> None:
    flow = flow_record(trial)
    assert flow_span(flow, None, None) == TimeSpan(1.0, 11.5)
    assert flow_span(flow, None, 3) == TimeSpan(1.0, 3)
    long = dataclasses.replace(flow, started_s=1.7, stopped_s=20)
    assert flow_span(long, None, None).start_s == 1
    with pytest.raises(UsageError, match="nothing lies between"):
        flow_span(flow, 5, 5)
    assert stem(flow, None, None) == "tcp"
    assert stem(flow, 2, 3.5) == "tcp-2s-3.5s"
    assert stem(flow, None, 3) == "tcp-start-3s"


def test_timeouts_are_rises_of_the_backoff(tmp_path: Path) -> None:
    path = write_trial(tmp_path / "x", samples=True)
    sockets = pd.read_csv(path / "samples" / "sockets.csv")
    sockets.assign(backoff=[0, 1, 2]).to_csv(path / "samples" / "sockets.csv", index=False)
    assert story(open_trial(seal(path))).events[Kind.TIMEOUT].tolist() == [2.01, 3.0]


def test_connections_of_a_flow_are_added_up(tmp_path: Path) -> None:
    path = write_trial(tmp_path / "x", samples=True)
    sockets = pd.read_csv(path / "samples" / "sockets.csv")
    second = sockets.assign(cwnd=1, ca_state="disorder")
    both = pd.concat([sockets, second]).sort_values("time_s", kind="stable")
    both.to_csv(path / "samples" / "sockets.csv", index=False)
    found = story(open_trial(seal(path)))
    assert found.window is not None and found.states is not None
    assert found.window["cwnd"].tolist() == [11, 13, 6]
    assert found.states["state"].tolist() == ["disorder", "recovery"]  # the more serious one


EVENTS = """\
time_s,flow,event,cwnd,ssthresh,srtt_ms,detail
2.001,tcp,probe,10,,100,
2.002,tcp,state,10,,100,disorder
2.003,tcp,state,5,5,100,recovery
2.004,tcp,probe,5,5,100,
2.005,other,probe,99,9,100,
2.006,tcp,state,5,5,100,open
"""


def test_traced_events_are_used_where_there_are_any(tmp_path: Path) -> None:
    path = write_trial(tmp_path / "x", samples=True)
    (path / "samples" / "events.csv").write_text(EVENTS)
    trial = open_trial(seal(path))
    found = story(trial)
    assert found.traced and found.window is not None and found.states is not None
    assert found.window["cwnd"].tolist() == [10, 5]
    assert found.states.to_numpy().tolist() == [
        [1.0, 2.002, "open"],
        [2.002, 2.003, "disorder"],  # between two samples
        [2.003, 2.006, "recovery"],
        [2.006, 11.0, "open"],
    ]
    foot = footer(trial, flow_record(trial), found)
    assert "every change" in foot
    assert "sampled every 10 ms: what is shorter may be missed" in foot


def test_the_bottleneck_is_the_flows_own_not_a_slower_link_elsewhere(trial: Trial) -> None:
    network = trial.scenario.network
    slower = Direction(rate_mbit=0.1, queue=Queue("pie", limit_packets=7))
    distant = Direction(delay_ms=500)
    more = dataclasses.replace(
        network,
        nodes=(*network.nodes, Node("aside"), Node("far")),
        links=(
            *network.links,
            Link(("router", "aside"), slower, Direction()),
            Link(("router", "far"), distant),
        ),
    )
    beside = dataclasses.replace(trial, scenario=dataclasses.replace(trial.scenario, network=more))
    assert more.bottleneck_mbit == 0.1
    flow = flow_record(trial)
    assert title(beside, flow) == title(trial, flow)
    assert footer(beside, flow, story(beside)) == footer(trial, flow, story(trial)).replace(
        described(network), described(more)
    )
    for one, other in zip(panels(beside)[1:3], panels(trial)[1:3], strict=True):
        assert words(one) == words(other)
    assert words(panels(beside)[3])[0] == words(panels(trial)[3])[0]


def test_drops_without_captures_of_the_queue_come_from_its_counter(tmp_path: Path) -> None:
    path = write_trial(tmp_path / "x", samples=True, without=("router-eth0", "router-eth1"))
    assert story(open_trial(path)).events[Kind.DROP].tolist() == [2.04]


def test_panels_and_lanes_share_one_axis(trial: Trial) -> None:
    shown = panels(trial)
    assert [panel.y.label.split("\n")[0] for panel in shown] == [
        "window",
        "RTT",
        "queue",
        "throughput",
        "",
    ]
    assert {panel.x.limits for panel in shown} == {(1.0, 11.5)}
    window, rtt, queue, throughput, lanes = shown
    assert points(window, "cwnd") == [(2.0, 10), (2.01, 12), (3.0, 5)]
    assert points(rtt, "RTT of each ACK")[0] == pytest.approx((2.1, 100))
    assert points(queue, "queue") == [(2.0, 0), (2.04, 3), (3.0, 1)]
    assert points(throughput, "throughput")[0] == pytest.approx((1.0, 108 * 8e-6))
    names = list(lanes.y.tick_labels or ())
    assert names == [*Kind, "congestion state"]
    assert points(lanes, Kind.DROP) == [(2.031, names.index(Kind.DROP))]
    assert points(lanes, Kind.FAST) == [(2.165, names.index(Kind.FAST))]
    assert words(lanes) == ["1", "0", "0", "1", "1", "0", "7", "0"]


def test_a_timeout_crosses_all_panels(trial: Trial) -> None:
    found = story(trial)
    fired = dataclasses.replace(found, events={**found.events, Kind.TIMEOUT: np.array([4.5])})
    for panel in panels(trial, fired):
        lines = [mark for mark in panel.marks if isinstance(mark, ReferenceLine)]
        assert [line.value for line in lines if line.axis == "x"] == [4.5]


def test_states_are_told_by_height_as_well_as_colour(trial: Trial) -> None:
    lanes = panels(trial)[-1]
    bands = {mark.series: mark for mark in lanes.marks if isinstance(mark, Boxes)}
    assert list(bands) == ["disorder", "CWR", "recovery", "loss"]
    recovery = bands["recovery"]
    assert (list(np.asarray(recovery.left)), list(np.asarray(recovery.right))) == ([3], [11])
    assert np.asarray(recovery.bottom) - np.asarray(recovery.top) == pytest.approx(0.7)
    assert [entry.name for entry in lanes.legend] == list(bands)


def overlapping(figure: DrawnFigure) -> list[tuple[str, str]]:
    """Pairs of texts of which one lies on the other."""
    texts = [*figure.texts]
    for axes in figure.axes:
        texts += [*axes.texts, axes.yaxis.label, axes.xaxis.label, axes.title]
        if legend := axes.get_legend():
            texts += legend.get_texts()
    shown = [(t.get_text(), t.get_window_extent()) for t in texts if t.get_text().strip()]
    return [
        (one, other)
        for place, (one, box) in enumerate(shown)
        for other, its in shown[place + 1 :]
        if min(box.x1, its.x1) - max(box.x0, its.x0) > 1
        and min(box.y1, its.y1) - max(box.y0, its.y0) > 2
    ]


def test_no_words_on_others(trial: Trial) -> None:
    found = story(trial)
    near = pd.DataFrame({"time_s": [2.0], "cwnd": [10], "ssthresh": [10.0], "srtt_ms": [100.0]})
    for each in (found, dataclasses.replace(found, window=near)):
        figure = static_renderer.draw(made(trial, each))
        figure.draw_without_rendering()
        assert not overlapping(figure)
        inside = [text.get_window_extent() for axes in figure.axes for text in axes.texts]
        assert max(box.x1 for box in inside) <= figure.bbox.x1


def test_words_are_spread_within_the_panel() -> None:
    assert drawing.spread([5, 1], 2, 0, 10) == [5, 1]
    assert drawing.spread([5, 5, 5], 2, 0, 10) == [5, 3, 1]
    assert drawing.spread([1, 0, 0], 2, 0, 10) == [4, 2, 0]
    assert drawing.spread([10, 10], 2, 0, 10) == [10, 8]


def test_the_limit_and_the_thresholds_of_red(trial: Trial) -> None:
    red = Queue("red", limit_bytes=100_000, options={"min_bytes": 1000, "max_bytes": 4000})
    scenario = router(variant="reno", cbr_mbit=0.1, duration_s=12, queue=red, delay_ms=30)
    recorded = QueueRecord(
        *("router", "router-eth0", 1, 1514, "red", 100_000, "bytes", False, True)
    )
    record = dataclasses.replace(trial.record, queues=(recorded,))
    shown = panels(dataclasses.replace(trial, scenario=scenario, record=record))
    assert words(shown[2]) == [
        "RED min",
        "RED max",
        "limit 100 ↑",  # far above
    ]
    assert "path 60" in words(shown[1])
    recorded = QueueRecord("router", "router-eth0", 1, 1514, "pfifo", 4, "packets", False, True)
    record = dataclasses.replace(trial.record, queues=(recorded,))
    queue = panels(dataclasses.replace(trial, record=record))[2]
    assert queue.y.label == "queue\n(packets)"
    assert words(queue) == ["limit 4"]


def test_a_long_round_trip_does_not_press_the_others_flat(trial: Trial) -> None:
    found = story(trial)
    times = np.arange(2, 11, 0.01)
    values = np.where(times == times[100], 5000.0, 100.0)
    rtts = pd.DataFrame({"time_s": times, "rtt_ms": values})
    panel = panels(trial, dataclasses.replace(found, rtts=rtts))[1]
    assert 100 < float(panel.y.limits[1] or 0) < 200
    (beyond,) = (mark for mark in panel.marks if getattr(mark, "marker", "") == "^")
    assert isinstance(beyond, PointSeries) and beyond.y_place == "panel"
    assert np.asarray(beyond.x).tolist() == pytest.approx([times[100]])
    assert "▲ to 5000" in words(panel)


def test_title_and_outcome(trial: Trial) -> None:
    flow = flow_record(trial)
    assert title(trial, flow) == (
        "reno (flow tcp) through codel of 66 packets · 1 Mbit/s · path RTT 61 ms · seed 1"
    )
    said = outcome(story(trial))
    for part in ("1 s to 11.5 s: ", "1 dropped", "2 sent again", "RTT 100 ms at least"):
        assert part in said


def test_a_verdict_that_is_not_valid_is_printed(
    trial: Trial, monkeypatch: pytest.MonkeyPatch
) -> None:
    verdicts = {
        "": Verdict(Grade.VALID, "", ()),
        "suspect: it rained": Verdict(Grade.SUSPECT, "it rained", ()),
    }
    for words, verdict in verdicts.items():
        monkeypatch.setattr(
            "analysis.figures.timeline.timeline_text.verdict_of", lambda _t, v=verdict: v
        )
        assert trust_note(trial) == words
    figure = made(trial)
    assert figure.warning == words
    drawn = static_renderer.draw(figure)
    drawn.draw_without_rendering()
    assert words in [text.get_text() for text in drawn.texts]
    assert not overlapping(drawn)


def test_a_udp_flow_has_a_queue_and_a_rate(trial: Trial) -> None:
    flow = flow_record(trial, "cbr")
    found = timeline(trial, flow, flow_span(flow, None, None))
    figure = drawing.drawn(trial, flow, found)
    assert figure is not None
    labels = [panel.y.label.split("\n")[0] for panel in figure.all_panels]
    assert labels == ["queue", "throughput", ""]
    assert set(found.events) == {Kind.DROP, Kind.MARK}


def test_without_captures_and_samples_there_is_nothing_to_draw(tmp_path: Path) -> None:
    trial = open_trial(write_trial(tmp_path / "x", without=tuple(ROLES)))
    assert not story(trial).events and story(trial).window is None
    flow = flow_record(trial)
    with pytest.raises(TestbedError, match="neither captured nor sampled"):
        drawing.checked(trial, flow, flow_span(flow, None, None), "tcp")


def test_without_captures_what_was_sampled_is_drawn(tmp_path: Path) -> None:
    trial = open_trial(write_trial(tmp_path / "x", without=tuple(ROLES), samples=True))
    labels = [panel.y.label.split("\n")[0] for panel in panels(trial)]
    assert labels == ["window", "queue", ""]
    assert list(story(trial).events) == [Kind.DROP, Kind.MARK, Kind.TIMEOUT]


def test_the_data_beside_the_figure(trial: Trial, tmp_path: Path) -> None:
    flow = flow_record(trial)
    figure = drawing.checked(trial, flow, flow_span(flow, None, None), "tcp-timeline")
    paths = static_renderer.save(figure, tmp_path)
    assert [path.name for path in paths] == [
        "tcp-timeline.png",
        "tcp-timeline.svg",
        "tcp-timeline.csv",
    ]
    first = [path.read_bytes() for path in paths]
    static_renderer.save(figure, tmp_path)
    assert [path.read_bytes() for path in paths] == first
    kept = pd.read_csv(paths[2])
    assert kept["time_s"].is_monotonic_increasing
    what = kept.groupby("what")["value"].apply(list)
    assert what["cwnd"] == ["10", "12", "5"]
    assert sorted(set(what["event"])) == [
        "duplicate ACK",
        "fast retransmission",
        "lost",
        "spurious retransmission",
    ]
    assert len(kept) == len(table(story(trial)))


def test_thinning_keeps_the_extremes_of_every_column() -> None:
    time_s = np.linspace(0, 1, 100_000)
    value = np.zeros(100_000)
    value[[1234, 56780]] = 7, -7
    x, y = static_renderer.thinned(time_s, value)
    assert {time_s[0], time_s[1234], time_s[56780], time_s[-1]} <= set(x.tolist())
    assert len(x) <= 4 * static_renderer.PIXEL_COLUMNS and (np.diff(x) > 0).all()
    assert (y.min(), y.max()) == (-7, 7)
    assert len(static_renderer.thinned(time_s[:300], value[:300])[0]) == 300
