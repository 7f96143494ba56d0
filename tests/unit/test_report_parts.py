"""Parts of the report and of its figures, each by itself, from results made up by hand."""

from __future__ import annotations

import csv
import dataclasses
import re
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from analysis.claims.ledger import Answer
from analysis.figures import cases, means
from analysis.figures.cases import exemplary
from analysis.figures.figure import (
    Axis,
    Panel,
    PointSeries,
    resolved_limits,
    share_like_limits,
)
from analysis.figures.general import general_figures, load_sweep, messages, plane, presentation
from analysis.figures.sheet import as_sheet
from analysis.metrics import digest
from analysis.report import collect, make_report
from analysis.report.claims_section import headlines, ledger_note, papers, show
from analysis.report.facts import command, command_note
from analysis.report.listing import ranges
from analysis.report.network_drawing import LINE_HEIGHT, Edge, drawing, network_svg
from analysis.report.page import Standings
from analysis.results.reduction import reduction_of
from analysis.trials.labels import in_lines, path_rtt_ms
from experiments.catalogue import EXPERIMENTS
from testbed.errors import TestbedError
from testbed.runs.results_folders import keep_run
from testbed.scenario.losses import GilbertElliott, Loss, LossEvents
from testbed.scenario.named_networks import LinkSettings, NetworkName
from testbed.store.names import REDUCED
from testbed.store.reading import open_trial
from tests import report_writer
from tests.made_up_answers import TrialEvidence, made_up
from tests.scenarios import dumbbell, with_network
from tests.trial_writer import write_trial


def test_the_command_of_a_scenario_names_a_file(tmp_path: Path) -> None:
    """Its axes have short names, which the file of a trial need not have."""
    for rate in ("1", "2"):
        made = report_writer.scenario("mine", {"variant": "cubic"}, 1)
        report_writer.write(tmp_path, dataclasses.replace(made, axes={"rate_mbit": rate}))
    [results] = collect([tmp_path], EXPERIMENTS).experiments
    first = results.trials[0].path / "scenario.json"
    assert command(results) == f"testbed run {first} --engine guest"
    assert command_note(results) == "and likewise for 1 other trial in no run"


def test_the_commands_are_those_of_the_runs_that_have_the_trials(tmp_path: Path) -> None:
    """As few runs as have all of them; a trial that is in none is named by its file."""
    paths = [
        report_writer.write(tmp_path, report_writer.scenario("mine", {"variant": "cubic"}, seed))
        for seed in (1, 2, 3)
    ]
    names = [path.name for path in paths]
    keep_run(tmp_path, "small", "testbed run small", names[:1])
    keep_run(tmp_path, "large", "testbed run large", names[:2])
    [results] = collect([tmp_path], EXPERIMENTS).experiments
    third = f"testbed run {paths[2] / 'scenario.json'} --engine guest"
    assert (command(results), command_note(results)) == (f"testbed run large\n{third}", "")
    keep_run(tmp_path, "other", "testbed run other", names[2:])
    [results] = collect([tmp_path], EXPERIMENTS).experiments
    assert (command(results), command_note(results)) == ("testbed run large\ntestbed run other", "")


def test_an_experiments_command_says_how_many_trials_it_gives(tmp_path: Path) -> None:
    report_writer.write_experiment(tmp_path, "router-fairness", 2)
    shutil.rmtree(min(tmp_path.iterdir()))
    [results] = collect([tmp_path], EXPERIMENTS).experiments
    assert command(results).startswith("testbed run router-fairness --set queue=bfifo,codel ")
    assert command_note(results) == "gives 4 trials, of which these are 3"


@pytest.mark.parametrize("name", ["parking-lot", "fall-floyd", "newreno-models"])
def test_a_scenario_may_have_an_experiments_name(name: str, tmp_path: Path) -> None:
    """It has none of its axes, and gets what any scenario gets."""
    made = report_writer.scenario("mine", {"variant": "cubic"}, 1)
    report_writer.write(tmp_path, dataclasses.replace(made, experiment=name, axes={}))
    [results] = collect([tmp_path], EXPERIMENTS).experiments
    assert not list(presentation.summaries([results]))
    assert not list(presentation.tables(results))
    assert all("-guest-" in each.stem for each in presentation.figures(results))


def test_a_single_trial_has_its_timeline_and_no_figure_of_one_point(tmp_path: Path) -> None:
    write_trial(tmp_path / "one-trial", samples=True)
    [results] = collect([tmp_path], EXPERIMENTS).experiments
    kinds = {
        figure.stem.removeprefix(f"{results.key}-") for figure in general_figures.draw(results)
    }
    assert "tcp-timeline" in kinds
    assert not {"sweep", "plane"} & kinds


