"""What a drawn figure shows, as data.

Read from the figure itself, so that who draws it again shows the same in the same colours. None
for a figure with other parts than lines, points, areas and words: pictures, arrows, formulas.
"""

from __future__ import annotations

from collections.abc import Iterator

from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.text import Annotation, Text
from matplotlib.ticker import FixedLocator
from matplotlib.transforms import Transform

from analysis.figures.plotting.artist_marks import dash_of, marker_of, marks, rounded
from analysis.figures.plotting.plot_parts import (
    Contents,
    Entry,
    Panel,
    Scale,
    UnknownPart,
    Words,
)


def contents(figure: Figure) -> Contents | None:
    """All of a figure that was drawn; None if a part of it can only be shown as a picture."""
    shown = [axes for axes in figure.axes if axes.get_visible()]
    legends = [*figure.legends, *(axes.get_legend() for axes in shown)]
    entries = tuple(entry for each in legends if each for entry in _entries(each))
    try:
        drawn = [mark for place, axes in enumerate(shown) for mark in marks(axes, place, entries)]
        texts = [words for place, axes in enumerate(shown) for words in _words(axes, place)]
        texts += [_text(each, -1, figure.transFigure, False) for each in figure.texts]
    except UnknownPart:
        return None
    width, height = figure.get_size_inches()
    return Contents(
        72 * float(width),
        float(height / width),
        tuple(_panel(axes) for axes in shown),
        tuple(drawn),
        tuple(texts),
        entries,
        _place(figure, figure.legends[0]) if figure.legends else (0.0, 0.0, 7.0),
    )


def _panel(axes: Axes) -> Panel:
    box = axes.get_position()
    x, y = _scale(axes.xaxis), _scale(axes.yaxis)
    return Panel(
        (float(box.x0), float(1 - box.y1), float(box.width), float(box.height)),
        axes.get_title(loc="left") or axes.get_title(),
        axes.get_title(loc="right"),
        x,
        y,
        bare=not axes.axison or not axes.get_frame_on(),
        zooms=axes.axison and not x.names and x.scale in ("linear", "log"),
    )


def _scale(axis: Axis) -> Scale:
    low, high = (float(each) for each in axis.get_view_interval())
    places = [float(each) for each in axis.get_majorticklocs()]
    written = [label.get_text().replace("\u2212", "-") for label in axis.get_majorticklabels()]
    pairs = [(rounded(at), words) for at, words in zip(places, written, strict=False)]
    within = [(at, words) for at, words in pairs if min(low, high) <= at <= max(low, high)]
    transform = axis.get_transform()
    return Scale(
        (low, high),
        axis.get_scale(),
        axis.get_label_text(),
        tuple(within),
        any(line.get_visible() for line in axis.get_gridlines()),
        isinstance(axis.get_major_locator(), FixedLocator) and not all(map(_number, written)),
        float(getattr(transform, "linthresh", 1.0)),
        float(getattr(transform, "linscale", 1.0)),
    )


def _number(words: str) -> bool:
    try:
        float(words or "0")
    except ValueError:
        return False
    return bool(words)


def _entries(legend: Legend) -> Iterator[Entry]:
    for handle, text in zip(legend.legend_handles, legend.get_texts(), strict=False):
        if isinstance(handle, Line2D):
            colour = to_hex(handle.get_color())
            yield Entry(text.get_text(), colour, marker_of(handle), dash_of(handle))
        elif isinstance(handle, Patch):
            yield Entry(text.get_text(), to_hex(handle.get_facecolor()), "s", ())


def _place(figure: Figure, legend: Legend) -> tuple[float, float, float]:
    box = legend.get_window_extent().transformed(figure.transFigure.inverted())
    size = legend.get_texts()[0].get_fontsize() if legend.get_texts() else 7.0
    return float(box.x0), float(1 - box.y1), float(size)


def _words(axes: Axes, place: int) -> Iterator[Words]:
    for text in axes.texts:
        if text.get_visible() and text.get_text():
            moves = text.get_transform().contains_branch_seperately(axes.transData)[0]
            if isinstance(text, Annotation):
                moves = _moves(axes, text)
            yield _text(text, place, axes.transAxes, moves, axes)


def _moves(axes: Axes, text: Annotation) -> bool:
    """True if the annotation is of a value of the horizontal axis."""
    if text.arrow_patch is not None:
        raise UnknownPart
    of = text.xycoords
    if isinstance(of, str):
        return of == "data"
    if isinstance(of, Transform):
        return bool(of.contains_branch_seperately(axes.transData)[0])
    raise UnknownPart


def _text(text: Text, place: int, frame: object, moves: bool, axes: Axes | None = None) -> Words:
    if "$" in text.get_text() or text.get_rotation():
        raise UnknownPart
    display = text.get_transform().transform(text.get_unitless_position())
    x, y = frame.inverted().transform(display)  # type: ignore[attr-defined]
    if moves and axes is not None:
        x = axes.transData.inverted().transform(display)[0]
    weight = text.get_fontweight()
    return Words(
        place,
        text.get_text(),
        rounded(x),
        rounded(y),
        moves,
        float(text.get_fontsize()),
        to_hex(text.get_color()),
        weight in ("bold", "semibold") or (isinstance(weight, int) and weight > 500),
        str(text.get_horizontalalignment()),
        str(text.get_verticalalignment()),
    )
