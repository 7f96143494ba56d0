"""JSON files and tables of trials with other values than the testbed writes, or without some.

Whoever reads one gets what was written or one line that names the file; a report counts such a
trial as failed, and shows the others.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import random
from pathlib import Path
from typing import Any

import pytest

from analysis.results.reduction import reductions_of
from analysis.trials import documents
from analysis.trials.documents import read_trial_document
from experiments.catalogue import EXPERIMENTS
from testbed.cli.entry import main
from testbed.errors import TestbedError
from testbed.scenario.call import Call
from testbed.scenario.model import Flow, FlowKind, Scenario
from testbed.scenario.programs import Programs
from testbed.scenario.video import Viewing
from testbed.scenario.workload import Arrivals, Sizes, Workload
from testbed.store.names import (
    CAPACITY_FILE,
    CONFIGURATION_FILE,
    COUNTERS_FILE,
    DROPS_FILE,
    QDISCS_FILE,
    QUEUE_SAMPLES,
    RADIO_FILE,
    RECORD,
    REDUCED,
    REPORT,
    SCENARIO,
    SOCKET_SAMPLES,
    VERDICT_FILE,
    playback_file,
    programs_file,
    report_file,
    sizes_file,
)
from testbed.store.reading import Trial, open_trial
from testbed.store.records import DAMAGED, Record, Status, file_record
from testbed.store.writing import write_json
from tests.robustness.strange_values import MISSING, places, with_value
from tests.scenarios import router
from tests.sealing import seal
from tests.trial_writer import write_trial, written_scenario

SEED, DAMAGES = 20261126, 40
STRANGE = (
    *("NaN", "1e999", "-1", "0", "1" + "0" * 26, "1e12", "true", "null", '"x"', "[]", "{}"),
    *('[["x"]]', '{"x": {}}', '"\\u001b[2J"', '"../../../etc/passwd"', '"inf"', MISSING),
)
LOAD = {"path": "1.m4s", "first_byte_s": 0.6, "last_byte_s": 1.0, "bytes": 5000}
IPERF3 = {
    "start": {"version": "iperf 3.18", "test_start": {"blksize": 1000}},
    "intervals": [
        {"sum": {"start": 0, "end": 5, "bytes": 4000, "retransmits": 1}},
        {"sum": {"start": 5, "end": 10.0, "bytes": 6000, "retransmits": 1}},
    ],
    "end": {
        "sum_sent": {"end": 10, "bytes": 10_000, "retransmits": 2, "bits_per_second": 8000.5},
        "sum_received": {"end": 10, "bytes": 10_000},
    },
}
PLAYBACK = {
    "transport": "https",
    "rule": "throughput",
    "why": "",
    "page_s": 0.5,
    "startup_s": 1.0,
    "loaded_s": None,
    "ended_s": None,
    "page": [LOAD],
    "stalls": [[5.0, 7.0]],
    "segments": [{"bit_per_s": 330_000, "load": LOAD}],
    "levels": [[1.0, 4.0], [5.0, 0.0]],
    "sums": {"stalls": 1, "stall_s": 2.0, "switches": 0, "mean_bit_per_s": 3e5, "bytes": 5000},
}
PORT = {
    "connections": 1,
    "resets": 0,
    "control": "reno",
    "min_rtt_us": 100,
    "window_bytes": 9,
    "sent_bytes": 9000,
    "segments": 9,
    "retransmissions": 1,
}
COUNTERS = {"TcpRetransSegs": 2, "TcpOutSegs": 20, "TcpInSegs": 20, "IpExtInOctets": 20_000}
EVERYWHERE = {
    COUNTERS_FILE: {"sender1": COUNTERS, "receiver": COUNTERS},
    CONFIGURATION_FILE: {
        "begin": {"router: mtu of router-eth0": "1500"},
        "end": {"router: mtu of router-eth0": "1500"},
    },
    DROPS_FILE: {"tcp": {"dropped": 1, "interface": "router-eth0", "undecided": 0}},
    CAPACITY_FILE: {"router-eth0": {"rates": [[0.0, 0.1], [5.0, 0.2]]}},
    RADIO_FILE: {
        "signal_dbm": -60,
        "joined": True,
        "seconds": 12.0,
        "others": {"air_s": 1.0},
        "radios": [{"lost": 0}],
    },
    QDISCS_FILE: {
        "wires": [
            {
                "kind": "netem",
                "handle": "1:",
                "dev": "a",
                "packets": 9,
                "drops": 0,
                "requeues": 0,
                "options": {"reorder": {"reorder": 0.1}},
            }
        ],
        "router": [
            {
                "kind": "codel",
                "handle": "30:",
                "dev": "router-eth0",
                "packets": 9,
                "drops": 1,
                "requeues": 0,
                "pdrop": 0,
                "tins": [{"ecn_mark": 0}],
            }
        ],
    },
}
PROGRAM = {"status": 1, "was_ended": False, "early": False}
OF_KINDS: dict[FlowKind, tuple[dict[str, Any], dict[str, Any]]] = {  # the flow's fields, and files
    FlowKind.TCP: (
        {},
        {report_file("tcp", "client"): IPERF3, report_file("tcp", "server"): IPERF3},
    ),
    FlowKind.CALL: (
        {"call": Call(), "variant": None},
        {report_file("tcp", "server"): {"bytes": 9}},
    ),
    FlowKind.COMMAND: (
        {"command": Programs(("true",), ("true",))},
        {programs_file("tcp"): {"client": PROGRAM, "server": PROGRAM}},
    ),
    FlowKind.VIDEO: (
        {"video": Viewing()},
        {
            playback_file("tcp"): PLAYBACK,
            sizes_file("tcp"): {"1.m4s": 5000},
            report_file("tcp", "server"): {"lost_packets": 1},
        },
    ),
    FlowKind.WORKLOAD: (
        {"workload": Workload(Arrivals(per_s=1), Sizes(), count=2)},
        {
            report_file("tcp", "client"): {"real_zero_ns": 9, "transfers": [[1, 2, 3, 4]]},
            report_file("tcp", "server"): {"ports": [PORT]},
        },
    ),
}
SHAPES: dict[str, tuple[Any, Any]] = {  # name → shape and a document of it
    "iperf3": (documents.Iperf3Report, IPERF3),
    "playback": (documents.PlayerReport, PLAYBACK),
    "sizes": (documents.FileSizes, {"1.m4s": 5000}),
    "call": (documents.CallReport, {"bytes": 9}),
    "quic": (documents.QuicReport, {"lost_packets": 1}),
    "programs": (documents.ProgramRecords, {"client": PROGRAM}),
    "transfers": (documents.TransferLog, {"real_zero_ns": 9, "transfers": [[1, 2, 3, 4]]}),
    "served": (documents.ServedPorts, {"ports": [PORT]}),
    "counters": (documents.Counters, EVERYWHERE[COUNTERS_FILE]),
    "configuration": (documents.Configuration, EVERYWHERE[CONFIGURATION_FILE]),
    "droppers": (documents.Droppers, EVERYWHERE[DROPS_FILE]),
    "capacities": (documents.Capacities, EVERYWHERE[CAPACITY_FILE]),
    "traces": (documents.Capacities, {"router-eth0": {"trace": "1 2*3"}}),
    "disciplines": (documents.ShownDisciplines, EVERYWHERE[QDISCS_FILE]),
    "radio": (documents.Medium, EVERYWHERE[RADIO_FILE]),
}


def write_whole(folder: Path, kind: FlowKind) -> Path:
    """Write a trial whose first flow is of a kind, with every document that it can have."""
    fields, files = OF_KINDS[kind]
    scenario: Scenario = written_scenario()
    flow: Flow = dataclasses.replace(scenario.flows[0], kind=kind, **fields)
    flows = (flow, *scenario.flows[1:])
    scenario = dataclasses.replace(scenario, flows=flows, label=str(kind))
    path = write_trial(folder / str(kind), scenario=scenario, samples=True)
    for name, content in {**EVERYWHERE, **files}.items():
        write_json(path, name, content)
    return seal(path)


def with_document(folder: Path, text: str) -> Trial:
    """A trial that has nothing but one document."""
    (folder / "file.json").write_text(text)
    record = Record(Status.OK, files={"file.json": file_record(folder / "file.json")})
    return Trial(folder, router(), record)


@pytest.mark.parametrize("name", SHAPES)
def test_each_place_of_a_document_is_read_or_refused_in_a_line(tmp_path: Path, name: str) -> None:
    """What stands in a needed field's place, and is not of its type, is named with the field."""
    kind, document = SHAPES[name]
    whole = with_document(tmp_path, json.dumps(document))
    assert read_trial_document(whole, "file.json", kind) is not None
    refused = 0
    for number in range(len(list(places(document)))):
        for strange in STRANGE:
            trial = with_document(tmp_path, with_value(document, number, strange))
            try:
                read_trial_document(trial, "file.json", kind)
            except TestbedError as error:
                refused += 1
                assert error.message.startswith(f"{tmp_path / 'file.json'}: damaged: ")
                assert error.message.isprintable() and len(error.message) < 500
    assert refused >= 8


