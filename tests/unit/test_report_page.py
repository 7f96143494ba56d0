"""The page in a browser: nothing complains, nothing is fetched, tables answer, all of it fits."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from analysis.report import collect, make_report
from experiments.command import main
from testbed.store.names import SCENARIO
from tests import accessible, report_writer
from tests.browser import Tab, browser

TABLE = "document.querySelector('#someones-own-guest table.sortable')"
COLUMN = f"[...{TABLE}.tBodies[0].rows].map(row => parseFloat(row.cells[NUMBER].textContent))"
PLOT = "document.querySelector('#someones-own-guest .plotted').plot"
TIP = "document.querySelector('#someones-own-guest .tip')"
POINT = (  # where a point with more than one trial lies in the window
    f"(() => {{ const plot = {PLOT}; const panel = plot.spec.panels[1];"
    "const mark = plot.tellable(panel).find(each => each.told);"
    "const [x, y] = plot.pixel({panel, mark, i: 1});"
    "const box = plot.stage.getBoundingClientRect();"
    "return [box.left + x, box.top + y, mark.y[1], mark.series]; })()"
)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("page")
    for name in ("someones-own", "dumbbell-queues"):
        report_writer.write_experiment(root / name, name, 3)
    return make_report(collect(sorted(root.iterdir())), root / "report.html")


@pytest.fixture(scope="module")
def ledger(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("ledger")
    report_writer.write_experiment(root / "results", "router-fairness", 10)
    with report_writer.first_figures():
        assert main(["report", str(root / "results"), "--claims"]) == 0
    return root / "results" / "report.html"


@pytest.fixture(scope="module")
def tab() -> Iterator[Tab]:
    with browser() as opened:
        yield opened


@pytest.mark.slow(but=1)
@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [360, 1440])
def test_it_fits_and_is_quiet(tab: Tab, page: Path, width: int, dark: bool) -> None:
    tab.requests.clear()
    tab.open(page, width, dark=dark)
    assert tab.run("document.documentElement.scrollWidth") == width
    too_wide = (
        "[...document.querySelectorAll('body *')].filter(each => "
        "!each.closest('.scroll') && each.getBoundingClientRect().right > innerWidth + 1)"
        ".map(each => each.outerHTML.slice(0, 80))"
    )
    assert tab.run(too_wide) == []
    assert tab.complaints == []
    assert {request for request in tab.requests if not request.startswith("data:,")} == {
        page.resolve().as_uri()
    }


def test_a_figure_that_goes_on_has_a_shadow_at_that_side(tab: Tab, page: Path) -> None:
    """Shadows stay at the frame's sides; what covers them scrolls with the content."""
    tab.open(page, 360)
    frame = "document.querySelector('figure.net > .scroll')"
    assert tab.run(f"{frame}.scrollWidth > {frame}.clientWidth")
    style = f"getComputedStyle({frame})"
    held = tab.run(f"{style}.backgroundAttachment").split(", ")
    assert held[:4] == ["local", "local", "scroll", "scroll"]
    assert tab.run(f"{style}.backgroundImage").count("linear-gradient") == 4


def test_figures_can_be_read_in_the_dark(tab: Tab, page: Path) -> None:
    colours = []
    for dark in (False, True):
        tab.open(page, 1440, dark=dark)
        colours.append(
            tab.run(
                "['svg.plot text', 'figure > .scroll'].map(name => getComputedStyle("
                "document.querySelector(name)))"
                ".map((style, i) => i ? style.backgroundColor : style.fill)"
            )
        )
    (ink, card), (dark_ink, dark_card) = colours
    assert ink != dark_ink and card != dark_card
    assert dark_ink != dark_card


@pytest.mark.slow
@pytest.mark.parametrize("dark", [False, True])
def test_everyone_can_read_it(tab: Tab, page: Path, ledger: Path, dark: bool) -> None:
    for each in (page, ledger):
        tab.open(each, 1280, dark=dark)
        assert accessible.faint(tab) == []
        assert accessible.nameless(tab) == []


def test_a_click_sorts_and_another_turns_it_round(tab: Tab, page: Path) -> None:
    tab.open(page, 1440)
    heads = tab.run(f"[...{TABLE}.tHead.rows[0].cells].map(each => each.textContent)")
    number = next(i for i, words in enumerate(heads) if words.startswith("one-way delay"))
    column = COLUMN.replace("NUMBER", str(number))
    click = f"{TABLE}.tHead.rows[0].cells[{number}].firstChild.click()"
    before = tab.run(column)
    tab.run(click)
    assert tab.run(column) == sorted(before) != before
    tab.run(click)
    assert tab.run(column) == sorted(before, reverse=True)
    assert tab.run(f"{TABLE}.tHead.rows[0].cells[{number}].ariaSort") == "descending"


def test_rows_can_be_filtered_and_copied(tab: Tab, page: Path) -> None:
    tab.open(page, 1440)
    section = "document.querySelector('#someones-own-guest')"
    tab.run(
        "globalThis.copied = ''; Object.defineProperty(navigator, 'clipboard', "
        "{value: {writeText: async text => { globalThis.copied = text; }}})"
    )
    tab.run(
        f"(() => {{ const input = {section}.querySelector('.tools input'); input.value = 'bbr';"
        "input.dispatchEvent(new Event('input')); })()"
    )
    tab.run(f"{section}.querySelector('.tools .copy').click()")
    lines = tab.run("globalThis.copied").split("\n")
    assert lines[0].startswith("target ms\tvariant\tn\tthroughput")
    assert len(lines) == 1 + 3 and all("\tbbr\t" in line for line in lines[1:])
    tab.run(f"{section}.querySelector('.command .copy').click()")
    testbed, run, scenario, *engine = tab.run("globalThis.copied").split()
    assert [testbed, run, *engine] == ["testbed", "run", "--engine", "guest"]
    assert Path(scenario).name == SCENARIO and Path(scenario).is_file()


