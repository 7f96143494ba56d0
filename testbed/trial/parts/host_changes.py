"""Hosts that change while flows run: sysctls, and the congestion controls of sockets.

A sysctl is written and read back in its node, and what it was before is written when all flows have
ended. A socket is the sender's, known by both of its ports: the runner takes a copy of its
descriptor from the flow's program, which notices nothing.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator

from testbed.errors import TestbedError
from testbed.runner.programme import Answers, LogEntry
from testbed.scenario.model import FlowChange
from testbed.scenario.network import NodeChange
from testbed.scenario.variants import variant
from testbed.traffic.flow_programs import program_name
from testbed.trial.parts.part import PlannedTrial, TrialTimeline
from testbed.trial.parts.snapshot import sysctl_file


class HostChanges:
    """The schedules of all nodes and flows."""

    def __init__(self, trial: PlannedTrial) -> None:
        self._trial = trial
        self._made: dict[tuple[str, FlowChange | NodeChange], tuple[int, int]] = {}

    def schedule(self, timeline: TrialTimeline) -> None:
        """Make every change at its time."""
        for name, change in self._trial.scenario.host_changes:
            if isinstance(change, NodeChange):
                timeline.at(change.at_s, functools.partial(self._sysctl, name, change))
            else:
                timeline.at(change.at_s, functools.partial(self._control, name, change))

    def _sysctl(self, node: str, change: NodeChange, at: int) -> None:
        command = ("sysctl", "-w", f"{change.sysctl}={change.value}")
        entry = LogEntry(node, command, fault=f"{node}: {change.sysctl} cannot change")
        words = (node, sysctl_file(change.sysctl), change.value)
        self._made[node, change] = at, self._trial.programme.add("swap", *words, entry=entry)

    def _control(self, name: str, change: FlowChange, at: int) -> None:
        plan = self._trial.plan.flow(name)
        words = (program_name("client", name), change.control, plan.dst_port, *plan.src_ports)
        fault = f"{name}: at {change.at_s:g} s its congestion control cannot be {change.control}"
        number = self._trial.programme.add("control", *words, fault=fault)
        self._made[name, change] = at, number

    def set_back(self) -> None:
        """Write what sysctls were before."""
        self._trial.programme.add("unswap")

    def check(self, answers: Answers) -> None:
        """Raise unless what was read back after a change is what it asked for."""
        for (name, change), (_, number) in self._made.items():
            if number not in answers:
                continue  # the trial ended before
            if isinstance(change, NodeChange):
                _same(name, change, change.sysctl, answers.output(number)[1], change.value)
                continue
            names = answers.of(number).decode(errors="replace").split("\0")[:-1]
            flow = self._trial.scenario.flow(name)
            first = variant(flow.variant).control if flow.variant else ""
            before = flow.control_at(math.nextafter(change.at_s, 0), first)
            for shown, asked in ((names[::2], before), (names[1::2], change.control)):
                what = "its congestion control"
                _same(name, change, what, " ".join(dict.fromkeys(shown)), asked)

    def rows(self, answers: Answers) -> Iterator[tuple[str, ...]]:
        """Yield a row for each change."""
        for (name, change), (at, number) in self._made.items():
            words = (
                f"{change.sysctl} {change.value}"
                if isinstance(change, NodeChange)
                else f"congestion control {change.control}"
            )
            made_s = answers.time_s(at) if number in answers else None
            yield change_row(made_s, change.at_s, name, words)


def _same(name: str, change: NodeChange | FlowChange, what: str, shown: str, asked: str) -> None:
    if shown.split() != asked.split():
        raise TestbedError(
            f"{name}: at {change.at_s:g} s {what} is {' '.join(shown.split())!r}, not {asked!r}"
        )


def change_row(made_s: float | None, at_s: float, what: str, words: str) -> tuple[str, ...]:
    """Return the row of a change in the table of changes: without a time if it was not made."""
    return "" if made_s is None else f"{made_s:.9f}", f"{at_s:.9f}", what, words
