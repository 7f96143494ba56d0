"""The interface of a trial's parts: one feature each.

A part writes its instructions into the programme before the trial, and reads their answers
afterwards. The same method is called on all parts, in the order of the table in make.py,
before the next method: that table thus determines the order of effects.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from testbed.plan.plan import Plan
from testbed.runner.bpf import BpfArrays
from testbed.runner.programme import NS, Answers, Programme
from testbed.scenario.model import Scenario
from testbed.store.records import Record


class TrialTimeline:
    """The instructions of a trial by their times, in whose order they are written."""

    def __init__(self) -> None:
        self._order = itertools.count()
        self._actions: list[tuple[int, int, Callable[[int], None]]] = []

    def at(self, time_s: float, write: Callable[[int], None]) -> None:
        """Have instructions written for that time, behind those for the same time before.

        `write` gets the number of the instruction whose answer is when it was.
        """
        heapq.heappush(self._actions, (round(time_s * NS), next(self._order), write))

    def write(self, programme: Programme) -> None:
        """Write all instructions; those of the same time share one wait."""
        latest, waited = -1, 0
        while self._actions:
            time_ns, _, write = heapq.heappop(self._actions)
            if time_ns != latest:
                latest, waited = time_ns, programme.add("at", time_ns)
            write(waited)


@dataclass
class PlannedTrial:
    """A trial as its parts see it: its plan, and the programme that they write."""

    scenario: Scenario
    plan: Plan
    folder: Path
    virtual_time: bool
    programme: Programme = field(default_factory=Programme)
    timeline: TrialTimeline = field(default_factory=TrialTimeline)
    parts: list[Part] = field(default_factory=list)
    arrays: BpfArrays = field(init=False)
    cookies: set[int] = field(default_factory=set)  # cookies of the sampled sockets

    def __post_init__(self) -> None:
        self.arrays = BpfArrays(self.programme)

    def process_started(self, name: str, node: str, program: str) -> None:
        """Tell all parts about a program of the trial that runs from now on."""
        for part in self.parts:
            part.process_started(name, node, program)

    def flow_ends(self, *programs: str) -> None:
        """Tell all parts that these programs are about to be stopped."""
        for part in self.parts:
            part.flow_ends(*programs)


class Part:
    """A part that does nothing; subclasses override the methods that they need."""

    def __init__(self, trial: PlannedTrial) -> None:
        self._trial = trial
        self._programme = trial.programme

    @classmethod
    def wanted(cls, _trial: PlannedTrial) -> bool:
        """Return whether the trial has the part."""
        return True

    def place(self) -> None:
        """Act once nodes and links exist, before anything is configured."""

    def join(self) -> None:
        """Act once everything is configured."""

    def watch(self) -> None:
        """Start what only looks; the network is idle, and nothing else runs yet."""

    def open(self) -> None:
        """Start what has to run before the flows."""

    def wait_until_ready(self) -> None:
        """Wait until what `open` started is ready."""

    def schedule(self, timeline: TrialTimeline) -> None:
        """Put the part's actions on the timeline."""

    def schedule_end(self, timeline: TrialTimeline, end_s: float) -> None:
        """Put the final actions on the timeline of the trial's end."""

    def collect(self) -> None:
        """Wait for the part's programs, and read what is to be read at the end."""

    def close(self) -> None:
        """End what the other parts needed until now."""

    @property
    def ends_with(self) -> tuple[str, ...]:
        """The programs that end the trial early if all of them have ended; none: it does not."""
        return ()

    def process_started(self, name: str, node: str, program: str) -> None:
        """Learn that a program of the trial has started."""

    def flow_ends(self, *programs: str) -> None:
        """Learn that these programs of a flow are about to be stopped."""

    def check(self, answers: Answers) -> None:
        """Raise if the trial did not go as planned."""

    def write(self, folder: Path, answers: Answers) -> None:
        """Write the part's data to the trial's folder."""

    def describe(self, record: Record, _answers: Answers) -> Record:
        """Add this part's data to the trial's record."""
        return record

    def clean_up(self, folder: Path) -> None:
        """Remove files that only the trial needed, however it ended."""
