"""Draws figures with matplotlib, as PNG and SVG files."""

from __future__ import annotations

import contextlib
import io
import math
import re
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.axis import Axis as DrawnAxis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.figure import Figure as DrawnFigure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.patches import Polygon as PolygonPatch
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter, NullLocator
from matplotlib.transforms import ScaledTranslation, Transform

from analysis.figures import style
from analysis.figures.figure import (
    TRIALS,
    Annotation,
    Area,
    Axis,
    Boxes,
    Curve,
    Dash,
    Figure,
    Floats,
    LegendEntry,
    Mark,
    Panel,
    Place,
    PointSeries,
    Polygon,
    ReferenceLine,
    SegmentSet,
    ShadedRange,
    resolved_limits,
)
from testbed.machine.atomic import replace
from testbed.machine.safe_files import make_folder
from testbed.store.writing import spreadsheet_frame

TITLE_INCHES, LINE_INCHES, LEGEND_INCHES = 0.19, 0.15, 0.25  # heights of the head's lines
TITLE_POINTS = 7  # of a panel
LABELS_APART = 4.0  # pixels of the PNG, between the labels of neighbouring ticks
SCALE_INCHES = 0.6  # beside a panel, for its scale
LETTER = 0.62  # the mean width of a letter, of its height
LEGEND_LINE = 1.7  # between the lines of a legend, of the letters' height
FEW_POINTS, MANY_POINTS = 7, 6  # letters of a legend with few entries, with many
PIXEL_COLUMNS = 1500  # more pixels than an A4-wide figure has at 200 dpi
MANY_MARKS = 2000  # beyond, an SVG holds them as pixels
WIDE_DECADES = 2.3  # beyond, only powers of ten are written on a logarithmic axis
NAME_POINTS = 7.5  # of coloured categories
TRUE_TYPE = 42  # of a PDF's fonts; journals refuse matplotlib's usual Type 3
EMPTY_COLOUR, EMPTY_LETTERS = "#F2F2F2", 28
_LONG_DECIMALS = re.compile(r"(?<![\d.])-?\d+\.\d{3,}")  # no version, 6.1.192


def save(figure: Figure, folder: Path) -> list[Path]:
    """Write the figure as PNG and SVG, and its data as CSV; return the files' paths."""
    return write(draw(figure), folder, figure.stem, figure.data, figure.number_format)


def save_pdf(figure: Figure, folder: Path) -> list[Path]:
    """Write the figure as PDF with its fonts, and its data as CSV; return the files' paths."""
    from matplotlib.backends.backend_pdf import FigureCanvasPdf  # slow to load

    make_folder(folder)
    pdf, table = (folder / f"{figure.stem}.{end}" for end in ("pdf", "csv"))
    with mpl.rc_context({"pdf.fonttype": TRUE_TYPE}):
        canvas: Any = FigureCanvasPdf(draw(figure))
        replace(pdf, lambda path: canvas.print_pdf(path, metadata={"CreationDate": None}))
    _write_data(figure.data, table, figure.number_format)
    return [pdf, table]


def write(
    drawn: DrawnFigure, folder: Path, stem: str, table: pd.DataFrame, number_format: str = "%.6g"
) -> list[Path]:
    """Write what matplotlib has drawn as PNG and SVG, and a table as CSV."""
    make_folder(folder)
    paths = [folder / f"{stem}.{end}" for end in ("png", "svg", "csv")]
    png, svg, data = paths
    drawn.set_dpi(style.PNG_DPI)
    _lay_out(drawn)
    with style.style_sheet():  # how SVGs name their parts and write their letters
        text = svg_text(drawn)
    replace(svg, lambda path: path.write_text(text, encoding="utf-8"))
    drawn.set_dpi(style.PNG_DPI)  # which the SVG has changed
    replace(png, FigureCanvasAgg(drawn).print_png)
    _write_data(table, data, number_format)
    return paths


def _write_data(table: pd.DataFrame, path: Path, number_format: str) -> None:
    """Write a figure's data as CSV."""
    named = table.rename(columns=lambda name: str(name).removeprefix("axis_"))
    named = spreadsheet_frame(named.drop(columns=TRIALS, errors="ignore"))
    replace(path, lambda file: named.to_csv(file, index=False, float_format=number_format))


