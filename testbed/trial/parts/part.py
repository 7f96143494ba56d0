"""The interface of a trial's parts: one feature each, called by the session in fixed order.

The session calls one method on all parts, in the order of the table in all_parts.py, before it
calls the next method. That table thus determines the order of effects.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from testbed.machine.process import Place
from testbed.plan.plan import Plan
from testbed.scenario.model import Scenario
from testbed.store import Record
from testbed.trial.parts.scheduler import ActionQueue


@dataclass(frozen=True)
class RunningTrial:
    """The running trial as its parts see it, and the events they pass to each other."""

    scenario: Scenario
    plan: Plan
    places: Mapping[str, Place]  # node → where its commands run
    folder: Path
    parts: list[Part] = field(default_factory=list)
    cookies: set[int] = field(default_factory=set)  # cookies of the sampled sockets

    def process_started(self, name: str, node: str, pid: int) -> None:
        """Tell all parts about a process that belongs to the trial."""
        for part in self.parts:
            part.process_started(name, node, pid)

    def flow_ends(self, time_s: float, *processes: str) -> None:
        """Tell all parts that these processes are about to be stopped."""
        for part in self.parts:
            part.flow_ends(time_s, *processes)


class Part:
    """A part that does nothing; subclasses override the methods that they need."""

    def __init__(self, trial: RunningTrial) -> None:
        self._trial = trial

    @classmethod
    def wanted(cls, _plan: Plan) -> bool:
        """Return whether a trial with this plan has the part."""
        return True

    def place(self) -> None:
        """Act once nodes and links exist, before anything is configured."""

    def join(self) -> None:
        """Act once everything is configured, before it is verified."""

    def open(self) -> None:
        """Start what has to run before the flows; the network is verified and idle."""

    def wait_until_ready(self) -> None:
        """Return once what `open` started is ready."""

    def schedule(self, timeline: ActionQueue) -> None:
        """Put the part's actions on the timeline."""

    def schedule_end(self, timeline: ActionQueue, end_s: float) -> None:
        """Put the final actions on the timeline; the end may be earlier than planned."""

    def stop(self) -> None:
        """Stop recording; all actions are done."""

    def collect(self) -> None:
        """Wait for the part's processes and check their results."""

    def write(self, folder: Path) -> None:
        """Write the part's data to the trial's folder."""

    def describe(self, record: Record) -> Record:
        """Add this part's data to the trial's record."""
        return record

    def close(self) -> None:
        """Clean up, however the trial ended."""

    @property
    def may_end(self) -> bool:
        """True if this part allows the trial to end early."""
        return True

    @property
    def done(self) -> bool:
        """True if this part has nothing left to do before the end."""
        return True

    def finish(self, time_s: float) -> None:
        """Finish now: the trial ends early, since every part is done."""

    def process_started(self, name: str, node: str, pid: int) -> None:
        """Learn that a process of the trial has started."""

    def flow_ends(self, time_s: float, *processes: str) -> None:
        """Learn that these processes of a flow are about to be stopped."""
