"""Links that change, in the guest: exact, judged, and caught when they do not as they should."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pandas as pd
import pytest

from analysis.trials.capacity import capacity_of
from analysis.verdict.checks import Grade
from analysis.verdict.verdict import Verdict, judge
from testbed.scenario.model import Scenario
from testbed.scenario.network import Change, Queue
from testbed.scenario.trace import read_trace
from testbed.store.reading import Trial, open_trial
from testbed.store.records import Status
from tests.doctored import edit, edit_table
from tests.lab import run_trials, samples
from tests.sabotage import run_sabotaged
from tests.scenarios import router
from tests.sealing import seal
from tests.unit.test_changing_links import changed

QUEUE = Queue("bfifo", limit_bytes=30_000)
BASE = router(variant="cubic", rate_mbit=8, queue=QUEUE, delay_ms=10, duration_s=3)
TRACED = changed(BASE, trace=read_trace("driving"))
SCHEDULED = changed(
    BASE,
    delay_ms=10.003,  # which the kernel rounds, and must have again at the end
    schedule=(
        Change(0.7, rate_mbit=2, delay_ms=20),
        Change(1.2, up=False),
        Change(1.6, up=True, rate_mbit=8),
    ),
)


def checks(trial: Trial) -> dict[str, Grade]:
    """The worst grade of each name."""
    found = judge(trial)
    assert found is not None
    grades: dict[str, Grade] = {}
    for check in found.checks:
        if grades.get(check.name) is not Grade.INVALID:
            grades[check.name] = check.verdict
    return grades


def down_from_1_s(rows: pd.DataFrame) -> None:
    """As if the link had gone down 0.2 s earlier."""
    rows["time_s"] = rows["time_s"].mask(rows["change"] == "down", 1.0)


def broken(fault: str, scenario: Scenario, out: Path) -> Trial:
    return run_sabotaged(fault, scenario, out)


def test_packets_leave_at_a_traces_opportunities(tmp_path: Path) -> None:
    """Each of them, both ways; and another trace than the kernel's is told from it."""
    (trial,) = run_trials([TRACED], tmp_path)
    grades = checks(trial)
    assert (grades["trace"], grades["capacity"]) == (Grade.VALID, Grade.VALID)
    queue = next(each for each in trial.record.queues if each.interface == "router-eth0")
    assert capacity_of(trial, queue).mean_mbit(0, 3) == pytest.approx(3.5, abs=3)

    def without_one(data: dict[str, dict[str, str]]) -> None:
        words = data["router-eth0"]["trace"].split()
        data["router-eth0"]["trace"] = " ".join(words[:100] + words[101:])

    edit(trial.path / "samples" / "capacity.json", without_one)
    assert checks(open_trial(seal(trial.path)))["trace"] is Grade.INVALID


def test_a_schedule_is_carried_out_at_its_times(tmp_path: Path) -> None:
    """Rate, delay, and a link that is down; and what was written of it is compared with packets."""
    (trial,) = run_trials([SCHEDULED], tmp_path)
    made = [(row["change"], float(row["time_s"])) for row in samples(trial, "changes")]
    for words, time_s in (("rate 2 Mbit/s", 0.7), ("delay 20 ms", 0.7), ("down", 1.2), ("up", 1.6)):
        assert [when for what, when in made if what == words] == pytest.approx([time_s] * 2)
    grades = checks(trial)
    for name in ("link changes", "capacity", "down", "rate", "gaps", "loss", "configuration"):
        assert grades[name] is Grade.VALID, name
    rates = trial.path / "samples" / "capacity.json"
    edit(rates, lambda data: data["router-eth0"].update(rates=[[0, 8], [0.5, 2], [1.6, 8]]))
    assert checks(open_trial(seal(trial.path)))["capacity"] is Grade.INVALID
    table = trial.path / "samples" / "changes.csv"
    edit_table(table, down_from_1_s)
    grades = checks(open_trial(seal(trial.path)))
    assert (grades["link changes"], grades["down"]) == (Grade.INVALID, Grade.INVALID)


def test_what_is_being_sent_when_the_rate_falls_is_no_fault(tmp_path: Path) -> None:
    """At this instant nearly all of a frame is left to send, and another had begun a window."""
    queue = Queue("pfifo", limit_packets=20)
    falls = (Change(1.6089946796800545, rate_mbit=2),)
    base = router(variant="cubic", rate_mbit=4, queue=queue, delay_ms=10, duration_s=3)
    (trial,) = run_trials([changed(base, schedule=falls)], tmp_path)
    assert checks(trial)["capacity"] is Grade.VALID


@pytest.mark.parametrize(
    ("fault", "scenario", "named"),
    [("late-schedule", SCHEDULED, "link changes"), ("shifted-trace", TRACED, "trace")],
)
def test_a_fault_is_caught(fault: str, scenario: Scenario, named: str, tmp_path: Path) -> None:
    short = dataclasses.replace(scenario, duration_s=2)
    trial = broken(fault, short, tmp_path)
    assert trial.record.status is Status.OK
    found = judge(trial)
    assert isinstance(found, Verdict) and found.verdict is Grade.INVALID
    assert checks(trial)[named] is Grade.INVALID
    if named == "link changes":
        assert found.why.startswith("link changes of router-eth")
        assert checks(trial)["capacity"] is Grade.INVALID
    else:
        assert found.why.startswith("trace of router-eth")


def test_a_trace_that_the_kernel_has_not_whole_ends_the_trial(tmp_path: Path) -> None:
    trial = broken("shorter-trace", dataclasses.replace(TRACED, duration_s=2), tmp_path)
    assert trial.record.status is Status.FAILED
    assert "trace's times is " in trial.record.reason
