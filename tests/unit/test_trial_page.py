"""A trial's page in a browser: one time axis down to single segments, as Wireshark shows them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from analysis.report import page as pages
from experiments.command import main
from testbed.machine import process
from testbed.store.names import CAPTURES_FOLDER, FIGURES, TRIAL_PAGE
from tests import accessible, report_writer
from tests.browser import Tab, browser
from tests.installed import followed_wireshark
from tests.trial_writer import write_trial
from tests.unit.test_report_safe import doctored

PLOT = "document.querySelector('.plotted').plot"
LAST = f"{PLOT}.spec.panels.at(-1)"


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    trial = write_trial(tmp_path_factory.mktemp("trial") / "reno", samples=True)
    with report_writer.sketched():
        assert main(["report", str(trial)]) == 0
    return trial / FIGURES / TRIAL_PAGE


@pytest.fixture(scope="module")
def tab() -> Iterator[Tab]:
    with browser() as opened:
        yield opened


@pytest.mark.slow(but=1)
@pytest.mark.parametrize(("width", "dark"), [(360, True), (1440, False)])
def test_it_fits_and_is_quiet(tab: Tab, page: Path, width: int, dark: bool) -> None:
    tab.requests.clear()
    tab.open(page, width, dark=dark)
    assert tab.run("document.documentElement.scrollWidth") == width
    assert tab.run(f"{PLOT}.spec.panels.length") > 4
    assert tab.complaints == []
    asked = {each for each in tab.requests if not each.startswith("data:,")}
    assert asked == {page.resolve().as_uri()}


@pytest.mark.parametrize("dark", [False, True])
def test_everyone_can_read_it(tab: Tab, page: Path, dark: bool) -> None:
    tab.open(page, 1280, dark=dark)
    assert accessible.faint(tab) == []
    assert accessible.nameless(tab) == []


def test_all_panels_zoom_to_the_50_ms_around_a_loss(tab: Tab, page: Path) -> None:
    tab.open(page, 1440)
    first = tab.run(f"{PLOT}.spec.troubles[0]")
    tab.run("document.getElementById('after').click()")
    limits = tab.run(f"{PLOT}.spec.panels.map(each => each.x.lim)")
    assert all(np.allclose(each, [first - 0.025, first + 0.025]) for each in limits)
    tab.run("document.getElementById('after').click()")
    assert tab.run(f"{LAST}.x.lim[0]") > limits[0][0]
    tab.run(f"{PLOT}.reset()")
    assert tab.run(f"{LAST}.x.lim") == tab.run(f"{LAST}.whole")


@followed_wireshark  # 4.4 knows iperf3 as a protocol
def test_segments_and_acks_say_what_wireshark_says(tab: Tab, page: Path) -> None:
    tab.open(page, 1440)
    told = tab.run(
        f"{PLOT}.spec.marks.filter(mark => mark.columns && !mark.mute).flatMap(mark =>"
        " [...mark.x].map((_, i) => Object.fromEntries(mark.tell(i))))"
    )
    file = tab.run("JSON.parse(document.querySelectorAll('.plotted script')[1].textContent).file")
    assert file.startswith(CAPTURES_FOLDER)
    argv = ["tshark", "-r", str(page.parents[1] / file), "-T", "fields"]
    shown = process.run([*argv, "-e", "frame.number", "-e", "_ws.col.Info"]).stdout
    infos = dict(line.split("\t", 1) for line in shown.splitlines())
    assert len(told) > 20
    for each in told:
        assert infos[str(each["No."])].startswith(each["info"])
        assert each["filter"] == f"frame.number == {each['No.']}"


def test_a_picked_segment_stays_with_its_filter(tab: Tab, page: Path) -> None:
    tab.open(page, 1440)
    wanted = "mark.pick && mark.series?.includes('retransmission')"
    tab.run(f"{PLOT}.spec.marks.find(mark => {wanted}).pick(0)")
    said = tab.run("document.getElementById('packet-filter').textContent")
    assert "Retransmission]" in said and " -Y 'frame.number == " in said
    assert tab.run("document.getElementById('packet').hidden") is False


def test_another_flow_shows_the_same_stretch(tab: Tab, page: Path) -> None:
    tab.open(page, 1440)
    tab.run(f"{PLOT}.zoom({LAST}, 2, 4)")
    tab.run(
        "(() => { const flow = document.getElementById('flow'); flow.value = 'cbr';"
        "flow.dispatchEvent(new Event('change')); })()"
    )
    shown = "document.querySelector('figure.flow:not([hidden])')"
    assert tab.run(f"{shown}.dataset.flow") == "cbr"
    assert tab.run(f"{shown}.querySelector('.plotted').plot.spec.panels[0].x.lim") == [2, 4]


def test_the_static_figures_are_for_print_and_for_those_without_scripts(
    tab: Tab, page: Path
) -> None:
    shown = "document.querySelectorAll('#static svg')[0].checkVisibility()"
    tab.open(page, 1440)
    assert not tab.run(shown) and tab.run("document.querySelector('.live').checkVisibility()")
    tab.run("dispatchEvent(new Event('beforeprint'))")
    assert tab.run(shown)
    tab.call("Emulation.setScriptExecutionDisabled", value=True)
    tab.open(page, 1440)
    tab.call("Emulation.setScriptExecutionDisabled", value=False)
    assert tab.run(shown) and not tab.run("document.querySelector('.flow').checkVisibility()")


def test_markup_in_every_string_is_text(
    tab: Tab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill = pages.fill
    monkeypatch.setattr(pages, "fill", lambda *given, trial: fill(*given, trial=doctored(trial)))
    trial = write_trial(tmp_path / "reno", samples=True)
    assert main(["report", str(trial)]) == 0
    tab.complaints.clear()
    tab.open(trial / FIGURES / TRIAL_PAGE, 1440)
    assert tab.run("document.querySelectorAll('.evil').length") == 0
    assert tab.run("document.body.textContent.split('<img class=evil').length") > 50
    assert tab.complaints == []
