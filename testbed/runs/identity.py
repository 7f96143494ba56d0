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
from dataclasses import dataclass
from typing import Any

from testbed.engines.base import Engine
from testbed.plan.plan import Plan, make_plan
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


@dataclass(frozen=True)
class Identities:
    """Hashes of many trials in the guest, the same on any machine."""

    code: str  # of all that this project decides about them: the sources of kernels and programs,
    # but not what they were built into, nor the versions of others' programs
    plans: str  # of what is done in them, whatever the programs and kernels that do it


def identities(scenarios: Iterable[Scenario]) -> Identities:
    """Of the trials of these scenarios: thousands are more than should be held at a time.

    Of trials that differ in their seeds alone one is planned, the first, which takes most of the
    time: what code makes of their seeds is the same code's.
    """
    code, plans = hashlib.sha256(), hashlib.sha256()
    kernels, settings = {BASE_KERNEL}, set[str]()
    for scenario in scenarios:
        plans.update(scenario.to_json().encode())
        setting = dataclasses.replace(scenario, seed=0).to_json()
        if setting in settings:
            continue
        settings.add(setting)
        parts = _of_project(scenario, make_plan(scenario))
        for found, names in ((plans, ("plan",)), (code, ("sources", "revision"))):
            found.update(json.dumps([parts[name] for name in names], sort_keys=True).encode())
        kernels.add(scenario.kernel)
    for each in sorted(kernels):
        code.update(json.dumps(dict(sources.of_kernel(each)), sort_keys=True).encode())
    code.update(plans.digest())
    return Identities(code.hexdigest(), plans.hexdigest())


def _plain(value: Any) -> Any:
    """JSON's own types; sets in a fixed order, which Python's own is not; 60.0 as 60."""
    kind = type(value)  # the frequent ones first: a table of claims is of millions of values
    if kind is str or kind is int:
        return value
    if kind is tuple or kind is list:
        return [_plain(each) for each in value]
    if isinstance(value, float):
        return int(value) if value.is_integer() else value
    if dataclasses.is_dataclass(kind):
        return {name: _plain(each) for name, each in written(value).items()}
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, frozenset | set):
        return sorted(map(str, value))
    return str(value) if isinstance(value, enum.Enum) else value
