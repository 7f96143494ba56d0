"""The interfaces that are captured, and what each capture is good for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from testbed.plan.background import as_flow
from testbed.plan.network import Network
from testbed.plan.traffic_control import is_bottleneck
from testbed.scenario.model import CapturePoint, Flow, Scenario


@dataclass(frozen=True)
class CapturePlan:
    """One interface to capture, and its roles: `sender:FLOW`, `bottleneck-in:FLOW` …"""

    node: str
    interface: str
    roles: tuple[str, ...]


def capture_plans(scenario: Scenario, network: Network) -> Iterator[CapturePlan]:
    """One for each interface, however many flows it is captured for."""
    roles: dict[tuple[str, str], list[str]] = {}
    for flow in scenario.flows:
        for place, role in _of_flow(scenario, network, flow):
            roles.setdefault(place, []).append(role)
    if scenario.background:
        for place, role in _at_bottleneck(scenario, network, as_flow(scenario.background)):
            roles.setdefault(place, []).append(role)
    for (node, interface), each in roles.items():
        yield CapturePlan(node, interface, tuple(each))


Role = tuple[tuple[str, str], str]  # node and interface, and what for


def _of_flow(scenario: Scenario, network: Network, flow: Flow) -> Iterator[Role]:
    path = network.path(flow.src, flow.dst)
    if CapturePoint.SENDERS in scenario.captures:
        yield path[0].out.place, f"sender:{flow.name}"
    if CapturePoint.RECEIVERS in scenario.captures:
        yield path[-1].into.place, f"receiver:{flow.name}"
    yield from _at_bottleneck(scenario, network, flow)


def _at_bottleneck(scenario: Scenario, network: Network, flow: Flow) -> Iterator[Role]:
    """Behind its queue, and before it where the flow does not start there."""
    if CapturePoint.BOTTLENECK not in scenario.captures:
        return
    path = network.path(flow.src, flow.dst)
    for position, hop in enumerate(path):
        if is_bottleneck(network, hop):
            yield hop.out.place, f"bottleneck-out:{flow.name}"
            if position:
                yield path[position - 1].into.place, f"bottleneck-in:{flow.name}"