def draw(figure: Figure) -> DrawnFigure:
    """Draw the figure and lay it out."""
    with style.style_sheet(), mpl.rc_context({"hatch.linewidth": 0.5}):
        drawn, grid = _grid(figure)
        for row, line in zip(figure.panels, grid, strict=True):
            for panel, axes in zip(row, line, strict=True):
                if panel is None:
                    axes.set_visible(False)
                else:
                    _draw_panel(axes, panel, row, figure)
        drawn.align_ylabels([line[0] for line in grid if line[0].get_ylabel()])
        drawn.set_dpi(style.PNG_DPI)
        _lay_out(drawn)
    return drawn


def svg_text(drawn: DrawnFigure) -> str:
    """Return the text of an SVG file."""
    file = io.StringIO()
    # not savefig: it draws twice, and drawing is what a report's time goes into
    none = dict.fromkeys(("Date", "Creator", "Format", "Type"))
    FigureCanvasSVG(drawn).print_svg(file, metadata=none)  # type: ignore[no-untyped-call]
    return _LONG_DECIMALS.sub(_shortened, file.getvalue())


def _shortened(number: re.Match[str]) -> str:
    return f"{float(number[0]):.2f}".rstrip("0").rstrip(".")


def _lay_out(drawn: DrawnFigure) -> None:
    """Lay out once, to a millionth of the size.

    The solver's last digits differ between calls, and the SVG's names are made of them.
    """
    engine = drawn.get_layout_engine()
    if engine is None:  # a figure of the user's, or one that is laid out
        return
    engine.execute(drawn)
    turned = [_separate_labels(axes) for axes in drawn.axes if axes.get_visible()]
    if any(turned):
        engine.execute(drawn)
    drawn.set_layout_engine("none")
    for axes in drawn.axes:
        left, bottom, width, height = (round(float(part), 6) for part in axes.get_position().bounds)
        axes.set_position((left, bottom, width, height))


def _separate_labels(axes: Axes) -> bool:
    """Turn names below a panel that overlap, or leave numbers out; return whether names turned."""
    low, high = sorted(axes.get_xlim())
    labels = [
        label
        for label in axes.get_xticklabels()
        if label.get_text() and low <= label.get_position()[0] <= high
    ]
    boxes = [label.get_window_extent() for label in labels]
    last = -math.inf  # where the label before ends
    clear = list[bool]()
    for box in boxes:
        clear.append(box.x0 - last > LABELS_APART)
        last = box.x1 if clear[-1] else last
    if all(clear) or any(label.get_rotation() for label in labels):
        return False
    if all(_is_number(label.get_text()) for label in labels):
        for label, visible in zip(labels, clear, strict=True):
            label.set_visible(visible)
        return False
    for label in labels:
        label.set(rotation=45, ha="right", rotation_mode="anchor")
    return True


def _is_number(text: str) -> bool:
    """Say whether a tick's label is a number, written with matplotlib's minus sign or ours."""
    with contextlib.suppress(ValueError):
        return math.isfinite(float(text.replace("\N{MINUS SIGN}", "-")))
    return False


# ---- the frame


