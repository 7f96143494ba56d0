"""A flow's timeline as a figure: panels over one time axis, and lanes of events below them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from analysis.figures import style
from analysis.figures.figure import (
    Annotation,
    Area,
    Axis,
    Boxes,
    Curve,
    Figure,
    LegendEntry,
    Mark,
    Panel,
    PointSeries,
    ReferenceLine,
)
from analysis.figures.timeline.timeline_data import Timeline, TimeSpan, flow_span, table, timeline
from analysis.figures.timeline.timeline_events import Kind
from analysis.figures.timeline.timeline_text import footer, outcome, stem, title, trust_note
from analysis.trials.capacity import capacity_of
from testbed.errors import TestbedError
from testbed.scenario.network import PLAIN_QUEUE
from testbed.store.reading import Trial, again
from testbed.store.records import FlowRecord

WORDS_INCHES = 0.9  # beside the panels
WORD_INCHES = 0.115  # between words beside a panel
LANE_INCHES = 0.15
AXIS_INCHES = 0.31  # below the lanes
WORD_POINTS = 6.5
LIMIT_SHOWN = 1.6  # times the highest backlog: a limit further up is only named
FLOOR_SHOWN = 0.7  # of the highest RTT: a path's that is longer is where the axis begins
MICROSECOND, MILLISECOND = 1e-6, 1e-3
STATE_LANE = "congestion state"


@dataclass(frozen=True)
class EventLook:
    """The marker of a kind of event: kinds differ in shape and in colour."""

    marker: str
    colour: str
    size: float
    edge_width: float = 0.0
    hollow: bool = False


EVENT_LOOKS: Mapping[Kind, EventLook] = {
    Kind.DROP: EventLook("x", style.BLACK, 3.6, 0.8),
    Kind.MARK: EventLook("d", style.ORANGE, 3.4),
    Kind.RETRANSMISSION: EventLook("o", style.VERMILLION, 3),
    Kind.FAST: EventLook(">", style.VERMILLION, 3.8),
    Kind.SPURIOUS: EventLook("o", style.VERMILLION, 3, 0.7, hollow=True),
    Kind.OUT_OF_ORDER: EventLook("s", style.SKY, 2.8),
    Kind.DUPLICATE_ACK: EventLook("|", style.GREY, 4, 0.5),
    Kind.TIMEOUT: EventLook("v", style.BLACK, 4.2),
}

# Name, colour, height in its lane and hatch: the more serious, the darker and the higher.
STATE_LOOKS: Mapping[str, tuple[str, str, float, str]] = {
    "disorder": ("disorder", style.SKY, 0.3, ""),
    "cwr": ("CWR", style.ORANGE, 0.5, "//////"),
    "recovery": ("recovery", style.BLUE, 0.7, ""),
    "loss": ("loss", style.BLACK, 0.9, ""),
}


def checked(trial: Trial, flow: FlowRecord, span: TimeSpan, name: str) -> Figure:
    """Return the flow's timeline within the span; fail if nothing of the flow is known."""
    drawing = figure(trial, flow, span, name)
    if drawing is None:
        raise TestbedError(
            f"{trial.path}: flow {flow.name} was neither captured nor sampled",
            f"run it again with captures: {again(trial.path)} --captures keep",
        )
    return drawing


def full_figure(trial: Trial, flow: FlowRecord) -> Figure | None:
    """Return the flow's timeline from start to stop; None if nothing of the flow is known."""
    return figure(trial, flow, flow_span(flow, None, None), stem(flow, None, None))


def figure(trial: Trial, flow: FlowRecord, span: TimeSpan, name: str) -> Figure | None:
    """Return the flow's timeline within the span; None if nothing of the flow is known."""
    return drawn(trial, flow, timeline(trial, flow, span), name)


