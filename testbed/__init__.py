"""A laboratory for TCP: scenarios, plans, engines, trials and what they leave on disk.

`from testbed import Scenario, run, open_results` is all that Python needs (`docs/python.md`). The
names are loaded on first use: the guest imports this package, too, and needs none of them.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from testbed.api.results import Results as Results
    from testbed.api.results import TrialResult as TrialResult
    from testbed.api.results import open_results as open_results
    from testbed.api.run import run as run
    from testbed.errors import TestbedError as TestbedError
    from testbed.scenario.experiment import Experiment as Experiment
    from testbed.scenario.model import Bottleneck as Bottleneck
    from testbed.scenario.model import Direction as Direction
    from testbed.scenario.model import Flow as Flow
    from testbed.scenario.model import FlowKind as FlowKind
    from testbed.scenario.model import Graph as Graph
    from testbed.scenario.model import GraphLink as GraphLink
    from testbed.scenario.model import GraphNode as GraphNode
    from testbed.scenario.model import NodeKind as NodeKind
    from testbed.scenario.model import Path as Path
    from testbed.scenario.model import Profile as Profile
    from testbed.scenario.model import Queue as Queue
    from testbed.scenario.model import Scenario as Scenario
    from testbed.scenario.model import Topology as Topology
    from testbed.scenario.model import TopologyKind as TopologyKind

_HOMES = {
    "testbed.api.results": ("Results", "TrialResult", "open_results"),
    "testbed.api.run": ("run",),
    "testbed.errors": ("TestbedError",),
    "testbed.scenario.experiment": ("Experiment",),
    "testbed.scenario.model": (
        *("Bottleneck", "Direction", "Flow", "FlowKind", "Graph", "GraphLink", "GraphNode"),
        *("NodeKind", "Path", "Profile", "Queue", "Scenario", "Topology", "TopologyKind"),
    ),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'testbed' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted(_HOME)
