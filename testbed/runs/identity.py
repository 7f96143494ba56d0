"""What determines a trial's result, in one hash: a trial that has it need not run again.

Values only: a warning, a requirement's reason or a definition may be worded anew without any
trial's being another one.
"""

from __future__ import annotations

import dataclasses
import enum
import hashlib
import json
from collections.abc import Mapping
from typing import Any

from testbed.engines.base import Engine
from testbed.plan.plan import Plan
from testbed.runs import sources
from testbed.runs.provenance import programs
from testbed.scenario.model import Scenario

# Raise it when a change of ours in Python gives other packets or other files without changing any
# plan: our Python is not hashed.
REVISION = 5

# Of a plan: what is said of a trial, and what is required before it, but is not done in it.
_NOT_DONE = frozenset({"needs", "warnings"})


def identify(scenario: Scenario, plan: Plan, engine: Engine) -> str:
    """The hash of the scenario, of the commands that we make of it, and of what runs them."""
    text = json.dumps(identity_parts(scenario, plan, engine), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def identity_parts(scenario: Scenario, plan: Plan, engine: Engine) -> Mapping[str, Any]:
    """All that is hashed, by name."""
    done = {f.name for f in dataclasses.fields(plan)} - _NOT_DONE
    return {
        "scenario": scenario.to_json(),
        "plan": {name: _plain(getattr(plan, name)) for name in done},
        "engine": engine.name,
        "kernel": engine.version(),
        "programs": dict(programs(scenario)),
        "sources": dict(sources.used_by(scenario.topology, plan)),
        "revision": REVISION,
    }


def _plain(value: Any) -> Any:
    """JSON's own types; sets in a fixed order, which Python's own is not; 60.0 as 60."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if dataclasses.is_dataclass(value):
        return {f.name: _plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, frozenset | set):
        return sorted(map(str, value))
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return str(value) if isinstance(value, enum.Enum) else value
