"""Two trials over each other: their series, the choice, and the statistics of the differences."""

from __future__ import annotations

import base64
import dataclasses
import json
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from analysis.report import collect, make_report
from analysis.report.overlay import settings_of
from analysis.results import experiment_results, page_series, reduction, workers
from analysis.results.page_series import MAX_POINTS, packed, thinned
from analysis.statistics.intervals import compare, compare_paired
from analysis.trials.samples import by_flow
from experiments.catalogue import EXPERIMENTS
from experiments.command import main
from testbed.store.names import RECORD, SOCKET_SAMPLES
from testbed.store.reading import open_trial, trials_in
from testbed.store.records import FlowRecord
from testbed.store.writing import write_table
from tests import accessible, report_writer
from tests.browser import Tab, browser
from tests.sealing import seal
from tests.trial_writer import write_trial

PLOT = "document.getElementById('overlay-plot').plot"
READY = (
    f"new Promise((done, failed) => {{ let left = 300; const look = () => {PLOT} ? done() :"
    " left-- ? requestAnimationFrame(look) : failed('no plot'); look(); })"
)


def write_run(folder: Path) -> Path:
    """Twelve settings with three seeds, whose flows were sampled."""
    for path in report_writer.write_experiment(folder, "dumbbell-queues", 3):
        trial = open_trial(path)
        flows = [
            FlowRecord(flow.name, "tcp", "10.0.0.1", "10.0.0.2", (40000,), 5201, 0.0, 80.0)
            for flow in trial.scenario.flows
        ]
        record = dataclasses.replace(trial.record, flows=tuple(flows))
        (path / RECORD).write_text(record.to_json())
        known = {"flow": "tcp", "state": "established", "srtt_ms": 30.0}
        rows = [{**known, "time_s": t, "cwnd": 10 + t % 7} for t in range(80)]
        write_table(
            path, SOCKET_SAMPLES, ([row.get(c, 0) for c in SOCKET_SAMPLES.columns] for row in rows)
        )
        seal(path)
    return folder


@pytest.fixture(scope="module", autouse=True)
def first_figures() -> Iterator[None]:
    with report_writer.first_figures():
        yield


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_run(tmp_path_factory.mktemp("overlay") / "results")


@pytest.fixture(scope="module")
def page(results: Path) -> Path:
    return make_report(collect([results], EXPERIMENTS), results.parent / "two words.html")


@pytest.fixture(scope="module")
def tab() -> Iterator[Tab]:
    with browser() as opened:
        yield opened


def choice(page: Path) -> dict[str, list[dict[str, list[list[int]]]]]:
    text = page.read_text().split('id="overlay-data">')[1].split("</script>")[0]
    found: dict[str, list[dict[str, list[list[int]]]]] = json.loads(text)
    return found