def test_the_ledger_can_be_filtered_and_searched(tab: Tab, ledger: Path) -> None:
    tab.open(ledger, 1440)
    left = "document.querySelectorAll('details.claim:not([hidden])').length"
    whole = tab.run(left)
    assert whole and not tab.run("document.querySelector('details.paper').open")
    choose = (
        "(() => { const box = document.querySelector('#ledger-filter SELECTOR'); box.value = VALUE;"
        "box.dispatchEvent(new Event('input', {bubbles: true})); })()"
    )
    search = choose.replace("SELECTOR", "input")
    tab.run(search.replace("VALUE", "'60 %'"))
    some = tab.run(left)
    assert 0 < some < whole and tab.run("document.querySelector('details.paper').open")
    said = f"{some} of {whole} answers"
    assert tab.run("document.querySelector('#ledger-filter output').textContent") == said
    tab.run(search.replace("VALUE", "''"))
    answer = choose.replace("SELECTOR", '[data-of="answer"]').replace("VALUE", "'contradicted'")
    tab.run(answer)
    badges = "[...document.querySelectorAll('details.claim:not([hidden]) > summary .badge')]"
    assert set(tab.run(f"{badges}.map(each => each.textContent)")) == {"contradicted"}


def test_it_prints(tab: Tab, page: Path, tmp_path: Path) -> None:
    tab.open(page, 1440)
    tab.print(tmp_path / "report.pdf")
    assert (tmp_path / "report.pdf").read_bytes().startswith(b"%PDF")


@pytest.fixture
def plotted(tab: Tab, page: Path) -> Tab:
    """The page, at a figure that has become a plot."""
    tab.open(page, 1280)
    tab.run(
        "document.querySelector('#someones-own-guest .plotted')"
        ".scrollIntoView({behavior: 'instant'});"
        "new Promise(done => { const look = () => "
        f"{PLOT} ? done() : requestAnimationFrame(look); look(); }})"
    )
    return tab


def mouse(tab: Tab, kind: str, x: float, y: float, **more: Any) -> None:
    tab.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)


def click(tab: Tab, x: float, y: float) -> None:
    for kind in ("mousePressed", "mouseReleased"):
        mouse(tab, kind, x, y, button="left", buttons=1, clickCount=1)


def test_a_hover_tells_the_value_and_a_click_opens_its_trials(plotted: Tab) -> None:
    x, y, value, series = plotted.run(POINT)
    mouse(plotted, "mouseMoved", x, y)
    said = plotted.run(f"{TIP}.innerText")
    assert series in said and f"{value:.4g}" in said and "95 % interval" in said
    assert "\nn\n3\n" in said.replace("\n\n", "\n")
    click(plotted, x, y)
    shown = plotted.run(
        "[...document.querySelectorAll('#trial-table tbody tr:not([hidden])')]"
        ".map(row => row.cells[2].textContent)"
    )
    assert len(shown) == 3 and all(series in each for each in shown)
    assert plotted.complaints == []


def test_a_series_can_be_hidden(plotted: Tab) -> None:
    plotted.run(f"{PLOT}.legend.firstChild.click()")
    assert plotted.run(f"{PLOT}.legend.firstChild.ariaPressed") == "false"
    hidden = plotted.run(f"[...{PLOT}.hidden]")
    seen = plotted.run(f"{PLOT}.seen({PLOT}.spec.panels[0]).map(each => each.series)")
    assert len(hidden) == 1 and seen and hidden[0] not in seen


def test_a_drag_zooms_all_panels_of_its_range(plotted: Tab) -> None:
    x, y, *_ = plotted.run(POINT)
    whole = plotted.run(f"{PLOT}.spec.panels.map(each => each.x.lim)")
    mouse(plotted, "mousePressed", x - 20, y, button="left", buttons=1, clickCount=1)
    mouse(plotted, "mouseMoved", x + 60, y, buttons=1)
    mouse(plotted, "mouseReleased", x + 60, y, button="left", clickCount=1)
    zoomed = plotted.run(f"{PLOT}.spec.panels.map(each => each.x.lim)")
    assert len(zoomed) > 1 and all(each == zoomed[0] for each in zoomed)
    assert whole[0][0] < zoomed[0][0] < zoomed[0][1] < whole[0][1]
    plotted.run(f"{PLOT}.frame.querySelector('[aria-label=\"Show the whole\"]').click()")
    assert plotted.run(f"{PLOT}.spec.panels.map(each => each.x.lim)") == whole


def test_keys_go_from_point_to_point(plotted: Tab) -> None:
    plotted.run(f"{PLOT}.stage.focus()")
    for _ in range(2):
        plotted.call("Input.dispatchKeyEvent", type="keyDown", key="ArrowRight")
    assert plotted.run(f"{PLOT}.at.i") == 1
    assert plotted.run(f"{TIP}.hidden") is False and plotted.run(f"{TIP}.role") == "status"
    plotted.call("Input.dispatchKeyEvent", type="keyDown", key="Escape")
    assert plotted.run(f"{TIP}.hidden") is True


def test_the_static_figure_is_for_print_and_for_those_without_scripts(tab: Tab, page: Path) -> None:
    shown = "document.querySelector('#someones-own-guest svg.plot').getClientRects().length"
    tab.call("Emulation.setScriptExecutionDisabled", value=True)
    tab.open(page, 1280)
    tab.call("Emulation.setScriptExecutionDisabled", value=False)
    assert tab.run(shown) == 1 and tab.run("document.querySelector('.live')") is None
