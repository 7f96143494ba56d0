"""Figures for papers: one column, without title and footer, with their fonts."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from analysis.figures.figure import Axis, Curve, Figure, LegendEntry, Panel
from analysis.figures.general.presentation import COLUMN_INCHES, PAGE_INCHES, for_paper
from analysis.figures.static_renderer import draw, save_pdf


def panel(heading: str = "", x: str = "", y: str = "") -> Panel:
    line = Curve([0.0, 1.0], [0.0, 1.0], "#0072B2")
    return Panel(
        [line], Axis(x, names_shown=bool(x)), Axis(y, names_shown=bool(y)), heading=heading
    )


@pytest.fixture
def figure() -> Figure:
    """Two variants across, two measures down; labels are shared."""
    return Figure(
        "a-figure",
        "A title",
        [
            [panel("reno", y="rate (Mbit/s)"), panel("bbr")],
            [panel(x="time (s)", y="delay (ms)"), panel(x="time (s)")],
        ],
        foot="n = 1",
        subtitle="a subtitle",
        legend=[LegendEntry(f"a long name {number}", "#0072B2") for number in range(4)],
        data=pd.DataFrame({"axis_rate": [1.5]}),
    )


def test_panels_stand_in_a_column_each_with_its_labels(figure: Figure) -> None:
    paper = for_paper(figure)
    assert (paper.title, paper.subtitle, paper.foot) == ("", "", "")
    assert paper.width_inches == COLUMN_INCHES
    shown = [(p.heading, p.x.label, p.y.label, p.y.names_shown) for p in paper.all_panels]
    assert shown == [
        ("reno", "time (s)", "rate (Mbit/s)", True),
        ("bbr", "time (s)", "rate (Mbit/s)", True),
        ("reno", "time (s)", "delay (ms)", True),
        ("bbr", "time (s)", "delay (ms)", True),
    ]
    assert [len(row) for row in paper.panels] == [1, 1, 1, 1]


def test_a_figure_of_many_panels_is_as_wide_as_the_page() -> None:
    row = [panel(), panel(), panel()]
    paper = for_paper(Figure("many", "title", [row, row]))
    assert paper.width_inches == PAGE_INCHES
    assert [len(each) for each in paper.panels] == [3, 3]


def test_all_of_the_legend_is_inside(figure: Figure) -> None:
    drawn = draw(for_paper(figure))
    (legend,) = drawn.legends
    box = legend.get_window_extent()
    assert box.x0 >= 0 and box.x1 <= drawn.bbox.x1


def test_fonts_are_embedded_and_the_same_data_give_the_same_file(
    figure: Figure, tmp_path: Path
) -> None:
    pdf, table = save_pdf(for_paper(figure), tmp_path / "a")
    again, _ = save_pdf(for_paper(figure), tmp_path / "b")
    content = pdf.read_bytes()
    assert (pdf.name, table.read_text()) == ("a-figure.pdf", "rate\n1.5\n")
    assert b"/FontFile2" in content and b"/Type3" not in content
    assert content == again.read_bytes()
