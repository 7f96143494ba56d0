"""A part of a trial: one feature, with the methods that the session calls in order.

The session calls a method for all parts before it calls the next one. It calls them in the order
of the table (all_parts.py), so an effect comes before another one where that table says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from testbed.machine.process import Place
from testbed.plan.plan import Plan
from testbed.scenario.model import Scenario
from testbed.store import Record
from testbed.trial.parts.scheduler import Timeline


@dataclass(frozen=True)
class RunningTrial:
    """The trial that runs, as its parts see it, and what they tell each other."""

    scenario: Scenario
    plan: Plan
    places: Mapping[str, Place]  # node → where its commands run
    folder: Path
    parts: list[Part] = field(default_factory=list)
    cookies: set[int] = field(default_factory=set)  # of the sockets that were sampled

    def process_started(self, name: str, node: str, pid: int) -> None:
        """Tell all parts of a process that belongs to the trial."""
        for part in self.parts:
            part.process_started(name, node, pid)

    def flow_ends(self, time_s: float, *processes: str) -> None:
        """Tell all parts that these processes are about to be stopped."""
        for part in self.parts:
            part.flow_ends(time_s, *processes)


class Part:
    """Does nothing; a part overrides the methods that it needs."""

    def __init__(self, trial: RunningTrial) -> None:
        self._trial = trial

    @classmethod
    def wanted(cls, _plan: Plan) -> bool:
        """Whether a trial with this plan has the part."""
        return True

    def place(self) -> None:
        """Nodes and cables are there, and nothing is configured yet."""

    def join(self) -> None:
        """Everything is configured, and nothing is verified yet."""

    def open(self) -> None:
        """The network is verified and idle: start what has to run before the flows."""

    def wait_until_ready(self) -> None:
        """Return once what `open` started is ready."""

    def schedule(self, timeline: Timeline) -> None:
        """Say what is to be done when."""

    def schedule_end(self, timeline: Timeline, end_s: float) -> None:
        """Say what is to be done at the end, which may come earlier than planned."""

    def stop(self) -> None:
        """The last action is done: record nothing more."""

    def collect(self) -> None:
        """Wait for processes to end, and check that they did what they should."""

    def write(self, folder: Path) -> None:
        """Write what was sampled and counted to the trial's folder."""

    def describe(self, record: Record) -> Record:
        """Add to the trial's record what this part knows."""
        return record

    def close(self) -> None:
        """Leave nothing behind, however the trial ended."""

    @property
    def may_end(self) -> bool:
        """Whether the trial may end before its time, as far as this part goes."""
        return True

    @property
    def done(self) -> bool:
        """Whether this part has nothing left to do before the end."""
        return True

    def finish(self, time_s: float) -> None:
        """The trial ends before its time, since every part is done."""

    def process_started(self, name: str, node: str, pid: int) -> None:
        """A process of the trial has started."""

    def flow_ends(self, time_s: float, *processes: str) -> None:
        """These processes of a flow are about to be stopped."""