def _grid(figure: Figure) -> tuple[DrawnFigure, list[list[Axes]]]:
    """Make the axes, with room for the words above, below and beside them; write those."""
    rows = len(figure.panels)
    heights = figure.row_inches
    inches = [float(heights)] * rows if isinstance(heights, float | int) else list(heights)
    size = figure.legend_size or (FEW_POINTS if len(figure.legend) < 9 else MANY_POINTS)
    widths = [size * (3.4 + LETTER * len(entry.name)) / 72 for entry in figure.legend]
    too_long = sum(widths) > figure.width_inches and not figure.legend_size
    narrow = figure.width_inches < style.WIDTH_INCHES / 2  # no room beside: lines of entries
    beside = (figure.legend_beside or too_long) and not narrow
    columns = max(1, int(figure.width_inches / max(widths))) if narrow and widths else len(widths)
    lines = [
        (_wrapped(figure.title, 9.0, figure.width_inches), 9.0, True, style.BLACK),
        (_wrapped(figure.subtitle, 7.0, figure.width_inches), 7.0, False, style.BLACK),
        (figure.warning, 7.0, False, style.VERMILLION),
    ]
    head = 0.06 + sum(
        (TITLE_INCHES if size > 7 else LINE_INCHES) * (text.count("\n") + 1)
        for text, size, *_ in lines
        if text
    )
    legend_at = head
    legend_lines = math.ceil(len(widths) / max(1, columns))
    head += LEGEND_INCHES * legend_lines if figure.legend and not beside else 0.05
    foot = 0.07 + figure.foot_size * 1.4 / 72 * (figure.foot.count("\n") + 1) * bool(figure.foot)
    height = sum(inches) + head + foot
    right = figure.right_inches
    drawn = DrawnFigure(figsize=(figure.width_inches, height))
    if beside and figure.legend:
        room = (sum(inches)) / (LEGEND_LINE * MANY_POINTS / 72)
        columns = math.ceil(len(figure.legend) / max(room, 1))
        entry = max(MANY_POINTS * (3.8 + LETTER * len(entry.name)) / 72 for entry in figure.legend)
        right += columns * entry
        _legend(drawn, figure.legend, MANY_POINTS, columns, "upper right", (1.0, 1 - head / height))
    elif figure.legend:
        place = (0.0, 1 - legend_at / height)
        _legend(drawn, figure.legend, size, columns, "upper left", place)
    left = 0.16 / figure.width_inches if figure.vertical_label else 0.0
    drawn.set_layout_engine(
        ConstrainedLayoutEngine(
            rect=(left, foot / height, 1 - left - right / figure.width_inches,
                  1 - (foot + head) / height),
            h_pad=0.05,
            w_pad=0.05,
        )
    )  # fmt: skip
    if figure.vertical_label:
        middle = (foot + sum(inches) / 2) / height
        drawn.text(0.01, middle, figure.vertical_label, rotation=90, va="center", fontsize=7)
    _words(drawn, lines, figure, height)
    across = max(len(row) for row in figure.panels)
    axes = drawn.subplots(
        *(rows, across),
        squeeze=False,
        height_ratios=inches,
        width_ratios=figure.column_widths or None,
    )
    return drawn, [list(line) for line in axes]


def _words(
    drawn: DrawnFigure,
    lines: Sequence[tuple[str, float, bool, str]],
    figure: Figure,
    height: float,
) -> None:
    below = 0.06
    for text, size, bold, colour in lines:
        if text:
            weight = "bold" if bold else "normal"
            look: dict[str, Any] = {"fontsize": size, "fontweight": weight, "color": colour}
            drawn.text(0.01, 1 - below / height, text, va="top", linespacing=1.3, **look)
            below += (TITLE_INCHES if bold else LINE_INCHES) * (text.count("\n") + 1)
    drawn.text(
        *(0.01, 0.05 / height, figure.foot),
        fontsize=figure.foot_size,
        color=style.GREY,
        va="bottom",
        linespacing=1.4,
    )


def _legend(
    drawn: DrawnFigure,
    entries: Sequence[LegendEntry],
    size: float,
    columns: int,
    corner: Literal["upper left", "upper right"],
    place: tuple[float, float],
) -> None:
    drawn.legend(
        handles=[_handle(entry) for entry in entries],
        loc=corner,
        bbox_to_anchor=place,
        ncols=columns,
        frameon=False,
        fontsize=size,
        handlelength=1.6 if size == FEW_POINTS else 1.4,
        columnspacing=1.2 if size == FEW_POINTS else 0.8,
        handletextpad=0.8 if size == FEW_POINTS else 0.4,
        borderaxespad=0.2,
    )