def drawn(trial: Trial, flow: FlowRecord, history: Timeline, name: str = "") -> Figure | None:
    """Return the timeline of a history."""
    shown = panels(trial, history)
    if not shown:
        return None
    lanes, lanes_inches = lanes_panel(history)
    rows = [*(panel for panel, _ in shown), lanes]
    labelled = dataclasses.replace(lanes.x, label="time (s)", tick_count=10)
    rows[-1] = dataclasses.replace(lanes, x=labelled)
    return Figure(
        stem=name,
        title=title(trial, flow),
        panels=tuple((panel,) for panel in rows),
        caption=outcome(history),
        foot=footer(trial, flow, history),
        foot_size=5.5,
        subtitle=outcome(history),
        warning=trust_note(trial),
        row_inches=(*(height for _, height in shown), lanes_inches + AXIS_INCHES),
        right_inches=WORDS_INCHES,
        data=table(history),
        number_format="%.9g",
    )


def panels(trial: Trial, history: Timeline) -> list[tuple[Panel, float]]:
    """Return the panels of what is known, each with its height in inches."""
    shown: list[tuple[Panel, float]] = []
    if history.window is not None:
        shown.append((window_panel(history), 1.35))
    if history.rtts is not None:
        shown.append((rtt_panel(history), 1.15))
    if history.queue is not None:
        shown.append((queue_panel(history), 1.15))
    if history.throughput is not None:
        shown.append((throughput_panel(trial, history), 0.9))
    return [(_finished(panel, history, inches), inches) for panel, inches in shown]


def _finished(panel: Panel, history: Timeline, inches: float) -> Panel:
    """Give a panel the time axis, its timeouts, and words that do not lie on each other."""
    low, high = (float(end or 0) for end in panel.y.limits)
    annotations = [mark for mark in panel.marks if isinstance(mark, Annotation)]
    places = [float(np.clip(word.y, low, high)) for word in annotations]
    apart = spread(places, WORD_INCHES / inches * (high - low), low, high)
    moved = [dataclasses.replace(word, y=at) for word, at in zip(annotations, apart, strict=True)]
    marks: list[Mark] = [mark for mark in panel.marks if not isinstance(mark, Annotation)]
    y = dataclasses.replace(panel.y, tick_count=4)
    marks += [*_timeouts(history), *moved]
    return dataclasses.replace(panel, marks=marks, x=_time_axis(history, marks=False), y=y)


def _time_axis(history: Timeline, *, marks: bool) -> Axis:
    ends = (history.span.start_s, history.span.stop_s)
    return Axis(limits=ends, names_shown=marks, tick_marks=marks, resolution=MICROSECOND)


def _timeouts(history: Timeline) -> list[Mark]:
    times = history.events.get(Kind.TIMEOUT, np.zeros(0))
    return [ReferenceLine("x", float(t), colour=style.BLACK, width=0.6, dash=(1, 2)) for t in times]