def test_what_carries_no_bytes_has_no_throughput(tmp_path: Path) -> None:
    """A ping beside TCP: no title says what it gets."""
    report_writer.write_experiment(tmp_path, "someones-own", 1)
    [results] = collect([tmp_path], EXPERIMENTS).experiments
    tcp = results.good[results.good["variant"] == "cubic"]
    ping = tcp.assign(flow="ping", kind="command", variant="", throughput_mbps=0.0)
    good = pd.concat([tcp, ping.assign(measured_ping_ms=20.0)], ignore_index=True)
    with_it = dataclasses.replace(results, good=good, rows=good)
    (sweep,) = general_figures.sweeps(with_it)
    throughput = sweep.data[sweep.data["measure"] == means.THROUGHPUT.label].dropna(subset="mean")
    assert set(throughput["series"]) == {"cubic"}
    assert set(sweep.data["series"]) == {"cubic", "ping"}
    assert "ping" not in messages.comparison(general_figures.few_series(with_it), "series")


def test_calls_and_programs_are_in_the_figures(tmp_path: Path) -> None:
    report_writer.write_experiment(tmp_path, "someones-own", 1)
    [results] = collect([tmp_path], EXPERIMENTS).experiments
    tcp = results.good[results.good["variant"] == "cubic"]
    call = tcp.assign(flow="call", kind="call", variant="", owd_mean_ms=7.0, jitter_ms=1.5)
    app = tcp.assign(flow="app", kind="command")
    good = pd.concat([tcp.assign(jitter_ms=np.nan), call, app], ignore_index=True)
    with_them = dataclasses.replace(results, good=good, rows=good)
    series = {"call", "cubic (tcp)", "cubic (app)"}
    (sweep,) = general_figures.sweeps(with_them)
    assert set(sweep.data["series"]) == series
    jitter = sweep.data[sweep.data["measure"] == "jitter (ms)"].dropna(subset="mean")
    assert set(jitter["series"]) == {"call"} and set(jitter["mean"]) == {1.5}
    (plane_of_all,) = general_figures.planes(with_them)
    assert series == set(plane_of_all.data["series"])
    assert not list(general_figures.shares(with_them))  # which may ask for less than theirs
    (usual,) = general_figures.sweeps(results)
    assert "jitter (ms)" not in set(usual.data["measure"])


@pytest.mark.slow
def test_hundreds_of_trials_are_all_there(tmp_path: Path) -> None:
    report_writer.write_experiment(tmp_path / "r", "someones-own", 20, 120)
    with report_writer.first_figures():
        page = make_report(collect([tmp_path / "r"], EXPERIMENTS), tmp_path / "report.html")
    text = page.read_text()
    assert len(re.findall(r'<tr id="t\d+">', text)) == 120
    assert "120 trials." in text
    assert page.stat().st_size < 500_000
    with (
        tmp_path / "report-figures" / "someones-own-guest-metrics-by-target_ms.csv"
    ).open() as file:
        rows = list(csv.DictReader(file))
    throughput = [int(row["n"]) for row in rows if row["measure"].startswith("throughput")]
    assert sorted(throughput) == [20] * 6


def test_an_evaluations_page_is_named_after_whom_it_compares(tmp_path: Path) -> None:
    report_writer.write_experiment(tmp_path / "r", "someones-own", 2, 4)
    scores = as_sheet(("score", "mean"), [("goodput", "7")])
    given = Standings("mine beside cubic", ("It is fair.",), scores, "")
    found = collect([tmp_path / "r"], EXPERIMENTS)
    with report_writer.first_figures():
        page = make_report(found, tmp_path / "report.html", standings=given)
    text = page.read_text()
    assert "<h1>mine beside cubic</h1>" in text and "<title>mine beside cubic ·" in text
    assert "<h2>Summary</h2>" in text and "It is fair." in text


def test_a_folder_without_trials_is_said(tmp_path: Path) -> None:
    with pytest.raises(TestbedError, match="no trials in it"):
        collect([tmp_path], EXPERIMENTS)


def test_the_digest_of_a_trial(tmp_path: Path) -> None:
    trial = open_trial(write_trial(tmp_path / "t"))
    table = reduction_of(trial).series
    tcp = table[table["flow"] == "tcp"]
    rates = tcp[tcp["what"] == digest.THROUGHPUT_SERIES]
    assert list(rates["x"]) == [1.5 + second for second in range(10)]
    # 2 s to 3 s: nine data packets and the repeated one, of 1054 bytes, at the receiver
    assert rates["value"].iloc[1] == pytest.approx(10 * 1054 * 8e-6)
    delays = tcp[tcp["what"] == digest.DELAY_QUANTILES].set_index("x")["value"]
    assert delays[0.5] == pytest.approx(50)
    assert delays[1.0] == pytest.approx(70)
    assert (tcp["what"] == digest.RTT_QUANTILES).any()
    assert not (table[table["flow"] == "cbr"]["what"] == digest.RTT_QUANTILES).any()


