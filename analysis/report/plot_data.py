"""A figure's contents as the page's plotting script takes them: JSON within the page."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from analysis.figures.plotting.plot_parts import Contents, Mark, Panel, Scale, Words
from analysis.figures.plotting.point_evidence import TRIALS
from analysis.report.claims_section import ranges
from analysis.report.inline import ink

Json = dict[str, Any]


def plot_json(found: Contents, name: str, numbers: Mapping[str, int]) -> str:
    """The figure; `numbers` are the trials' in the page."""
    left, top, size = found.legend
    entries = [
        {"name": each.name, "colour": ink(each.colour), "marker": each.marker, "dash": each.dash}
        for each in found.entries
    ]
    return script_json(
        {
            "name": name,
            "width": found.width,
            "ratio": found.ratio,
            "panels": [_panel(each) for each in found.panels],
            "marks": [_mark(each, numbers) for each in found.marks],
            "texts": [_words(each) for each in found.texts],
            "legend": {"box": [left, top], "size": size, "entries": entries},
        }
    )


def script_json(value: object) -> str:
    """JSON that stays data within a script element, whatever is in its strings."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _panel(panel: Panel) -> Json:
    return {
        "box": panel.box,
        "title": panel.title,
        "right": panel.right,
        "x": _scale(panel.x),
        "y": _scale(panel.y),
        "bare": panel.bare,
        "zooms": panel.zooms,
    }


def _scale(scale: Scale) -> Json:
    return {
        "lim": scale.lim,
        "scale": scale.scale,
        "label": scale.label,
        "ticks": scale.ticks,
        "grid": scale.grid,
        "names": scale.names,
        "bend": scale.bend,
        "room": scale.room,
    }


def _mark(mark: Mark, numbers: Mapping[str, int]) -> Json:
    """A mark without what is as usual."""
    found: Json = {
        "panel": mark.panel,
        "kind": mark.kind,
        "colour": ink(mark.colour),
        "x": mark.x,
        "y": mark.y,
        "inData": mark.in_data,
        "width": mark.width,
        "opacity": mark.opacity,
        "dash": mark.dash,
        "marker": mark.marker,
        "size": mark.size,
        "hollow": mark.hollow,
        "edge": ink(mark.edge) if mark.edge else "",
        "series": mark.series,
    }
    if mark.evidence is not None:
        found["told"] = _told(mark.evidence, numbers)
    usual = {"inData": (True, True), "opacity": 1.0, "hollow": False}
    return {k: v for k, v in found.items() if v != usual.get(k) and v not in ("", ())}


def _words(words: Words) -> Json:
    return {
        "panel": words.panel,
        "words": words.words,
        "x": words.x,
        "y": words.y,
        "inData": words.in_data,
        "size": words.size,
        "colour": ink(words.colour),
        "bold": words.bold,
        "across": words.across,
        "up": words.up,
    }


def _told(rows: pd.DataFrame, numbers: Mapping[str, int]) -> Json:
    """The columns that there are; one value where all points have the same."""
    found: Json = {}
    for name in ("low", "high", "n"):
        if name in rows:
            found[name] = _once([_known(each) for each in rows[name]])
    if TRIALS in rows:
        own = [[numbers[each] for each in names if each in numbers] for names in rows[TRIALS]]
        found[TRIALS] = _once([ranges(each) for each in own])
    return found


def _known(value: object) -> float | None:
    number = float(str(value))
    return float(f"{number:.6g}") if math.isfinite(number) else None


def _once(values: Sequence[Any]) -> Any:
    same = all(each == values[0] for each in values)
    return values[0] if values and same else list(values)
