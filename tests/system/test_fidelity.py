"""The verdict on real trials: sound ones are valid, and each broken one is named for its fault."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from analysis.results.reduction import reduction_of
from analysis.verdict.checks import Grade
from benchmarks.recompute import AGREEING, recompute
from experiments.catalogue import EXPERIMENTS
from testbed.guest import kernels
from testbed.scenario.model import BASE_KERNEL, Scenario
from testbed.scenario.network import Queue
from testbed.store.names import RECORD
from tests.faults import FAULTS, broken, run_broken, run_busy, verdict
from tests.lab import ON_FIRST, ended_in_the_guest, run_trials
from tests.scenarios import router

SHORT_S = 5.0
# Trials in the full run. All trials that other tests run in the guest are judged too
# (tests/lab.py): together more than two hundred.
FULLY_SOUND = 500


@pytest.mark.slow(but=4)
@pytest.mark.parametrize("fault", FAULTS)
def test_a_trial_that_was_broken_on_purpose(fault: str, tmp_path: Path, root: Path) -> None:
    found = run_broken(fault, tmp_path)
    suspect = fault == "lagging-samples"  # it hides what happened, and changes nothing
    assert found.verdict is (Grade.SUSPECT if suspect else Grade.INVALID)
    assert found.why.startswith(FAULTS[fault])
    # the page's numbers are of 6.1
    why = f"{found.why} |\n" if ON_FIRST else FAULTS[fault]
    row = f"| {fault.replace('-', ' ')} | {found.verdict} | {why}"
    assert row in (root / "docs" / "verdicts.md").read_text()


def test_the_same_trial_unbroken(tmp_path: Path) -> None:
    trial = run_trials([broken()], tmp_path)[0]
    assert verdict(trial.path).why == ""


def sound_scenarios(number: int) -> list[Scenario]:
    """One of every experiment, and of all the others evenly, if there may be more; short ones."""
    firsts: list[Scenario] = []
    others: list[Scenario] = []
    for experiment in EXPERIMENTS.values():
        short = {"duration_s": [str(SHORT_S)]} if "duration_s" in experiment.axes else {}
        first, *rest = experiment.scenarios(short, 1, quick=not short)
        firsts.append(first)
        others += rest
    evenly = number - len(firsts)
    return firsts + [others[i * len(others) // evenly] for i in range(evenly)]


@pytest.mark.parametrize("every", [4, pytest.param(1, marks=pytest.mark.slow)])
def test_sound_trials_of_all_experiments_are_valid(tmp_path: Path, full: bool, every: int) -> None:
    """Of experiments on another kernel where that is built, which takes longer than the suite."""
    scenarios = sound_scenarios(FULLY_SOUND if full else len(EXPERIMENTS))
    assert {s.experiment for s in scenarios} == set(EXPERIMENTS)
    scenarios = scenarios[::every]
    if not full:
        here = {BASE_KERNEL, *filter(kernels.built_folder, kernels.versions())}
        scenarios = [scenario for scenario in scenarios if scenario.kernel in here]
    assert len(run_trials(scenarios, tmp_path)) == len(scenarios)  # all of them are judged there


def test_a_retransmission_long_after_its_flow_is_no_gap(tmp_path: Path) -> None:
    """A flow that CBR keeps from connecting until its end: its last data is sent again a second
    later, when captures end one after the other. One of them has it, the one before it does not."""
    settings = {"pair": ["vegas/vegas"], "cbr_mbit": ["9"], "second": ["n2-n3"]}
    short = {"window": ["large"], "profile": ["ns2"], "duration_s": [str(SHORT_S)]}
    run_trials(EXPERIMENTS["dumbbell-pairs"].scenarios(settings | short, 1, False), tmp_path)


@pytest.mark.host
@pytest.mark.root("the host engine makes namespaces and queues")
def test_a_busy_host_is_named(tmp_path: Path) -> None:
    found = run_busy(tmp_path)
    assert found.verdict in (Grade.INVALID, Grade.SUSPECT)
    assert found.why.startswith(("cpu of", "scheduling delay of"))


@pytest.mark.slow
def test_what_limited_a_flow_is_named(tmp_path: Path) -> None:
    """The path has room for 10 MB, Linux's windows for 3; and a window that the scenario sets."""
    path = Queue("bfifo", limit_bytes=10_000_000)
    wide = router(variant="cubic", rate_mbit=200, delay_ms=200, duration_s=10, queue=path)
    found = reduction_of(ended_in_the_guest(wide, tmp_path))
    (row,) = found.flows.to_dict("records")
    assert found.judged and found.judged.verdict is Grade.SUSPECT
    assert found.judged.why.startswith("receive window of tcp: ")
    assert row["receive_window_limited"] > 0.2 and row["send_buffer_limited"] > 0.1
    (flow,) = wide.flows
    small = dataclasses.replace(flow, window_bytes=20_000)
    (trial,) = run_trials([dataclasses.replace(wide, flows=(small,), duration_s=4)], tmp_path)
    (row,) = reduction_of(trial).flows.to_dict("records")
    assert row["receive_window_limited"] > 0.5 and row["send_buffer_limited"] == 0


@pytest.mark.slow
def test_an_independent_reading_gives_the_same_round_trips(tmp_path: Path) -> None:
    """Of a flow with losses, some of whose acknowledgements cover repaired holes."""
    (trial,) = run_trials([router(queue=Queue("pfifo", limit_packets=16), delay_ms=10)], tmp_path)
    (row,) = reduction_of(trial).flows.to_dict("records")
    (flow,) = json.loads((trial.path / RECORD).read_text())["flows"]
    again = recompute(trial.path, flow, measure_from_s=0.0)
    assert {name: row[name] for name in AGREEING} == pytest.approx(
        {name: again[name] for name in AGREEING}
    )
    assert row["retransmitted"] > 0 and row["wireshark_ack_rtt_mean_ms"] > row["rtt_mean_ms"]
