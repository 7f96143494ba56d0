"""The time–sequence diagram as a figure: the whole flow, and a few round trips of it beside."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pandas as pd

from analysis.figures import style
from analysis.figures.figure import (
    Annotation,
    Axis,
    Curve,
    Figure,
    LegendEntry,
    Mark,
    Panel,
    PointSeries,
    SegmentSet,
    ShadedRange,
)
from analysis.figures.time_sequence.sequence_data import Sequence, Stretches, sequence, table, zoom
from analysis.figures.timeline.timeline_data import TimeSpan
from analysis.figures.timeline.timeline_events import Kind
from analysis.figures.timeline.timeline_figure import EVENT_LOOKS, MICROSECOND
from analysis.figures.timeline.timeline_text import counted, foot, title, trust_note
from analysis.trials.series import Floats
from testbed.store.reading import Trial
from testbed.store.records import FlowRecord

HEIGHT_INCHES = 3.4
OVERVIEW_COLUMNS = 700  # of the overview: what can be told apart, printed
CAPPED_KB = 130  # a picture of more is too dense for caps on the segments
LETTER_APART = (0.022, 0.035)  # of the picture's width and height
HEADROOM = 1.06
KILO, MEGA = 1e3, 1e6
BYTE = 1e-3  # of a kilobyte
ACK_SERIES = "ACKs (ticks: duplicates)"
ACK_LOOK = (style.GREEN, 0.9)
WINDOW_DASH = (4.0, 1.5, 1.0, 1.5)
PACKET_COLUMNS = ("frame", "length", "payload", "flags", "relative_seq", "relative_ack", "window")
# The words in front of Wireshark's Info column (packet-tcp.c)
INFO_WORDS: Mapping[Kind, str] = {
    Kind.RETRANSMISSION: "[TCP Retransmission]",
    Kind.FAST: "[TCP Fast Retransmission]",
    Kind.SPURIOUS: "[TCP Spurious Retransmission]",
    Kind.OUT_OF_ORDER: "[TCP Out-Of-Order]",
}


def figure(
    trial: Trial, flow: FlowRecord, span: TimeSpan, near: TimeSpan | None, name: str
) -> Figure:
    """Return the flow's first connection, with a close look at `near`, or at the first loss."""
    steps = sequence(trial, flow)
    return drawn(trial, flow, steps, span, near or zoom(steps, span), name)


def drawn(
    trial: Trial,
    flow: FlowRecord,
    steps: Sequence,
    span: TimeSpan,
    near: TimeSpan,
    name: str = "",
) -> Figure:
    """Return the diagram of a connection."""
    return Figure(
        stem=name,
        title=title(trial, flow),
        panels=((overview_panel(steps, span, near), close_panel(steps, near)),),
        caption=_about(steps),
        foot=foot(trial, flow),
        foot_size=5.5,
        subtitle=_about(steps),
        warning=trust_note(trial),
        legend=legend(steps),
        legend_size=5.8,
        row_inches=HEIGHT_INCHES,
        column_widths=(1, 1.6),
        data=table(steps),
        number_format="%.9f",
    )


def _about(steps: Sequence) -> str:
    again = [counted(len(each), kind) for kind, each in steps.again.items() if len(each)]
    parts = [
        f"Sequence numbers at the sender: {counted(len(steps.new), 'segment')}",
        *(again or ["none sent again"]),
        f"{len(steps.lost)} lost",
    ]
    if steps.connections > 1:
        parts.append(f"the first of {steps.connections} connections")
    return ", ".join(parts)


def legend(steps: Sequence) -> tuple[LegendEntry, ...]:
    """Name the marks; classes that do not occur are left out."""
    entries = [LegendEntry("segment", style.BLACK, "|", kind="points", size=6)]
    for kind, each in steps.again.items():
        if len(each):
            look = EVENT_LOOKS[kind]
            entries.append(LegendEntry(str(kind), look.colour, look.marker, kind="points",
                                       size=look.size, hollow=look.hollow))  # fmt: skip
    entries.append(LegendEntry("lost", style.BLACK, "x", kind="points", size=3))
    entries.append(LegendEntry(ACK_SERIES, ACK_LOOK[0]))
    if len(steps.sacks):
        entries.append(LegendEntry("SACK block", style.PURPLE, "|", kind="points", size=6))
    entries.append(LegendEntry("receiver's window", style.BROWN, dash=WINDOW_DASH))
    return tuple(entries)