@pytest.mark.parametrize("content", ["", "x", "2 1", "0", "1*0", "../../../etc/passwd"])
def test_a_trace_with_a_fault_is_refused_in_a_line(tmp_path: Path, content: str) -> None:
    trial = with_document(tmp_path, json.dumps({"router-eth0": {"trace": content}}))
    with pytest.raises(TestbedError, match=r"json: damaged: .*trace: expected a trace, got '"):
        read_trial_document(trial, "file.json", documents.Capacities)


def test_what_was_not_left_or_is_no_json_is_none(tmp_path: Path) -> None:
    """A program that was ended left no report, or a part of it; what came later is not read."""
    (tmp_path / "later.json").write_text('{"start": {}}')
    part = with_document(tmp_path, '{"start": {')
    assert read_trial_document(part, "file.json", documents.Iperf3Report) is None
    assert read_trial_document(part, "none.json", documents.Iperf3Report) is None
    assert read_trial_document(part, "later.json", documents.Iperf3Report) is None


def test_a_document_that_is_not_what_was_recorded_is_damaged(tmp_path: Path) -> None:
    trial = with_document(tmp_path, '{"start": {}}')
    (tmp_path / "file.json").write_text('{"end": {} }')
    with pytest.raises(TestbedError, match="damaged: 12 bytes, of 13 that the trial recorded"):
        read_trial_document(trial, "file.json", documents.Iperf3Report)
    (tmp_path / "file.json").write_text('{"start" :{}}')
    with pytest.raises(TestbedError, match="damaged: it is not what the trial recorded"):
        read_trial_document(trial, "file.json", documents.Iperf3Report)
    (tmp_path / "file.json").unlink()
    with pytest.raises(TestbedError, match="missing: the trial recorded it"):
        read_trial_document(trial, "file.json", documents.Iperf3Report)