def _handle(entry: LegendEntry) -> Line2D | Patch:
    if entry.kind == "area":
        edge = "white" if entry.hatch else entry.colour
        look: dict[str, Any] = {"facecolor": entry.colour, "edgecolor": edge, "linewidth": 0}
        return Patch(label=entry.name, hatch=entry.hatch or None, **look)
    return Line2D(
        *([], []),
        label=entry.name,
        color=entry.colour,
        marker=_marker(entry.marker),
        markersize=entry.size,
        markerfacecolor=style.PAPER if entry.hollow else entry.colour,
        linewidth=entry.width,
        linestyle="" if entry.kind == "points" else _dashed(entry.dash),
    )


# ---- panels and axes


def _draw_panel(axes: Axes, panel: Panel, row: Sequence[Panel | None], figure: Figure) -> None:
    _head(axes, panel, min(style.WIDTH_INCHES, figure.width_inches) / len(row), row)
    if panel.empty:
        axes.set_facecolor(EMPTY_COLOUR)
        axes.grid(visible=False)
        reason = textwrap.fill(panel.empty, EMPTY_LETTERS, max_lines=7)
        axes.text(0.05, 0.5, reason, transform=axes.transAxes, fontsize=5.5, va="center")
    for place, mark in enumerate(panel.marks):
        _draw_mark(axes, mark, 2 + place / 1000, in_layout=not figure.right_inches)
    if panel.bare:
        axes.set_axis_off()
    x_limits, y_limits = resolved_limits(panel)
    _draw_axis(axes, axes.xaxis, panel.x, x_limits)
    _draw_axis(axes, axes.yaxis, panel.y, y_limits)
    if panel.equal:
        axes.set_aspect("equal")
    if panel.legend:
        _panel_legend(axes, panel.legend)


def _head(axes: Axes, panel: Panel, width_inches: float, row: Sequence[Panel | None]) -> None:
    """Write the words above a panel: title and note, and over them the column's heading.

    All panels of a row leave the same room for notes, so that titles and headings are level.
    """
    inches = width_inches - SCALE_INCHES
    note_lines = max(len(each.note.splitlines()) for each in row if each)
    letters = max(8, int(inches * 72 / (TITLE_POINTS * LETTER)))
    lines = [
        textwrap.fill(line, letters, break_long_words=False, break_on_hyphens=False)
        for line in panel.title.splitlines()
    ]
    above = 4.0
    if panel.note:
        axes.set_title(panel.note, loc="left", fontsize=5.5, color=style.GREY, pad=2.5,
                       linespacing=1.15)  # fmt: skip
    above += 5.5 * 1.25 * note_lines
    if lines:
        title = "\n".join(lines)
        if note_lines:
            _over(axes, title, above, TITLE_POINTS, bold=True)
            above += TITLE_POINTS * 1.3 * (title.count("\n") + 1)
        else:
            axes.set_title(title, loc="left", fontweight="bold", fontsize=TITLE_POINTS)
            above += TITLE_POINTS * 1.4 * (title.count("\n") + 1)
    if panel.title_right:
        axes.set_title(panel.title_right, loc="right", fontsize=6, color=style.GREY)
    if panel.heading_note:
        _over(axes, panel.heading_note, above + 1, 5.5)
        above += 1 + 5.5 * 1.3 * (panel.heading_note.count("\n") + 1)
    if panel.heading:
        _over(axes, panel.heading, above + 1, 8, bold=True, colour=panel.heading_colour)
    if panel.heading_right:
        axes.annotate(panel.heading_right, (1, 1), xycoords="axes fraction", xytext=(0, above + 1),
                      textcoords="offset points", fontsize=5.5, color=style.GREY,
                      ha="right")  # fmt: skip


def _over(
    axes: Axes, text: str, points: float, size: float, *, bold: bool = False, colour: str = "black"
) -> None:
    axes.annotate(
        *(text, (0, 1)),
        xycoords="axes fraction",
        xytext=(0, points + size / 4),  # the descent: whatever the letters, one line
        textcoords="offset points",
        va="baseline",
        fontsize=size,
        fontweight="bold" if bold else "normal",
        color=colour,
        linespacing=1.2,
    )


