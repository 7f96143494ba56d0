"""What is drawn within axes, as marks: lines, steps, points and areas, from back to front."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.colors import to_hex
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.text import Text

from analysis.figures.plotting.plot_parts import Entry, Mark, Numbers, UnknownPart
from analysis.figures.plotting.point_evidence import noted

DIGITS = 7  # of a number: a microsecond in ten seconds


def marks(axes: Axes, place: int, entries: Sequence[Entry]) -> Iterator[Mark]:
    """All that is drawn within the axes, from back to front."""
    parts: list[Artist] = [*axes.lines, *axes.collections, *axes.patches]
    known = {*map(id, parts), *map(id, axes.texts)}
    if axes.images or axes.tables or axes.artists or axes.child_axes or _more(axes, known):
        raise UnknownPart
    for artist in sorted(parts, key=lambda each: each.get_zorder()):
        if not artist.get_visible():
            continue
        if isinstance(artist, Line2D):
            yield from _line(axes, artist, place, entries)
        elif isinstance(artist, LineCollection):
            yield from _segments(artist, place, entries)
        elif isinstance(artist, PolyCollection | Patch):
            yield from _filled(axes, artist, place, entries)
        else:
            raise UnknownPart


def _more(axes: Axes, known: set[int]) -> bool:
    """True if the axes have artists of other kinds."""
    own = (axes.patch, axes.xaxis, axes.yaxis, axes.get_legend(), *axes.spines.values())
    parts = known | set(map(id, own))
    return any(id(each) not in parts and not isinstance(each, Text) for each in axes.get_children())


def _line(axes: Axes, line: Line2D, place: int, entries: Sequence[Entry]) -> Iterator[Mark]:
    steps = line.get_drawstyle()
    x, y = (np.asarray(each, dtype=float) for each in line.get_data())
    if steps not in ("default", "steps-post"):
        raise UnknownPart
    in_data = line.get_transform().contains_branch_seperately(axes.transData)
    colour, marker, dash = to_hex(line.get_color()), marker_of(line), dash_of(line)
    drawn = line.get_linestyle() not in ("None", "none", " ", "")
    common = {
        "panel": place,
        "x": _numbers(x),
        "y": _numbers(y),
        "in_data": in_data,
        "opacity": float(str(line.get_alpha() or 1.0)),
        "series": _series(entries, colour, marker, dash if drawn else None),
        "evidence": noted(line),
    }
    if drawn and len(x):
        width = float(line.get_linewidth())
        kind = "steps" if steps == "steps-post" else "line"
        yield Mark(kind=kind, colour=colour, width=width, dash=dash, **common)  # type: ignore[arg-type]
    if marker and len(x):
        face, edge = line.get_markerfacecolor(), line.get_markeredgecolor()
        hollow = face in ("none", "white")
        look = {"marker": marker, "size": float(line.get_markersize()), "hollow": hollow}
        own = edge if hollow else face
        colour = to_hex(own)
        yield Mark(kind="points", colour=colour, **look, **common)  # type: ignore[arg-type]


def _segments(found: LineCollection, place: int, entries: Sequence[Entry]) -> Iterator[Mark]:
    """Several lines of one look as one, with gaps."""
    pieces = [
        np.vstack((piece, [[np.nan, np.nan]])) for piece in found.get_segments() if len(piece)
    ]
    rows = np.atleast_2d(np.asarray(found.get_colors(), dtype=float))
    colours = {to_hex(tuple(each)) for each in rows.tolist()}
    if len(colours) != 1:
        raise UnknownPart
    if pieces:
        x, y = np.vstack(pieces).T
        colour = colours.pop()
        width = float(np.atleast_1d(found.get_linewidth())[0])
        series = _series(entries, colour, "", None)
        yield Mark(place, "line", colour, _numbers(x), _numbers(y), width=width, series=series)


def _filled(
    axes: Axes, found: PolyCollection | Patch, place: int, entries: Sequence[Entry]
) -> Iterator[Mark]:
    """Areas, with their curves as corners."""
    whole = isinstance(found, Patch)
    paths = [found.get_path()] if isinstance(found, Patch) else found.get_paths()
    faces = np.atleast_2d(np.asarray(found.get_facecolor(), dtype=float))
    rims = np.atleast_2d(np.asarray(found.get_edgecolor(), dtype=float))
    if len(faces) != 1 or found.get_hatch():
        raise UnknownPart
    width = float(np.atleast_1d(np.asarray(found.get_linewidth(), dtype=float))[0])
    back = axes.transData.inverted()
    corners = [
        np.vstack((back.transform(polygon), [[np.nan, np.nan]]))
        for path in paths
        for polygon in path.transformed(found.get_transform()).to_polygons()
    ]
    face = tuple(faces[0].tolist())
    if corners and face[3]:
        x, y = np.vstack(corners).T
        yield Mark(
            place,
            "fill",
            to_hex(face),
            _numbers(x),
            _numbers(y),
            width=width if whole else 0.0,
            edge=to_hex(tuple(rims[0].tolist())) if whole and width else "",
            opacity=float(face[3]),
            series=_series(entries, to_hex(face), "", None),
        )


def _series(
    entries: Sequence[Entry], colour: str, marker: str, dash: tuple[float, ...] | None
) -> str:
    """The legend's entry of this look; by the colour alone where that is enough."""
    same = [entry for entry in entries if entry.colour == colour]
    if len(same) > 1:
        same = [
            e
            for e in same
            if (marker and e.marker == marker) or (dash is not None and e.dash == dash)
        ]
    return same[0].name if len(same) == 1 else ""


def marker_of(line: Line2D) -> str:
    marker = line.get_marker()
    return marker if isinstance(marker, str) and marker not in ("None", "none", " ", "") else ""


def dash_of(line: Line2D) -> tuple[float, ...]:
    """Lengths in widths of the line; empty if it is solid."""
    _, lengths = line._unscaled_dash_pattern  # type: ignore[attr-defined]
    return tuple(float(each) for each in lengths or ())


def _numbers(values: npt.NDArray[np.float64]) -> Numbers:
    return tuple(rounded(each) if math.isfinite(each) else None for each in values.tolist())


def rounded(value: float) -> float:
    return float(f"{value:.{DIGITS}g}")
