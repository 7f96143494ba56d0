"""A figure's contents as the page's plots take them: the same data, in the same colours."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from analysis.figures.plotting import figure_layout
from analysis.figures.plotting.error_bars import line_with_band
from analysis.figures.plotting.figure_contents import contents
from analysis.figures.plotting.named_figure import svg_text
from analysis.figures.plotting.point_evidence import TRIALS
from analysis.figures.plotting.style import series_styles
from analysis.report.plot_data import plot_json


def test_a_plot_has_the_figures_data_colours_and_evidence() -> None:
    figure, [[axes]] = figure_layout.grid(1, 1)
    looks = series_styles(["cubic", "bbr"])
    rows = {"x": [1.0, 2.0], "mean": [3.0, 4.5], "low": [2.5, float("nan")], "high": [3.5, 5.0]}
    more = {"n": [2, 1], "suspect": [0, 0], TRIALS: [("a", "b", "c"), ("d",)]}
    line_with_band(axes, pd.DataFrame(rows | more), "x", looks["cubic"])
    figure_layout.legend(figure, looks)
    svg_text(figure)
    found = contents(figure)
    assert found is not None
    line = next(mark for mark in found.marks if mark.kind == "line")
    assert (line.x, line.y, line.colour, line.series) == (
        (1.0, 2.0),
        (3.0, 4.5),
        looks["cubic"].colour.lower(),
        "cubic",
    )
    assert [entry.name for entry in found.entries] == ["cubic", "bbr"]
    text = plot_json(found, "</script>", {"a": 1, "b": 2, "c": 3, "d": 7})
    assert '"told":{"low":[2.5,null],"high":[3.5,5.0],"n":[2.0,1.0],"trials":["1-3","7"]}' in text
    assert '"colour":"vermillion"' in text and "</script>" not in text


def test_what_only_a_picture_shows_stays_one() -> None:
    figure = Figure()
    figure.subplots().imshow([[1, 2], [3, 4]])
    svg_text(figure)
    assert contents(figure) is None
