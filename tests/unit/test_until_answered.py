"""`--until answered`: when a run looks at its claims, what a look may spend, and where it ends."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any, cast

import pandas as pd
import pytest

from experiments.catalogue import EXPERIMENTS
from experiments.guo_yuan_sheng import claims
from testbed.runs import orchestration
from testbed.runs.orchestration import PlannedRun, RunListener, RunOptions
from testbed.runs.selection import select_experiment
from tests.claims_tables import fairness_metrics

(PAPER,) = claims.papers()
SHARES_ALONE = tuple(each for each in PAPER.claims if each.id == "GYS3.1")
EXPERIMENT = dataclasses.replace(
    EXPERIMENTS["router-fairness"],
    claims=lambda: (dataclasses.replace(PAPER, claims=SHARES_ALONE),),
)


class Told(RunListener):
    """Keeps what a run says."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def say(self, line: str) -> None:
        self.lines.append(line)


def look_at(seeds: int, tmp_path: Path, told: Told, holds: float = 1.0, **more: Any) -> int:
    """The next number of seeds; in this part of them BBR has the paper's share."""
    table = fairness_metrics(seeds=seeds)
    late = table["seed"] > holds * seeds
    table.loc[late & (table["flow"] == "bbr"), "share"] = 0.1
    options = RunOptions(seeds=seeds, until="answered", **more)
    selection = select_experiment(EXPERIMENT, {})
    run = PlannedRun(selection, options, cast("Any", None), (), tmp_path)
    return orchestration._until_answered(run, table, seeds, told)


def test_a_claim_is_looked_at_again_with_more_seeds_until_it_is_decided(tmp_path: Path) -> None:
    """Ten of ten are p = 0.002, and a first look may spend next to nothing."""
    told = Told()
    assert look_at(10, tmp_path, told) == 20
    assert look_at(20, tmp_path, told) == 20  # 20 of 20: p = 0.000002
    assert look_at(20, tmp_path, told, holds=0.8) == 40
    assert look_at(40, tmp_path, told, holds=0.9) == 40
    assert look_at(80, tmp_path, told, holds=0.5) == 80  # the last look
    assert look_at(20, tmp_path, told, holds=0.8, max_seeds=25) == 25
    assert told.lines[0] == "10 seeds: 0 of 1 answers are decided; open: GYS3.1"
    assert told.lines[1] == "20 seeds: 1 of 1 answers are decided"


def test_no_seeds_are_added_that_do_not_fit_into_the_budget(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ten seeds took ten minutes: ten more do not fit into fifteen, and do into an hour."""
    rounds: list[int] = []
    monkeypatch.setattr(
        "analysis.results.tables.write_metrics", lambda _: pd.DataFrame({"trial": []})
    )
    monkeypatch.setattr(orchestration, "_until_answered", lambda *a: min(20, a[2] + 10))
    monkeypatch.setattr("time.monotonic", lambda: 600.0 * (1 + len(rounds)))
    monkeypatch.setattr(orchestration, "with_ready_kernels", lambda *a, **_: [])

    def run_round(*_: object, **__: object) -> list[object]:
        rounds.append(1)
        return []

    monkeypatch.setattr(orchestration, "_run_round", run_round)
    selection = select_experiment(EXPERIMENT, {})
    for budget, ran in (("15min", 0), ("1h", 1)):
        told, options = Told(), RunOptions(seeds=10, until="answered", budget=budget)
        run = PlannedRun(selection, options, cast("Any", _Choice()), (), tmp_path)
        assert orchestration._add_seeds(run, [], told, 0.0) == []
        assert len(rounds) == ran
        assert bool(told.lines) == (ran == 0)


class _Choice:
    engine = None
