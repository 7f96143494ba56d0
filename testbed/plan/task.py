"""A trial to be run: a scenario, and the plan that is made of it once and handed on."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from testbed.plan.plan import Plan, make_plan
from testbed.scenario.model import Scenario


@dataclass(frozen=True)
class Task:
    """One trial of a sweep: the scenario with its plan, to be run, estimated or checked."""

    scenario: Scenario
    plan: Plan


def tasks(scenarios: Iterable[Scenario]) -> list[Task]:
    """All planned; the first scenario with faults raises, before anything runs."""
    return [Task(scenario, make_plan(scenario)) for scenario in scenarios]
