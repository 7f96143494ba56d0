"""Figures as data: what a picture shows, made once and drawn by two renderers.

An experiment's figures are values of `Figure`. `analysis/figures/static_renderer.py` draws one with
matplotlib (`save(figure, folder)`: PNG, SVG and the CSV of its data), and `analysis/report` makes
the page's interactive plot of the same value. Nothing else draws, and no figure touches either
library: it is a pure function from results to a `Figure`, and a test reads the value.

A figure is a grid of panels under one title::

    panel = Panel(
        title="order cbr-first",
        x=Axis("CBR load (Mbit/s)", ticks=[1, 5, 10]),
        y=Axis("throughput (Mbit/s)", limits=(0, None)),
        marks=(
            Area(load, low, high, colour=look.colour, series="cubic"),
            Curve(load, mean, colour=look.colour, series="cubic"),
            PointSeries(load, mean, colour=look.colour, marker="X", hollow=suspect,
                        series="cubic", evidence=PointEvidence.from_table(table)),
            ReferenceLine("y", 10, label="link: 10 Mbit/s"),
        ),
    )
    Figure(stem="one-flow", title="One flow against CBR", panels=((panel,),),
           legend=legend_entries(looks), foot="n = 5 seeds per point", caption=…, data=table)

**Layout.** `panels` are rows of panels; `None` leaves a place empty. `row_inches` is the height of
each row, labels included (one number: of every row); `column_widths` are relative. The renderers
find room for title, legend and foot themselves. `subtitle` and `warning` are lines under the title.
`right_inches` leaves room for annotations to the right of the panels. A column's name stands as
`heading` over its first panel; a row's name is a line of the vertical axis's label.

**Axes.** `limits` may leave an end to the data (`None`): `resolved_limits(panel)` is what both
renderers show. `names` makes an axis of categories at 0, 1, 2 …; of a vertical axis the first is at
the top. `widen=True` keeps an axis from exaggerating differences of a few percent.
`share_limits(panels, "x")` and `share_like_limits` give several panels one range.

**Marks** are drawn in their order. `series` is the name of the legend's entry that hides and shows
a mark in the page. Positions are data; where `x_place` or `y_place` is "panel" they are parts of
the panel's width or height, from 0 to 1. Colours are `#rrggbb`; the page replaces those of
`analysis/figures/style.py` by its own in dark mode. Dashes are lengths in widths of the
line. A `PointEvidence` beside a curve or points is what the page shows on hover (interval, n) and
which trials a click lists.

=================== ========================================================================
mark                for
=================== ========================================================================
`Curve`             lines and steps
`Area`              bands between two curves, stacked areas, areas under a curve
`PointSeries`       points, event ticks; with error bars where `low` and `high` are given
`SegmentSet`        many straight lines: bars of intervals, segments of a time–sequence diagram
`Boxes`             cells of a matrix (with text), stretches of a lane
`Polygon`           ellipses, slices of a pie
`ShadedRange`       a shaded range of one axis
`ReferenceLine`     a limit, a link's rate, an even split
`Annotation`        words at a place; `offset_points` moves them from it
=================== ========================================================================

`analysis/figures/means.py` makes the marks that most figures consist of: means with intervals.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from analysis.figures.style import WIDTH_INCHES, SeriesStyle

Dash = tuple[float, ...]
Place = Literal["data", "panel"]
Direction = Literal["x", "y"]
Floats = npt.NDArray[np.float64]
Interval = tuple[float, float]

MIN_SPAN = 0.1  # of the largest value: what a widened axis covers at least
ALIKE = 0.4  # of the range of all panels: panels that cover so much share their limits
TRIALS = "trials"  # a column of tuples of trials' names
REFERENCE_COLOUR, TEXT_COLOUR = "#666666", "#000000"


@dataclass(frozen=True, eq=False)
class PointEvidence:
    """The evidence behind each point: the ends of its interval, n, and the trials' names."""

    low: Sequence[float] = ()
    high: Sequence[float] = ()
    n: Sequence[int] = ()
    trials: Sequence[tuple[str, ...]] = ()

    @staticmethod
    def from_table(table: pd.DataFrame) -> PointEvidence:
        """Take the columns `low`, `high`, `n` and `trials` that the table has."""
        columns = ("low", "high", "n", TRIALS)
        return PointEvidence(*(list(table[name]) if name in table else () for name in columns))