def damage(trial: Path, dice: random.Random) -> str:
    """Put something strange at a place of one of the trial's files; return what and where."""
    names = [*trial.rglob("*.json"), trial / SOCKET_SAMPLES.file, trial / QUEUE_SAMPLES.file]
    file, strange = dice.choice(sorted(set(names))), dice.choice(STRANGE)
    if file.suffix == ".json":
        document = json.loads(file.read_text())
        number = dice.randrange(len(list(places(document))))
        file.write_text(with_value(document, number, strange))
    else:
        rows = [line.split(",") for line in file.read_text().splitlines()]
        row = dice.choice(rows)
        row[dice.randrange(len(row))] = (strange or "").replace(",", ";")
        file.write_text("\n".join(map(",".join, rows)) + "\n")
    return f"{strange} in {file.name}"


@pytest.mark.slow(but=1)
@pytest.mark.parametrize("kind", OF_KINDS, ids=str)
def test_a_damaged_trial_is_reduced_or_fails_in_a_line(tmp_path: Path, kind: FlowKind) -> None:
    """Numbers from a fixed seed: the same damages each time."""
    dice = random.Random(f"{SEED} {kind}")
    trial = write_whole(tmp_path, kind)
    (good,) = reductions_of([open_trial(trial)])
    assert good.trial.record.status == "ok" and good.verdict is not None
    assert not good.is_damaged
    files = {path: path.read_bytes() for path in trial.rglob("*") if path.is_file()}
    failed = 0
    for _ in range(DAMAGES):
        for path, content in files.items():
            path.write_bytes(content)
        what = damage(trial, dice)
        with contextlib.suppress(*DAMAGED):  # of its record
            seal(trial)
        if not what.endswith(VERDICT_FILE):
            (trial / REDUCED).unlink()
        try:
            (reduction,) = reductions_of([open_trial(trial)])
            assert reduction.verdict is None or reduction.verdict.checks, what
        except TestbedError as error:
            assert error.message.startswith(str(trial)), what
            continue
        failed += reduction.is_damaged
    assert failed >= DAMAGES // 10


