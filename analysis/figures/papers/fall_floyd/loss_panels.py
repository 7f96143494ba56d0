"""The panels: the trials of each figure, what is drawn of each, and the range shown."""

from __future__ import annotations

import os
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from analysis.figures.papers.fall_floyd import outcomes
from analysis.figures.papers.fall_floyd.outcome import Outcome
from analysis.figures.plotting.cases import stem
from testbed.errors import TestbedError
from testbed.store import Status, Trial

STEM = "segments"


@dataclass(frozen=True)
class Panel:
    """A trial to draw; one that did not run or was not captured has a reason, no segments."""

    trial: Trial
    segments: outcomes.Sequence | None = None
    outcome: Outcome | None = None
    fault: str = ""  # why a trial that ran has no segments

    @property
    def variant(self) -> str:
        """The variant, which is the column."""
        return self.trial.scenario.flows[0].variant or ""

    @property
    def lost(self) -> tuple[int, ...]:
        """The segments that are lost, which are the row."""
        return self.trial.scenario.flows[0].drops

    @property
    def reason(self) -> str:
        """Why there is nothing to draw."""
        record = self.trial.record
        return self.fault if record.status is Status.OK else f"{record.status}: {record.reason}"


@dataclass(frozen=True)
class Extent:
    """The range that all panels show: from just before the first loss to the slowest recovery."""

    time_s: tuple[float, float]
    number: tuple[float, float]


def figures(trials: Iterable[Trial], key: str) -> dict[str, list[Trial]]:
    """The trials of each figure, of every variant and loss the lowest seed, by file name."""
    groups: dict[str, dict[object, Trial]] = {}
    for trial in sorted(trials, key=_preference):
        flow = trial.scenario.flows[0]
        if flow.drops:
            own = groups.setdefault(str(trial.scenario.profile), {})
            own.setdefault((flow.variant, flow.drops), trial)
    return {
        stem(key, STEM, profile if len(groups) > 1 else ""): list(members.values())
        for profile, members in groups.items()
    }


def _preference(trial: Trial) -> tuple[bool, int]:
    """A trial that ran before one that did not, then the lower seed."""
    return trial.record.status is not Status.OK, trial.scenario.seed


def panel(trial: Trial) -> Panel:
    """A trial's segments and outcome."""
    if trial.record.status is not Status.OK:
        return Panel(trial)
    flow = trial.scenario.flows[0]
    try:
        segments = outcomes.sequence(trial, flow)
        return Panel(trial, segments, outcomes.outcome(trial, flow, segments))
    except TestbedError as error:
        return Panel(trial, fault=error.message)


def panels(trials: Iterable[Trial]) -> list[Panel]:
    """The panels of several trials, read in parallel."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:  # the core works outside Python's lock
        return list(pool.map(panel, trials))


def extent(panels: Iterable[Panel]) -> Extent | None:
    """The range that all panels share; None if no trial ran."""
    starts, ends, numbers, lowest = [], [], [], []
    for each in panels:
        if each.segments is None or each.outcome is None:
            continue
        new, again = each.segments.new, each.segments.again
        end = float(again.time_s[-1])
        if each.outcome.recovered:
            end = float(again.time_s[0]) + each.outcome.recovery_s
        _, gone = split(new, each.lost)
        starts.append(float(gone.time_s[0]) - float(new.time_s[0]))
        ends.append(end - float(new.time_s[0]))
        numbers.append(float(new.number[new.time_s <= end].max()))
        lowest.append(min(each.lost))
    if not ends:
        return None
    time_s = max(ends) - min(starts)
    height = max(numbers) - min(lowest)
    return Extent(
        (min(starts) - 0.06 * time_s, max(ends) + 0.06 * time_s),
        (min(lowest) - 0.15 * height, max(numbers) + 0.2 * height),
    )


def split(
    points: outcomes.Points, lost: tuple[int, ...]
) -> tuple[outcomes.Points, outcomes.Points]:
    """New data that arrives, and the lost segments, where each was first sent."""
    gone = np.isin(points.number, lost)
    return (
        outcomes.Points(points.time_s[~gone], points.number[~gone]),
        outcomes.Points(points.time_s[gone], points.number[gone]),
    )
