"""A flow on one time axis: from the trial made by hand, whose every event is known."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis.captures.inspection import flow_record
from analysis.figures.plotting.thinning import seen
from analysis.figures.timeline import timeline_figure as drawing
from analysis.figures.timeline.timeline_data import TimeSpan, Timeline, flow_span, table, timeline
from analysis.figures.timeline.timeline_events import Kind
from analysis.figures.timeline.timeline_text import doubt, footer, outcome, stem, title
from analysis.verdict.checks import Grade
from analysis.verdict.verdict import Verdict
from testbed.errors import TestbedError, UsageError
from testbed.scenario.model import Queue
from testbed.store import QueueRecord, Trial, open_trial
from tests.scenarios import router
from tests.trial_writer import ROLES, write_trial


@pytest.fixture(scope="module")
def trial(tmp_path_factory: pytest.TempPathFactory) -> Trial:
    return open_trial(write_trial(tmp_path_factory.mktemp("timeline") / "reno", samples=True))


def story(trial: Trial, start_s: float | None = None, stop_s: float | None = None) -> Timeline:
    flow = flow_record(trial)
    return timeline(trial, flow, flow_span(flow, start_s, stop_s))


def drawn(trial: Trial, found: Timeline | None = None) -> Figure:
    figure = drawing._figure(trial, flow_record(trial), found or story(trial))
    figure.draw_without_rendering()
    return figure


def points(axes: Axes, label: str) -> list[tuple[float, float]]:
    """What the lines of this name go through."""
    return [
        (round(float(x), 6), float(y))
        for line in axes.lines
        if line.get_label() == label
        for x, y in zip(np.asarray(line.get_xdata()), np.asarray(line.get_ydata()), strict=True)
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
    assert story(open_trial(path)).events[Kind.TIMEOUT].tolist() == [2.01, 3.0]


def test_connections_of_a_flow_are_added_up(tmp_path: Path) -> None:
    path = write_trial(tmp_path / "x", samples=True)
    sockets = pd.read_csv(path / "samples" / "sockets.csv")
    second = sockets.assign(cwnd=1, ca_state="disorder")
    both = pd.concat([sockets, second]).sort_values("time_s", kind="stable")
    both.to_csv(path / "samples" / "sockets.csv", index=False)
    found = story(open_trial(path))
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
    trial = open_trial(path)
    found = story(trial)
    assert found.traced and found.window is not None and found.states is not None
    assert found.window["cwnd"].tolist() == [10, 5]
    assert found.states.to_numpy().tolist() == [
        [1.0, 2.002, "open"],
        [2.002, 2.003, "disorder"],  # between two samples
        [2.003, 2.006, "recovery"],
        [2.006, 11.0, "open"],
    ]
    assert "every change" in footer(trial, found)
    assert "sampled every 10 ms: what is shorter may be missed" in footer(trial, found)


def test_drops_without_captures_of_the_queue_come_from_its_counter(tmp_path: Path) -> None:
    path = write_trial(tmp_path / "x", samples=True, without=("router-eth0", "router-eth1"))
    assert story(open_trial(path)).events[Kind.DROP].tolist() == [2.04]


def test_panels_and_lanes_share_one_axis(trial: Trial) -> None:
    figure = drawn(trial)
    labels = [axes.get_ylabel().split("\n")[0] for axes in figure.axes]
    assert labels == ["window", "RTT", "queue", "throughput", ""]
    assert {axes.get_xlim() for axes in figure.axes} == {(1.0, 11.5)}
    window, rtt, queue, throughput, lanes = figure.axes
    assert points(window, "cwnd") == [(2.0, 10), (2.01, 12), (3.0, 5)]
    assert points(rtt, "RTT of each ACK")[0] == pytest.approx((2.1, 100))
    assert points(queue, "queue") == [(2.0, 0), (2.04, 3), (3.0, 1)]
    assert points(throughput, "throughput")[0] == pytest.approx((1.0, 108 * 8e-6))
    names = [label.get_text() for label in lanes.get_yticklabels()]
    assert names == [*Kind, "congestion state"]
    assert points(lanes, Kind.DROP) == [(2.031, names.index(Kind.DROP))]
    assert points(lanes, Kind.FAST) == [(2.165, names.index(Kind.FAST))]
    counts = [text.get_text() for text in lanes.texts]
    assert counts == ["1", "0", "0", "1", "1", "0", "7", "0"]


def test_a_timeout_crosses_all_panels(trial: Trial) -> None:
    found = story(trial)
    fired = dataclasses.replace(found, events={**found.events, Kind.TIMEOUT: np.array([4.5])})
    for axes in drawn(trial, fired).axes:
        assert any(np.asarray(line.get_xdata()).tolist() == [4.5, 4.5] for line in axes.lines)


def test_states_are_told_by_height_as_well_as_colour(trial: Trial) -> None:
    lanes = drawn(trial).axes[-1]
    bands = {band.get_label(): band for band in lanes.collections}
    assert list(bands) == ["disorder", "cwr", "recovery", "loss"]
    (recovery,) = bands["recovery"].get_paths()
    corners = np.asarray(recovery.vertices)
    assert corners[:, 0].min() == 3 and corners[:, 0].max() == 11
    assert corners[:, 1].max() - corners[:, 1].min() == pytest.approx(0.7)


def overlapping(figure: Figure) -> list[tuple[str, str]]:
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
        figure = drawn(trial, each)
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
    figure = drawn(dataclasses.replace(trial, scenario=scenario))
    assert [text.get_text() for text in figure.axes[2].texts] == [
        "RED min",
        "RED max",
        "limit 100 ↑",  # far above
    ]
    assert "path 60" in [text.get_text() for text in figure.axes[1].texts]
    recorded = QueueRecord("router", "router-eth0", 1, 1514, "pfifo", 4, "packets", False, True)
    record = dataclasses.replace(trial.record, queues=(recorded,))
    queue = drawn(dataclasses.replace(trial, record=record)).axes[2]
    assert queue.get_ylabel() == "queue\n(packets)"
    assert [text.get_text() for text in queue.texts] == ["limit 4"]


def test_a_long_round_trip_does_not_press_the_others_flat(trial: Trial) -> None:
    found = story(trial)
    times = np.arange(2, 11, 0.01)
    values = np.where(times == times[100], 5000.0, 100.0)
    rtts = pd.DataFrame({"time_s": times, "rtt_ms": values})
    axes = drawn(trial, dataclasses.replace(found, rtts=rtts)).axes[1]
    assert 100 < axes.get_ylim()[1] < 200
    assert points(axes, "beyond")[0][0] == pytest.approx(times[100])
    assert "▲ to 5000" in [text.get_text() for text in axes.texts]


def test_title_and_outcome(trial: Trial) -> None:
    flow = flow_record(trial)
    assert title(trial, flow) == (
        "reno (flow tcp) through bfifo of 100 kB · 1 Mbit/s · path RTT 0 ms · seed 1"
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
        assert doubt(trial) == words
    figure = drawing._figure(trial, flow_record(trial), story(trial), words)
    figure.draw_without_rendering()
    assert words in [text.get_text() for text in figure.texts]
    assert not overlapping(figure)


def test_a_udp_flow_has_a_queue_and_a_rate(trial: Trial) -> None:
    flow = flow_record(trial, "cbr")
    found = timeline(trial, flow, flow_span(flow, None, None))
    figure = drawing._figure(trial, flow, found)
    assert [axes.get_ylabel().split("\n")[0] for axes in figure.axes] == ["queue", "throughput", ""]
    assert set(found.events) == {Kind.DROP, Kind.MARK}


def test_without_captures_and_samples_there_is_nothing_to_draw(tmp_path: Path) -> None:
    trial = open_trial(write_trial(tmp_path / "x", without=tuple(ROLES)))
    assert not story(trial).events and story(trial).window is None
    flow = flow_record(trial)
    with pytest.raises(TestbedError, match="neither captured nor sampled"):
        drawing.draw(trial, flow, flow_span(flow, None, None), tmp_path, "tcp")


def test_without_captures_what_was_sampled_is_drawn(tmp_path: Path) -> None:
    trial = open_trial(write_trial(tmp_path / "x", without=tuple(ROLES), samples=True))
    labels = [axes.get_ylabel().split("\n")[0] for axes in drawn(trial).axes]
    assert labels == ["window", "queue", ""]
    assert list(story(trial).events) == [Kind.DROP, Kind.MARK, Kind.TIMEOUT]


def test_the_data_beside_the_figure(trial: Trial, tmp_path: Path) -> None:
    flow = flow_record(trial)
    paths = drawing.draw(trial, flow, flow_span(flow, None, None), tmp_path, "tcp")
    assert [path.name for path in paths] == [
        "tcp-timeline.png",
        "tcp-timeline.svg",
        "tcp-timeline.csv",
    ]
    first = [path.read_bytes() for path in paths]
    drawing.draw(trial, flow, flow_span(flow, None, None), tmp_path, "tcp")
    assert [path.read_bytes() for path in paths] == first
    kept = pd.read_csv(paths[2])
    assert kept["time_s"].is_monotonic_increasing
    what = kept.groupby("what")["value"].apply(list)
    assert what["cwnd"] == ["10", "12", "5"]
    assert sorted(set(what["event"])) == [
        "dropped at the queue",
        "duplicate ACK",
        "fast retransmission",
        "spurious retransmission",
    ]
    assert len(kept) == len(table(story(trial)))


def test_thinning_keeps_the_extremes_of_every_column() -> None:
    time_s = np.linspace(0, 1, 10_000)
    value = np.zeros(10_000)
    value[[1234, 5678]] = 7, -7
    kept = seen(time_s, value, 100)
    assert {0, 1234, 5678, 9999} <= set(kept.tolist())
    assert len(kept) <= 400 and (np.diff(kept) > 0).all()
    assert len(seen(time_s[:300], value[:300], 100)) == 300