@dataclass(frozen=True, eq=False)
class Curve:
    """A line through points; NaN interrupts it. With `steps`, each value holds until the next."""

    x: npt.ArrayLike
    y: npt.ArrayLike
    colour: str
    width: float = 1.0  # points
    dash: Dash = ()
    opacity: float = 1.0
    steps: bool = False
    series: str = ""
    evidence: PointEvidence | None = None
    x_place: Place = "data"
    y_place: Place = "data"
    labels: Sequence[str] = ()  # of each point, for the page's hover
    columns: Mapping[str, npt.ArrayLike] = field(default_factory=dict)  # numbers, for the same


@dataclass(frozen=True, eq=False)
class Area:
    """The area between two curves over the same x."""

    x: npt.ArrayLike
    low: npt.ArrayLike
    high: npt.ArrayLike
    colour: str
    opacity: float = 0.18
    steps: bool = False
    hatch: str = ""  # matplotlib's; the page draws none
    series: str = ""


@dataclass(frozen=True, eq=False)
class PointSeries:
    """Markers, with error bars from `low` to `high` along `along` where these are given.

    `hollow` is one truth value, or one for each point (suspect trials). Markers are matplotlib's:
    `o s D ^ v < > d p h P X * x + | _ .`
    """

    x: npt.ArrayLike
    y: npt.ArrayLike
    colour: str
    marker: str = "o"
    size: float = 3.2  # points
    hollow: bool | Sequence[bool] = False
    opacity: float = 1.0
    edge_width: float = 0.7
    low: Sequence[float] | None = None
    high: Sequence[float] | None = None
    along: Direction = "y"
    bar_width: float = 1.6
    series: str = ""
    evidence: PointEvidence | None = None
    x_place: Place = "data"
    y_place: Place = "data"
    labels: Sequence[str] = ()  # of each point, for the page's hover
    columns: Mapping[str, npt.ArrayLike] = field(default_factory=dict)  # numbers, for the same


@dataclass(frozen=True, eq=False)
class SegmentSet:
    """Straight lines from (x, y) to (x_end, y_end)."""

    x: npt.ArrayLike
    y: npt.ArrayLike
    x_end: npt.ArrayLike
    y_end: npt.ArrayLike
    colour: str
    width: float = 0.9
    opacity: float = 1.0
    dash: Dash = ()
    series: str = ""
    x_place: Place = "data"
    y_place: Place = "data"
    labels: Sequence[str] = ()  # of each segment, for the page's hover
    columns: Mapping[str, npt.ArrayLike] = field(default_factory=dict)  # numbers, for the same


@dataclass(frozen=True, eq=False)
class Boxes:
    """Rectangles; colours and opacities are one for all or one for each."""

    left: npt.ArrayLike
    right: npt.ArrayLike
    bottom: npt.ArrayLike
    top: npt.ArrayLike
    colours: str | Sequence[str]
    opacities: float | Sequence[float] = 1.0
    hatch: str = ""
    edge: str = ""  # colour; empty: none
    edge_width: float = 0.6
    texts: Sequence[str] = ()  # in the middle of each
    text_colours: Sequence[str] = ()
    text_size: float = 5.5
    series: str = ""


@dataclass(frozen=True, eq=False)
class Polygon:
    """A closed shape."""

    x: npt.ArrayLike
    y: npt.ArrayLike
    colour: str
    opacity: float = 0.16
    edge: str = ""
    edge_width: float = 0.8
    series: str = ""


@dataclass(frozen=True)
class ShadedRange:
    """A range of one axis, shaded across the panel."""

    axis: Direction
    start: float
    stop: float
    colour: str = "#E4E4E4"
    opacity: float = 1.0
    series: str = ""


@dataclass(frozen=True)
class ReferenceLine:
    """A line across the panel at a value of one axis, named at its end where `label` is given."""

    axis: Direction
    value: float
    label: str = ""
    colour: str = REFERENCE_COLOUR
    width: float = 0.7
    dash: Dash = (4, 2)
    series: str = ""


@dataclass(frozen=True)
class Annotation:
    """Words at a place, moved by `offset_points`."""

    text: str
    x: float
    y: float
    x_place: Place = "data"
    y_place: Place = "data"
    offset_points: tuple[float, float] = (0, 0)
    size: float = 6.0
    colour: str = TEXT_COLOUR
    bold: bool = False
    across: Literal["left", "center", "right"] = "left"
    up: Literal["top", "center", "bottom", "baseline"] = "baseline"
    rotation: float = 0.0
    boxed: bool = False  # on a background of the paper's colour
    series: str = ""


