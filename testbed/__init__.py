"""A laboratory for TCP: scenarios, plans, engines, trials and what they leave on disk.

`from testbed import Scenario, run, open_results` is all that Python needs (`docs/python.md`). The
names are loaded on first use: the guest imports this package, too, and needs none of them.
"""

from __future__ import annotations

import importlib
import warnings
from typing import TYPE_CHECKING, Any

# where Debian has a matplotlib, too, it takes our one's toolkits away; no figure is in 3D
warnings.filterwarnings("ignore", "Unable to import Axes3D", UserWarning)

if TYPE_CHECKING:
    from testbed.api.results import Results as Results
    from testbed.api.results import TrialResult as TrialResult
    from testbed.api.results import open_results as open_results
    from testbed.api.run import run as run
    from testbed.errors import TestbedError as TestbedError
    from testbed.scenario.experiment import Experiment as Experiment
    from testbed.scenario.model import Flow as Flow
    from testbed.scenario.model import FlowKind as FlowKind
    from testbed.scenario.model import Profile as Profile
    from testbed.scenario.model import Scenario as Scenario
    from testbed.scenario.named_networks import LinkSettings as LinkSettings
    from testbed.scenario.named_networks import access_link as access_link
    from testbed.scenario.named_networks import chain as chain
    from testbed.scenario.named_networks import dumbbell as dumbbell
    from testbed.scenario.named_networks import parking_lot as parking_lot
    from testbed.scenario.named_networks import router_bottleneck as router_bottleneck
    from testbed.scenario.named_networks import star as star
    from testbed.scenario.network import Direction as Direction
    from testbed.scenario.network import Graph as Graph
    from testbed.scenario.network import Link as Link
    from testbed.scenario.network import Node as Node
    from testbed.scenario.network import NodeKind as NodeKind
    from testbed.scenario.network import Queue as Queue
    from testbed.scenario.reading import read_scenario as read_scenario

_HOMES = {
    "testbed.api.results": ("Results", "TrialResult", "open_results"),
    "testbed.api.run": ("run",),
    "testbed.errors": ("TestbedError",),
    "testbed.scenario.experiment": ("Experiment",),
    "testbed.scenario.model": ("Flow", "FlowKind", "Profile", "Scenario"),
    "testbed.scenario.named_networks": (
        *("LinkSettings", "access_link", "chain", "dumbbell", "parking_lot"),
        *("router_bottleneck", "star"),
    ),
    "testbed.scenario.network": ("Direction", "Graph", "Link", "Node", "NodeKind", "Queue"),
    "testbed.scenario.reading": ("read_scenario",),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'testbed' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted(_HOME)
