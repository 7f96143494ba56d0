"""A figure in the page: the same data as in the picture, in the page's colours; the library."""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import itertools
import json
import math
import re
from typing import Any

import numpy as np
import pandas as pd
import pytest

from analysis.figures import means, static_renderer
from analysis.figures.figure import (
    TRIALS,
    Annotation,
    Area,
    Axis,
    Boxes,
    Curve,
    Figure,
    Mark,
    Panel,
    PointSeries,
    Polygon,
    ReferenceLine,
    SegmentSet,
    ShadedRange,
    legend_entries,
    resolved_limits,
    share_like_limits,
)
from analysis.figures.style import series_styles
from analysis.report.page import TEMPLATES
from analysis.report.page_plot import plot, plot_json
from analysis.results.page_series import packed

LOOKS = series_styles(["cubic", "bbr"])
BLUE = "#0072B2"
LIBRARY = TEMPLATES / "vendor" / "uplot"
MARKS: tuple[Mark, ...] = (
    Curve([1, 2], [3, 4], BLUE, dash=(4, 2), steps=True),
    Area([1, 2], [2, 3], [4, 5], BLUE),
    PointSeries([1, 2], [3, 4], BLUE, "D", low=[2, 3], high=[4, 5], hollow=[True, False]),
    SegmentSet([1], [2], [1], [3], BLUE),
    Boxes([1], [2], [3], [4], BLUE, texts=["7"]),
    Polygon([1, 2, 2], [3, 3, 4], BLUE, edge=BLUE),
    ShadedRange("x", 1, 2),
    ReferenceLine("y", 6, "limit"),
    Annotation("here", 1, 3),
)


PLAIN = Axis()


def figure(*marks: Mark, x: Axis = PLAIN, y: Axis = PLAIN) -> Figure:
    return Figure("stem", "title", ((Panel(marks, x, y),),), legend=legend_entries(LOOKS))


def test_a_plot_has_the_figures_data_colours_and_evidence() -> None:
    rows = {"x": [1.0, 2.0], "mean": [3.0, 4.5], "low": [2.5, float("nan")], "high": [3.5, 5.0]}
    more = {"n": [2, 1], "suspect": [0, 1], TRIALS: [("a", "b", "c"), ("d",)]}
    marks = means.line_with_band(pd.DataFrame(rows | more), "x", LOOKS["cubic"], "cubic")
    text = plot_json(figure(*marks), "</script>", {"a": 1, "b": 2, "c": 3, "d": 7})
    found = json.loads(text)
    line, points = (
        next(mark for mark in found["marks"] if mark["kind"] == kind) for kind in ("line", "points")
    )
    assert (line["x"], line["y"], line["colour"], line["series"]) == (
        [1, 2],
        [3, 4.5],
        "vermillion",
        "cubic",
    )
    assert points["hollow"] == [False, True]
    told = {"low": [2.5, None], "high": [3.5, 5], "n": [2, 1], "trials": ["1-3", "7"]}
    assert points["told"] == told
    assert [entry["name"] for entry in found["legend"]] == ["cubic", "bbr"]
    assert "</script>" not in text


def test_every_kind_of_mark_is_in_both_pictures() -> None:
    shown = figure(*MARKS)
    kinds = [mark["kind"] for mark in plot(shown, "", {})["marks"]]
    assert kinds == [
        *("steps", "area", "points", "segments", "boxes", "polygon", "span", "rule", "text")
    ]
    (axes,) = static_renderer.draw(shown).axes
    artists = [*axes.lines, *axes.collections, *axes.patches, *axes.texts]
    # two lines, two sorts of points and their bars, a cell's words, the name of the reference
    assert len(artists) == len(MARKS) + 4


NAMES = ("pfifo", "codel", "fq_codel", "pie")