def _panel_legend(axes: Axes, entries: Sequence[LegendEntry]) -> None:
    assert axes.figure is not None
    below = ScaledTranslation(0, -0.24, axes.figure.dpi_scale_trans)  # on the axis's label's line
    axes.legend(
        handles=[_handle(entry) for entry in entries],
        loc="upper right",
        bbox_to_anchor=(1.0, 0.0),
        bbox_transform=axes.transAxes + below,
        ncols=len(entries),
        frameon=False,
        fontsize=6,
        handlelength=1.2,
        handleheight=0.8,
        handletextpad=0.4,
        columnspacing=1.2,
        borderpad=0,
        borderaxespad=0,
    ).set_in_layout(False)


def _draw_axis(axes: Axes, drawn: DrawnAxis, axis: Axis, limits: tuple[float, float]) -> None:
    vertical = drawn is axes.yaxis
    name = "y" if vertical else "x"
    if axis.scale == "log":
        drawn._set_axes_scale("log")  # type: ignore[attr-defined]
        decades = abs(math.log10(limits[1] / limits[0]))
        drawn.set_major_locator(LogLocator(subs=(1, 2, 5) if decades < WIDE_DECADES else (1,)))
        drawn.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        drawn.set_minor_formatter(NullFormatter())
    elif axis.scale == "symlog":
        drawn._set_axes_scale("symlog", linthresh=axis.linear_below, linscale=0.5)  # type: ignore[attr-defined]
        drawn.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        drawn.set_minor_locator(NullLocator())
    elif axis.tick_count is not None or axis.integer or vertical:
        # not by the panel's height, which is known only when the ticks' labels have their room
        most = axis.tick_count or (5 if vertical else 8)
        steps = [1, 2, 2.5, 5, 10]
        drawn.set_major_locator(MaxNLocator(most, integer=axis.integer, steps=steps))
    if axis.scale == "linear" and not axis.names:
        axes.ticklabel_format(axis=name, useOffset=False)  # type: ignore[arg-type]
    getattr(axes, f"set_{name}lim")(*limits)
    ticks = list(range(len(axis.names))) if axis.names else axis.ticks
    if ticks is not None:
        labels = list(axis.names) if axis.names else axis.tick_labels
        numbers = labels if labels is not None else [f"{tick:.9g}" for tick in ticks]
        drawn.set_ticks(list(ticks), list(numbers) if axis.names_shown else [""] * len(ticks))
        drawn.set_minor_locator(NullLocator())
    elif not axis.names_shown:
        drawn.set_tick_params(labelleft=False, labelbottom=False)
    getattr(axes, f"set_{name}label")(axis.label)
    _look(axes, drawn, axis, vertical)


def _look(axes: Axes, drawn: DrawnAxis, axis: Axis, vertical: bool) -> None:
    if axis.names or not axis.tick_marks:
        drawn.set_tick_params(length=0)
    if not axis.grid:
        drawn.grid(visible=False)
    if not axis.line:
        axes.spines["left" if vertical else "bottom"].set_visible(False)
    if axis.opposite:
        axes.xaxis.tick_top()
    for label, colour in zip(drawn.get_ticklabels(), axis.name_colours, strict=False):
        label.set(color=colour, fontweight="bold", fontsize=NAME_POINTS)
    if axis.rotation:
        drawn.set_tick_params(labelsize=6)
        side = "left" if axis.opposite else "right"
        for label in drawn.get_ticklabels():
            label.set(rotation=axis.rotation, ha=side)


# ---- marks


def _dashed(dash: Dash) -> Any:
    return (0, tuple(dash)) if dash else "-"


def _wrapped(text: str, size: float, inches: float) -> str:
    """Break lines that are longer than the figure is wide; a bold letter is 0.62 of its size."""
    letters = int(inches * 72 / (0.62 * size))
    return "\n".join(textwrap.fill(line, letters) for line in text.split("\n"))


def _marker(marker: str) -> Any:
    return {"caretup": 6, "tickup": 2}.get(marker, marker)


def _placed(axes: Axes, x: Place, y: Place) -> Transform:
    if x == y:
        return axes.transData if x == "data" else axes.transAxes
    return axes.get_xaxis_transform() if x == "data" else axes.get_yaxis_transform()