def overview_panel(steps: Sequence, span: TimeSpan, near: TimeSpan) -> Panel:
    """Show the whole flow; segments on the same pixels are one bar."""
    segments = _merged(steps.new.within(span), span)
    marks: list[Mark] = [
        ShadedRange("x", near.start_s, near.stop_s, series="close look"),
        bars(segments, MEGA, "segment", style.BLACK),
        Curve(steps.ack_s, steps.ack / MEGA, *ACK_LOOK, steps=True, series=ACK_SERIES),
    ]
    for kind, each in steps.again.items():
        shown, look = each.within(span), EVENT_LOOKS[kind]
        marks.append(PointSeries(shown.time_s, shown.start / MEGA, look.colour, look.marker,
                                 look.size, look.hollow, edge_width=look.edge_width,
                                 series=str(kind)))  # fmt: skip
    top = max([*steps.new.stop[-1:], *steps.ack[-1:], 1]) / MEGA
    return Panel(
        marks,
        Axis("time (s)", limits=(span.start_s, span.stop_s), tick_count=5),
        Axis("sequence number (MB)", limits=(0, 1.04 * float(top))),
        title="the whole flow",
    )


def _merged(each: Stretches, span: TimeSpan) -> Stretches:
    """Make a column of pixels one bar: from its lowest sequence number to its highest."""
    if len(each) <= OVERVIEW_COLUMNS:
        return each
    column = np.floor((each.time_s - span.start_s) / span.seconds * OVERVIEW_COLUMNS)
    first = np.flatnonzero(np.diff(column, prepend=-1))
    return Stretches(
        each.time_s[first],
        np.minimum.reduceat(each.start, first),
        np.maximum.reduceat(each.stop, first),
    )


def bars(
    each: Stretches, scale: float, series: str, colour: str, width: float = 0.9, label: str = ""
) -> SegmentSet:
    """Return vertical lines, each from its first byte to its last."""
    return SegmentSet(
        each.time_s,
        each.start / scale,
        each.time_s,
        each.stop / scale,
        colour,
        width,
        series=series,
        labels=[label] * len(each) if label else (),
        columns=packet_columns(each.packets),
    )


def packet_columns(packets: pd.DataFrame | None) -> dict[str, npt.ArrayLike]:
    """Return what Wireshark's columns show of packets."""
    if packets is None:
        return {}
    return {name: packets[name].to_numpy() for name in (*PACKET_COLUMNS, "src_port", "dst_port")}


def page_panel(steps: Sequence) -> Panel:
    """Return every packet of the connection, for a page that zooms into it."""
    marks: list[Mark] = []
    if steps.window_edge is not None:
        marks.append(Curve(steps.ack_s, steps.window_edge / KILO, style.BROWN, 0.9, WINDOW_DASH,
                           steps=True, series="receiver's window"))  # fmt: skip
    if len(steps.sacks):
        marks.append(bars(steps.sacks, KILO, "SACK block", style.PURPLE, 1.1))
    packets = packet_columns(steps.ack_packets)
    marks.append(Curve(steps.ack_s, steps.ack / KILO, *ACK_LOOK, steps=True, series=ACK_SERIES,
                       labels=steps.ack_words, columns=packets))  # fmt: skip
    marks.append(bars(steps.new, KILO, "segment", style.BLACK))
    for kind, each in steps.again.items():
        if len(each):
            marks.append(
                bars(each, KILO, str(kind), EVENT_LOOKS[kind].colour, 1.8, INFO_WORDS[kind])
            )
    if len(steps.lost):
        marks.append(PointSeries(steps.lost.time_s, steps.lost.stop / KILO, style.BLACK, "x", 6,
                                 edge_width=1.0, series="lost"))  # fmt: skip
    top = float(max(steps.new.stop.max(initial=1), steps.ack.max(initial=1))) / KILO
    y = Axis("sequence number\n(kB)", limits=(0, top), fits=True, resolution=BYTE)
    return Panel(marks, Axis("time (s)", resolution=MICROSECOND), y)


def close_panel(steps: Sequence, near: TimeSpan) -> Panel:
    """Show every segment, acknowledgement and block within the span."""
    base, top = _heights(steps, near)
    height_kb = (top - base) / KILO
    low, high = -0.03 * height_kb, HEADROOM * height_kb
    new = _above(steps.new, base).within(near)
    marks: list[Mark] = [bars(new, KILO, "segment", style.BLACK)]
    if height_kb < CAPPED_KB:  # xplot's arrowheads, as far as print shows them
        marks += [PointSeries(new.time_s, end / KILO, style.BLACK, "_", 2.2, edge_width=0.4,
                              series="segment") for end in (new.start, new.stop)]  # fmt: skip
    marks.append(
        bars(_above(steps.sacks, base).within(near), KILO, "SACK block", style.PURPLE, 1.1)
    )
    marks += _acks(steps, base, near, high)
    for kind, each in steps.again.items():
        marks += _sent_again(kind, _above(each, base).within(near), near, high - low)
    lost = _above(steps.lost, base).within(near)
    marks.append(PointSeries(lost.time_s, (lost.start + lost.stop) / 2 / KILO, style.BLACK, "x", 3,
                             edge_width=0.6, series="lost"))  # fmt: skip
    return Panel(
        marks,
        Axis("time (s)", limits=(near.start_s, near.stop_s), tick_count=6),
        Axis(f"sequence number (kB above {base / KILO:,.0f} kB)", limits=(low, high)),
        title=f"{near.start_s:.3f} s to {near.stop_s:.3f} s",
    )


