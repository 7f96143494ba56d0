"""What determines a trial's result, in one hash: a trial that has it need not run again."""

from __future__ import annotations

import dataclasses
import enum
import hashlib
import json
from collections.abc import Mapping
from typing import Any

from testbed.engines.base import Engine
from testbed.plan.plan import Plan
from testbed.runs.provenance import versions_for
from testbed.scenario.model import Scenario

# Raise it when a change gives other packets or other files without changing any plan.
REVISION = 4


def identify(scenario: Scenario, plan: Plan, engine: Engine) -> str:
    """Of the scenario, of the commands that we make of it, and of what runs them."""
    found = versions_for(scenario)
    parts = {
        "scenario": scenario.to_json(),
        "plan": _plain(plan),
        "engine": engine.name,
        "kernel": engine.version(),
        **{
            name: found[name]
            for name in ("iperf3", "nginx", "aioquic", "chromium", "hostapd", "iw")
            if name in found
        },
        "revision": REVISION,
    }
    text = json.dumps(parts, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


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
