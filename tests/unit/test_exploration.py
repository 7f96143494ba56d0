"""Perturbations: what a seed draws, and how one with which a test fails is made smaller."""

from __future__ import annotations

import dataclasses
import itertools
import json
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from testbed.cli.execute import explained
from testbed.errors import UsageError
from testbed.programs import perturbed
from testbed.programs.exploration import (
    MAX_SMALLER_RUNS,
    DrawnRest,
    Perturbation,
    PerturbedRun,
    Rest,
    drawn,
    perturbation_text,
    read_perturbation,
    read_rests,
    smallest,
)
from testbed.runs.suite_results import TEST_FAILED, TEST_PASSED, SuiteRun

RESTS = [*itertools.islice(perturbed.rests(5, 300.0, 38.0), 40)]
ALL = Perturbation(5, 2.0, 1.0, 0.5, 38.0, 300.0)


def ended(perturbation: Perturbation, fails: bool) -> PerturbedRun:
    """A run in which the processes rested that were to."""
    at_work = perturbation.rests if perturbation.rests is not None else tuple(RESTS)
    rests = tuple(Rest(each, "server") for each in at_work if perturbation.rest_ms)
    outcomes = {"a": TEST_PASSED, "b": TEST_FAILED if fails else TEST_PASSED}
    return PerturbedRun(perturbation, SuiteRun(5, 1 if fails else 0, 1.0, 1.0, outcomes), rests)


def made_smaller(fails: Callable[[Perturbation, set[DrawnRest]], bool]) -> tuple[Perturbation, int]:
    """Make `ALL` smaller in a world where some perturbations let a test fail; count the runs."""
    asked = []

    def run(perturbation: Perturbation) -> PerturbedRun:
        asked.append(perturbation)
        there = {rest.drawn for rest in ended(perturbation, False).rests}
        return ended(perturbation, fails(perturbation, there))

    least = smallest(run(ALL), run).perturbation
    assert len(asked) <= MAX_SMALLER_RUNS + 1
    return least, len(asked)


def test_a_seed_draws_one_perturbation_that_is_slow() -> None:
    every = [drawn(seed) for seed in range(200)]
    assert every == [drawn(seed) for seed in range(200)]
    assert all(each.is_slow and each.jitter_ms <= each.delay_ms for each in every)
    for name in ("delay_ms", "loss_percent", "rest_ms"):
        assert 50 < sum(getattr(each, name) > 0 for each in every) < 170


def test_what_a_failure_does_not_need_is_left_out() -> None:
    least, _ = made_smaller(lambda now, _rests: now.loss_percent >= 0.2)
    assert least == Perturbation(5, loss_percent=0.25, every_ms=300.0)


def test_the_two_rests_that_matter_are_found_among_forty() -> None:
    two = {RESTS[7], RESTS[23]}
    least, runs = made_smaller(lambda _now, rests: two <= rests)
    assert set(least.rests or ()) == two
    assert runs < 60


def test_a_single_rest_becomes_as_short_as_it_can_be() -> None:
    at_s, _, which = RESTS[7]

    def fails(_now: Perturbation, rests: set[DrawnRest]) -> bool:
        return any(rest[0] == at_s and rest[1] > RESTS[7][1] / 2 for rest in rests)

    least, _ = made_smaller(fails)
    ((found_s, for_s, found),) = least.rests or ()
    assert (found_s, found) == (at_s, which)
    assert RESTS[7][1] / 2 < for_s < RESTS[7][1] / 2 / 0.8


def test_another_failure_is_not_the_same() -> None:
    def run(perturbation: Perturbation) -> PerturbedRun:
        suite = SuiteRun(5, 1, 1.0, 1.0, {"a": TEST_FAILED, "b": TEST_PASSED})
        return PerturbedRun(perturbation, suite, ())

    assert smallest(ended(ALL, fails=True), run).perturbation == ALL


def test_a_perturbation_is_read_as_it_was_written(tmp_path: Path) -> None:
    file = tmp_path / "perturbation.json"
    one = dataclasses.replace(ALL, rests=tuple(RESTS[:2]))
    file.write_text(perturbation_text(one))
    assert read_perturbation(file) == one
    for text in ("{", '{"seed": "x"}', '{"seed": 1, "rests": [[1]]}', "[]"):
        file.write_text(text)
        with pytest.raises(UsageError, match=r"perturbation\.json"):
            read_perturbation(file)


def test_what_a_guest_wrote_of_rests_is_no_rest_unless_it_is_one(tmp_path: Path) -> None:
    file = tmp_path / "rests"
    for text in ("", "[[1, 2, 3]]", '[["x", 1, 1, "y"]]', "{}", "[1]"):
        file.write_text(text)
        assert read_rests(file) == ()
    file.write_text(json.dumps([[1, 0.02, 0.5, "nginx"]]))
    assert str(read_rests(file)[0]) == "nginx rests for 20 ms at 1.000000 s"


def test_what_it_takes_is_said() -> None:
    failed = ended(ALL, fails=True)
    one = dataclasses.replace(ALL, rests=(RESTS[0],), delay_ms=0.0, loss_percent=0.0)
    fails, with_seed, *takes = explained(failed, ended(one, fails=True))
    assert fails == "fails: b"
    assert with_seed.startswith("with seed 5: packets are 2 ± 1 ms late, 0.5 % of packets are lost")
    assert takes == [f"it takes: {ended(one, fails=True).rests[0]}"]
    late = Perturbation(5, delay_ms=2.0)
    assert [*explained(failed, ended(late, fails=True))][2:] == [f"it takes: {late}"]


def test_a_process_rests_and_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    script = "import time\nfor _ in range(20): time.sleep(0.01)\nraise SystemExit(7)"
    orders = {**dataclasses.asdict(Perturbation(1)), "rests": [[0.05, 0.1, 0.0]], "rest_ms": 1.0}
    began = time.monotonic()
    words = [sys.executable, "-ISc", script]
    program = os.spawnv(
        os.P_NOWAIT,
        sys.executable,
        [sys.executable, perturbed.__file__, json.dumps(orders), *words],
    )
    assert os.waitstatus_to_exitcode(os.waitpid(program, 0)[1]) == 7
    assert time.monotonic() - began > 0.3
    (rest,) = read_rests(tmp_path / perturbed.RESTS_FILE)
    assert rest.drawn == (0.05, 0.1, 0.0)


def test_a_command_that_a_signal_ends_has_a_shells_status(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    orders = json.dumps(dataclasses.asdict(Perturbation(1)))
    words = [sys.executable, perturbed.__file__, orders, "sh", "-c", "kill -TERM $$"]
    status = os.waitstatus_to_exitcode(os.waitpid(os.spawnv(os.P_NOWAIT, words[0], words), 0)[1])
    assert status == 128 + signal.SIGTERM