def _draw_mark(axes: Axes, mark: Mark, order: float, *, in_layout: bool) -> None:
    match mark:
        case Curve():
            axes.plot(
                *thinned(np.asarray(mark.x, dtype=float), np.asarray(mark.y, dtype=float)),
                color=mark.colour,
                linewidth=mark.width,
                linestyle=_dashed(mark.dash),
                alpha=mark.opacity,
                drawstyle="steps-post" if mark.steps else "default",
                transform=_placed(axes, mark.x_place, mark.y_place),
                zorder=order,
            )
        case Area():
            low, high = (np.asarray(end, dtype=float) for end in (mark.low, mark.high))
            axes.fill_between(
                *(np.asarray(mark.x, dtype=float), low, high),
                facecolor=mark.colour,
                edgecolor="white" if mark.hatch else "none",
                hatch=mark.hatch or None,
                alpha=mark.opacity,
                step="post" if mark.steps else None,
                linewidth=0,
                zorder=order,
            )
        case PointSeries():
            _draw_points(axes, mark, order)
        case SegmentSet():
            _draw_segments(axes, mark, order)
        case Boxes():
            _draw_boxes(axes, mark, order)
        case Polygon():
            corners = np.column_stack((np.asarray(mark.x, float), np.asarray(mark.y, float)))
            face = mpl.colors.to_rgba(mark.colour, mark.opacity)
            edge = (
                mpl.colors.to_rgba(mark.edge, min(1.0, 4 * mark.opacity)) if mark.edge else "none"
            )
            axes.add_patch(PolygonPatch(corners, facecolor=face, edgecolor=edge,
                                        linewidth=mark.edge_width, zorder=order))  # fmt: skip
        case ShadedRange():
            add = axes.axvspan if mark.axis == "x" else axes.axhspan
            look: dict[str, Any] = {"color": mark.colour, "alpha": mark.opacity, "linewidth": 0}
            add(mark.start, mark.stop, zorder=0.4, **look)
        case ReferenceLine():
            _draw_reference(axes, mark)
        case Annotation():
            _draw_annotation(axes, mark, in_layout)


