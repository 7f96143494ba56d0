"""A flow of a trial as the page plots it: panels over one time axis, from the window down to the
single segments."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pandas as pd

from analysis.figures.plotting import style
from analysis.figures.timeline.event_markers import MARKERS, STATE_NAMES, STATES
from analysis.figures.timeline.timeline_data import Timeline, flow_span, timeline
from analysis.figures.timeline.timeline_events import RESENT, Kind
from analysis.report.inline import ink
from analysis.report.plot_data import Json, script_json
from analysis.trials.capacity import capacity_of
from analysis.trials.labels import path_rtt_ms
from testbed.store import FlowRecord, Trial

LEFT, RIGHT, ABOVE, APART, BELOW = 184, 16, 8, 12, 44  # pixels
UNIT = 1.6  # pixels of a point: letters of 11 pixels
MICROSECOND = 1e-6
DASHES = (4, 2)
LANE = 19  # pixels
KEYS = "Arrow keys go from point to point, plus and minus zoom."


@dataclass(frozen=True)
class Part:
    """A panel: its height in pixels, its vertical axis, and what is drawn."""

    height: int
    label: str
    lim: tuple[float, float]
    marks: tuple[Json, ...]
    names: tuple[str, ...] = ()  # of its lanes
    fits: bool = False  # the axis fits what is in sight


@dataclass(frozen=True)
class FlowPlot:
    """A flow's plot as JSON."""

    flow: str
    data: str = field(repr=False)


def packed(values: npt.ArrayLike, unit: float = MICROSECOND) -> Json:
    """Numbers as differences in whole units: a tenth of the letters of as many decimals."""
    whole = np.round(np.asarray(values, dtype=np.float64) / unit).astype(np.int64)
    return {"d": np.diff(whole, prepend=0).tolist(), "k": unit}


def mark(
    kind: str,
    series: str,
    colour: str,
    x: npt.ArrayLike,
    y: npt.ArrayLike,
    unit: float,
    **look: object,
) -> Json:
    """A mark of the plot; `unit` is the least difference between two values."""
    found = {"kind": kind, "series": series, "colour": ink(colour), "x": packed(x)}
    return {**found, "y": packed(y, unit), "sorted": True, **look}


def flow_plot(trial: Trial, flow: FlowRecord, below: Sequence[Part]) -> FlowPlot | None:
    """The flow's history and `below` it other panels; None if nothing of it is known."""
    span = flow_span(flow, None, None)
    found = timeline(trial, flow, span)
    parts = [*_parts(trial, found), *below]
    if not parts:
        return None
    top, panels, marks = ABOVE, [], []
    for place, part in enumerate(parts):
        last = place == len(parts) - 1
        panels.append(_panel(part, top, (span.start_s, span.stop_s), last))
        marks += [{**each, "panel": place} for each in part.marks]
        top += part.height + APART
    troubles = [found.events[kind] for kind in (Kind.DROP, *RESENT) if kind in found.events]
    spec = {
        "name": f"Flow {flow.name} over time. {KEYS}",
        "unit": UNIT,
        "height": top - APART + BELOW,
        "panels": panels,
        "marks": marks,
        "legend": {"box": None, "size": 7.5, "entries": _entries(marks)},
        "troubles": packed(np.unique(np.concatenate(troubles)) if troubles else []),
    }
    return FlowPlot(flow.name, script_json(spec))


def _panel(part: Part, top: int, across: tuple[float, float], last: bool) -> Json:
    x = {"lim": across, "scale": "linear", "label": "time (s)" if last else ""}
    y = {"lim": part.lim, "scale": "linear", "label": part.label, "grid": not part.names}
    names = {"names": True, "ticks": list(enumerate(part.names))} if part.names else {}
    return {
        "box": [LEFT, top, RIGHT, part.height],
        "x": {**x, "grid": True, "shown": last, "digits": 9},
        "y": {**y, **names},
        "zooms": True,
        "fits": part.fits,
    }


def _entries(marks: Sequence[Json]) -> list[Json]:
    found: dict[str, Json] = {}
    for each in marks:
        if each["series"]:
            entry = {"name": each["series"], "colour": each["colour"], "dash": each.get("dash", ())}
            line = each["kind"] in ("line", "steps")
            found.setdefault(
                each["series"],
                {**entry, "line": line, "marker": each.get("marker") or ("" if line else "s")},
            )
    return list(found.values())


def _parts(trial: Trial, found: Timeline) -> Iterator[Part]:
    if found.window is not None:
        yield _window(found.window)
    if found.rtts is not None and len(found.rtts):
        yield _rtts(trial, found)
    if found.queue is not None and len(found.queue):
        yield _queue(found)
    if found.throughput is not None:
        yield _throughput(trial, found)
    if found.events or found.states is not None:
        yield _lanes(found)


