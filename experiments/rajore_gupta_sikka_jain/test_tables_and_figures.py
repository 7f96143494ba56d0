"""What the report shows of video-access, from tables made by hand."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from analysis.captures.lengths import packet_lengths
from analysis.captures.tcp import WIRESHARK_MARKS
from analysis.figures.figure import Figure, PointSeries, ShadedRange
from analysis.figures.general.presentation import tables
from analysis.figures.sheet import Sheet, median_cell
from analysis.metrics.digest import VIDEO_ERRORS, VIDEO_PACKETS, lengths_of, video_parts
from analysis.metrics.metric_rows import with_axes
from analysis.report.network_drawing import drawing
from analysis.results.experiment_results import ExperimentResults
from analysis.trials.packets import FlowPackets, FlowTables
from experiments.rajore_gupta_sikka_jain import figures
from experiments.rajore_gupta_sikka_jain import video_for_tests as made
from experiments.rajore_gupta_sikka_jain.printed import RGSJ_LENGTHS
from experiments.rajore_gupta_sikka_jain.selection import NETWORK_NAMES, SLOW_UP
from experiments.rajore_gupta_sikka_jain.video_access import EXPERIMENT
from testbed.store.names import FLOWS_FOLDER, RECORD, SCENARIO
from testbed.store.reading import Trial, open_trial
from testbed.store.records import Record, Status
from tests.scenarios import router
from tests.sealing import seal

SECOND_NS = 10**9
CONGESTED = "wifi-congested-{}-{}-sender-{}-modern-900-seed1"
PLAYED = (("cubic", "https", "240p"), ("reno", "quic", "240p"), ("reno", "quic", "buffer"))


def packets() -> FlowTables:
    """Three segments in a second, one with an error, and an acknowledgement two seconds later."""
    rows = pd.DataFrame(
        {
            "frame": [1, 2, 3, 4],
            "time_ns": [SECOND_NS, SECOND_NS + 1000, SECOND_NS + 2000, 3 * SECOND_NS + 1],
            "length": [1514, 1514, 700, 66],
            **dict.fromkeys(WIRESHARK_MARKS, False),
        }
    )
    rows["retransmission"] = [False, True, False, False]
    rows["window_update"] = [False, False, False, True]
    return FlowPackets(rows.iloc[:3], rows.iloc[3:])


def digest_of(trial: str) -> pd.DataFrame:
    parts = [
        pd.DataFrame({"what": what, "x": x, "value": value})
        for what, x, value in video_parts(packets(), with_errors=True)
    ]
    return pd.concat(parts, ignore_index=True).assign(trial=trial, flow="video")


def played(folder: Path, trial: str, rule: str) -> Trial:
    """A trial whose player left a report."""
    path = folder / trial
    (path / FLOWS_FOLDER).mkdir(parents=True)
    (path / SCENARIO).write_text(router().to_json())
    (path / RECORD).write_text(Record(Status.OK).to_json())
    rate = 600_000 if rule == "buffer" else 330_000
    report = {
        "transport": "https",
        "rule": rule,
        "why": "",
        **dict.fromkeys(("page_s", "startup_s", "loaded_s", "ended_s")),
        "page": [],
        "levels": [[10.0, 0.0], [10.0, 4.0], [14.0, 0.0], [20.0, 4.0], [24.0, 0.0]],
        "stalls": [[14.0, 20.0]],
        "segments": [
            {"bit_per_s": rate, "load": {"path": "", "last_byte_s": last, "bytes": 0}}
            for last in (10.0, 20.0, None)
        ],
        "sums": {"stalls": 1, "stall_s": 6.0, "switches": 0, "mean_bit_per_s": rate, "bytes": 0},
    }
    (path / FLOWS_FOLDER / "video.json").write_text(json.dumps(report))
    return open_trial(seal(path))


def results_of(
    trials: tuple[Trial, ...], rows: pd.DataFrame, good: pd.DataFrame, digest: pd.DataFrame
) -> ExperimentResults:
    return ExperimentResults(
        "video-access", "guest", trials, rows, good, digest, definition=EXPERIMENT
    )


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> ExperimentResults:
    table = made.video_metrics(seeds=2)
    other = table[table["trial"] == CONGESTED.format("reno", "quic", "240p")].copy()
    for name in ("trial", "axes"):
        other[name] = other[name].str.replace("240p", "buffer")
    table = pd.concat((table, other), ignore_index=True)
    table = table.assign(kind="video", verdict="", video_mbps=0.33, switches=3.0)
    rows = with_axes(table.assign(number=table["trial"].factorize()[0] + 1))
    folder = tmp_path_factory.mktemp("played")
    trials = tuple(
        played(folder, CONGESTED.format(variant, transport, rule), rule)
        for variant, transport, rule in PLAYED
    )
    seen = rows.loc[rows["seed"] == 1, "trial"]
    digest = pd.concat([digest_of(trial) for trial in seen], ignore_index=True)
    return results_of(trials, rows, rows, digest)


@pytest.fixture(scope="module")
def drawn(results: ExperimentResults) -> dict[str, Figure]:
    return {
        figure.stem.removeprefix("video-access-guest-"): figure for figure in figures.draw(results)
    }


def texts(sheet: Sheet) -> list[list[str]]:
    return [[cell.words for cell in row] for row in sheet.rows]


def sheet_of(results: ExperimentResults, start: str) -> Sheet:
    return next(sheet for title, sheet in tables(results) if title.startswith(start))


def test_the_figures(drawn: dict[str, Figure]) -> None:
    assert list(drawn) == ["load", "waits", "setting", "packets", "playback"]
    assert "WiFi, good: 109 s (TCP veno) to 124 s (TCP vegas)" in drawn["load"].caption
    assert set(drawn["load"].data["network"]) == set(made.NETWORKS)
    assert "TCP bbr" in set(drawn["load"].data["line"])
    assert "WiFi, congested: stalled for 0.0 s (QUIC" in drawn["waits"].caption


def test_the_papers_numbers_stand_beside_ours(drawn: dict[str, Figure]) -> None:
    panels = {panel.title: panel for panel in drawn["load"].all_panels}
    crosses = {
        panel.y.names[np.ravel(mark.y).astype(int)[0]]: np.ravel(mark.x)[0]
        for panel in (panels["WiFi, good"], panels["WiFi, weak"])
        for mark in panel.marks
        if isinstance(mark, PointSeries) and mark.marker == "x"
    }
    assert crosses == {"TCP veno": 109, "TCP cubic": 122, "TCP vegas": 124}
    hall, shaped = (
        [
            m
            for p in drawn["waits"].all_panels
            if p.title == name
            for m in p.marks
            if isinstance(m, ShadedRange)
        ]
        for name in ("WiFi, congested", "Ethernet, shaped")
    )
    assert [(mark.start, mark.stop) for mark in hall] == [(60, 120)] and not shaped


def test_whose_setting_is_drawn_seed_by_seed(
    results: ExperimentResults, drawn: dict[str, Figure]
) -> None:
    data = drawn["setting"].data
    good = data[(data["axis_network"] == "wifi-good") & (data["setting"] == "sender")]
    means = good.set_index("axis_variant")["mean"]
    assert means.sum() == pytest.approx(0, abs=1e-6)
    assert means["veno"] == pytest.approx(109 - (109 + 122 + 124) / 3, abs=0.3)
    alone = results.good[results.good["axis_setting"] == "sender"]
    others = ExperimentResults(
        "video-access",
        "guest",
        results.trials,
        alone,
        alone,
        results.digest,
        definition=EXPERIMENT,
    )
    assert not any(each.stem.endswith("setting") for each in figures.draw(others))


def test_a_seed_without_one_of_the_three_is_not_drawn(results: ExperimentResults) -> None:
    rows = results.good.copy()
    first = (rows["seed"] == 1) & (rows["axis_variant"] == "vegas")
    rows.loc[first, "loaded_s"] = np.nan
    less = ExperimentResults(
        "video-access", "guest", results.trials, rows, rows, results.digest, definition=EXPERIMENT
    )
    [setting] = [each for each in figures.draw(less) if each.stem.endswith("setting")]
    assert set(setting.data["n"]) == {1}


def test_packets_and_errors_by_the_second(drawn: dict[str, Figure]) -> None:
    own = drawn["packets"].data.query("network == 'shaped' and variant == 'veno'")
    assert own[VIDEO_PACKETS].tolist() == [3, 0, 1]
    assert own[VIDEO_ERRORS].tolist() == [1, 0, 0]  # a window update is no error
    assert own["time_s"].tolist() == [0.5, 1.5, 2.5]


def test_a_playback_is_of_the_players_report(drawn: dict[str, Figure]) -> None:
    data = drawn["playback"].data
    assert set(zip(data["rule"], data["over"], strict=True)) == {
        ("240p", "TCP (cubic)"),
        ("240p", "QUIC (reno)"),
        ("buffer", "QUIC (reno)"),
    }
    rates = data[data["what"] == "bitrate_mbps"]
    assert rates.groupby("rule")["value"].max().to_dict() == {"240p": 0.33, "buffer": 0.6}
    assert len(rates[rates["rule"] == "buffer"]) == 2  # one segment never came
    assert (
        "240p over TCP (cubic): playback starts after 90 s, 20 s stalled"
        in drawn["playback"].caption
    )


def test_lengths_come_out_of_the_digest_as_they_went_in() -> None:
    found, both = lengths_of(digest_of("one")), packets()
    rows = pd.concat((both.data, both.acks))
    times = rows["time_ns"].to_numpy()
    asked = packet_lengths(times, rows["length"].to_numpy(), times[0])
    for name in asked.columns.drop("lengths"):
        np.testing.assert_array_equal(found[name], asked[name].astype("float64"))


def test_packet_lengths_as_wireshark_prints_them(results: ExperimentResults) -> None:
    sheet = sheet_of(results, "Packet lengths over TCP (cubic)")
    whole, *buckets = texts(sheet)
    assert whole[:4] == ["Packet Lengths", "4", "3682", "948.50"]
    assert [line[0] for line in buckets][:2] == ["0-19", "20-39"]
    assert buckets[-1][0] == "5120 and greater"
    assert buckets[2][1:3] == ["1", "1809"] and buckets[7][1] == "2"
    assert [line[2] for line in buckets] == [str(r.count) for r in RGSJ_LENGTHS["https"][1:]]
    assert sheet_of(results, "Packet lengths over QUIC (cubic)")


def test_load_times_beside_the_papers(results: ExperimentResults) -> None:
    lines = texts(sheet_of(results, "Time to load"))
    good = {(line[1], line[2], line[3]): line for line in lines if line[0] == "WiFi, good"}
    own = good["TCP", "veno", "laptop"]
    assert own[4] == "2" and own[5].startswith("109") and own[6] == "109"
    assert own[8] == "6" and own[10] == "186"
    assert good["TCP", "bbr", "server"][6] == "–"
    assert good["QUIC", "cubic", "laptop"][6] == "–"  # the paper has none over QUIC


def test_shaped_run_by_run(results: ExperimentResults) -> None:
    sheet = sheet_of(results, "Shaped Ethernet")
    assert [head.words for head in sheet.heads][3:7] == ["1", "2", "median", "median, paper"]
    line = next(line for line in texts(sheet) if line[0] == "retransmitted bytes")
    assert line[1:3] == ["vegas", "laptop"]
    assert line[-2:] == ["16852", "11621, 43003, 16852, 37958, 14992"]


def test_the_lecture_hall_with_either_radio(results: ExperimentResults) -> None:
    lines = {tuple(line[:4]): line for line in texts(sheet_of(results, "Congested"))}
    own = lines["802.11", "TCP", "veno", "server"]
    assert own[7] == "60 to 120" and own[11] == "re-buffers, least" and own[14] == "100"
    quic = lines["802.11", "QUIC", "reno", "server"]
    assert quic[7] == "40 to 50 sooner" and quic[12] == "–" and quic[14] == "12.5"
    rows = results.good.copy()
    rows["axis_network"] = rows["axis_network"].replace("shaped", SLOW_UP)
    both = ExperimentResults(
        "video-access", "guest", results.trials, rows, rows, results.digest, definition=EXPERIMENT
    )
    radios = [line[0] for line in texts(sheet_of(both, "Congested"))]
    assert list(dict.fromkeys(radios)) == ["netem, 0.01 Mbit/s up", "802.11"]


def test_players_that_choose(results: ExperimentResults) -> None:
    (line,) = texts(sheet_of(results, "Players"))
    assert line[:6] == ["WiFi, congested", "QUIC", "reno", "server", "1", "buffer"]
    assert line[6] == "0.33" and line[9] == "0"


def test_signals(results: ExperimentResults) -> None:
    lines = texts(sheet_of(results, "Signal strength"))
    own = next(line for line in lines if line[:4] == ["weak", "TCP", "cubic", "laptop"])
    assert own[5].startswith("33") and own[6] == "33" and own[8] == "12" and own[10] == "112"


def test_spreads(results: ExperimentResults) -> None:
    lines = {line[0]: line for line in texts(sheet_of(results, "Whose congestion"))}
    assert list(lines) == [NETWORK_NAMES[name] for name in made.NETWORKS]  # netem has one setting
    assert lines["Ethernet"][1] == "2" and lines["Ethernet"][5].startswith("18.")


def test_medians() -> None:
    assert median_cell([3.0, 1.0, 2.0]).words == "2.0 (1.0–3.0)"
    assert median_cell([2.0, 2.0]).words == "2.0"
    assert median_cell([float("nan")]).words == "–"


def test_networks_that_differ_are_said_to() -> None:
    points = list(EXPERIMENT.scenarios({}, 1, quick=False))
    drawn = drawing(points)
    assert ">internet<" not in drawn and ">10 ms<" in drawn  # the server's side is all the same
    assert ">7 settings<" in drawn and ">2 settings<" in drawn and ">2 queues<" in drawn
    ours, netem = (
        drawing([each for each in points if each.axes["network"] == name])
        for name in ("wifi-congested", "netem-congested")
    )
    assert ">-80 dBm<" in ours and "50 % others" in ours
    assert ">1.89/0.01 Mbit/s<" in netem and "% lost" in netem