def thinned(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """Keep the first, lowest, highest and last point of each column of pixels.

    A line through them covers the same pixels as one through all.
    """
    if len(x) <= 4 * PIXEL_COLUMNS or (np.diff(x) < 0).any():
        return x, y
    edges = np.linspace(x[0], x[-1], PIXEL_COLUMNS + 1)[:-1]
    first = np.unique(np.searchsorted(x, edges))
    column = np.repeat(np.arange(len(first)), np.diff(first, append=len(x)))
    order = np.lexsort((y, column))  # NaN is last
    last = np.append(first[1:], len(x)) - 1
    kept = np.unique(np.concatenate((first, order[first], order[last], last)))
    return x[kept], y[kept]


def _draw_points(axes: Axes, mark: PointSeries, order: float) -> None:
    x, y = (np.asarray(each, dtype=float) for each in (mark.x, mark.y))
    if mark.low is not None and mark.high is not None:
        low, high = (np.asarray(each, dtype=float) for each in (mark.low, mark.high))
        ends = [(np.column_stack((low, y)), np.column_stack((high, y)))]
        if mark.along == "y":
            ends = [(np.column_stack((x, low)), np.column_stack((x, high)))]
        bars = [each for each in np.stack(ends[0], axis=1) if np.isfinite(each).all()]
        axes.add_collection(LineCollection(bars, colors=[mark.colour], linewidths=mark.bar_width,
                                           alpha=0.5, zorder=order), autolim=False)  # fmt: skip
    hollow = np.broadcast_to(np.asarray(mark.hollow, dtype=bool), x.shape)
    for chosen, face in ((~hollow, mark.colour), (hollow, style.PAPER)):
        if chosen.any():
            axes.plot(
                *(x[chosen], y[chosen]),
                linestyle="",
                marker=_marker(mark.marker),
                color=mark.colour,
                markerfacecolor=face,
                markersize=mark.size,
                markeredgewidth=mark.edge_width,
                alpha=mark.opacity,
                rasterized=len(x) > MANY_MARKS,
                transform=_placed(axes, mark.x_place, mark.y_place),
                clip_on=len(x) > MANY_MARKS or mark.marker in "|_",  # whole at the panel's edge
                zorder=order,
            )[0].set_in_layout(False)


def _draw_segments(axes: Axes, mark: SegmentSet, order: float) -> None:
    ends = [np.asarray(each, dtype=float) for each in (mark.x, mark.y, mark.x_end, mark.y_end)]
    x, y, x_end, y_end = np.broadcast_arrays(*ends)
    lines = np.stack((np.column_stack((x, y)), np.column_stack((x_end, y_end))), axis=1)
    axes.add_collection(
        LineCollection(
            list(lines),
            colors=[mark.colour],
            linewidths=mark.width,
            linestyles=[_dashed(mark.dash)],
            alpha=mark.opacity,
            rasterized=len(x) > MANY_MARKS,
            capstyle="butt",
            transform=_placed(axes, mark.x_place, mark.y_place),
            zorder=order,
        ),
        autolim=False,
    )


def _draw_boxes(axes: Axes, mark: Boxes, order: float) -> None:
    sides = [np.asarray(each, float) for each in (mark.left, mark.right, mark.bottom, mark.top)]
    left, right, bottom, top = np.broadcast_arrays(*sides)
    n = len(left)
    colours = [mark.colours] * n if isinstance(mark.colours, str) else list(mark.colours)
    opacities = np.broadcast_to(np.asarray(mark.opacities, dtype=float), (n,))
    corners = [((a, c), (b, c), (b, d), (a, d))
               for a, b, c, d in zip(left, right, bottom, top, strict=True)]  # fmt: skip
    axes.add_collection(
        PolyCollection(
            corners,
            facecolors=[mpl.colors.to_rgba(c, a) for c, a in zip(colours, opacities, strict=True)],
            edgecolors=mark.edge or ("white" if mark.hatch else "none"),
            linewidths=mark.edge_width if mark.edge else 0.3 if mark.hatch else 0,
            hatch=mark.hatch or None,
            zorder=order,
        ),
        autolim=False,
    )
    inks = list(mark.text_colours) or [style.BLACK] * len(mark.texts)
    for place, text in enumerate(mark.texts):
        at = ((left[place] + right[place]) / 2, (bottom[place] + top[place]) / 2)
        axes.text(*at, text, ha="center", va="center", fontsize=mark.text_size, color=inks[place],
                  zorder=order + 0.0005)  # fmt: skip


def _draw_reference(axes: Axes, mark: ReferenceLine) -> None:
    upright = mark.axis == "x"
    line = axes.axvline if upright else axes.axhline
    line(mark.value, color=mark.colour, linewidth=mark.width, linestyle=_dashed(mark.dash),
         zorder=1.5)  # fmt: skip
    if mark.label:
        axes.annotate(
            mark.label,
            (mark.value, 1) if upright else (0.97, mark.value),
            xycoords=axes.get_xaxis_transform() if upright else axes.get_yaxis_transform(),
            xytext=(0, 2),
            textcoords="offset points",
            ha="center" if upright else "right",
            fontsize=5.5,
            color=style.GREY,
        ).set_in_layout(False)


def _draw_annotation(axes: Axes, mark: Annotation, in_layout: bool) -> None:
    axes.annotate(
        mark.text,
        (mark.x, mark.y),
        xycoords=_placed(axes, mark.x_place, mark.y_place),
        xytext=mark.offset_points,
        textcoords="offset points",
        fontsize=mark.size,
        fontweight="bold" if mark.bold else "normal",
        color=mark.colour,
        ha=mark.across,
        va=mark.up,
        rotation=mark.rotation,
        annotation_clip=False if mark.x_place == "panel" or mark.y_place == "panel" else None,
        bbox={"facecolor": style.PAPER, "edgecolor": "none", "pad": 1} if mark.boxed else None,
        zorder=4,
    ).set_in_layout(in_layout and mark.x_place == "panel")