def _window(rows: pd.DataFrame) -> Part:
    looks = (
        ("ssthresh", {"colour": style.BLACK, "dash": DASHES, "width": 0.8}),
        ("cwnd", {"colour": style.BLUE, "width": 1.0}),
    )
    marks = []
    for name, look in looks:
        own = rows[["time_s", name]].dropna()
        if len(own):
            marks.append(mark("steps", name, x=own["time_s"], y=own[name], unit=1, **look))  # type: ignore[arg-type]
    return Part(130, "window\n(segments)", (0, 1.08 * max(1.0, rows["cwnd"].max())), tuple(marks))


def _rtts(trial: Trial, found: Timeline) -> Part:
    assert found.rtts is not None
    time_s, value = found.rtts["time_s"], found.rtts["rtt_ms"]
    marks = [mark("points", "RTT of each ACK", style.GREY, time_s, value, 1e-3, marker=".", size=3)]
    if found.window is not None:
        own = found.window[found.window["srtt_ms"] > 0]
        if len(own):
            marks.append(mark("steps", "srtt", style.BLUE, own["time_s"], own["srtt_ms"], 1e-3))
    path_ms = path_rtt_ms(trial.scenario)
    marks.append(_level(found, path_ms, "path's RTT"))
    return Part(120, "RTT (ms)", (0, 1.05 * float(value.max())), tuple(marks), fits=True)


def _level(found: Timeline, value: float, series: str) -> Json:
    ends = [found.span.start_s, found.span.stop_s]
    look = {"dash": DASHES, "width": 0.7, "aside": True}
    return mark("line", series, style.BLACK, ends, [value, value], 1e-6, **look)


def _queue(found: Timeline) -> Part:
    assert found.queue is not None
    record = found.queue_record
    packets = record is None or record.unit == "packets"
    column, scale, label = ("packets", 1.0, "packets") if packets else ("bytes", 1e3, "kB")
    value = found.queue[column] / scale
    top = float(value.max())
    marks = [mark("steps", "queue", style.STEEL, found.queue["time_s"], value, 1e-3)]
    if record is not None:
        limit = record.limit / scale
        if limit < 1.6 * top:
            marks.append(_level(found, limit, "queue's limit"))
            top = max(top, limit)
    return Part(120, f"queue\n({label})", (0, 1.12 * max(top, 1e-9)), tuple(marks))


def _throughput(trial: Trial, found: Timeline) -> Part:
    assert found.throughput is not None
    top, link = _capacity(trial, found)
    begins = found.throughput.time_s - found.step_s / 2
    value = np.nan_to_num(found.throughput.value)
    last = begins[-1:] + found.step_s
    x, y = np.append(begins, last), np.append(value, value[-1:])
    marks = (link, mark("steps", "throughput", style.GREEN, x, y, 1e-6, width=1.0))
    label = f"Mbit/s\n(means of {found.step_s:g} s)"
    return Part(100, label, (0, 1.15 * max(top, float(value.max(initial=0)))), marks)


def _capacity(trial: Trial, found: Timeline) -> tuple[float, Json]:
    """The link's rate, or what it could carry meanwhile; and its highest."""
    record = found.queue_record
    capacity = None if record is None else capacity_of(trial, record)
    if capacity is None or not capacity.changes:
        rate = trial.scenario.topology.bottleneck.rate_mbit
        return rate, _level(found, rate, "link's rate")
    times, value = capacity.steps(max(0.0, found.span.start_s), found.span.stop_s, found.step_s)
    look = {"dash": DASHES, "width": 0.7, "aside": True}
    return float(value.max()), mark("steps", "link", style.BLACK, times, value, 1e-6, **look)


def _lanes(found: Timeline) -> Part:
    kinds = list(found.events)
    marks = []
    for place, kind in enumerate(kinds):
        times, look = found.events[kind], MARKERS[kind]
        own = {"marker": look["marker"], "size": look["markersize"] * 1.3, "width": 0.8}
        own["hollow"] = "markerfacecolor" in look
        lanes = np.full(len(times), place)
        if len(times):
            marks.append(mark("points", "", look["color"], times, lanes, 1, **own))
    names = [f"{kind} ({len(found.events[kind])})" for kind in kinds]
    if found.states is not None:
        for state, look in STATES.items():
            own_states = found.states[found.states["state"] == state]
            if len(own_states):
                starts, stops = own_states["start_s"], own_states["stop_s"]
                lane = np.full(len(own_states), len(names))
                more = {"x2": packed(stops), "half": look["height"] / 2}
                name = STATE_NAMES.get(state, state)
                marks.append(mark("spans", name, look["facecolor"], starts, lane, 1, **more))
        names.append("congestion state")
    return Part(LANE * len(names), "", (len(names) - 0.4, -0.6), tuple(marks), names=tuple(names))
