"""A hash of everything that determines a trial's result: an equal one need not run again.

It covers values only: rewording a warning, a requirement's reason or a definition does not make any
trial a different one.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from testbed.engine import Engine
from testbed.plan.commands import Command
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
        "scenario": scenario.to_json(),
        "sources": {**project["sources"], **sources.used_here(plan)},
        "engine": engine.name,
        "kernel": engine.version(),
        "programs": dict(programs(scenario)),
    }


def _of_project(scenario: Scenario, plan: Plan) -> dict[str, Any]:
    """What is the same on every machine, the scenario itself left out."""
    done = {f.name for f in dataclasses.fields(plan)} - _NOT_DONE
    return {
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
    kernels, settings = {BASE_KERNEL}, dict[str, str]()
    for scenario in scenarios:
        unseeded = dataclasses.replace(scenario, seed=0)
        setting = repr(unseeded)
        is_known = setting in settings
        if not is_known:
            settings[setting] = unseeded.to_json()
        plans.update(_with_seed(settings[setting], scenario.seed).encode())
        if is_known:
            continue
        parts = _of_project(scenario, make_plan(scenario))
        for found, names in ((plans, ("plan",)), (code, ("sources", "revision"))):
            found.update(json.dumps([parts[name] for name in names], sort_keys=True).encode())
        kernels.add(scenario.kernel)
    for each in sorted(kernels):
        code.update(json.dumps(dict(sources.of_kernel(each)), sort_keys=True).encode())
    code.update(plans.digest())
    return Identities(code.hexdigest(), plans.hexdigest())


def _with_seed(unseeded: str, seed: int) -> str:
    """What `to_json` makes of a scenario with that seed, from what it makes of one with seed 0, in
    a part of the time. What is within other fields is further to the right."""
    return unseeded.replace('\n  "seed": 0,\n', f'\n  "seed": {seed},\n')


_PLAIN = frozenset({str, int, bool, type(None)})


@functools.lru_cache(maxsize=8192)  # most of a plan, and most of them in the next plan too
def _of_command(command: Command) -> dict[str, Any]:
    return written(command)


def _plain(value: Any) -> Any:
    """JSON's own types; sets in a fixed order, which Python's own is not; 60.0 as 60."""
    kind = type(value)  # the frequent ones first: a table of claims is of millions of values
    if kind in _PLAIN:
        return value
    if kind is tuple or kind is list:
        return [each if type(each) in _PLAIN else _plain(each) for each in value]
    if isinstance(value, float):
        return int(value) if value.is_integer() else value
    if kind is Command:
        return _of_command(value)
    if hasattr(kind, "__dataclass_fields__"):
        fields = written(value).items()
        return {name: e if type(e) in _PLAIN else _plain(e) for name, e in fields}
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, frozenset | set):
        return sorted(map(str, value))
    return str(value) if isinstance(value, enum.Enum) else value
