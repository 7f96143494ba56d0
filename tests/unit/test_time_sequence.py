"""Sequence numbers over time: a capture made by hand, with SACK, a scaled window and losses."""

from __future__ import annotations

import dataclasses
import itertools
import struct
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure

from analysis.captures.inspection import flow_record
from analysis.figures.time_sequence import sequence_figure as drawing
from analysis.figures.time_sequence import sequence_marks
from analysis.figures.time_sequence.sequence_data import Sequence, Stretches, sequence, table, zoom
from analysis.figures.time_sequence.zoomed_panel import CAPPED_KB
from analysis.figures.timeline.timeline_data import TimeSpan
from analysis.figures.timeline.timeline_events import Kind
from testbed.errors import TestbedError
from testbed.store import Trial, open_trial
from tests.pcap_writer import Frame, tcp, write_pcap
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
    trial = open_trial(write_trial(path, samples=True))
    frames = sorted(frames, key=lambda frame: frame.time_ns)
    write_pcap(path / "captures" / "sender1-eth0.pcap", frames)
    lost = (data(2.001, 1, 11), data(2.003, 3, 13))
    arrived = [frame.at(frame.time_ns + 50_000_000) for frame in frames if frame not in lost]
    write_pcap(path / "captures" / "receiver-eth0.pcap", arrived)
    return trial


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
    figure = drawn(late, found)
    assert "not known" in " ".join(text.get_text() for text in figure.axes[1].texts)


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


def drawn(trial: Trial, found: Sequence, near: TimeSpan | None = None) -> Figure:
    near = near or zoom(found, WHOLE)
    figure = drawing._figure(trial, flow_record(trial), found, WHOLE, near)
    figure.draw_without_rendering()
    return figure


def bars(axes: Axes, label: str) -> list[tuple[float, float, float]]:
    """Time, first and last byte of each vertical line."""
    return [
        (round(float(ends[0, 0]), 4), round(float(ends[0, 1]), 3), round(float(ends[1, 1]), 3))
        for lines in axes.collections
        if isinstance(lines, LineCollection) and lines.get_label() == label
        for ends in map(np.asarray, lines.get_segments())
    ]


def curve(axes: Axes, label: str) -> list[tuple[float, float]]:
    return [
        (round(float(x), 4), round(float(y), 3))
        for line in axes.lines
        if line.get_label() == label
        for x, y in zip(np.asarray(line.get_xdata()), np.asarray(line.get_ydata()), strict=True)
    ]


def test_the_close_look_has_every_packet(trial: Trial, found: Sequence) -> None:
    _, close = drawn(trial, found).axes
    # kB above 0: segment 0 begins at byte 1
    assert bars(close, "segments")[0] == (2.0, 0.001, 1.001)
    assert len(bars(close, "segments")) == 6
    assert (2.105, 4.001, 6.001) in bars(close, "SACK blocks")
    assert curve(close, "fast retransmission") == [(2.106, 2.001)]
    assert bars(close, "fast retransmission: bytes") == [(2.106, 1.001, 2.001)]
    assert curve(close, "lost") == [(2.001, 1.501), (2.003, 3.501)]
    assert curve(close, "ACKs")[0] == (1.1, 0.001) and (2.206, 3.001) in curve(close, "ACKs")
    assert len(curve(close, "duplicate ACKs")) == 3
    assert (2.1, 9.001) in curve(close, "receiver's window")
    assert [text.get_text() for text in close.texts].count("R") == 2
    assert (close.get_ylim()[1] - close.get_ylim()[0]) < CAPPED_KB
    assert any(line.get_marker() == "_" for line in close.lines)


def test_the_overview_has_all_and_says_where_the_close_look_is(
    trial: Trial, found: Sequence
) -> None:
    overview, close = drawn(trial, found).axes
    assert overview.get_xlim() == (1.0, 11.5)
    assert len(bars(overview, "segments")) == 6
    assert curve(overview, "retransmission") == [(2.5, 0.003)]
    (place,) = (patch for patch in overview.patches if patch.get_label() == "close look")
    box = place.get_extents().transformed(overview.transData.inverted())
    assert (box.x0, box.x1) == pytest.approx(close.get_xlim())


def test_what_is_far_above_is_told_in_words(trial: Trial, found: Sequence) -> None:
    assert found.window_edge is not None
    high = dataclasses.replace(found, window_edge=found.window_edge + 10**6)
    (words,) = (t.get_text() for t in drawn(trial, high).axes[1].texts if len(t.get_text()) > 1)
    assert words.startswith("receiver's window: 99") and words.endswith("above the picture")


def test_many_segments_stay_few_lines(trial: Trial, found: Sequence) -> None:
    count = 100_000
    start = np.arange(count) * 1448
    times = np.linspace(1, 11, count)
    new = Stretches(times, start, start + 1448)
    large = dataclasses.replace(found, new=new, ack_s=times, ack=start, window_edge=start)
    overview, close = drawn(trial, large, TimeSpan(2, 11)).axes
    shown = bars(overview, "segments")
    assert len(shown) <= sequence_marks.COLUMNS + 1
    assert shown[0][1] == 0 and shown[-1][2] == round(count * 1448 / 1e6, 3)
    # no gap between a column's bar and the next one's
    assert all(one[2] == other[1] for one, other in itertools.pairwise(shown))
    assert len(curve(overview, "ACKs")) <= 4 * sequence_marks.COLUMNS
    (lines,) = (each for each in close.collections if each.get_label() == "segments")
    assert lines.get_rasterized()


def test_letters_do_not_lie_on_each_other(trial: Trial, found: Sequence) -> None:
    times = np.linspace(2.1, 2.105, 50)
    again = Stretches(times, np.arange(50), np.arange(50) + 100)
    crowded = dataclasses.replace(found, again={Kind.RETRANSMISSION: again})
    close = drawn(trial, crowded).axes[1]
    assert len(curve(close, "retransmission")) == 50
    assert [text.get_text() for text in close.texts].count("R") == 1


def test_words_and_legend_name_what_there_is(trial: Trial, found: Sequence) -> None:
    figure = drawn(trial, found)
    said = " ".join(text.get_text() for text in figure.texts)
    assert "6 segments, 1 retransmission, 1 fast retransmission, 2 lost" in said
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert "SACK block" in labels and "fast retransmission" in labels
    assert "spurious retransmission" not in labels
    boxes = [text.get_window_extent() for text in [*figure.texts, *figure.legends[0].get_texts()]]
    assert max(box.x1 for box in boxes) <= figure.bbox.x1
    none = dataclasses.replace(found, sacks=found.sacks.within(TimeSpan(0, 1)))
    labels = [text.get_text() for text in drawn(trial, none).legends[0].get_texts()]
    assert "SACK block" not in labels


def test_the_data_beside_the_figure(trial: Trial, found: Sequence, tmp_path: Path) -> None:
    paths = drawing.draw(trial, flow_record(trial), WHOLE, None, tmp_path, "tcp")
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