def test_damaged_trials_stop_no_report(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that cannot be opened are left out, those that cannot be reduced are invalid."""
    results = tmp_path / "results"
    for kind in OF_KINDS:
        write_whole(results, kind)
    (results / "call" / SCENARIO).write_text('{"flows": 1}')
    seal(results / "call")
    (results / "video" / RECORD).write_text('{"status": "ok", "seed": "x"}')
    write_json(results / "command", COUNTERS_FILE, {"sender1": []})
    seal(results / "command")
    monkeypatch.chdir(tmp_path)
    assert main(["report", "results"]) == 0
    said = " ".join(capsys.readouterr().err.split())
    assert "warning: left out: results/call/scenario.json: experiment: missing" in said
    assert "warning: left out: results/video/trial.json: damaged: seed: 'x'" in said
    assert "command: results/command/samples/counters.json: damaged: " in said
    page = (results / REPORT).read_text()
    assert "3 ok" in page and "counters.json: damaged: " in page and "left out: " in page


@pytest.mark.slow(but=1)
@pytest.mark.parametrize("row", ["x,tcp", "0.1,tcp,established,open,1e300" + "," * 17])
def test_samples_that_were_changed_after_the_reduction_stop_no_report(
    tmp_path: Path, row: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """What was packed of them then is there; the page and the terminal say what is not."""
    for name in ("good", "bad"):
        write_trial(tmp_path / "x" / name, samples=True)
    assert main(["report", str(tmp_path / "x")]) == 0
    file = tmp_path / "x" / "bad" / SOCKET_SAMPLES.file
    file.write_text(f"{file.read_text()}{row}\n")
    assert main(["report", str(tmp_path / "x")]) == 0
    page = (tmp_path / "x" / REPORT).read_text()
    assert "2 ok" in page
    sizes = {path.name: path.stat().st_size for path in (tmp_path / "x").glob("*-series/*.js")}
    assert 0 < sizes["t1.js"] == sizes["t2.js"]
    said = " ".join(capsys.readouterr().err.split())
    assert "warning: bad: no timeline: " in said and "bad: no timeline: " in page


@pytest.mark.slow
@pytest.mark.parametrize("style", ["page", "paper"])
def test_damaged_samples_stop_no_figures_of_others(
    tmp_path: Path, style: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """An experiment's own figures end at a trial's damaged samples, and the others' are drawn."""
    plain = written_scenario()
    (first, *_) = EXPERIMENTS["router-bottleneck"].scenarios({}, 1, True)
    own = dataclasses.replace(plain, experiment=first.experiment, axes=first.axes)
    write_trial(tmp_path / "x" / "bad", scenario=own, samples=True)
    write_trial(tmp_path / "x" / "good", samples=True)
    assert main(["report", str(tmp_path / "x")]) == 0
    (tmp_path / "x" / "bad" / SOCKET_SAMPLES.file).write_text("")
    capsys.readouterr()
    out = tmp_path / "page" / ("figures" if style == "paper" else REPORT)
    command = ["report", str(tmp_path / "x"), "--style", style, "--out", str(out)]
    assert main(command, EXPERIMENTS) == 0
    said = " ".join(capsys.readouterr().err.split())
    assert "warning: router-bottleneck: not all figures: " in said and "sockets.csv" in said
    assert any("timeline" in path.name for path in out.parent.rglob("*.csv"))


def test_a_report_of_nothing_but_damaged_trials_names_the_first(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_trial(tmp_path / "x" / "trial")
    (tmp_path / "x" / "trial" / RECORD).write_text("{}")
    assert main(["report", str(tmp_path / "x")]) == 1
    assert f"{RECORD}: damaged: 'status'" in " ".join(capsys.readouterr().err.split())
