"""Sequence numbers over time: a capture made by hand, with SACK, a scaled window and losses."""

from __future__ import annotations

import dataclasses
import itertools
import struct
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from analysis.captures.inspection import flow_record
from analysis.figures import static_renderer
from analysis.figures.figure import (
    Annotation,
    Curve,
    Figure,
    Panel,
    PointSeries,
    SegmentSet,
    ShadedRange,
)
from analysis.figures.time_sequence import sequence_figure as drawing
from analysis.figures.time_sequence.sequence_data import Sequence, Stretches, sequence, table, zoom
from analysis.figures.time_sequence.sequence_figure import ACK_SERIES, CAPPED_KB
from analysis.figures.timeline.timeline_data import TimeSpan
from analysis.figures.timeline.timeline_events import Kind
from testbed.errors import TestbedError
from testbed.store.reading import Trial, open_trial
from tests.pcap_writer import Frame, tcp, write_pcap
from tests.sealing import seal
from tests.trial_writer import ISN, SIZE, TCP, ns, write_trial

PEER = 2**32 - 1  # the receiver's first number: the next one is 0
SCALE = 3
SYN_OPTIONS = bytes.fromhex("020405b4 04020101") + bytes((3, 3, SCALE, 1))
WHOLE = TimeSpan(1.0, 11.5)


def sack(*blocks: tuple[int, int]) -> bytes:
    """An option: blocks from one segment's number to another's."""
    edges = [(ISN + 1 + SIZE * number) % 2**32 for block in blocks for number in block]
    return bytes((1, 1, 5, 2 + 4 * len(edges))) + struct.pack(f"!{len(edges)}I", *edges)


def data(time_s: float, number: int, ip_id: int) -> Frame:
    seq = ISN + 1 + SIZE * number
    return tcp(TCP, ns(time_s), seq=seq, ack=PEER + 1, payload=SIZE, ip_id=ip_id)


def ack(time_s: float, number: int, window: int = 1000, options: bytes = b"") -> Frame:
    acked = ISN + 1 + SIZE * number
    return tcp(TCP.back, ns(time_s), seq=PEER + 1, ack=acked, window=window, options=options)


def handshake() -> list[Frame]:
    """100 ms to the other end and back."""
    return [
        tcp(TCP, ns(1.0), seq=ISN, flags="S", ip_id=1, options=SYN_OPTIONS),
        tcp(TCP.back, ns(1.1), seq=PEER, ack=ISN + 1, flags="SA", window=500, options=SYN_OPTIONS),
        tcp(TCP, ns(1.1), seq=ISN + 1, ack=PEER + 1, ip_id=2),
    ]


def sender_sees() -> list[Frame]:
    """Segments 0 to 5; 1 and 3 are lost and sent again; the numbers wrap in the third."""
    return [
        *handshake(),
        *(data(2 + 0.001 * i, i, 10 + i) for i in range(6)),
        ack(2.1, 1),
        ack(2.102, 1, options=sack((2, 3))),
        ack(2.104, 1, options=sack((4, 5), (2, 3))),
        ack(2.105, 1, options=sack((4, 6), (2, 3))),
        data(2.106, 1, 20),
        data(2.5, 3, 21),
        ack(2.206, 3, options=sack((4, 6))),
        ack(2.6, 6, window=2000),
    ]


def made(path: Path, frames: list[Frame]) -> Trial:
    """The trial with another capture at its sender, and what came of it at the receiver."""
    write_trial(path, samples=True)
    frames = sorted(frames, key=lambda frame: frame.time_ns)
    write_pcap(path / "captures" / "sender1-eth0.pcap", frames)
    lost = (data(2.001, 1, 11), data(2.003, 3, 13))
    arrived = [frame.at(frame.time_ns + 50_000_000) for frame in frames if frame not in lost]
    write_pcap(path / "captures" / "receiver-eth0.pcap", arrived)
    return open_trial(seal(path))


@pytest.fixture(scope="module")
def trial(tmp_path_factory: pytest.TempPathFactory) -> Trial:
    return made(tmp_path_factory.mktemp("sequence") / "x", sender_sees())


@pytest.fixture
def found(trial: Trial) -> Sequence:
    return sequence(trial, flow_record(trial))


