"""The parts of a figure as data: panels, marks, words and the legend."""

from __future__ import annotations

from dataclasses import dataclass, field

import pandas as pd

Numbers = tuple[float | None, ...]  # None: a gap


class UnknownPart(Exception):
    """A part that only the static figure shows."""


@dataclass(frozen=True)
class Scale:
    """An axis; `ticks` are places with what is written there, `names` says that these are names."""

    lim: tuple[float, float]
    scale: str
    label: str
    ticks: tuple[tuple[float, str], ...]
    grid: bool
    names: bool
    bend: float = 1.0  # of symlog: where it begins to be logarithmic
    room: float = 1.0  # of symlog: decades that the linear part takes


@dataclass(frozen=True)
class Panel:
    """Axes: left, top, width and height of the figure."""

    box: tuple[float, float, float, float]
    title: str
    right: str
    x: Scale
    y: Scale
    bare: bool
    zooms: bool


@dataclass(frozen=True)
class Mark:
    """Something drawn; numbers that are not `in_data` are parts of the panel's size."""

    panel: int
    kind: str  # line, steps, points, fill
    colour: str
    x: Numbers
    y: Numbers
    in_data: tuple[bool, bool] = (True, True)
    width: float = 0.8
    opacity: float = 1.0
    dash: tuple[float, ...] = ()  # of the width
    marker: str = ""
    size: float = 0.0
    hollow: bool = False
    edge: str = ""
    series: str = ""
    evidence: pd.DataFrame | None = None


@dataclass(frozen=True)
class Words:
    """A text; its place in parts of the panel, or of the figure if `panel` is -1."""

    panel: int
    words: str
    x: float
    y: float
    in_data: bool  # x is a value of the panel's axis
    size: float
    colour: str
    bold: bool
    across: str
    up: str


@dataclass(frozen=True)
class Entry:
    """A line of the legend."""

    name: str
    colour: str
    marker: str
    dash: tuple[float, ...]


@dataclass(frozen=True)
class Contents:
    """A figure; its legend's left and upper end are parts of the figure's size."""

    width: float  # points
    ratio: float  # height by width
    panels: tuple[Panel, ...]
    marks: tuple[Mark, ...]
    texts: tuple[Words, ...]
    entries: tuple[Entry, ...]
    legend: tuple[float, float, float] = field(default=(0.0, 0.0, 7.0))  # and its letters' size
