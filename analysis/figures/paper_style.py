"""Figures for papers: one column wide, without title and footer."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence

from analysis.figures.figure import Axis, Figure, Panel

COLUMN_INCHES = 3.33  # of a page of two columns (IEEE's and ACM's)
PAGE_INCHES = 7.0  # both columns
MAX_STACKED = 4  # panels in a column; a figure of more is as wide as the page
PANEL_INCHES = 1.5


def for_paper(figure: Figure) -> Figure:
    """Return the figure without the words of a caption, its panels stacked if they are few."""
    plain = dataclasses.replace(figure, title="", subtitle="", warning="", foot="")
    if len(figure.all_panels) > MAX_STACKED:
        return dataclasses.replace(plain, width_inches=PAGE_INCHES)
    stacked = [
        (_by_itself(panel, row, figure.panels, place),)
        for row in figure.panels
        for place, panel in enumerate(row)
        if panel is not None
    ]
    return dataclasses.replace(
        plain,
        panels=stacked,
        width_inches=COLUMN_INCHES,
        row_inches=PANEL_INCHES,
        column_widths=(),
    )


def _by_itself(
    panel: Panel, row: Sequence[Panel | None], rows: Sequence[Sequence[Panel | None]], place: int
) -> Panel:
    """Return a panel with the labels and the heading that its row and its column share."""
    column = [line[place] for line in rows if len(line) > place]
    headings = (each.heading for each in column if each)
    return dataclasses.replace(
        panel,
        x=_labelled(panel.x, (each.x for each in reversed(column) if each)),
        y=_labelled(panel.y, (each.y for each in row if each)),
        heading=panel.heading or next(headings, ""),
    )


def _labelled(axis: Axis, shared: Iterable[Axis]) -> Axis:
    label = axis.label or next((each.label for each in shared if each.label), "")
    return dataclasses.replace(axis, label=label, names_shown=True)