def ranges(each: Stretches) -> list[tuple[float, int, int]]:
    """Times to a tenth of a millisecond, and numbers of segments."""
    rows = zip(each.time_s, each.start, each.stop, strict=True)
    return [(round(float(t), 4), (int(a) - 1) // SIZE, (int(b) - 1) // SIZE) for t, a, b in rows]


def test_segments_first_and_again(found: Sequence) -> None:
    assert ranges(found.new) == [(round(2 + 0.001 * i, 4), i, i + 1) for i in range(6)]
    assert found.new.start[0] == 1  # the SYN is number 0
    assert {kind: ranges(each) for kind, each in found.again.items() if len(each)} == {
        Kind.FAST: [(2.106, 1, 2)],
        Kind.RETRANSMISSION: [(2.5, 3, 4)],
    }
    assert ranges(found.lost) == [(2.001, 1, 2), (2.003, 3, 4)]


def test_acknowledgements_and_duplicates(found: Sequence) -> None:
    acked = [(int(each) - 1) // SIZE for each in found.ack]
    assert acked == [0, 1, 1, 1, 1, 3, 6]  # the SYN's first
    assert [round(float(found.ack_s[place]), 4) for place in found.duplicates] == [
        2.102,
        2.104,
        2.105,
    ]


def test_the_window_is_scaled_but_for_the_syn(found: Sequence) -> None:
    assert found.window_edge is not None
    widths = (found.window_edge - found.ack).tolist()
    assert widths == [500, *[1000 << SCALE] * 5, 2000 << SCALE]


def test_sack_blocks(found: Sequence) -> None:
    assert ranges(found.sacks) == [
        (2.102, 2, 3),
        (2.104, 4, 5),
        (2.104, 2, 3),
        (2.105, 4, 6),
        (2.105, 2, 3),
        (2.206, 4, 6),
    ]


def test_a_window_whose_scale_was_not_seen_is_not_told(tmp_path: Path) -> None:
    late = made(tmp_path / "x", sender_sees()[3:])
    found = sequence(late, flow_record(late))
    assert found.window_edge is None
    assert "not known" in " ".join(words(panels(late, found)[1]))


def test_the_zoom_is_from_the_first_loss_to_its_repair(found: Sequence) -> None:
    """A round trip is 100 ms; what was outstanding at the first repetition is there at 2.6 s."""
    near = zoom(found, WHOLE)
    assert (near.start_s, near.stop_s) == pytest.approx((2.001 - 0.075, 2.6 + 0.05))
    assert zoom(found, TimeSpan(1.95, 2.2)) == TimeSpan(1.95, 2.2)
    late = dataclasses.replace(found, ack_s=found.ack_s + 2.0 * (found.ack_s > 2.5))
    assert zoom(late, WHOLE).stop_s == pytest.approx(2.001 + 0.8)
    never = dataclasses.replace(found, again={})
    assert zoom(never, WHOLE).stop_s == pytest.approx(2.001 + 0.45)
    sound = dataclasses.replace(found, again={}, lost=found.lost.within(TimeSpan(0, 1)))
    assert sound.first_trouble_s is None
    assert zoom(sound, WHOLE).start_s == pytest.approx(2 - 0.075)


def diagram(trial: Trial, found: Sequence, near: TimeSpan | None = None) -> Figure:
    near = near or zoom(found, WHOLE)
    return drawing.drawn(trial, flow_record(trial), found, WHOLE, near, "tcp")


def panels(trial: Trial, found: Sequence, near: TimeSpan | None = None) -> list[Panel]:
    return diagram(trial, found, near).all_panels


def words(panel: Panel) -> list[str]:
    return [mark.text for mark in panel.marks if isinstance(mark, Annotation)]


def bars(panel: Panel, series: str) -> list[tuple[float, float, float]]:
    """Time, first and last byte of each vertical line."""
    return [
        (round(float(x), 4), round(float(low), 3), round(float(high), 3))
        for mark in panel.marks
        if isinstance(mark, SegmentSet) and mark.series == series
        for x, low, high in zip(*map(np.asarray, (mark.x, mark.y, mark.y_end)), strict=True)
    ]


def curve(panel: Panel, series: str) -> list[tuple[float, float]]:
    return [
        (round(float(x), 4), round(float(y), 3))
        for mark in panel.marks
        if isinstance(mark, Curve | PointSeries) and mark.series == series
        for x, y in zip(np.asarray(mark.x), np.asarray(mark.y), strict=True)
    ]


def test_the_close_look_has_every_packet(trial: Trial, found: Sequence) -> None:
    _, close = panels(trial, found)
    # kB above 0: segment 0 begins at byte 1
    assert bars(close, "segment")[0] == (2.0, 0.001, 1.001)
    assert len(bars(close, "segment")) == 6
    assert (2.105, 4.001, 6.001) in bars(close, "SACK block")
    assert curve(close, "fast retransmission") == [(2.106, 2.001)]
    assert bars(close, "fast retransmission") == [(2.106, 1.001, 2.001)]
    assert curve(close, "lost") == [(2.001, 1.501), (2.003, 3.501)]
    acks = curve(close, ACK_SERIES)
    assert acks[0] == (1.1, 0.001) and (2.206, 3.001) in acks
    (ticks,) = (mark for mark in close.marks if getattr(mark, "marker", "") == "tickup")
    assert isinstance(ticks, PointSeries) and len(np.asarray(ticks.x)) == 3
    assert (2.1, 9.001) in curve(close, "receiver's window")
    assert words(close).count("R") == 2
    low, high = close.y.limits
    assert float(high or 0) - float(low or 0) < CAPPED_KB
    assert any(getattr(mark, "marker", "") == "_" for mark in close.marks)


def test_the_overview_has_all_and_says_where_the_close_look_is(
    trial: Trial, found: Sequence
) -> None:
    overview, close = panels(trial, found)
    assert overview.x.limits == (1.0, 11.5)
    assert len(bars(overview, "segment")) == 6
    assert curve(overview, "retransmission") == [(2.5, 0.003)]
    (place,) = (mark for mark in overview.marks if isinstance(mark, ShadedRange))
    assert (place.start, place.stop) == close.x.limits


def test_the_pages_panel_has_every_packet_with_its_numbers(found: Sequence) -> None:
    panel = drawing.page_panel(found)
    marks = [mark for mark in panel.marks if isinstance(mark, SegmentSet | Curve) and mark.columns]
    frames = np.concatenate([np.asarray(mark.columns["frame"]) for mark in marks])
    # of all but the SYN's answer, which is no segment and acknowledges, and the handshake's end
    assert len(set(frames)) == len(frames) == 6 + 2 + len(found.ack)
    assert found.ack_words[2:5] != ("", "", "") and found.ack_words[0] == ""


def test_what_is_far_above_is_told_in_words(trial: Trial, found: Sequence) -> None:
    assert found.window_edge is not None
    high = dataclasses.replace(found, window_edge=found.window_edge + 10**6)
    (said,) = (text for text in words(panels(trial, high)[1]) if len(text) > 1)
    assert said.startswith("receiver's window: 99") and said.endswith("above the picture")


def test_many_segments_stay_few_lines(trial: Trial, found: Sequence) -> None:
    count = 100_000
    start = np.arange(count) * 1448
    times = np.linspace(1, 11, count)
    new = Stretches(times, start, start + 1448)
    large = dataclasses.replace(
        found, new=new, ack_s=times, ack=start, window_edge=start, duplicates=found.duplicates[:0]
    )
    figure = diagram(trial, large, TimeSpan(2, 11))
    overview, _ = figure.all_panels
    shown = bars(overview, "segment")
    assert len(shown) <= drawing.OVERVIEW_COLUMNS + 1
    assert shown[0][1] == 0 and shown[-1][2] == round(count * 1448 / 1e6, 3)
    # no gap between a column's bar and the next one's
    assert all(one[2] == other[1] for one, other in itertools.pairwise(shown))
    drawn = static_renderer.draw(figure)
    lines = drawn.axes[0].lines[0]
    assert len(np.asarray(lines.get_xdata())) <= 4 * static_renderer.PIXEL_COLUMNS
    assert any(each.get_rasterized() for each in drawn.axes[1].collections)


def test_letters_do_not_lie_on_each_other(trial: Trial, found: Sequence) -> None:
    times = np.linspace(2.1, 2.105, 50)
    again = Stretches(times, np.arange(50), np.arange(50) + 100)
    crowded = dataclasses.replace(found, again={Kind.RETRANSMISSION: again})
    close = panels(trial, crowded)[1]
    assert len(curve(close, "retransmission")) == 50
    assert words(close).count("R") == 1


def test_words_and_legend_name_what_there_is(trial: Trial, found: Sequence) -> None:
    figure = diagram(trial, found)
    assert "6 segments, 1 retransmission, 1 fast retransmission, 2 lost" in figure.subtitle
    labels = [entry.name for entry in figure.legend]
    assert "SACK block" in labels and "fast retransmission" in labels
    assert "spurious retransmission" not in labels
    drawn = static_renderer.draw(figure)
    drawn.draw_without_rendering()
    texts = [*drawn.texts, *drawn.legends[0].get_texts()]
    assert max(text.get_window_extent().x1 for text in texts) <= drawn.bbox.x1
    none = dataclasses.replace(found, sacks=found.sacks.within(TimeSpan(0, 1)))
    assert "SACK block" not in [entry.name for entry in diagram(trial, none).legend]


def test_the_data_beside_the_figure(trial: Trial, found: Sequence, tmp_path: Path) -> None:
    figure = drawing.figure(trial, flow_record(trial), WHOLE, None, "tcp-sequence")
    paths = static_renderer.save(figure, tmp_path)
    assert [path.name for path in paths] == [
        "tcp-sequence.png",
        "tcp-sequence.svg",
        "tcp-sequence.csv",
    ]
    kept = pd.read_csv(paths[2])
    assert kept["time_s"].is_monotonic_increasing and len(kept) == len(table(found))
    counts = kept["what"].value_counts().to_dict()
    assert counts == {
        "ack": 7,
        "window": 7,
        "segment": 6,
        "sack": 6,
        "lost": 2,
        "fast retransmission": 1,
        "retransmission": 1,
    }


def test_no_tcp_has_no_sequence_numbers(trial: Trial) -> None:
    with pytest.raises(TestbedError, match="flow cbr is no TCP"):
        sequence(trial, flow_record(trial, "cbr"))
