"""A trial's identity: a hash of everything that determines its result.

A trial whose directory has the same identity does not run again. The hash contains values only:
rewording a warning, a requirement's reason or a definition makes no trial a different one.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import hashlib
import json
from collections.abc import Mapping
from typing import Any

from testbed.engine import Engine
from testbed.guest.kernels import versions
from testbed.plan.commands import Command
from testbed.plan.plan import Plan
from testbed.runs import sources
from testbed.runs.behaviour import identity_of
from testbed.runs.provenance import programs
from testbed.scenario.model import Scenario
from testbed.scenario.omitted_defaults import serialized_names
from testbed.scenario.programs import Programs

# Fields of a plan that describe a trial or its requirements but do not affect it.
_DESCRIPTIVE = frozenset({"network", "needs", "warnings"})  # or said by the scenario


def identify(scenario: Scenario, plan: Plan, engine: Engine) -> str:
    """Hash the scenario, the commands derived from it, and the software that runs them."""
    text = json.dumps(identity_parts(scenario, plan, engine), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def identity_parts(scenario: Scenario, plan: Plan, engine: Engine) -> Mapping[str, Any]:
    """Return everything that is hashed, by name."""
    kernel = kernel_of_ours(scenario) if engine.virtual_time else ""
    code = sources.parts_of(plan, kernel)
    return {
        "plan": plan_values(plan),
        "code": identity_of(code),
        "scenario": scenario.unplaced.to_json(),
        "engine": engine.name,
        "kernel": engine.version(),
        "programs": dict(programs(scenario)),
    }


def kernel_of_ours(scenario: Scenario) -> str:
    """Return the guest kernel's version, if it is one of those that have patches of ours."""
    return scenario.kernel if scenario.kernel in versions() else ""


def plan_values(plan: Plan) -> dict[str, Any]:
    """Return what a plan decides about a trial, the same on every machine."""
    hashed = {f.name for f in dataclasses.fields(plan)} - _DESCRIPTIVE
    return {name: _plain(getattr(plan, name)) for name in hashed}


_JSON_TYPES = frozenset({str, int, bool, type(None)})


@functools.lru_cache(maxsize=8192)  # most of a plan, and most of them in the next plan too
def _of_command(command: Command) -> dict[str, Any]:
    return {"node": command.node, "argv": command.argv}


def _plain(value: Any) -> Any:
    """Return JSON's types: sets sorted, and whole floats as integers (60.0 as 60)."""
    kind: Any = type(value)  # the frequent ones first: a table of claims is of millions of values
    if kind in _JSON_TYPES:
        return value
    if kind is tuple or kind is list:
        return [each if type(each) in _JSON_TYPES else _plain(each) for each in value]
    if isinstance(value, float):
        return int(value) if value.is_integer() else value
    if kind is Command:
        return _of_command(value)
    if kind is Programs:  # `programs` has the hashes of its files
        value = value.unplaced
    if hasattr(kind, "__dataclass_fields__"):
        fields = ((name, getattr(value, name)) for name in serialized_names(value))
        return {name: e if type(e) in _JSON_TYPES else _plain(e) for name, e in fields}
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, frozenset | set):
        return sorted(map(str, value))
    return str(value) if isinstance(value, enum.Enum) else value
