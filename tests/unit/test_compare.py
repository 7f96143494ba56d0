"""`testbed compare`: what matches, what is said of it, and the exit status."""

from __future__ import annotations

import dataclasses
import json
import math
import shutil
from collections.abc import Mapping
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest

from analysis.results.reduction import Reduction, typed_flows
from analysis.statistics import comparison as module
from analysis.statistics.comparison import (
    Agreement,
    FolderComparison,
    compare_results,
    judge,
)
from analysis.statistics.comparison_table import LONG_TABLE, closing_lines, report_table
from analysis.statistics.tolerances import TOLERANCES, Tolerance, choose_tolerances
from experiments.command import main
from testbed.errors import TestbedError, UsageError
from testbed.machine import json_files
from testbed.scenario.model import CapturePoint, Scenario
from testbed.store.reading import Trial
from testbed.store.records import CaptureRecord, Record, Status
from tests.scenarios import router
from tests.sealing import seal
from tests.trial_writer import ROLES, write_trial, written_scenario

NAN = math.nan
RTT = {"rtt_mean_ms": Tolerance(absolute=1.0)}
VALUES = "values.json"  # in a trial's directory: what its reduction is to give
RECEIVER_ONLY = tuple(name for name in ROLES if name != "receiver-eth0")


@pytest.fixture
def by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """A trial's numbers are those that `put` wrote: no capture is read."""

    def reduced(trial: Trial) -> Reduction:
        values = json.loads((trial.path / VALUES).read_text())
        flows = pd.DataFrame([{"flow": flow.name, **values} for flow in trial.scenario.flows])
        return Reduction(trial, {"flows": pa.Table.from_pandas(typed_flows(flows))})

    monkeypatch.setattr(module, "reductions_of", lambda trials: [reduced(each) for each in trials])


def put(
    folder: Path,
    *,
    seed: int = 1,
    scenario: Scenario | None = None,
    status: Status = Status.OK,
    engine: str = "guest",
    digest: str = "",
    **values: float,
) -> Path:
    """A trial in a results folder: its scenario with this seed, and its numbers."""
    own = dataclasses.replace(scenario or router(), seed=seed)
    digest = digest or f"{folder.name} {seed} {engine}"
    capture = CaptureRecord("captures/x.pcapng", "n", "x", ("receiver:tcp",), 144, 1, 0, digest)
    record = Record(status, engine=engine, seed=seed, captures=(capture,))
    path = folder / f"{own.name}-{engine}"
    write_trial(path, scenario=own, record=record, without=tuple(ROLES))
    (path / VALUES).write_text(json.dumps(values))
    return path


def compared(tmp_path: Path, tolerances: Mapping[str, Tolerance] = RTT) -> FolderComparison:
    return compare_results(tmp_path / "a", tmp_path / "b", tolerances)


def both(tmp_path: Path, a: list[float], b: list[float], first_seed_of_b: int = 1) -> None:
    """Trials of seeds 1, 2, … with these RTTs."""
    for seed, value in enumerate(a, 1):
        put(tmp_path / "a", seed=seed, rtt_mean_ms=value)
    for seed, value in enumerate(b, first_seed_of_b):
        put(tmp_path / "b", seed=seed, rtt_mean_ms=value)


@pytest.mark.parametrize(
    ("difference", "low", "high", "verdict"),
    [
        (0.5, 0.2, 0.8, Agreement.WITHIN),
        (1.0, 1.0, 1.0, Agreement.WITHIN),  # at the tolerance
        (0.5, 0.0, 1.2, Agreement.WITHIN_OPEN),
        (-0.5, -1.2, 0.2, Agreement.WITHIN_OPEN),
        (1.5, 0.9, 2.1, Agreement.BEYOND_OPEN),
        (-1.5, -2.1, -0.9, Agreement.BEYOND_OPEN),
        (1.5, 1.2, 1.8, Agreement.BEYOND),
        (-1.5, -1.8, -1.2, Agreement.BEYOND),
        (0.5, NAN, NAN, Agreement.WITHIN),  # one trial a side
        (-1.5, NAN, NAN, Agreement.BEYOND),
    ],
)
def test_verdicts(difference: float, low: float, high: float, verdict: Agreement) -> None:
    assert judge(difference, low, high, 1.0) is verdict