Mark = (
    Curve
    | Area
    | PointSeries
    | SegmentSet
    | Boxes
    | Polygon
    | ShadedRange
    | ReferenceLine
    | Annotation
)


@dataclass(frozen=True, eq=False)
class Axis:
    """An axis of a panel."""

    label: str = ""
    scale: Literal["linear", "log", "symlog"] = "linear"
    limits: tuple[float | None, float | None] = (None, None)  # None: by the data
    ticks: Sequence[float] | None = None  # None: the renderer chooses
    tick_labels: Sequence[str] | None = None
    tick_count: int | None = None  # the most that the renderer chooses
    integer: bool = False
    names: Sequence[str] = ()  # categories, at 0, 1, 2 …
    names_shown: bool = True  # False: another panel of the row or column shows the labels
    name_colours: Sequence[str] = ()  # bold, and in these colours
    rotation: float = 0.0  # of the ticks' labels
    opposite: bool = False  # ticks at the top
    margin: float = 0.05  # beyond the data, of its range
    widen: bool = False  # do not exaggerate small differences
    linear_below: float = 1.0  # of symlog
    fits: bool = False  # the page fits the axis to what is in sight
    resolution: float | None = None  # the least difference of values that matters to the page
    grid: bool = True
    line: bool = True
    tick_marks: bool = True


@dataclass(frozen=True, eq=False)
class Panel:
    """Marks between two axes; `empty` says why there are none."""

    marks: Sequence[Mark] = ()
    x: Axis = field(default_factory=Axis)
    y: Axis = field(default_factory=Axis)
    title: str = ""  # bold, above at the left
    title_right: str = ""  # small, above at the right
    note: str = ""  # small, between the title and the panel
    heading: str = ""  # of the column, in `heading_colour`
    heading_colour: str = TEXT_COLOUR
    heading_note: str = ""  # under the heading
    heading_right: str = ""
    empty: str = ""
    bare: bool = False  # without axes and frame
    equal: bool = False  # one unit is as long on both axes
    legend: Sequence[LegendEntry] = ()  # under the panel at the right, beside the axis's label


@dataclass(frozen=True)
class LegendEntry:
    """A line of the legend."""

    name: str
    colour: str
    marker: str = ""
    dash: Dash = ()
    kind: Literal["line", "points", "area"] = "line"
    hatch: str = ""
    size: float = 4.0
    hollow: bool = False
    width: float = 1.0


@dataclass(frozen=True, eq=False)
class Figure:
    """A figure: `stem` names its files and its place in the page, `data` is its CSV."""

    stem: str
    title: str
    panels: Sequence[Sequence[Panel | None]]
    caption: str = ""  # what is to be seen
    reading: str = ""  # how to read it, where the figure does not say so
    foot: str = ""
    subtitle: str = ""
    warning: str = ""
    legend: Sequence[LegendEntry] = ()
    legend_beside: bool = False  # at the right of the panels
    legend_size: float = 0.0  # points; 0: by the number of entries
    data: pd.DataFrame = field(default_factory=pd.DataFrame)
    row_inches: float | Sequence[float] = 1.7
    column_widths: Sequence[float] = ()
    width_inches: float = WIDTH_INCHES
    right_inches: float = 0.0
    vertical_label: str = ""  # of all panels
    foot_size: float = 6.0
    number_format: str = "%.6g"  # of the CSV
    static: bool = False  # the page shows the SVG: its library cannot draw this figure

    @property
    def all_panels(self) -> list[Panel]:
        """The panels, row by row."""
        return [panel for row in self.panels for panel in row if panel is not None]


def legend_entries(looks: Mapping[str, SeriesStyle]) -> tuple[LegendEntry, ...]:
    """Return an entry for each series."""
    return tuple(
        LegendEntry(name, look.colour, look.marker, look.dashes) for name, look in looks.items()
    )


def in_rows(panels: Iterable[Panel], across: int) -> tuple[tuple[Panel | None, ...], ...]:
    """Lay panels out in rows; the last row is filled up with empty places."""
    places: list[Panel | None] = list(panels)
    places += [None] * (-len(places) % across)
    return tuple(tuple(places[i : i + across]) for i in range(0, len(places), across))


