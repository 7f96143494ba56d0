"""The interfaces that are captured, and what each capture is good for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from testbed.plan.network import Network
from testbed.scenario.model import CapturePoint, Flow, Scenario
from testbed.store import QUEUE_ROLE


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
    for (node, interface), each in roles.items():
        yield CapturePlan(node, interface, tuple(each))


Role = tuple[tuple[str, str], str]  # node and interface, and what for


def _of_flow(scenario: Scenario, network: Network, flow: Flow) -> Iterator[Role]:
    path = network.path(flow.src, flow.dst)
    if flow.captured and CapturePoint.SENDERS in scenario.captures:
        yield path[0].out.place, f"sender:{flow.name}"
    if flow.captured and CapturePoint.RECEIVERS in scenario.captures:
        yield path[-1].into.place, f"receiver:{flow.name}"
    yield from _at_queues(scenario, network, flow)


def _at_queues(scenario: Scenario, network: Network, flow: Flow) -> Iterator[Role]:
    """Behind each observed queue, and before it where the flow does not start there.

    The slowest of them, the first of equals, is the flow's bottleneck; where there are several,
    they are numbered too.
    """
    if CapturePoint.BOTTLENECK not in scenario.captures:
        return
    path = network.path(flow.src, flow.dst)
    places = [place for place, hop in enumerate(path) if hop.is_observed]
    slowest = min(places, key=lambda place: path[place].rate_mbit, default=None)
    for number, position in enumerate(places, start=1):
        names = ("bottleneck",) * (position == slowest)
        names += (f"{QUEUE_ROLE}{number}",) * (len(places) > 1)
        for name in names:
            yield path[position].out.place, f"{name}-out:{flow.name}"
            if position:
                yield path[position - 1].into.place, f"{name}-in:{flow.name}"