def test_what_speaks_against_agreement() -> None:
    against = {Agreement.BEYOND, Agreement.BEYOND_OPEN, Agreement.ONE_SIDED}
    assert {verdict for verdict in Agreement if not verdict.agrees} == against


def test_tolerances_are_amounts_or_parts_of_the_first_mean() -> None:
    assert Tolerance(0.02, 0.5).of(-100) == 2
    assert Tolerance(0.02, 0.5).of(1) == 0.5
    assert str(Tolerance(0.02, 0.5)) == "2 % or 0.5"
    assert str(Tolerance(0.02)) == "2 %" and str(Tolerance()) == "0"


def test_every_default_has_its_reason() -> None:
    assert TOLERANCES["goodput_mbps"].of(1) == 0.02 and TOLERANCES["jain"].of(1) == 0.02
    assert all(each.reason for each in TOLERANCES.values())
    assert choose_tolerances("", []) == TOLERANCES


def test_tolerances_of_the_command_line() -> None:
    chosen = choose_tolerances("share,rtt_min_ms,jain", ["share=5%,jain=0.5"])
    assert list(chosen) == ["share", "rtt_min_ms", "jain"]
    assert chosen["share"] == Tolerance(relative=0.05)
    assert chosen["jain"] == Tolerance(absolute=0.5)
    added = choose_tolerances("", ["rtt_min_ms=0"])
    assert set(added) == {*TOLERANCES, "rtt_min_ms"}


