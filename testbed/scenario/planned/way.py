"""A flow's way through the network: what its data would take if nothing else were there."""

from __future__ import annotations

import math
from dataclasses import dataclass

from testbed.scenario.builders import edges, graph_of, transit
from testbed.scenario.model import Graph, Topology
from testbed.scenario.shortest import paths


@dataclass(frozen=True)
class Way:
    """The slowest rate of the links that the data cross, and the round trip of their delays."""

    rate_mbit: float  # infinite where no link has a rate
    rtt_s: float


def way(topology: Topology | Graph, src: str, dst: str) -> Way:
    """The way of data from one node to another."""
    graph = graph_of(topology)
    known = edges(graph)
    steps = paths(known, transit(graph), src)[dst]
    rates = (graph.links[number].directions[end].rate_mbit for number, end in steps)
    return Way(
        rate_mbit=min((rate for rate in rates if rate is not None), default=math.inf),
        rtt_s=sum(known[number].delay_ms for number, _ in steps) / 1e3,
    )
