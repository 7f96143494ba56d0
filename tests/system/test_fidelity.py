"""The verdict on real trials: sound ones are valid, and each broken one is named for its fault."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from analysis.fidelity.checks import Grade
from analysis.fidelity.verdict import Verdict, judge
from experiments.catalogue import EXPERIMENTS
from testbed.engines.choice import choose
from testbed.engines.guest import GuestEngine
from testbed.engines.host import HostEngine
from testbed.scenario import Queue, Scenario
from testbed.store import open_trial
from testbed.sweep import folder_name, run_all
from tests.lab import run_trials
from tests.scenarios import router

# Each fault of tests/sabotage.py, and what the verdict has to say first.
FAULTS = {
    "wrong-variant": "variant of tcp: 'reno', not 'cubic'",
    "offloads": "offloads of sender1-eth0: 2962, expected 1514",
    "hidden-loss": "loss of tcp sender1-eth0 to router-eth1",
    "slow-rate": "rate of router-eth0: 9.8",
    "small-buffer": "tail drop of router-eth0: 11, expected 21",
    "changed-sysctl": "configuration of sender1: sysctl net.ipv4.tcp_sack",
    "slow-path": "idle RTT of tcp: 32, expected 30",
    "late-start": "start of tcp: 0.05, expected 0",
    "lagging-samples": "sampling of queues: 90, expected 10",
    "dropping-capture": "capture drops of router-eth1",
}
SHORT_S = 3.0
# Trials of all experiments, evenly; SOUND=702 takes every combination there is. All trials that
# other tests run in the guest are judged too (tests/lab.py): together more than two hundred.
SOUND = int(os.environ.get("SOUND", "100"))


def broken() -> Scenario:
    return router(
        variant="cubic", rate_mbit=10, queue=Queue("pfifo", limit_packets=20), delay_ms=15
    )


def verdict(path: Path) -> Verdict:
    found = judge(open_trial(path))
    assert found is not None
    return found


@pytest.mark.parametrize("fault", FAULTS)
def test_a_trial_that_was_broken_on_purpose(fault: str, tmp_path: Path) -> None:
    choice = choose("guest", ())
    assert isinstance(choice.engine, GuestEngine)
    choice.engine.program = ("-m", "tests.sabotage", fault)
    run_all([broken()], choice, tmp_path, lambda _event: None)
    found = verdict(tmp_path / folder_name(broken(), choice.engine))
    suspect = fault == "lagging-samples"  # it hides what happened, and changes nothing
    assert found.verdict is (Grade.SUSPECT if suspect else Grade.INVALID)
    assert found.why.startswith(FAULTS[fault])


def test_the_same_trial_unbroken(tmp_path: Path) -> None:
    trial = run_trials([broken()], tmp_path)[0]
    assert verdict(trial.path).why == ""


def sound_scenarios() -> list[Scenario]:
    """One of every experiment, and of all the others evenly."""
    firsts: list[Scenario] = []
    others: list[Scenario] = []
    for experiment in EXPERIMENTS.values():
        short = {"duration_s": [str(SHORT_S)]} if "duration_s" in experiment.axes else {}
        first, *rest = experiment.scenarios(short, 1, quick=False)
        firsts.append(first)
        others += rest
    evenly = SOUND - len(firsts)
    return firsts + [others[i * len(others) // evenly] for i in range(evenly)]


def test_sound_trials_of_all_experiments_are_valid(tmp_path: Path) -> None:
    scenarios = sound_scenarios()
    assert {s.experiment for s in scenarios} == set(EXPERIMENTS)
    assert len(run_trials(scenarios, tmp_path)) == SOUND  # all of them are judged there


@contextlib.contextmanager
def busy_cores() -> Iterator[None]:
    """Loops on every core, above the trial's own priority."""
    loop = [sys.executable, "-c", "import os; os.nice(-15)\nwhile True: pass"]
    spinning = [subprocess.Popen(loop) for _ in range(2 * (os.cpu_count() or 1))]
    try:
        yield
    finally:
        for each in spinning:
            each.kill()
            each.wait()


@pytest.mark.host
@pytest.mark.skipif(os.geteuid() != 0, reason="the host engine needs root")
def test_a_busy_host_is_named(tmp_path: Path) -> None:
    scenario = router(variant="cubic", rate_mbit=5, duration_s=6)
    engine = HostEngine()
    with busy_cores():
        run_trials([scenario], tmp_path, "host")
    found = verdict(tmp_path / folder_name(scenario, engine))
    assert found.verdict in (Grade.INVALID, Grade.SUSPECT)
    assert found.why.startswith(("cpu of", "scheduling delay of"))
