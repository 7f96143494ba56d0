"""Whole trials that are measured: boot, captures, verdict; their folders are deleted afterwards."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import pandas as pd

from analysis.results.reduction import reduction_of
from testbed.engine import Engine
from testbed.guest.engine import GuestEngine
from testbed.plan.plan import tasks
from testbed.runs.engine_choice import Choice
from testbed.runs.sweep import SweepEvent, TrialFinished, Watcher, run_all
from testbed.scenario.model import Scenario
from testbed.store import Status, open_trial


def scratch_folder() -> tempfile.TemporaryDirectory[str]:
    """Return a folder on the disk, because captures may be larger than /tmp."""
    return tempfile.TemporaryDirectory(prefix="testbed-benchmark-", dir="/var/tmp")


def no_watcher(_event: SweepEvent) -> None:
    """Ignore what a sweep reports."""


def run_trials(
    scenarios: Sequence[Scenario],
    folder: str,
    engine: Engine | None = None,
    jobs: int | None = None,
    watch: Watcher = no_watcher,
) -> list[TrialFinished]:
    """Run trials as `testbed run` does, in the guest unless told; all of them must end well."""
    choice = Choice(engine or GuestEngine(), "benchmark")
    done = run_all(tasks(scenarios), choice, Path(folder) / "out", watch, jobs)
    for each in done:
        assert each.status is Status.OK, each.record.reason
    return done


def first_flows(
    scenarios: Sequence[Scenario], engine: Engine | None = None
) -> Iterator[tuple[Scenario, pd.Series]]:
    """Run trials, and yield each scenario with its first flow's row of metrics."""
    with scratch_folder() as folder:
        for each in run_trials(scenarios, folder, engine):
            yield each.scenario, reduction_of(open_trial(each.path)).flows.iloc[0]