def test_the_digest_is_kept(tmp_path: Path) -> None:
    trial = open_trial(write_trial(tmp_path / "t"))
    first = reduction_of(trial).series
    for capture in (tmp_path / "t" / "captures").iterdir():
        capture.unlink()
    pd.testing.assert_frame_equal(reduction_of(trial).series, first)
    (tmp_path / "t" / REDUCED).write_bytes(b"damaged")
    assert reduction_of(trial).is_damaged


def test_the_confidence_region_of_a_mean() -> None:
    points = np.array([[1.0, 0], [-1, 0], [0, 2], [0, -2], [0.5, 0], [-0.5, 0]])
    found = plane.region(points)
    assert found is not None
    centre, width, height, angle = found
    assert centre == pytest.approx((0, 0))
    # Hotelling: (p (n-1) / (n (n-p))) F(0.95; 2, 4) = 5/12 * 6.944; variances 0.5 and 1.6
    scale = 5 / 12 * 6.9443
    assert sorted((width, height)) == pytest.approx(
        [2 * (scale * 0.5) ** 0.5, 2 * (scale * 1.6) ** 0.5], rel=1e-4
    )
    assert angle % 180 == pytest.approx(0, abs=1e-6) or angle % 180 == pytest.approx(90)
    assert plane.region(points[:3]) is None


def points(x: tuple[float, float], y: tuple[float, float], widen: bool = False) -> Panel:
    axis = Axis(margin=0, widen=widen)
    return Panel((PointSeries(x, y, "#000000"),), axis, axis)


def test_differences_of_no_account_are_not_blown_up() -> None:
    x, y = resolved_limits(points((1.0002, 1.0004), (1.0, 2.0), widen=True))
    assert x == pytest.approx((0.95, 1.05), rel=1e-3)
    assert y == (1.0, 2.0)


def test_panels_with_like_ranges_share_one() -> None:
    """A panel of another order of magnitude would be a dot in its own."""
    given = [points((50, 60), (1, 2)), points((52, 64), (1, 200))]
    one, other = map(resolved_limits, share_like_limits(given, "x", "y"))
    assert one[0] == other[0] == (50, 64)
    assert (one[1], other[1]) == ((1, 2), (1, 200))


def test_names_at_the_ends_of_lines_do_not_overlap() -> None:
    ends = [(50.5, "one", "#000000"), (50, "other", "#000000"), (90, "third", "#000000")]
    heights = {name.text: name.y for name in means.line_end_names(ends, (0, 100))}
    assert heights["other"] == pytest.approx(0.5) and heights["third"] == pytest.approx(0.9)
    assert heights["one"] >= heights["other"] + means.LABEL_APART


def test_the_ledger_says_what_stays_decided_if_all_its_comparisons_are_one_family() -> None:
    nothing: tuple[TrialEvidence, ...] = ()
    given = [
        made_up("KS1.1", "supported", nothing),
        made_up("KS1.2", "contradicted", nothing, ledger_verdict="open", comparisons=4),
        made_up("KS1.3", "open", nothing, ledger_verdict="open"),
    ]
    said = ledger_note(given)
    assert "; 2 are decided, by 10 comparisons." in said
    assert said.endswith("1 of them stay as they are; these would be another: KS1.2 (ns2).")


def test_headlines_show_both_sides() -> None:
    """Of each answer two, of other experiments first; of a claim's profiles the first."""

    def answer(claim: str, verdict: str, experiment: str, profile: str = "ns2") -> Answer:
        return made_up(claim, verdict, (TrialEvidence(experiment, (), ""),), profile=profile)

    yes, no = "supported", "contradicted"
    given = [answer(f"KS1.{n}", no, "load") for n in range(4)]
    given += [answer("KS1.0", yes, "load", "modern"), answer("KS2.1", no, "pairs")]
    given += [answer("KS2.2", yes, "pairs"), answer("KS2.3", "open", "pairs")]
    [paper] = papers(given, {}, [])
    told = [each.answer.id for each in headlines(paper.entries)]
    assert told == ["KS2.2", "KS1.0", "KS2.1"]


def test_the_network_is_drawn_with_its_settings() -> None:
    drawn = drawing([dumbbell()])
    for words in ("sender2", "receiver2", "10 Mbit/s, 10 ms", "pfifo 10 packets", "CBR → right"):
        assert f">{words}<" in drawn
    assert drawn.count("<line") == 5


def test_losses_of_flows_stand_at_the_link_that_has_them() -> None:
    scenario = dumbbell()
    one, two, cbr = scenario.flows
    one = dataclasses.replace(one, loss=Loss(gilbert_elliott=GilbertElliott(0.01, 1.0)))
    two = dataclasses.replace(two, loss=Loss(events=LossEvents(0.005)))
    drawn = drawing([dataclasses.replace(scenario, flows=(one, two, cbr))])
    labels = " ".join(re.findall(r'class="halo"[^>]*>([^<]+)', drawn))
    assert labels.count("of the data lost") == 1 and labels.count("1 lost in 200 segments") == 1


