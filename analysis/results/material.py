"""The material of a report: the trials of results folders with their metrics and digests."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from analysis.metrics.axes import with_axes
from analysis.metrics.digest import cached_digest
from analysis.metrics.valid_trials import counted
from analysis.results.table import all_metrics
from testbed.errors import TestbedError
from testbed.store import Trial, trials_in

AXIS = "axis_"
LENGTH_AXES = ("duration_s",)  # how long is no question of its own


@dataclass(frozen=True)
class Material:
    """One experiment on one engine.

    `rows` has a row a flow of every trial, `good` those whose numbers count: of trials that
    ran and are not invalid. Both have the trial's `number` in the report, the verdict, and the
    axes as columns `axis_…`. `digest` has the good trials'.
    """

    experiment: str
    engine: str
    trials: tuple[Trial, ...]
    rows: pd.DataFrame
    good: pd.DataFrame
    digest: pd.DataFrame

    @property
    def tcp(self) -> pd.DataFrame:
        """The TCP flows among the good rows."""
        return self.good[self.good["kind"] == "tcp"]

    @property
    def key(self) -> str:
        """Its name in the page's anchors and the figures' file names."""
        return f"{self.experiment}-{self.engine or 'none'}"

    def axes(self) -> list[str]:
        """The experiment's axes that have a value anywhere."""
        return [
            name.removeprefix(AXIS)
            for name in self.rows.columns
            if name.startswith(AXIS) and self.rows[name].notna().any()
        ]

    def varied(self, rows: pd.DataFrame | None = None) -> list[str]:
        """The axes with more than one value, lengths of trials aside."""
        rows = self.good if rows is None else rows
        return [
            name
            for name in self.axes()
            if name not in LENGTH_AXES and rows[AXIS + name].nunique() > 1
        ]


@dataclass(frozen=True)
class Collection:
    """All that was found, and what to distrust."""

    materials: tuple[Material, ...]
    warnings: tuple[str, ...]
    again: tuple[str, ...]  # trials that lay in more than one folder: counted once

    @property
    def metrics(self) -> pd.DataFrame:
        """All rows of all experiments."""
        return pd.concat([each.rows for each in self.materials], ignore_index=True)

    @property
    def trials(self) -> Iterator[Trial]:
        """All trials, in the order of their numbers."""
        for material in self.materials:
            yield from material.trials


def collect(folders: Sequence[Path]) -> Collection:
    """Read results folders; trials that were not reduced yet are reduced now."""
    trials: dict[str, Trial] = {}
    again = []
    for folder in folders:
        for trial in trials_in(folder):
            again += [trial.path.name] if trial.path.name in trials else []
            trials.setdefault(trial.path.name, trial)
    if not trials:
        named = ", ".join(map(str, folders))
        raise TestbedError(f"{named}: no trials in it", "name a folder that `testbed run` made")
    groups: dict[tuple[str, str], list[Trial]] = {}
    for trial in trials.values():
        groups.setdefault((trial.scenario.experiment, trial.record.engine), []).append(trial)
    materials, warnings, first = [], [], 1
    for (experiment, engine), members in groups.items():
        material, said = _material(experiment, engine, members, first)
        materials.append(material)
        warnings += said
        first += len(members)
    return Collection(tuple(materials), tuple(warnings), tuple(again))


def _material(
    experiment: str, engine: str, trials: Sequence[Trial], first: int
) -> tuple[Material, list[str]]:
    with ThreadPoolExecutor(os.cpu_count()) as pool:  # the core works outside of Python's lock
        digests = list(pool.map(cached_digest, trials))
    numbers = {trial.path.name: first + place for place, trial in enumerate(trials)}
    frame = all_metrics(trials)
    rows = with_axes(frame)
    rows["number"] = rows["trial"].map(numbers)
    rows = _judged(rows)
    good = counted(rows)
    named = set(good["trial"])
    parts = [
        digest.assign(trial=trial.path.name)
        for trial, digest in zip(trials, digests, strict=True)
        if trial.path.name in named
    ]
    digest = pd.concat(parts, ignore_index=True) if parts else digests[0].assign(trial="")
    own = Material(experiment, engine, tuple(trials), rows, good, digest)
    return own, frame.attrs["warnings"]


def _judged(rows: pd.DataFrame) -> pd.DataFrame:
    """With a verdict and its reasons in every row, empty where no one judged."""
    for name in ("verdict", "why"):
        texts = rows[name].fillna("").astype("str") if name in rows else ""
        rows[name] = texts
    return rows