def spread(places: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Move places apart, in their order, until each has its gap; within the ends if they can."""
    moved = list(places)
    order = sorted(range(len(places)), key=lambda each: -places[each])
    ceiling = high
    for index in order:
        moved[index] = min(moved[index], ceiling)
        ceiling = moved[index] - gap
    floor = low
    for index in reversed(order):
        moved[index] = max(moved[index], floor)
        floor = moved[index] + gap
    return moved


def _word(text: str, value: float, colour: str) -> Annotation:
    """Name what has this value, beside the panel."""
    return Annotation(text, 1, value, x_place="panel", offset_points=(4, 0), size=WORD_POINTS,
                      colour=colour, up="center")  # fmt: skip


def window_panel(history: Timeline) -> Panel:
    """Show the congestion window and the threshold of slow start."""
    assert history.window is not None
    marks: list[Mark] = []
    looks = (("ssthresh", style.BLACK, 0.8, (4.0, 2.0)), ("cwnd", style.BLUE, 1.0, ()))
    for name, colour, width, dash in looks:
        known = history.window[["time_s", name]].dropna()
        if len(known):
            x, y = known["time_s"].to_numpy(), known[name].to_numpy(dtype=np.float64)
            marks.append(Curve(x, y, colour, width, dash, steps=True, series=name))
            marks.append(_word(name, float(y[-1]), colour))
    top = 1.08 * max(float(history.window["cwnd"].max()), 1.0)  # ssthresh may never be reached
    return Panel(marks, y=Axis("window\n(segments)", limits=(0, top), resolution=1))


def rtt_panel(history: Timeline) -> Panel:
    """Show the RTT of each ACK, the kernel's smoothed one, and the path's without a queue."""
    assert history.rtts is not None
    time_s, value = history.rtts["time_s"].to_numpy(), history.rtts["rtt_ms"].to_numpy()
    dots = PointSeries(time_s, value, "#8C8C8C", ".", size=1.6, edge_width=0,
                       series="RTT of each ACK")  # fmt: skip
    marks: list[Mark] = [dots]
    if len(value):
        marks.append(_word("each ACK", float(value[-1]), style.GREY))
    if history.window is not None and history.window["srtt_ms"].any():
        known = history.window[history.window["srtt_ms"] > 0]
        x, y = known["time_s"].to_numpy(), known["srtt_ms"].to_numpy(dtype=np.float64)
        marks.append(Curve(x, y, style.BLUE, 0.9, steps=True, series="srtt"))
        marks.append(_word("srtt", float(y[-1]), style.BLUE))
    path_ms = history.path_rtt_ms
    if path_ms:
        marks.append(ReferenceLine("y", path_ms, colour=style.BLACK))
        marks.append(_word(f"path {path_ms:g}", path_ms, style.BLACK))
    top = _rtt_top(history, path_ms)
    beyond = time_s[value > top]
    if len(beyond):
        marks.append(PointSeries(beyond, np.ones(len(beyond)), style.GREY, "^", size=2.4,
                                 edge_width=0, y_place="panel"))  # fmt: skip
        marks.append(_word(f"▲ to {value.max():.0f}", top, style.GREY))
    low = 0 if path_ms < FLOOR_SHOWN * top else 0.9 * path_ms
    return Panel(marks, y=Axis("RTT\n(ms)", limits=(low, top), fits=True, resolution=MILLISECOND))


def _rtt_top(history: Timeline, path_ms: float) -> float:
    """Return what almost all RTTs stay below: one that waited for a repair may be ten times it."""
    assert history.rtts is not None
    usual = [path_ms, 1e-3]
    if len(history.rtts):
        usual.append(float(np.percentile(history.rtts["rtt_ms"], 98)))
    if history.window is not None:
        usual.append(float(history.window["srtt_ms"].max()))
    return 1.15 * float(np.nanmax(usual))


def queue_panel(history: Timeline) -> Panel:
    """Show the backlog, its limit, and RED's thresholds."""
    assert history.queue is not None
    queue, record = history.bottleneck.queue or PLAIN_QUEUE, history.queue_record
    in_packets = queue.limit_packets is not None if record is None else record.unit == "packets"
    column, scale = ("packets", 1.0) if in_packets else ("bytes", 1e3)
    time_s = history.queue["time_s"].to_numpy()
    value = history.queue[column].to_numpy(dtype=np.float64) / scale
    marks: list[Mark] = [
        Area(time_s, np.zeros(len(value)), value, style.BLUE, 0.25, steps=True, series="queue"),
        Curve(time_s, value, style.BLUE, 0.6, steps=True, series="queue"),
    ]
    lines = [
        (queue.options[name] / scale, f"RED {name.removesuffix('_bytes')}")
        for name in ("min_bytes", "max_bytes")
        if name in queue.options and not in_packets
    ]
    set_to = queue.limit_packets if in_packets else queue.limit_bytes
    units = set_to if record is None else record.limit
    limit = None if units is None else units / scale
    top = max([*value, *(height for height, _ in lines), 1e-9])
    if limit is not None and limit <= LIMIT_SHOWN * top:
        lines.append((limit, f"limit {limit:.4g}"))
        top = max(top, limit)
    for height, text in lines:
        marks.append(ReferenceLine("y", height, colour=style.BLACK))
        marks.append(_word(text, height, style.BLACK))
    if limit is not None and limit > top:
        marks.append(_word(f"limit {limit:.4g} ↑", 1.12 * top, style.GREY))
    unit = "packets" if in_packets else "kB"
    limits = (0, 1.12 * float(top))
    return Panel(marks, y=Axis(f"queue\n({unit})", limits=limits, resolution=MILLISECOND))


def throughput_panel(trial: Trial, history: Timeline) -> Panel:
    """Show the throughput and the link's rate, or what a changing link could carry."""
    assert history.throughput is not None
    begins = history.throughput.time_s - history.step_s / 2
    time_s = np.append(begins, begins[-1:] + history.step_s)
    value = np.append(history.throughput.value, history.throughput.value[-1:])
    marks: list[Mark] = [Curve(time_s, value, style.BLUE, 1.0, steps=True, series="throughput")]
    record, span = history.queue_record, history.span
    capacity = None if record is None else capacity_of(trial, record)
    if capacity is None or not capacity.changes:
        top = history.bottleneck.rate_mbit or 0
        marks.append(ReferenceLine("y", top, colour=style.BLACK))
        marks.append(_word(f"link {top:g}", top, style.BLACK))
    else:
        times, rates = capacity.steps(max(0.0, span.start_s), span.stop_s, history.step_s)
        none = np.zeros(len(rates))
        link = Area(times, none, rates, style.GREY, 0.25, steps=True, series="link")
        marks = [link, *marks, _word("link", float(rates[-1]), style.GREY)]
        top = float(rates.max())
    marks.append(Annotation(f"means of {history.step_s:g} s", 1, 0, "panel", "data", (4, 2), 5.5,
                            style.GREY))  # fmt: skip
    limits = (0, 1.15 * max([top, *history.throughput.value]))
    return Panel(marks, y=Axis("throughput\n(Mbit/s)", limits=limits, resolution=MICROSECOND))


def lanes_panel(history: Timeline) -> tuple[Panel, float]:
    """Return a lane per kind of event with their number, and one of states; and the height."""
    marks: list[Mark] = []
    for place, (kind, times) in enumerate(history.events.items()):
        look = EVENT_LOOKS[kind]
        marks.append(ReferenceLine("y", place, colour="#E4E4E4", width=0.5, dash=()))
        marks.append(PointSeries(times, np.full(len(times), place), look.colour, look.marker,
                                 look.size, look.hollow, edge_width=look.edge_width,
                                 series=str(kind)))  # fmt: skip
        ink = style.BLACK if len(times) else "#AAAAAA"
        marks.append(_word(f"{len(times)}", place, ink))
    names = [str(kind) for kind in history.events]
    legend: tuple[LegendEntry, ...] = ()
    lanes = float(len(names))
    if history.states is not None:
        floor = lanes + 0.65
        for state, (name, colour, height, hatch) in STATE_LOOKS.items():
            of_state = history.states[history.states["state"] == state]
            left, right = of_state["start_s"].to_numpy(), of_state["stop_s"].to_numpy()
            bottom = np.full(len(of_state), floor)
            marks.append(
                Boxes(
                    *(left, right, bottom, bottom - height, colour),
                    hatch=hatch,
                    edge="" if hatch else colour,
                    edge_width=0.3,
                    series=name,
                )
            )
        legend = tuple(LegendEntry(name, colour, kind="area", hatch=hatch)
                       for name, colour, _, hatch in STATE_LOOKS.values())  # fmt: skip
        lanes += 1.3
    ticks = [*range(len(names)), *([len(names) + 0.2] if legend else [])]
    y = Axis(
        limits=(len(names) + (0.65 if legend else -0.4), -0.6),
        ticks=ticks,
        tick_labels=[*names, *([STATE_LANE] if legend else [])],
        grid=False,
        line=False,
        tick_marks=False,
    )
    panel = Panel([*marks, *_timeouts(history)], _time_axis(history, marks=True), y, legend=legend)
    return panel, LANE_INCHES * max(1.0, lanes)