def test_no_words_of_a_network_are_above_its_drawing() -> None:
    scenario = EXPERIMENTS["fall-floyd"].scenarios({}, 1, quick=False)[0]
    drawn = drawing([scenario])
    (top,) = map(float, re.findall(r'viewBox="0 (\S+) ', drawn))
    baselines = [float(y) for y in re.findall(r'<text class="halo" x="\S+" y="(\S+)"', drawn)]
    assert min(baselines) - LINE_HEIGHT + 3 >= top


def test_links_that_are_alike_are_said_once() -> None:
    """Between the lines of several pairs there is no room."""
    one = dumbbell()
    access = {"delay_ms": 3, "rate_mbit": 50, "queue": None}
    drawn = drawing([with_network(one, access=access)])
    assert drawn.count(">50 Mbit/s<") == drawn.count(">3 ms<") == 2  # sides
    other = {"sender2-left": LinkSettings(delay_ms=7)}
    drawn = drawing([with_network(one, access=access, links=other)])
    assert drawn.count(">7 ms<") == 1
    assert drawn.count(">3 ms<") == 2  # the other sender's, and once for the receivers


@pytest.mark.parametrize("kind", NetworkName)
def test_every_named_network_has_a_drawing_and_a_round_trip(kind: NetworkName) -> None:
    hosts = 1 if kind is NetworkName.ACCESS_LINK else 2
    made = with_network(dumbbell(), kind=kind, hosts=hosts, access={"delay_ms": 3})
    end = {NetworkName.ACCESS_LINK: "station", NetworkName.STAR: "host2"}.get(kind, "receiver")
    assert end in drawing([made])
    assert path_rtt_ms(made) > made.network.bottleneck.delay_ms


def test_an_axis_bends_where_one_line_presses_the_others_flat() -> None:
    cells = {"reno": (0.1, 0.2, 5.0), "bbr": (3.0, 8.0, 9.0), "vegas": (0.0, 0.1, 4.0)}
    table = pd.DataFrame(
        [(name, load, mean) for name, means in cells.items() for load, mean in enumerate(means)],
        columns=["variant", "load", "mean"],
    )
    assert load_sweep.towers(table, "load")
    assert not load_sweep.towers(table[table["variant"] != "bbr"].query("load > 1"), "load")
    assert not load_sweep.towers(table[table["variant"] == "bbr"], "load")
    assert not load_sweep.towers(table.assign(mean=0.0), "load")


def test_ranges_and_numbers_in_words() -> None:
    assert ranges([3, 1, 2, 7, 9, 10]) == "1-3 7 9-10"
    assert show((-0.5, 0.25)) == "-0.5 … 0.25"
    assert show(float("nan")) == show(None) == ""
    assert exemplary([1.0, 2.0, 3.0, 4.0, 5.0]) == [1.0, 3.0, 5.0]


def test_a_long_foot_is_broken_between_its_parts() -> None:
    assert in_lines(["one", "two", "three"], 9) == "one · two\nthree"
    assert in_lines(["much too long", "b"], 5) == "much too long\nb"


def test_values_of_axes_are_written_out() -> None:
    assert [cases.text(value) for value in (1e6, 10.0, 0.25, "pfifo")] == [
        "1000000",
        "10",
        "0.25",
        "pfifo",
    ]


def test_notes_at_the_edges_are_not_cut() -> None:
    one, other = ["program → receiver1"], [f"workload → host{n}" for n in range(9)]
    text = network_svg("n", [["a"], ["b"]], [Edge("a", "b")], (), {"a": one, "b": other})
    left, top, width, height = map(float, re.findall(r'viewBox="([^"]+)"', text)[0].split())
    notes = re.findall(r'<text class="note" x="([\d.]+)" y="([\d.]+)">([^<]+)<', text)
    assert [words for _, _, words in notes] == [*one, "workload → host0", "and 8 more"]
    for x, y, words in notes:
        assert left <= float(x) - 3.1 * len(words) and float(x) + 3.1 * len(words) <= left + width
        assert float(y) < top + height


def test_words_of_links_that_meet_stand_apart() -> None:
    edges = [
        Edge("a", "r", above="one", below="first", neck=True),
        Edge("b", "r", above="two", below="second", neck=True),
    ]
    text = network_svg("meeting", [["a", "b"], ["r"]], edges, {"r"}, {})
    height = {
        words: float(y)
        for y, words in re.findall(r'<text class="halo" x="[\d.]+" y="([\d.]+)">(\w+)</text>', text)
    }
    assert height["one"] < height["first"] < height["two"] - 12 < height["second"]
