"""Markup in what the page is given stays text, and nothing but the page's own script runs."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from matplotlib.figure import Figure

from analysis.figures.sheet import Sheet
from analysis.figures.static_renderer import svg_text
from analysis.report import collect, inline, make_report, page
from experiments.catalogue import EXPERIMENTS
from tests import report_writer
from tests.browser import browser

MARKUP = (
    "\"'><img class=evil src=x onerror='window.evil = 1'></script></style><b class=evil>&amp;{{"
)
ELEMENTS = ("element", "network", "data", "wireshark", "overlay")  # of our own making


def doctored(value: Any) -> Any:
    """The value with markup at the end of every string in it."""
    if isinstance(value, str):
        return value + MARKUP
    if isinstance(value, Mapping):
        return {doctored(key): doctored(each) for key, each in value.items()}
    if isinstance(value, tuple | list):
        return type(value)(doctored(each) for each in value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        own = {each.name: getattr(value, each.name) for each in dataclasses.fields(value)}
        changed = {name: doctored(each) for name, each in own.items() if name not in ELEMENTS}
        return dataclasses.replace(value, **changed)
    return value


def test_markup_in_every_string_is_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from analysis.metrics.columns import METRIC_COLUMNS
    from tests.papers import PAPERS, answers

    report_writer.write_experiment(tmp_path / "rf", "router-fairness", 2)
    found = collect([tmp_path / "rf"], EXPERIMENTS)
    tables = {"router-fairness": found.metrics[list(METRIC_COLUMNS)]}
    own = [
        dataclasses.replace(
            each, claims=tuple(c for c in each.claims if c.experiment == "router-fairness")
        )
        for each in PAPERS
        if each.id == "GYS"
    ]
    answered = answers(tables, {"router-fairness": tmp_path / "rf"}, None, own)
    render = page.render
    monkeypatch.setattr(page, "render", lambda given: render(doctored(given)))
    with browser() as tab:
        tab.open(make_report(found, tmp_path / "report.html", answered), 1440)
        assert tab.run("document.querySelectorAll('.evil').length") == 0
        assert tab.run("window.evil === undefined")
        assert tab.run("document.querySelectorAll('details.claim').length") == len(answered)
        shown = tab.run("document.body.textContent.split('<img class=evil').length")
        assert shown > 200
        assert tab.complaints == []


def test_words_in_a_figure_are_text() -> None:
    figure = Figure()
    figure.text(0, 0, MARKUP)
    element = inline.element(svg_text(figure), "key", MARKUP)
    assert "<img" not in element and "<b " not in element


def test_elements_have_no_styles_of_their_own() -> None:
    figure = Figure()
    figure.subplots().plot([1, 2], [3, 5], label="one")
    figure.legend()
    element = inline.element(svg_text(figure), "key", "two lines")
    assert "style" not in element and 'stroke-width="' in element


def test_an_element_is_brief() -> None:
    """Only lines lose their L; names that nothing refers to go, and angles of nothing."""
    element = inline.element(
        '<svg viewBox="0 0 9 9"><g id="a">'
        '<path d="M 0 0 \nL 1 1 \nL 1 1 \nL 2 -1 \nz\n" id="b"/></g>'
        '<path d="M 0 0 \nC 1 1 2 2 3 3 \nL 4 4 \n"/><use href="#b"/>'
        '<text transform="rotate(-0 7 8)">x</text></svg>',
        "k",
        "words",
    )
    drawn = element[element.index(">") + 1 :]
    assert drawn == (
        '<g><path d="M 0 0 1 1 2 -1 z" id="k-b"/></g>'
        '<path d="M 0 0  C 1 1 2 2 3 3  L 4 4  "/><use href="#k-b"/><text>x</text></svg>'
    )


def test_a_script_that_got_in_would_not_run(tmp_path: Path) -> None:
    html = page.fill("page.html", (*page.SHARED, "figures.js", "page.js"), page=EMPTY, metrics=())
    inside = "<script>window.evil = 1</script><p id=last style='color: red' onclick='evil = 1'>"
    path = tmp_path / "page.html"
    path.write_text(html.replace("</main>", f"{inside}</main>"), encoding="utf-8")
    with browser() as tab:
        tab.open(path, 1440)
        tab.run("document.getElementById('last').click()")
        assert tab.run("window.evil === undefined")
        assert tab.run("getComputedStyle(window.last).color") != "rgb(255, 0, 0)"


EMPTY = page.Page(
    parts=(),
    papers=(),
    ledger_note="",
    counts={},
    checks=Sheet((), ()),
    warnings=(),
    again=0,
)