@pytest.mark.parametrize(
    ("x", "shown", "rotation"),
    [
        (Axis(ticks=(0.05, 0.25, 0.5, 1, 2, 4)), ("0.05", "1", "2", "4"), 0),
        (Axis(scale="log", limits=(9, 600)), ("10", "20", "50", "200", "500"), 0),
        (Axis(names=NAMES), NAMES, 45),
    ],
)
def test_labels_below_a_narrow_panel_do_not_overlap(
    x: Axis, shown: tuple[str, ...], rotation: float
) -> None:
    """Names are turned, and of numbers some are left out."""
    panel = Panel([Curve([0.05, 1, 2, 3], [1, 2, 3, 4], BLUE)], x, PLAIN)
    drawn = static_renderer.draw(Figure("stem", "title", ((panel,) * 6,)))
    for axes in drawn.axes:
        low, high = axes.get_xlim()
        labels = [each for each in axes.get_xticklabels() if low <= each.get_position()[0] <= high]
        assert tuple(label.get_text() for label in labels) == shown
        assert {label.get_rotation() for label in labels} == {rotation}
        boxes = [label.get_window_extent() for label in labels]
        assert rotation or all(a.x1 < b.x0 for a, b in itertools.pairwise(boxes))


def test_a_version_in_a_figures_foot_is_no_long_decimal() -> None:
    shown = dataclasses.replace(figure(*MARKS), foot="Linux 6.1.192")
    text = static_renderer.svg_text(static_renderer.draw(shown))
    assert "Linux 6.1.192" in text and not re.search(r"[ \"]\d+\.\d{3,}[ \"]", text)


def test_limits_are_the_datas_where_none_are_given() -> None:
    panel = figure(*MARKS, x=Axis(limits=(0, None), margin=0), y=Axis(margin=0)).all_panels[0]
    assert resolved_limits(panel) == ((0, 2), (2, 6))
    (axes,) = static_renderer.draw(figure(*MARKS)).axes
    assert axes.get_ylim() == pytest.approx((2 - 0.2, 6 + 0.2))
    names = Panel(y=Axis(names=("a", "b")))
    assert resolved_limits(names)[1] == (1.5, -0.5)  # the first at the top
    flat = Panel((Curve([1, 2], [100, 101], BLUE),), y=Axis(widen=True))
    low, high = resolved_limits(flat)[1]
    assert high - low > 10
    log = Panel((Curve([1, 2], [0, 10], BLUE), Curve([1], [1000], BLUE)), y=Axis(scale="log"))
    assert all(end > 0 for end in resolved_limits(log)[1])


def test_panels_share_ranges_that_are_alike() -> None:
    one, other, far = (Panel((Curve([0, 1], [0, top], BLUE),)) for top in (10, 8, 100))
    alike = share_like_limits((one, other), "y")
    assert resolved_limits(alike[0])[1] == resolved_limits(alike[1])[1] == (-0.5, 10.5)
    apart = share_like_limits((one, far), "y")
    assert resolved_limits(apart[0])[1] == (-0.5, 10.5)


def test_packed_numbers_are_what_they_were() -> None:
    times = np.array([1.000001, 1.5, 1.25, 60.123456])
    found: dict[str, Any] = packed(times)
    assert np.allclose(np.cumsum(found["d"]) * found["k"], times, atol=5e-7)
    many = Curve(np.arange(200) / 7, np.arange(200.0), BLUE)
    (mark,) = plot(figure(many, x=Axis(resolution=1e-6)), "", {})["marks"]
    assert len(mark["x"]["d"]) == 200 and mark["y"][3] == 3
    assert math.isclose(sum(mark["x"]["d"]) * mark["x"]["k"], 199 / 7, abs_tol=1e-6)


def test_the_library_is_its_packages() -> None:
    """`npm pack` of the package has these files: the source names its version and their hashes."""
    source = json.loads((LIBRARY / "source.json").read_text())
    for name, integrity in source["files"].items():
        digest = hashlib.sha256((LIBRARY / name).read_bytes()).digest()
        assert f"sha256-{base64.b64encode(digest).decode()}" == integrity, name
    assert {path.name for path in LIBRARY.iterdir()} == {*source["files"], "source.json"}
    assert f"(v{source['version']})" in (LIBRARY / "uPlot.iife.min.js").read_text()[:80]


def test_two_seeds_have_a_mean_and_no_interval() -> None:
    rows = pd.DataFrame({"variant": "cubic", "x": [1.0, 2.0, 4.0], "verdict": "valid"})
    two, three = (
        means.summary(some, ["variant"], means.Measure("x", "x")) for some in (rows[:2], rows)
    )
    assert two["mean"].item() == 1.5 and two[["low", "high"]].isna().all(axis=None)
    assert three["low"].item() < 7 / 3 < three["high"].item()
