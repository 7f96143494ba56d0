"""The throughput–delay plane: the mean of each series with its confidence region."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd

from analysis.figures import style
from analysis.figures.figure import (
    Annotation,
    Axis,
    Curve,
    Figure,
    Mark,
    Panel,
    PointSeries,
    Polygon,
    in_rows,
    legend_entries,
    share_like_limits,
)
from analysis.figures.style import SeriesStyle
from analysis.metrics.metric_rows import AXIS
from analysis.statistics.distributions import fisher_quantile
from analysis.statistics.intervals import CONFIDENCE

LEAST = 4  # trials: with fewer, Hotelling's region is wider than any plot
X, Y = "owd_mean_ms", "throughput_mbps"
PLANE_READING = "ellipse: 95 % confidence region of the mean (Hotelling's T²), from 4 seeds on"


@dataclass(frozen=True)
class Corner:
    """Where the name of a line's end stands beside it, so that those of several lines are apart."""

    across: Literal["left", "right"]
    up: Literal["bottom", "top"]

    @property
    def offset_points(self) -> tuple[float, float]:
        """The distance from the line's end, in points."""
        return 2.5 if self.across == "left" else -2.5, 2.5 if self.up == "bottom" else -2.5


CORNERS = (
    Corner("left", "bottom"),
    Corner("right", "top"),
    Corner("left", "top"),
    Corner("right", "bottom"),
)


@dataclass(frozen=True)
class Plane:
    """Two measures: less of the first is better, more of the second."""

    x: str = X
    y: str = Y
    x_label: str = "one-way delay, mean (ms)"
    y_label: str = "throughput (Mbit/s)"


def figure(
    parts: Sequence[tuple[str, pd.DataFrame]],
    series: str,
    path: str = "",
    looks: Mapping[str, SeriesStyle] | None = None,
    of: Plane = Plane(),
) -> Figure:
    """Return one panel per part; with `path`, means are joined along that axis, its ends named."""
    if looks is None:
        looks = style.styles_of(pd.concat([rows for _, rows in parts]), series)
    across = 2 if len(parts) in (2, 4) else min(3, len(parts))
    panels = []
    for part, rows in parts:
        marks: list[Mark] = []
        for number, (name, look) in enumerate(looks.items()):
            of_series = rows[rows[series] == name]
            if path:
                named_at = CORNERS[number % len(CORNERS)]
                marks += path_marks(of_series[[AXIS + path, of.x, of.y]], look, name, named_at)
            else:
                marks += cloud_marks(of_series[[of.x, of.y, "verdict"]], look, name)
        x, y = (Axis(label, limits=(0, None), margin=0.12) for label in (of.x_label, of.y_label))
        panels.append(Panel(marks, x, y, title=part, note="better: up, and to the left"))
    columns = [series, "seed", "verdict", of.x, of.y, *([AXIS + path] if path else [])]
    return Figure(
        stem="",
        title="",
        panels=in_rows(share_like_limits(panels, "x", "y"), across),
        legend=legend_entries(looks),
        row_inches=2.6 if across < 3 else 2.2,
        data=pd.concat([rows[columns].assign(part=part) for part, rows in parts],
                       ignore_index=True),
    )  # fmt: skip


def reading(rows: pd.DataFrame) -> str:
    """Say how to read the regions, where there can be some."""
    return PLANE_READING if rows["seed"].nunique() >= LEAST else ""


def path_marks(
    rows: pd.DataFrame, look: SeriesStyle, name: str, corner: Corner = CORNERS[0]
) -> list[Mark]:
    """Join the means along the axis of the first column; the others are the plane's.

    Its ends are named at one of their corners.
    """
    column, x, y = rows.columns
    middle = rows.groupby(column)[[x, y]].mean().dropna()
    if middle.empty:
        return []
    labels = [f"{value:g}" for value in middle.index]
    marks: list[Mark] = [
        Curve(middle[x], middle[y], look.colour, 0.9, look.dashes, series=name),
        PointSeries(middle[x], middle[y], look.colour, look.marker, size=2.6, edge_width=0,
                    series=name, labels=labels),
    ]  # fmt: skip
    for place in (0, -1):
        at = middle.iloc[place]
        marks.append(
            Annotation(
                labels[place],
                float(at[x]),
                float(at[y]),
                offset_points=corner.offset_points,
                size=5.5,
                colour=look.colour,
                across=corner.across,
                up=corner.up,
                series=name,
            )
        )
    return marks


def cloud_marks(rows: pd.DataFrame, look: SeriesStyle, name: str) -> list[Mark]:
    """Show single trials, their mean and its region; the plane's columns come first."""
    points = rows.dropna()
    if points.empty:
        return []
    xy = points.iloc[:, :2].to_numpy(dtype=float)
    hollow = (points["verdict"] == "suspect").to_numpy()
    marks: list[Mark] = []
    if len(xy) > 1:
        marks.append(PointSeries(xy[:, 0], xy[:, 1], look.colour, size=2, hollow=list(hollow),
                                 opacity=0.6, edge_width=0.5, series=name))  # fmt: skip
    if (shape := region(xy)) is not None:
        (x, y), width, height, angle = shape
        turn, around = np.radians(angle), np.linspace(0, 2 * np.pi, 73)
        a, b = width / 2 * np.cos(around), height / 2 * np.sin(around)
        ellipse_x = x + a * np.cos(turn) - b * np.sin(turn)
        ellipse_y = y + a * np.sin(turn) + b * np.cos(turn)
        marks.append(Polygon(ellipse_x, ellipse_y, look.colour, edge=look.colour, series=name))
    x, y = xy.mean(axis=0)
    marks.append(PointSeries([x], [y], look.colour, look.marker, size=5, edge_width=0.8,
                             hollow=bool(hollow.any()), series=name))  # fmt: skip
    return marks


def region(points: np.ndarray) -> tuple[tuple[float, float], float, float, float] | None:
    """Return the mean's confidence region: centre, axes, angle in degrees; None if unknown."""
    n = len(points)
    if n < LEAST:
        return None
    spread = np.cov(points.T)
    if not np.all(np.isfinite(spread)) or np.linalg.det(spread) <= 0:
        return None
    quantile = fisher_quantile(CONFIDENCE, n - 2)
    scale = 2 * (n - 1) / (n * (n - 2)) * quantile
    values, vectors = np.linalg.eigh(spread)
    width, height = 2 * np.sqrt(scale * values)
    angle = float(np.degrees(np.arctan2(vectors[1, 0], vectors[0, 0])))
    centre = points.mean(axis=0)
    return (float(centre[0]), float(centre[1])), float(width), float(height), angle