@pytest.mark.parametrize(
    ("metric", "tolerance", "message"),
    [
        ("goodput", [], "no metric 'goodput'"),
        ("seed", [], "no metric 'seed'"),
        ("", ["share"], "not KEY=VALUE"),
        ("", ["share=much"], "not KEY=VALUE"),
        ("", ["share=-1"], "not KEY=VALUE"),
        ("", ["share=nan"], "not KEY=VALUE"),
        ("", ["share=inf"], "not KEY=VALUE"),
        ("", ["shore=1"], "no metric 'shore'"),
        ("share", ["jain=1"], "not compared"),
    ],
)
def test_wrong_usage(metric: str, tolerance: list[str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        choose_tolerances(metric, tolerance)


@pytest.mark.usefixtures("by_hand")
def test_cells_are_compared_seed_by_seed(tmp_path: Path) -> None:
    """The seeds spread far more than what lies between the two sides."""
    both(tmp_path, [10, 20, 30], [10.5, 20.6, 30.4])
    (line,) = compared(tmp_path).metrics
    assert line.agreement is Agreement.WITHIN and line.trials == "3"
    assert (line.a, line.b, line.difference) == pytest.approx((20, 20.5, 0.5))
    assert (line.low, line.high) == pytest.approx((0.5 - 0.248, 0.5 + 0.248), abs=1e-3)


@pytest.mark.usefixtures("by_hand")
def test_other_seeds_are_compared_as_two_samples(tmp_path: Path) -> None:
    both(tmp_path, [10, 20, 30], [10.5, 20.6, 30.4, 20.5], first_seed_of_b=11)
    report = compared(tmp_path)
    (line,) = report.metrics
    assert line.agreement is Agreement.WITHIN_OPEN and line.trials == "3 + 4"
    assert line.high - line.low > 20
    assert len(report.only_a) == 3 and len(report.only_b) == 4


@pytest.mark.usefixtures("by_hand")
def test_a_single_shared_seed_is_no_pairing(tmp_path: Path) -> None:
    both(tmp_path, [10, 20, 30], [30, 10, 20], first_seed_of_b=3)
    assert [line.trials for line in compared(tmp_path).metrics] == ["3 + 3"]


@pytest.mark.usefixtures("by_hand")
def test_seeds_of_one_side_are_listed_and_left_out(tmp_path: Path) -> None:
    both(tmp_path, [10, 20, 999], [10, 20])
    report = compared(tmp_path)
    assert [line.agreement for line in report.metrics] == [Agreement.EQUAL]
    assert report.agrees and len(report.only_a) == 1 and "seed3" in report.only_a[0]
    assert any(line.startswith("only in A: ") for line in closing_lines(report))


@pytest.mark.usefixtures("by_hand")
def test_a_difference_beyond_its_tolerance(tmp_path: Path) -> None:
    both(tmp_path, [10, 20, 30], [12.5, 22.6, 32.4])
    report = compared(tmp_path)
    assert report.metrics[0].agreement is Agreement.BEYOND and not report.agrees
    assert "do not agree: 1 difference beyond" in list(closing_lines(report))[-1]


@pytest.mark.usefixtures("by_hand")
def test_equal_means_of_other_numbers_are_not_equal(tmp_path: Path) -> None:
    both(tmp_path, [10, 20], [20, 10])
    assert compared(tmp_path).metrics[0].agreement is Agreement.WITHIN_OPEN


@pytest.mark.usefixtures("by_hand")
def test_a_metric_that_one_side_lacks(tmp_path: Path) -> None:
    both(tmp_path, [10, 20], [10, NAN])
    report = compared(tmp_path)
    assert report.metrics[0].agreement is Agreement.ONE_SIDED and not report.agrees


@pytest.mark.usefixtures("by_hand")
def test_a_metric_that_neither_has(tmp_path: Path) -> None:
    both(tmp_path, [NAN], [NAN])
    report = compared(tmp_path)
    assert not report.metrics and not report.agrees


@pytest.mark.usefixtures("by_hand")
def test_identical_captures_are_one_line(tmp_path: Path) -> None:
    for side in "ab":
        for seed in (1, 2):
            put(tmp_path / side, seed=seed, digest=f"of {seed}", rtt_mean_ms=1, share=0.5)
    report = compared(tmp_path, TOLERANCES)
    assert [(line.agreement, line.trials) for line in report.metrics] == [
        (Agreement.IDENTICAL, "2")
    ]
    assert (report.identical, report.matched) == (2, 2) and report.agrees


@pytest.mark.usefixtures("by_hand")
def test_one_other_capture_is_enough(tmp_path: Path) -> None:
    put(tmp_path / "a", digest="of 1", rtt_mean_ms=1)
    put(tmp_path / "a", seed=2, digest="of 2", rtt_mean_ms=1)
    put(tmp_path / "b", digest="of 1", rtt_mean_ms=1)
    put(tmp_path / "b", seed=2, digest="else", rtt_mean_ms=1)
    report = compared(tmp_path)
    assert [line.agreement for line in report.metrics] == [
        Agreement.EQUAL
    ] and report.identical == 1


@pytest.mark.usefixtures("by_hand")
def test_counters_that_differ_beside_identical_captures_are_told(tmp_path: Path) -> None:
    put(tmp_path / "a", digest="same", rtt_mean_ms=1)
    put(tmp_path / "b", digest="same", rtt_mean_ms=3)
    report = compared(tmp_path)
    assert [line.agreement for line in report.metrics] == [Agreement.IDENTICAL, Agreement.BEYOND]
    assert not report.agrees


@pytest.mark.usefixtures("by_hand")
def test_engines_are_no_part_of_the_match(tmp_path: Path) -> None:
    put(tmp_path / "a", engine="guest", rtt_mean_ms=1)
    put(tmp_path / "b", engine="host", rtt_mean_ms=1.5)
    assert compared(tmp_path).metrics[0].agreement is Agreement.WITHIN


@pytest.mark.usefixtures("by_hand")
@pytest.mark.parametrize(
    ("engine", "told"), [("guest", []), ("host", ["A ran on guest, B on host"])]
)
def test_two_kernels_are_told(tmp_path: Path, engine: str, told: list[str]) -> None:
    put(tmp_path / "a", engine="guest", rtt_mean_ms=1)
    put(tmp_path / "b", engine=engine, rtt_mean_ms=1)
    assert [line for line in closing_lines(compared(tmp_path)) if "ran on" in line] == told


@pytest.mark.usefixtures("by_hand")
def test_several_engines_on_both_sides_are_kept_apart(tmp_path: Path) -> None:
    for side in "ab":
        put(tmp_path / side, engine="guest", rtt_mean_ms=1)
        put(tmp_path / side, engine="host", rtt_mean_ms=9)
    report = compared(tmp_path)
    assert [line.agreement for line in report.metrics] == [Agreement.EQUAL] * 2
    assert {line.setting.split()[-1] for line in report.metrics} == {"guest", "host"}


@pytest.mark.usefixtures("by_hand")
def test_several_engines_on_one_side_are_ambiguous(tmp_path: Path) -> None:
    put(tmp_path / "a", engine="guest", rtt_mean_ms=1)
    put(tmp_path / "b", engine="guest", rtt_mean_ms=1)
    put(tmp_path / "b", engine="host", rtt_mean_ms=9)
    with pytest.raises(TestbedError, match="b: holds trials of several engines: guest, host"):
        compared(tmp_path)


@pytest.mark.usefixtures("by_hand")
def test_what_only_looks_is_no_part_of_the_match(tmp_path: Path) -> None:
    put(tmp_path / "a", rtt_mean_ms=1)
    looking = router(captures=(CapturePoint.RECEIVERS,), snaplen_bytes=96, sample_interval_ms=0)
    put(tmp_path / "b", scenario=looking, rtt_mean_ms=1)
    assert compared(tmp_path).agrees


@pytest.mark.usefixtures("by_hand")
def test_settings_that_a_label_does_not_tell_apart(tmp_path: Path) -> None:
    """And in the variants' usual order."""
    for side in "ab":
        for variant, rate in (("vegas", 1), ("reno", 1), ("reno", 2)):
            put(tmp_path / side, scenario=router(variant=variant, rate_mbit=rate), rtt_mean_ms=rate)
    lines = compared(tmp_path).metrics
    assert [line.setting for line in lines] == ["reno rate_mbit=1", "reno rate_mbit=2", "vegas"]
    assert [line.a for line in lines] == [1, 2, 1]


@pytest.mark.usefixtures("by_hand")
def test_another_scenario_matches_nothing(tmp_path: Path) -> None:
    put(tmp_path / "a", rtt_mean_ms=1)
    put(tmp_path / "b", scenario=router(duration_s=6), rtt_mean_ms=1)
    with pytest.raises(TestbedError, match="no scenario in common"):
        compared(tmp_path)


@pytest.mark.usefixtures("by_hand")
def test_a_scenario_that_is_there_twice(tmp_path: Path) -> None:
    put(tmp_path / "b", rtt_mean_ms=1)
    shutil.copytree(put(tmp_path / "a", rtt_mean_ms=1), tmp_path / "a" / "copy")
    with pytest.raises(TestbedError, match="of the same scenario"):
        compared(tmp_path)


@pytest.mark.usefixtures("by_hand")
def test_trials_that_ended_otherwise(tmp_path: Path) -> None:
    both(tmp_path, [1], [1])
    put(tmp_path / "a", seed=2, rtt_mean_ms=1)
    put(tmp_path / "b", seed=2, status=Status.FAILED)
    for side in "ab":
        put(tmp_path / side, seed=3, status=Status.UNSUPPORTED)
    report = compared(tmp_path)
    assert not report.agrees
    said = list(closing_lines(report))
    assert any("ok in A, failed in B" in line and "seed2" in line for line in said)
    assert any("unsupported in both" in line and "seed3" in line for line in said)


@pytest.mark.usefixtures("by_hand")
def test_table(tmp_path: Path) -> None:
    both(tmp_path, [10, 20, 30], [12.5, 22.6, 32.4])
    table = report_table(compared(tmp_path), everything=False)
    (row,) = table.rows
    assert row[:6] == ("linux-reno", "tcp", "rtt_mean_ms", "20", "22.5", "+2.5")
    assert row[6:] == ("+2.25 … +2.75", "1", "3", "beyond")


@pytest.mark.usefixtures("by_hand")
def test_a_long_table_shows_what_does_not_agree(tmp_path: Path) -> None:
    both(tmp_path, [10], [12.5])
    report = compared(tmp_path)
    equal = dataclasses.replace(report.metrics[0], agreement=Agreement.EQUAL)
    long = dataclasses.replace(report, metrics=(*[equal] * LONG_TABLE, *report.metrics))
    brief = report_table(long, everything=False)
    assert [row[-1] for row in brief.rows] == ["beyond"] and f"{LONG_TABLE} lines" in brief.note
    assert len(report_table(long, everything=True).rows) == LONG_TABLE + 1


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Real captures, read by tshark: `a`, its copy `same`, and `late`, that starts later."""
    root = tmp_path_factory.mktemp("results")
    jittered = dataclasses.replace(written_scenario(), start_jitter_ms=2000)
    path = write_trial(root / "a" / "trial", scenario=jittered, without=RECEIVER_ONLY)
    shutil.copytree(root / "a", root / "same")
    late = root / "late" / "trial"
    shutil.copytree(path, late)
    record = Record.from_json(json_files.read_record(late / "trial.json"))
    flows = tuple(
        dataclasses.replace(flow, started_s=2.025, planned_start_s=2.025) for flow in record.flows
    )
    (late / "trial.json").write_text(dataclasses.replace(record, flows=flows).to_json())
    capture = late / "captures" / "receiver-eth0.pcap"
    content = capture.read_bytes()
    capture.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))  # another file
    seal(late)
    return root


def test_a_copy_is_identical(folders: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", str(folders / "a"), str(folders / "same")]) == 0
    said = capsys.readouterr()
    assert "tolerance" not in said.out.splitlines()[0]  # nothing is in that column
    assert "all captures" in said.out and said.err == ""
    assert "A and B agree; 1 of 1 matching trials have identical captures" in said.out


def test_exit_status_of_disagreement(folders: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["compare", str(folders / "a"), str(folders / "late"), "--metric", "goodput_mbps"]
    assert main([*arguments, "--tolerance", "goodput_mbps=2%"]) == 1
    assert "beyond" in capsys.readouterr().out
    assert main([*arguments, "--tolerance", "goodput_mbps=50%"]) == 0


@pytest.mark.parametrize("extra", [["--metric", "speed"], ["--tolerance", "share"], ["c", "d"]])
def test_exit_status_of_wrong_usage(folders: Path, extra: list[str]) -> None:
    assert main(["compare", str(folders / "a"), str(folders / "same"), *extra]) == 2


def test_folders_without_trials(
    folders: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shut = tmp_path / "shut"  # another user's, as in /tmp
    shut.mkdir(mode=0)
    assert main(["compare", str(folders / "a"), str(tmp_path)]) == 1
    assert "no trials in it" in capsys.readouterr().err
    shut.rmdir()
    (tmp_path / "few" / "runs").mkdir(parents=True)
    assert main(["compare", str(folders / "a"), str(tmp_path)]) == 1
    assert f"name one of those in it: {tmp_path / 'few'}" in capsys.readouterr().err
    assert main(["compare", str(folders / "a"), str(tmp_path / "none")]) == 2
