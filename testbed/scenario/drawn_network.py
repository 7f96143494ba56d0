"""A network whose rates and delays the seed draws, so that repeats sample phases of a network in
which nothing is random: each number lies within a small part of what the scenario says.

A number is drawn by the seed and its place in the scenario: trials that differ in their flows have
the same network for the same seed, and are compared in pairs.
"""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable

from testbed.scenario.model import Bottleneck, Direction, Graph, GraphLink, Path, Scenario, Topology

MOST = 0.2  # of a number: with more, a trial is no repeat of another
DIGITS = 3  # of rates and delays: tc is told whole microseconds, and rates in whole kbit/s

Draw = Callable[[str, float], float]  # a number's place, and the number


def drawn(scenario: Scenario) -> Scenario:
    """The scenario with the network that its seed draws; without `network_jitter` itself."""
    part = scenario.network_jitter
    if not part:
        return scenario

    def draw(place: str, value: float) -> float:
        dice = random.Random(f"{scenario.seed} network {place}")
        return round(value * dice.uniform(1 - part, 1 + part), DIGITS)

    own = scenario.topology
    network = _graph(own, draw) if isinstance(own, Graph) else _topology(own, draw)
    return dataclasses.replace(scenario, topology=network)


def _topology(own: Topology, draw: Draw) -> Topology:
    """Links that share their settings share what is drawn for these."""
    return dataclasses.replace(
        own,
        bottleneck=_bottleneck(own.bottleneck, draw),
        access=_path("access", own.access, draw),
        links={name: _path(name, link, draw) for name, link in own.links.items()},
        rtts_ms=tuple(draw(f"rtt {n}", rtt_ms) for n, rtt_ms in enumerate(own.rtts_ms)),
    )


def _bottleneck(neck: Bottleneck, draw: Draw) -> Bottleneck:
    """A way back of its own rate draws its own."""
    back = neck.back_rate_mbit
    return dataclasses.replace(
        neck,
        rate_mbit=draw("bottleneck rate", neck.rate_mbit),
        delay_ms=draw("bottleneck delay", neck.delay_ms),
        back_rate_mbit=back and draw("bottleneck back", back),
    )


def _path(name: str, path: Path, draw: Draw) -> Path:
    back = path.back_rate_mbit
    return dataclasses.replace(
        path,
        rate_mbit=path.rate_mbit and draw(f"{name} rate", path.rate_mbit),
        delay_ms=draw(f"{name} delay", path.delay_ms),
        back_rate_mbit=back and draw(f"{name} back", back),
    )


def _graph(graph: Graph, draw: Draw) -> Graph:
    return dataclasses.replace(graph, links=tuple(_link(link, draw) for link in graph.links))


def _link(link: GraphLink, draw: Draw) -> GraphLink:
    there = _direction(f"{link.name} there", link.there, draw)
    back = link.back and _direction(f"{link.name} back", link.back, draw)
    return dataclasses.replace(link, there=there, back=back)


def _direction(name: str, way: Direction, draw: Draw) -> Direction:
    rate = way.rate_mbit and draw(f"{name} rate", way.rate_mbit)
    return dataclasses.replace(way, rate_mbit=rate, delay_ms=draw(f"{name} delay", way.delay_ms))
