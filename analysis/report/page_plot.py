"""Figures as the page's plots take them: JSON within the page, drawn by `templates/plot.js`."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from analysis.figures.figure import (
    Annotation,
    Area,
    Axis,
    Boxes,
    Curve,
    Figure,
    Mark,
    Panel,
    PointEvidence,
    PointSeries,
    Polygon,
    ReferenceLine,
    SegmentSet,
    ShadedRange,
    resolved_limits,
)
from analysis.report.inline import ink
from analysis.report.listing import ranges
from analysis.results.page_series import Json, packed

INCH = 135  # pixels
MIN_PACKED = 100  # numbers that are worth packing
SIGNIFICANT_DIGITS = 7  # of a number: a microsecond in ten seconds
TIME_DIGITS = 9
HOVER_LABELS = 100_000  # more points than that are not labelled one by one


def plot_json(figure: Figure, name: str, numbers: Mapping[str, int]) -> str:
    """Return the figure as text; `numbers` are the trials' in the page."""
    return script_json(plot(figure, name, numbers))


def plot(figure: Figure, name: str, numbers: Mapping[str, int]) -> Json:
    """Return the figure as JSON."""
    heights = figure.row_inches
    inches = [heights] * len(figure.panels) if isinstance(heights, float | int) else list(heights)
    panels: list[Json] = []
    marks: list[Json] = []
    for row, line in enumerate(figure.panels):
        for column, panel in enumerate(line):
            if panel is not None:
                drawn = [_mark(mark, panel, len(panels), numbers) for mark in panel.marks]
                marks += [mark for mark in drawn if "x" in mark or "axis" in mark]  # not empty
                panels.append({**_panel(panel, inches[row]), "row": row, "column": column})
    across = max(len(line) for line in figure.panels)
    entries = [*figure.legend, *(entry for panel in figure.all_panels for entry in panel.legend)]
    return {
        "name": name,
        "title": figure.title,
        "subtitle": figure.subtitle,
        "warning": figure.warning,
        "foot": figure.foot,
        "widths": list(figure.column_widths or [1] * across),
        "panels": panels,
        "marks": marks,
        "legend": [{**dataclasses.asdict(entry), "colour": ink(entry.colour)} for entry in entries],
    }


