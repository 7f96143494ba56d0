"""A hash of everything that determines a trial's result: an equal one need not run again.

It covers values only: rewording a warning, a requirement's reason or a definition does not make any
trial a different one.
"""

from __future__ import annotations

import dataclasses
import enum
import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any

from testbed.engines.base import Engine
from testbed.plan.plan import Plan
from testbed.plan.task import Task
from testbed.runs import sources
from testbed.runs.provenance import programs
from testbed.scenario.model import BASE_KERNEL, Scenario, written

# Increment it when a change in the testbed's Python code alters packets or files but no plan, since
# that code is not hashed.
REVISION = 7

# Fields of a plan that describe a trial or its requirements but do not affect it.
_NOT_DONE = frozenset({"needs", "warnings"})


def identify(scenario: Scenario, plan: Plan, engine: Engine) -> str:
    """Hash the scenario, the commands derived from it, and the software that runs them."""
    text = json.dumps(identity_parts(scenario, plan, engine), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def identity_parts(scenario: Scenario, plan: Plan, engine: Engine) -> Mapping[str, Any]:
    """Everything that is hashed, by name."""
    project = _of_project(scenario, plan)
    return {
        **project,
        "sources": {**project["sources"], **sources.used_here(plan)},
        "engine": engine.name,
        "kernel": engine.version(),
        "programs": dict(programs(scenario)),
    }


def _of_project(scenario: Scenario, plan: Plan) -> dict[str, Any]:
    """What is the same on every machine."""
    done = {f.name for f in dataclasses.fields(plan)} - _NOT_DONE
    return {
        "scenario": scenario.to_json(),
        "plan": {name: _plain(getattr(plan, name)) for name in done},
        "sources": dict(sources.used_by(scenario.topology, plan)),
        "revision": REVISION,
    }


def code_identity(planned: Iterable[Task]) -> str:
    """A hash of all that this project's code decides about trials in the guest, on any machine:
    the sources of the kernels count, the built kernels and the versions of programs do not."""
    parts, others = list[dict[str, Any]](), set[str]()
    for task in planned:
        parts.append(_of_project(task.scenario, task.plan))
        others |= {task.scenario.kernel} - {BASE_KERNEL}
    kernels = [dict(sources.of_kernel(each)) for each in (BASE_KERNEL, *sorted(others))]
    text = json.dumps([*kernels, *parts], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def plan_identity(planned: Iterable[Task]) -> str:
    """A hash of what is done in these trials, whatever the programs and kernels that do it."""
    parts = [_of_project(task.scenario, task.plan) for task in planned]
    text = json.dumps([(part["scenario"], part["plan"]) for part in parts], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _plain(value: Any) -> Any:
    """JSON's own types; sets in a fixed order, which Python's own is not; 60.0 as 60."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if dataclasses.is_dataclass(value):
        return {name: _plain(each) for name, each in written(value).items()}
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, frozenset | set):
        return sorted(map(str, value))
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return str(value) if isinstance(value, enum.Enum) else value