def resolved_limits(panel: Panel) -> tuple[Interval, Interval]:
    """Return the limits of both axes: as given, and by the data where an end is open."""
    return _limits(panel, "x"), _limits(panel, "y")


def _limits(panel: Panel, direction: Direction) -> Interval:
    axis = panel.x if direction == "x" else panel.y
    low, high = axis.limits
    if axis.names and low is None and high is None:
        ends = (-0.5, len(axis.names) - 0.5)
        return ends if direction == "x" else (ends[1], ends[0])
    if low is None or high is None:
        first, last = _data_range(panel, direction, axis.scale == "log")
        shown = first if low is None else low, last if high is None else high
        least, most = _with_margin(shown, axis)
        low, high = least if low is None else low, most if high is None else high
    if axis.widen and axis.scale == "linear":
        middle, span = (low + high) / 2, MIN_SPAN * max(abs(low), abs(high))
        if 0 < high - low < span:
            low, high = (0.0 if axis.limits[0] == 0 else middle - span / 2), middle + span / 2
    return float(low), float(high)


def _with_margin(interval: Interval, axis: Axis) -> Interval:
    low, high = interval
    if axis.scale == "log":
        room = (high / low) ** axis.margin if high > low else 1.1
        return low / room, high * room
    room = axis.margin * (high - low)
    if not high > low:
        room = axis.margin * abs(high) or axis.margin
    return low - room, high + room


def _data_range(panel: Panel, direction: Direction, positive: bool) -> Interval:
    """Return the least and the greatest value that a panel's marks have on an axis."""
    parts = [np.ravel(np.asarray(part, dtype=float)) for mark in panel.marks
             for part in _positions(mark, direction)]  # fmt: skip
    values = np.concatenate(parts) if parts else np.zeros(0)
    values = values[np.isfinite(values)]
    if positive:
        values = values[values > 0]
    if not len(values):
        return (1.0, 10.0) if positive else (0.0, 1.0)
    return float(values.min()), float(values.max())


def _positions(mark: Mark, direction: Direction) -> list[npt.ArrayLike]:
    """Return the arrays of a mark's positions on an axis; none where it has places instead."""
    across = direction == "x"
    match mark:
        case Annotation():
            return []
        case ShadedRange() | ReferenceLine():
            ends = [mark.start, mark.stop] if isinstance(mark, ShadedRange) else [mark.value]
            return [ends] if mark.axis == direction else []
        case Area():
            return [mark.x] if across else [mark.low, mark.high]
        case Boxes():
            return [mark.left, mark.right] if across else [mark.bottom, mark.top]
        case Polygon():
            return [mark.x if across else mark.y]
    if (mark.x_place if across else mark.y_place) == "panel":
        return []
    positions: list[npt.ArrayLike] = [mark.x if across else mark.y]
    if isinstance(mark, SegmentSet):
        positions.append(mark.x_end if across else mark.y_end)
    if isinstance(mark, PointSeries) and mark.along == direction:
        positions += [each for each in (mark.low, mark.high) if each is not None]
    return positions


def share_limits(panels: Sequence[Panel], *directions: Direction) -> list[Panel]:
    """Give panels one range: that of all of them together."""
    changed = list(panels)
    for direction in directions:
        limits = [_limits(panel, direction) for panel in changed]
        low, high = min(map(min, limits), default=0.0), max(map(max, limits), default=1.0)
        changed = [_with_limits(panel, direction, (low, high)) for panel in changed]
    return changed


def share_like_limits(panels: Sequence[Panel], *directions: Direction) -> list[Panel]:
    """Give panels one range where theirs are alike, so that places in them can be compared."""
    changed = list(panels)
    for direction in directions:
        limits = [_limits(panel, direction) for panel in changed]
        low, high = min(map(min, limits), default=0.0), max(map(max, limits), default=1.0)
        if all(most - least >= ALIKE * (high - low) for least, most in limits):
            changed = share_limits(changed, direction)
    return changed


def _with_limits(panel: Panel, direction: Direction, limits: Interval) -> Panel:
    if direction == "x":
        return dataclasses.replace(panel, x=dataclasses.replace(panel.x, limits=limits))
    return dataclasses.replace(panel, y=dataclasses.replace(panel.y, limits=limits))