def _heights(steps: Sequence, near: TimeSpan) -> tuple[int, int]:
    """Return the picture's lowest and highest sequence number, the window aside."""
    parts = [each.within(near) for each in (steps.new, steps.sacks, *steps.again.values())]
    acks = steps.ack[_around(steps.ack_s, near)]
    lows = [*(each.start.min() for each in parts if len(each)), *acks[:1]]
    highs = [*(each.stop.max() for each in parts if len(each)), *acks[-1:]]
    base = int(min(lows, default=0))
    return base - base % 1000, int(max(highs, default=base + 1))


def _above(each: Stretches, base: int) -> Stretches:
    """Count from another byte."""
    return Stretches(each.time_s, each.start - base, each.stop - base)


def _around(time_s: Floats, near: TimeSpan) -> slice:
    """Return the places within the span, and one on either side for lines that go on."""
    first, last = np.searchsorted(time_s, (near.start_s, near.stop_s))
    return slice(max(0, int(first) - 1), int(last) + 1)


def _acks(steps: Sequence, base: int, near: TimeSpan, top: float) -> list[Mark]:
    """Show the acknowledged sequence number and the edge of the receiver's window."""
    inside = _around(steps.ack_s, near)
    time_s, ack = steps.ack_s[inside], (steps.ack[inside] - base) / KILO
    repeated = steps.duplicates[
        (steps.duplicates >= inside.start) & (steps.duplicates < inside.stop)
    ]
    marks: list[Mark] = [
        Curve(time_s, ack, *ACK_LOOK, steps=True, series=ACK_SERIES),
        PointSeries(steps.ack_s[repeated], (steps.ack[repeated] - base) / KILO, style.GREEN,
                    "tickup", 2.6, edge_width=0.45, series=ACK_SERIES),
    ]  # fmt: skip
    if steps.window_edge is None:
        return [*marks, _word("receiver's window: not known, the SYN was not captured")]
    edge = (steps.window_edge[inside] - base) / KILO
    marks.append(Curve(time_s, edge, style.BROWN, 0.9, WINDOW_DASH, steps=True,
                       series="receiver's window"))  # fmt: skip
    if len(edge) and edge.min() > top:
        far = f"receiver's window: {edge.min() - top:,.0f} kB or more above the picture"
        marks.append(_word(far))
    return marks


def _word(text: str) -> Annotation:
    """Write over the picture, opposite its title."""
    return Annotation(text, 1, 1, "panel", "panel", (0, 4), 5.5, style.BROWN, across="right")


def _sent_again(kind: Kind, each: Stretches, near: TimeSpan, height: float) -> list[Mark]:
    """Show retransmitted and reordered segments: thicker, coloured, marked, and lettered."""
    letter, colour = ("O", style.SKY) if kind is Kind.OUT_OF_ORDER else ("R", style.VERMILLION)
    look, tops = EVENT_LOOKS[kind], each.stop / KILO
    letters = [
        Annotation(letter, float(each.time_s[place]), float(tops[place]), offset_points=(0, 3),
                   size=5.5, colour=colour, across="center")
        for place in _apart(each.time_s, tops, near.seconds, height)
    ]  # fmt: skip
    return [
        bars(each, KILO, str(kind), colour, 1.6),
        PointSeries(each.time_s, tops, look.colour, look.marker, look.size, look.hollow,
                    edge_width=look.edge_width, series=str(kind)),
        *letters,
    ]  # fmt: skip


def _apart(time_s: Floats, tops: Floats, seconds: float, height: float) -> list[int]:
    """Return the points whose letters would not lie on an earlier one's."""
    width, rise = LETTER_APART[0] * seconds, LETTER_APART[1] * height
    chosen: list[int] = []
    for place in range(len(time_s)):
        if all(
            abs(time_s[place] - time_s[other]) >= width or abs(tops[place] - tops[other]) >= rise
            for other in chosen
        ):
            chosen.append(place)
    return chosen