def unpacked(text: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(zlib.decompress(base64.b64decode(text, validate=True)))
    return found


def at(tab: Tab, page: Path, fragment: str, width: int = 1280, *, dark: bool = False) -> None:
    tab.open(page, width, dark=dark)
    tab.run(f"location.hash = {json.dumps(fragment)}")
    tab.run(READY)


def settings(page: Path) -> tuple[int, int]:
    """The first trials of two settings."""
    first, second = choice(page)["settings"][:2]
    return first["trials"][0][0], second["trials"][0][0]


def test_of_many_points_the_extremes_stay() -> None:
    x = np.arange(100_000) / 1000
    y = np.sin(x)
    y[31_337] = 5.0
    few_x, few_y = thinned(x, y)
    assert len(few_x) <= MAX_POINTS + 1 and few_x[0] == x[0] and few_x[-1] == x[-1]
    assert few_y.max() == 5.0 and few_x[few_y.argmax()] == x[31_337]
    assert np.all(np.diff(few_x) > 0)
    held_x, held_y = thinned(np.arange(5.0), np.array([1.0, 1, 2, 2, 2]))
    assert held_x.tolist() == [0, 2, 4] and held_y.tolist() == [1, 2, 2]


def test_of_many_points_the_last_of_a_stretch_holds() -> None:
    """A queue that emptied is drawn empty until it fills again."""
    x = np.concatenate([np.arange(3000) / 1000, 4 + np.arange(3000) / 1000])
    few_x, few_y = thinned(x, np.tile([0.0, 9.0, 1.0], 2000))
    assert few_x[few_x < 3][-1] == 2.999 and few_y[few_x < 3][-1] == 1.0


def test_connections_of_a_flow_are_added_up(tmp_path: Path) -> None:
    """Their windows; of their RTTs the mean of those that are known, only while established."""
    path = write_trial(tmp_path / "trial")
    rows = [
        {"time_s": t, "flow": flow, "state": state, "cwnd": cwnd, "srtt_ms": rtt}
        for t, flow, state, cwnd, rtt in (
            (1.0, "tcp", "established", 10, 20.0),
            (1.0, "tcp", "established", 5, ""),
            (1.0, "tcp", "syn-sent", 100, 0.0),
            (1.0, "cbr", "established", 100, 9.0),
            (2.0, "tcp", "established", 7, 30.0),
            (2.0, "tcp", "established", 8, 40.0),
            (3.0, "tcp", "established", 0, ""),
        )
    ]
    lines = [[row.get(name, 0) for name in SOCKET_SAMPLES.columns] for row in rows]
    write_table(path, SOCKET_SAMPLES, lines)
    found = unpacked(reduction.reduction_of(open_trial(seal(path))).plotted)["tcp"]
    assert found["window"] == {"x": packed([1, 2], 1e-3), "y": packed([15, 15], 1)}
    assert found["rtt"] == {"x": packed([1, 2], 1e-3), "y": packed([20, 35], 1e-2)}


def test_two_settings_over_all_seeds_are_one_address(tab: Tab, page: Path) -> None:
    tab.complaints.clear()
    a, b = settings(page)
    at(tab, page, f"#compare/{a}*:tcp/{b}*:tcp")
    marks = tab.run(f"{PLOT}.spec.marks.filter(mark => mark.panel === 0).map(mark => mark.width)")
    assert len(marks) == 2 * (3 + 1)  # three seeds and their mean
    limits = tab.run(f"{PLOT}.spec.panels.map(each => each.x.lim)")
    assert len(limits) >= 3 and all(each == limits[0] for each in limits)
    said = tab.run("document.querySelector('#differences caption').textContent")
    assert "paired by seed" in said
    assert tab.complaints == []


@pytest.mark.slow(but=1)
@pytest.mark.parametrize(("width", "dark"), [(360, True), (1440, False)])
def test_it_fits_and_everyone_can_read_it(tab: Tab, page: Path, width: int, dark: bool) -> None:
    tab.complaints.clear()
    a, b = settings(page)
    at(tab, page, f"#compare/{a}*:tcp/{b}*:tcp", width, dark=dark)
    assert tab.run("document.documentElement.scrollWidth") == width
    assert accessible.faint(tab) == []
    assert accessible.nameless(tab) == []
    assert tab.complaints == []


def test_any_two_trials_can_be_chosen_and_swapped(tab: Tab, page: Path) -> None:
    a, b = settings(page)
    at(tab, page, f"#compare/{a}:tcp/{b}:tcp")
    assert tab.run(f"{PLOT}.spec.marks.length") == 2 * tab.run(f"{PLOT}.spec.panels.length")
    tab.run("document.getElementById('swap').click()")
    assert tab.run("location.hash") == f"#compare/{b}:tcp/{a}:tcp"
    tab.run(
        "(() => { const box = document.querySelector('[data-side=b] [name=flow]');"
        "box.value = 'cbr'; box.dispatchEvent(new Event('change')); })()"
    )
    assert tab.run("location.hash") == f"#compare/{b}:tcp/{a}:cbr"
    said = tab.run("document.querySelector('#differences caption').textContent")
    assert "without an interval" in said


def test_a_trial_of_the_list_becomes_a_side(tab: Tab, page: Path) -> None:
    tab.open(page, 1280)
    tab.run("document.getElementById('trial-table').open = true")
    _, b = settings(page)
    button = f"document.querySelector('#t{b} button.side:last-child')"
    look = f"const look = () => {button} ? done() : requestAnimationFrame(look); look();"
    tab.run(f"new Promise(done => {{ {look} }})")
    assert tab.run(f"{button}.ariaLabel") == f"Trial {b} as B of the comparison"
    tab.run(f"{button}.click()")
    assert tab.run("location.hash").endswith(f"/{b}:tcp")


def test_keys_reach_the_choice_and_the_points(tab: Tab, page: Path) -> None:
    a, b = settings(page)
    at(tab, page, f"#compare/{a}:tcp/{b}:tcp")
    tab.run("document.querySelector('[data-side=a] [name=setting]').focus()")
    for _ in range(5):
        tab.call("Input.dispatchKeyEvent", type="keyDown", key="Tab", windowsVirtualKeyCode=9)
    assert tab.run("document.activeElement.name + document.activeElement.form") == "seednull"
    tab.run(f"{PLOT}.stage.focus()")
    tab.call("Input.dispatchKeyEvent", type="keyDown", key="ArrowRight")
    assert "seed" in tab.run(f"{PLOT}.tip.innerText")


@pytest.mark.parametrize("same_seeds", [True, False])
def test_the_page_computes_what_analysis_computes(tab: Tab, page: Path, same_seeds: bool) -> None:
    tab.open(page, 1280)
    dice = np.random.default_rng(7)
    for n in (2, 3, 5, 30):
        a = {seed: float(value) for seed, value in enumerate(dice.normal(10, 1, n))}
        b = {seed: float(value) for seed, value in enumerate(dice.gamma(2, 5, n + 3))}
        if same_seeds:
            found = compare_paired(b, a)
            script = (
                f"overlay.paired(new Map({_pairs(a)}), new Map({_pairs(b)}), overlay.quantiles)"
            )
            wanted = (found.difference, found.low, found.high)
        else:
            other = compare(b.values(), a.values())
            script = f"overlay.welch({[*a.values()]}, {[*b.values()]}, overlay.quantiles)"
            wanted = (other.difference, other.low, other.high)
        got = tab.run(script)
        numbers = [got["difference"], got["low"], got["high"]]
        assert np.allclose(numbers, wanted, rtol=1e-4, atol=1e-4)


def _pairs(values: dict[int, float]) -> str:
    return json.dumps([*values.items()])


@pytest.mark.slow
def test_one_file_has_everything(tab: Tab, results: Path, tmp_path: Path) -> None:
    out = tmp_path / "alone" / "page.html"
    out.parent.mkdir()
    assert main(["report", str(results), "--single-file", "--out", str(out)]) == 0
    assert [path.name for path in out.parent.iterdir()] == ["page.html"]
    tab.requests.clear()
    tab.complaints.clear()
    a, b = settings(out)
    at(tab, out, f"#compare/{a}*:tcp/{b}*:tcp")
    asked = {each for each in tab.requests if not each.startswith("data:,")}
    assert {each.split("#")[0] for each in asked} == {out.resolve().as_uri()}
    links = tab.run("[...document.querySelectorAll('main a')].map(a => a.getAttribute('href'))")
    assert all(each.startswith(("#", "data:")) for each in links)
    assert tab.complaints == []


def test_a_page_without_its_folder_says_so(tab: Tab, page: Path, tmp_path: Path) -> None:
    moved = tmp_path / "moved.html"
    moved.write_bytes(page.read_bytes())
    a, b = settings(page)
    tab.open(moved, 1280)
    tab.run(f"location.hash = '#compare/{a}:tcp/{b}:tcp'")
    said = "document.getElementById('overlaid').textContent"
    look = f"const look = () => {said} ? done() : requestAnimationFrame(look); look();"
    tab.run(f"new Promise(done => {{ {look} }})")
    assert "is not beside this page" in tab.run(said)
    assert tab.run("document.querySelectorAll('#differences tbody tr').length") > 3


def test_files_of_series_are_data(results: Path, page: Path) -> None:
    files = list(page.with_name("two words-series").iterdir())
    numbers = {trial[0] for each in choice(page)["settings"] for trial in each["trials"]}
    assert len(numbers) == len(list(trials_in(results))) == 36
    assert {path.name for path in files} == {f"t{number}.js" for number in numbers}
    for path in files:
        text = path.read_text()
        number, packed = text.removeprefix("testbedSeries(").removesuffix(");\n").split(",")
        assert path.name == f"t{number}.js"
        assert {"throughput", "window", "rtt"} <= set(unpacked(packed.strip('"'))["tcp"])


@pytest.mark.slow
def test_a_page_is_the_same_however_many_processes_read_its_trials(
    results: Path, page: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = [page, *page.with_name("two words-series").iterdir()]
    before = {path: path.read_bytes() for path in files}
    for path in files:
        path.unlink()
    monkeypatch.setattr(workers, "MANY_ITEMS", 30)
    monkeypatch.setattr("os.sched_getaffinity", lambda _pid: {0, 1})
    monkeypatch.setattr(experiment_results, "reductions_of", None)  # not in this process
    monkeypatch.setattr(page_series, "trial_text", None)
    make_report(collect([results], EXPERIMENTS), page)
    assert {path: path.read_bytes() for path in files} == before


def test_series_are_packed_once(results: Path, page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Making the page stored them, where other code had not: it is known by what it packs with."""
    series = {p: p.read_bytes() for p in page.with_name("two words-series").iterdir()}
    with monkeypatch.context() as patched:
        patched.setattr(page_series, "trial_text", None)  # packing would fail
        make_report(collect([results], EXPERIMENTS), page)
    assert {path: path.read_bytes() for path in series} == series
    monkeypatch.setattr(page_series, "PACKER_VERSION", "other code")
    monkeypatch.setattr(page_series, "trial_text", lambda *_: "anew")
    assert set(collect([results], EXPERIMENTS).experiments[0].plotted.values()) == {"anew"}


def test_series_without_samples_that_are_damaged(tmp_path: Path) -> None:
    path = write_trial(tmp_path / "x" / "trial", samples=True)
    trial = open_trial(path)
    reduction.store(reduction.reduce_trial(trial))
    (path / SOCKET_SAMPLES.file).write_text("time_s,flow\nx,y\n")
    (results,) = (found := collect([tmp_path / "x"])).experiments
    assert set(unpacked(results.plotted[1])["tcp"]) == {"throughput", "delay"}
    assert any("trial: without its samples: " in warning for warning in found.warnings)


def of_another_flow(found: dict[str, Any]) -> None:
    found["other"] = found.pop("tcp")


def of_texts(found: dict[str, Any]) -> None:
    found["tcp"]["throughput"]["x"]["d"][0] = "<script>"


def of_no_number(found: dict[str, Any]) -> None:
    found["tcp"]["throughput"]["y"]["k"] = float("nan")


def of_something_else(found: dict[str, Any]) -> None:
    found["tcp"]["else"] = found["tcp"]["throughput"]


def of_nothing(found: dict[str, Any]) -> None:
    found["tcp"]["throughput"] = None


@pytest.mark.parametrize(
    "change", [of_another_flow, of_texts, of_no_number, of_something_else, of_nothing]
)
def test_series_that_somebody_else_stored_are_packed_again(
    tmp_path: Path, change: Callable[[dict[str, Any]], None]
) -> None:
    trial = open_trial(write_trial(tmp_path / "x" / "trial", samples=True))
    own = reduction.reduction_of(trial)
    found = unpacked(own.plotted)
    change(found)
    text = base64.b64encode(zlib.compress(json.dumps(found).encode())).decode()
    for other in (text, f'"){text}', text[:-8], "", "AAAA"):
        reduction.store(dataclasses.replace(own, plotted=other))
        assert collect([tmp_path / "x"]).experiments[0].plotted == {1: own.plotted}


def test_each_variant_of_a_single_flow_is_a_setting() -> None:
    """Else the trials of all variants would be offered as seeds of the first one."""
    rows = pd.DataFrame(
        {
            "trial": [f"{variant}{seed}" for variant in ("bbr", "veno") for seed in (1, 2)],
            "number": range(1, 5),
            "seed": [1, 2, 1, 2],
            "flow": "tcp",
            "variant": ["bbr", "bbr", "veno", "veno"],
            "axis_variant": ["bbr", "bbr", "veno", "veno"],
            "setting": "8dda90f26e",  # which leaves the flow's own variant out
            "status": "ok",
            "verdict": "valid",
        }
    )
    results: Any = SimpleNamespace(rows=rows, varied=lambda _rows: ["variant"], key="x")
    offered = [(setting["name"], setting["trials"]) for setting in settings_of(results)]
    assert offered == [
        ("variant bbr", [[1, 1, 0], [2, 2, 0]]),
        ("variant veno", [[3, 1, 0], [4, 2, 0]]),
    ]


def test_samples_are_split_by_flow_in_their_order() -> None:
    names = ["b", "a", "b", "c", "a", "b"]
    split = by_flow(pa.table({"flow": names, "time_s": [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]}))
    times = {name: own["time_s"].to_pylist() for name, own in split.items()}
    assert times == {"a": [1.0, 4.0], "b": [0.0, 2.0, 5.0], "c": [3.0]}
    assert by_flow(pa.table({"flow": pa.array([], pa.string())})) == {}