def script_json(value: object) -> str:
    """Return JSON that stays data within a script element, whatever is in its strings."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _panel(panel: Panel, inches: float) -> Json:
    x_limits, y_limits = resolved_limits(panel)
    panel_json: Json = {
        "height": round(inches * INCH),
        "title": panel.title,
        "right": panel.title_right,
        "note": panel.note,
        "bare": panel.bare,
        "equal": panel.equal,
        "x": _axis(panel.x, x_limits),
        "y": _axis(panel.y, y_limits),
        "zooms": not (panel.bare or panel.empty or panel.x.names or panel.x.scale == "symlog"),
    }
    if panel.heading:
        panel_json["heading"] = {
            "words": panel.heading,
            "colour": ink(panel.heading_colour),
            "note": panel.heading_note,
            "right": panel.heading_right,
        }
    return {**panel_json, "empty": panel.empty} if panel.empty else panel_json


def _axis(axis: Axis, limits: tuple[float, float]) -> Json:
    ticks = list(range(len(axis.names))) if axis.names else axis.ticks
    labels = axis.names or axis.tick_labels
    drawn: Json = {
        "label": axis.label,
        "lim": [_rounded(limits[0]), _rounded(limits[1])],
        "scale": axis.scale,
        "names": bool(axis.names or axis.tick_labels),
        "shown": axis.names_shown,
        "grid": axis.grid,
        "line": axis.line,
        "marks": axis.tick_marks and not axis.names,
        "integer": axis.integer,
        "fits": axis.fits,
        "bend": axis.linear_below,
        "rotation": axis.rotation,
        "opposite": axis.opposite,
        "digits": TIME_DIGITS if axis.resolution and axis.resolution < 1e-3 else 4,
    }
    if ticks is not None:
        tick_labels = labels if labels is not None else [f"{tick:g}" for tick in ticks]
        drawn["ticks"] = [
            [_rounded(float(at)), str(word)] for at, word in zip(ticks, tick_labels, strict=True)
        ]
    return drawn


def _mark(mark: Mark, panel: Panel, place: int, numbers: Mapping[str, int]) -> Json:
    drawn: Json = {"panel": place, "series": mark.series}
    x_unit, y_unit = panel.x.resolution, panel.y.resolution
    match mark:
        case ReferenceLine():
            drawn |= {"kind": "rule", "axis": mark.axis, "at": mark.value, "label": mark.label}
            drawn |= {"width": mark.width, "dash": mark.dash}
        case ShadedRange():
            drawn |= {"kind": "span", "axis": mark.axis, "from": mark.start, "to": mark.stop}
            drawn["opacity"] = mark.opacity
        case Annotation():
            drawn |= {"kind": "text", "words": mark.text, "x": [mark.x], "y": [mark.y]}
            drawn |= {"dx": mark.offset_points[0], "dy": mark.offset_points[1], "size": mark.size}
            drawn |= {"bold": mark.bold, "across": mark.across, "up": mark.up}
            drawn |= {"rotation": mark.rotation}
        case Area():
            drawn |= {"kind": "area", "steps": mark.steps, "opacity": mark.opacity}
            drawn["x"] = _numbers(mark.x, x_unit)
            drawn |= {"y": _numbers(mark.low, y_unit), "y2": _numbers(mark.high, y_unit)}
        case Boxes():
            drawn |= _boxes(mark)
        case Polygon():
            drawn |= {"kind": "polygon", "opacity": mark.opacity, "width": mark.edge_width}
            drawn |= {"x": _numbers(mark.x, None), "y": _numbers(mark.y, None)}
            drawn["edge"] = ink(mark.edge) if mark.edge else ""
        case Curve() | PointSeries() | SegmentSet():
            drawn |= {"x": _numbers(mark.x, x_unit), "y": _numbers(mark.y, y_unit)}
            drawn |= _drawn(mark, x_unit, y_unit)
            if mark.columns:
                drawn["columns"] = {name: packed(each, 1) for name, each in mark.columns.items()}
            if len(mark.labels) and any(mark.labels) and len(mark.labels) < HOVER_LABELS:
                same = set(mark.labels)
                drawn["labels"] = list(mark.labels) if len(same) > 1 else same.pop()
            if not isinstance(mark, SegmentSet) and mark.evidence is not None:
                drawn["told"] = _hover_data(mark.evidence, numbers)
    if not isinstance(mark, Boxes):
        drawn["colour"] = ink(mark.colour)
    if isinstance(mark, Annotation | Curve | PointSeries | SegmentSet):
        drawn |= {"xIn": mark.x_place, "yIn": mark.y_place}
    usual = {"xIn": "data", "yIn": "data", "opacity": 1.0, "hollow": False}
    return {k: v for k, v in drawn.items() if v != usual.get(k) and v not in ("", (), [])}


def _drawn(mark: Curve | PointSeries | SegmentSet, x: float | None, y: float | None) -> Json:
    """Return what a line, points or segments have of their own."""
    match mark:
        case Curve():
            kind = "steps" if mark.steps else "line"
            return {"kind": kind, "width": mark.width, "dash": mark.dash, "opacity": mark.opacity}
        case SegmentSet():
            ends = {"x2": _numbers(mark.x_end, x), "y2": _numbers(mark.y_end, y)}
            look = {"width": mark.width, "dash": mark.dash, "opacity": mark.opacity}
            return {"kind": "segments", **ends, **look}
    hollow = mark.hollow if isinstance(mark.hollow, bool) else [bool(each) for each in mark.hollow]
    drawn: Json = {
        "kind": "points",
        "marker": mark.marker,
        "size": mark.size,
        "width": mark.edge_width,
        "opacity": mark.opacity,
        "hollow": hollow if hollow is True or np.any(hollow) else False,
    }
    if mark.low is not None and mark.high is not None:
        drawn |= {"low": _numbers(mark.low, None), "high": _numbers(mark.high, None)}
        drawn |= {"along": mark.along, "barWidth": mark.bar_width}
    return drawn


def _boxes(mark: Boxes) -> Json:
    left, right, bottom, top = np.broadcast_arrays(
        *(np.asarray(each, dtype=float) for each in (mark.left, mark.right, mark.bottom, mark.top))
    )
    colours = mark.colours if isinstance(mark.colours, str) else list(mark.colours)
    opacities = mark.opacities
    drawn: Json = {
        "kind": "boxes",
        "x": _numbers(left, None),
        "x2": _numbers(right, None),
        "y": _numbers(bottom, None),
        "y2": _numbers(top, None),
        "colours": ink(colours) if isinstance(colours, str) else [ink(each) for each in colours],
        "opacities": opacities if isinstance(opacities, float | int) else list(opacities),
    }
    if mark.texts:
        drawn |= {"texts": list(mark.texts), "textSize": mark.text_size}
        # on coloured cells, letters keep their colours in the dark
        drawn["inks"] = [ink(each) for each in mark.text_colours]
    return drawn


def _numbers(values: npt.ArrayLike, unit: float | None) -> Any:
    """Return numbers as a list, or packed where they are many and their resolution is known."""
    flat = np.ravel(np.asarray(values, dtype=np.float64))
    if unit is not None and len(flat) >= MIN_PACKED and np.isfinite(flat).all():
        return packed(flat, unit)
    return [_rounded(each) for each in flat.tolist()]


def _rounded(value: float) -> float | None:
    return float(f"{value:.{SIGNIFICANT_DIGITS}g}") if math.isfinite(value) else None


def _hover_data(evidence: PointEvidence, numbers: Mapping[str, int]) -> Json:
    """Return what is known; one value where all points have the same."""
    data: Json = {}
    for name in ("low", "high", "n"):
        values = [_rounded(float(each)) for each in getattr(evidence, name)]
        if values:
            data[name] = _once(values)
    if len(evidence.trials):
        trial_numbers = [
            [numbers[each] for each in names if each in numbers] for names in evidence.trials
        ]
        data["trials"] = _once([ranges(each) for each in trial_numbers])
    return data


def _once(values: Sequence[Any]) -> Any:
    same = all(each == values[0] for each in values)
    return values[0] if values and same else list(values)
