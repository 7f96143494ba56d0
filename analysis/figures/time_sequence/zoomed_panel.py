"""The zoomed panel of a time–sequence diagram: every packet of a few round trips."""

from __future__ import annotations

import dataclasses

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from analysis.figures.plotting import style
from analysis.figures.time_sequence.sequence_data import Sequence, Stretches
from analysis.figures.time_sequence.sequence_marks import (
    ACKS,
    AGAIN,
    DISORDERED,
    KILO,
    LOST,
    NEW,
    SACKS,
    WINDOW,
    bars,
    steps,
)
from analysis.figures.timeline.event_markers import MARKERS
from analysis.figures.timeline.timeline_data import Span
from analysis.figures.timeline.timeline_events import Kind
from analysis.trials.series import Floats

CAPPED_KB = 130  # a picture of more is too dense for caps on the segments
LETTER_APART = (0.022, 0.035)  # of the picture's width and height
HEADROOM = 1.06


def draw_close(axes: Axes, found: Sequence, near: Span) -> None:
    """Every segment, acknowledgement and block within the span."""
    between = f"{near.start_s:.3f} s to {near.stop_s:.3f} s"
    axes.set_title(between, fontsize=7, fontweight="bold", loc="left", pad=4)
    base, top = _heights(found, near)
    height_kb = (top - base) / KILO
    axes.set(xlim=(near.start_s, near.stop_s), ylim=(-0.03 * height_kb, HEADROOM * height_kb))
    axes.set_xlabel("time (s)")
    axes.set_ylabel(f"sequence number (kB above {base / KILO:,.0f} kB)")
    axes.xaxis.set_major_locator(MaxNLocator(6))
    above = _above(found, base)
    new = above.new.within(near)
    bars(axes, new, KILO, "segments", **NEW)
    if height_kb < CAPPED_KB:
        _caps(axes, new)
    bars(axes, above.sacks.within(near), KILO, "SACK blocks", **SACKS)
    _draw_acks(axes, above, near)
    for kind, each in above.again.items():
        _draw_again(axes, kind, each.within(near))
    lost = above.lost.within(near)
    middle = (lost.start + lost.stop) / 2 / KILO
    axes.plot(lost.time_s, middle, linestyle="", label="lost", zorder=3, **LOST)


def _heights(found: Sequence, near: Span) -> tuple[int, int]:
    """The lowest and the highest sequence number of the picture, the window aside."""
    parts = [each.within(near) for each in (found.new, found.sacks, *found.again.values())]
    acks = found.ack[_around(found.ack_s, near)]
    lows = [*(each.start.min() for each in parts if len(each)), *acks[:1]]
    highs = [*(each.stop.max() for each in parts if len(each)), *acks[-1:]]
    base = int(min(lows, default=0))
    return base - base % 1000, int(max(highs, default=base + 1))


def _above(found: Sequence, base: int) -> Sequence:
    """The same, counted from another byte."""

    def less(each: Stretches) -> Stretches:
        return Stretches(each.time_s, each.start - base, each.stop - base)

    return dataclasses.replace(
        found,
        new=less(found.new),
        again={kind: less(each) for kind, each in found.again.items()},
        lost=less(found.lost),
        sacks=less(found.sacks),
        ack=found.ack - base,
        window_edge=None if found.window_edge is None else found.window_edge - base,
    )


def _around(time_s: Floats, near: Span) -> slice:
    """The places within the span, one more on either side, for lines that go on."""
    first, last = np.searchsorted(time_s, (near.start_s, near.stop_s))
    return slice(max(0, int(first) - 1), int(last) + 1)


def _caps(axes: Axes, each: Stretches) -> None:
    """xplot's arrowheads, as far as print shows them."""
    for end in (each.start, each.stop):
        axes.plot(
            each.time_s,
            end / KILO,
            linestyle="",
            marker="_",
            markersize=2.2,
            markeredgewidth=0.4,
            color=style.BLACK,
        )


def _draw_acks(axes: Axes, above: Sequence, near: Span) -> None:
    """The acknowledged sequence number and the receive window's edge."""
    inside = _around(above.ack_s, near)
    time_s = above.ack_s[inside]
    steps(axes, time_s, above.ack[inside] / KILO, "ACKs", **ACKS)
    repeated = above.duplicates[
        (above.duplicates >= inside.start) & (above.duplicates < inside.stop)
    ]
    axes.plot(
        above.ack_s[repeated],
        above.ack[repeated] / KILO,
        linestyle="",
        marker=2,  # a tick upwards
        markersize=2.6,
        markeredgewidth=0.45,
        color=style.GREEN,
        label="duplicate ACKs",
    )
    if above.window_edge is None:
        _word(axes, "receiver's window: not known, the SYN was not captured")
        return
    edge = above.window_edge[inside] / KILO
    steps(axes, time_s, edge, "receiver's window", **WINDOW)
    top = axes.get_ylim()[1]
    if len(edge) and edge.min() > top:
        _word(axes, f"receiver's window: {edge.min() - top:,.0f} kB or more above the picture")


def _word(axes: Axes, text: str) -> None:
    """Over the picture, opposite its title."""
    axes.annotate(
        text,
        (1, 1),
        xycoords="axes fraction",
        xytext=(0, 4),
        textcoords="offset points",
        fontsize=5.5,
        color=style.BROWN,
        ha="right",
    )


def _draw_again(axes: Axes, kind: Kind, each: Stretches) -> None:
    """Retransmitted and reordered segments: thicker, coloured, marked, and lettered."""
    letter, look = ("O", DISORDERED) if kind is Kind.OUT_OF_ORDER else ("R", AGAIN)
    bars(axes, each, KILO, f"{kind}: bytes", **look)
    tops = each.stop / KILO
    axes.plot(each.time_s, tops, linestyle="", label=str(kind), zorder=3, **MARKERS[kind])
    for place in _apart(axes, each.time_s, tops):
        axes.annotate(
            letter,
            (each.time_s[place], tops[place]),
            xytext=(0, 3),
            textcoords="offset points",
            fontsize=5.5,
            ha="center",
            color=look["color"],
        )


def _apart(axes: Axes, time_s: Floats, height: Floats) -> list[int]:
    """The points whose letters would not lie on an earlier one's."""
    (left, right), (low, high) = axes.get_xlim(), axes.get_ylim()
    width, rise = LETTER_APART[0] * (right - left), LETTER_APART[1] * (high - low)
    chosen: list[int] = []
    for place in range(len(time_s)):
        if all(
            abs(time_s[place] - time_s[other]) >= width
            or abs(height[place] - height[other]) >= rise
            for other in chosen
        ):
            chosen.append(place)
    return chosen
