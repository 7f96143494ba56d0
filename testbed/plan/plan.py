"""A scenario becomes data: the commands of every node, the captures, the flows, the checks.

Nothing here starts anything; `testbed plan` prints it and the trial applies it. Three kinds of
node carry the network: the Topo's own hosts and routers, `wires` (wires.py), and `control`
(control.py).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from testbed.plan.background import BackgroundPlan, as_flow, plan_background
from testbed.plan.commands import Command, Veth, neighbour, peer_mac
from testbed.plan.control_network import (
    CONTROL,
    control_commands,
    control_sysctls,
    control_veths,
    controlled,
)
from testbed.plan.delay_links import is_wire, wire_commands, wire_ends
from testbed.plan.flows import FlowPlan, plan_flow
from testbed.plan.host_settings import (
    NO_IPV6,
    Parameter,
    RoutePlan,
    agreed_options,
    hosts,
    parameters,
    route_command,
    route_plans,
    sysctls_of,
)
from testbed.plan.losses import DropPlan, LossPlan, clsact_commands, drop_plans, loss_plans
from testbed.plan.network import Hop, Interface, Network, Shaper, build_network
from testbed.plan.radio import RadioPlan, plan_radio, radio_commands
from testbed.plan.requirements import Need, needs
from testbed.plan.validate import validate
from testbed.scenario import queues
from testbed.scenario.model import CapturePoint, Path, Scenario
from testbed.store import LEAF_HANDLE, RETIRE_S, WIRES

# after the last flow queues drain, and tcpdump's blocks retire
TAIL_S = 2.0
NO_OFFLOADS = ("tso", "off", "gso", "off", "gro", "off")


@dataclass(frozen=True)
class CapturePlan:
    """One interface to capture, and what the capture is good for."""

    node: str
    interface: str
    roles: tuple[str, ...]


@dataclass(frozen=True)
class QueuePlan:
    """A queue to verify after it was set up; `sampled` ones are watched while flows run."""

    node: str
    interface: str
    shaper: Shaper
    sampled: bool


@dataclass(frozen=True)
class Plan:
    """All that a trial does, in order."""

    network: Network
    nodes: tuple[str, ...]
    veths: tuple[Veth, ...]
    sysctls: tuple[tuple[str, tuple[tuple[str, str], ...]], ...]  # node → (name, value)…
    parameters: tuple[Parameter, ...]
    routes: tuple[RoutePlan, ...]
    setup: tuple[Command, ...]
    queues: tuple[QueuePlan, ...]
    plain_interfaces: tuple[tuple[str, str], ...]  # (node, interface) without offloads
    captures: tuple[CapturePlan, ...]
    drops: tuple[DropPlan, ...]
    losses: tuple[LossPlan, ...]
    flows: tuple[FlowPlan, ...]
    background: BackgroundPlan | None
    radio: RadioPlan | None
    needs: tuple[Need, ...]
    warnings: tuple[str, ...]
    end_s: float

    def flow(self, name: str) -> FlowPlan:
        """The flow of that name."""
        return next(each for each in self.flows if each.flow.name == name)


def make_plan(scenario: Scenario) -> Plan:
    """Everything that running this scenario takes; raises if the scenario has faults."""
    validate(scenario)
    network = build_network(scenario.topology)
    background = plan_background(scenario, network)
    many = background.link if background else ""  # the link with many delays
    wired = any(is_wire(link, many) for link in network.links)
    endpoints = hosts(controlled(scenario))
    shaped = tuple(_queue_plans(network, scenario))
    sysctls = {node: sysctls_of(scenario, network, node) for node in network.nodes}
    routes = tuple(route_plans(scenario, network))
    flows = tuple(
        plan_flow(scenario, network, index, agreed_options(flow, sysctls))
        for index, flow in enumerate(scenario.flows)
    )
    radio = plan_radio(scenario, network)
    drops = tuple(drop_plans(network, flows))
    losses = tuple(loss_plans(scenario, network, flows))
    nodes = (
        *network.nodes,
        *([WIRES] if wired else []),
        *([CONTROL] if endpoints else []),
    )
    offloads = tuple((end.node, end.name) for link in network.links for end in link.ends) + tuple(
        wire_ends(network, many)
    )
    setup = (
        *_address_commands(network),
        *(route_command(route) for route in routes),
        *control_commands(scenario, network, endpoints),
        *wire_commands(network, many),
        *radio_commands(radio),
        *clsact_commands((*drops, *losses)),
        *(Command(node, ("ethtool", "-K", name, *NO_OFFLOADS)) for node, name in offloads),
        *(command for queue in shaped for command in _shaper_commands(queue)),
    )
    return Plan(
        network=network,
        nodes=nodes,
        veths=(*_veths(network, many), *control_veths(endpoints)),
        sysctls=(
            *((node, tuple(settings.items())) for node, settings in sysctls.items()),
            *([(CONTROL, (*NO_IPV6, *control_sysctls(endpoints)))] if endpoints else []),
            *([(WIRES, NO_IPV6)] if wired else []),
        ),
        parameters=tuple(parameters(scenario)),
        routes=routes,
        # no node's commands need another's: node by node, a tool's can share a process
        setup=tuple(sorted(setup, key=lambda command: nodes.index(command.node))),
        queues=shaped,
        plain_interfaces=offloads,
        captures=tuple(_captures(scenario, network)),
        drops=drops,
        losses=losses,
        flows=flows,
        background=background,
        radio=radio,
        needs=tuple(dict.fromkeys(needs(scenario, network))),
        warnings=tuple(_warnings(scenario, network)),
        end_s=max([*(flow.stop_s for flow in flows), *([background.stop_s] if background else [])])
        + max(TAIL_S, RETIRE_S + _longest_queue_s(network) + (radio.drain_s if radio else 0)),
    )


def _veths(network: Network, many: str) -> Iterator[Veth]:
    for number, link in enumerate(network.links):
        one, other = link.ends
        if link.radio is not None:
            continue
        if not is_wire(link, many):
            yield Veth(one.node, one.name, one.mac, other.node, other.name, other.mac)
            continue
        for end, letter in ((one, "a"), (other, "b")):
            yield Veth(end.node, end.name, end.mac, WIRES, f"w{number}{letter}", peer_mac(end.mac))


ONE_SEGMENT = ("gso_max_segs", "1")


def _address_commands(network: Network) -> Iterator[Command]:
    """TCP hands down several segments as one packet, whatever the offloads are: a queue of its own
    host would count them as one, and let them out at one instant. So, where there is one, not."""
    shaped = {
        end.name
        for link in network.links
        for end, shaper in zip(link.ends, link.shapers, strict=True)
        if shaper
    }
    for node in network.nodes:
        yield Command(node, ("ip", "link", "set", "lo", "up"))
        for end in network.interfaces(node):
            yield Command(node, ("ip", "address", "add", end.address, "dev", end.name))
            single = ONE_SEGMENT if end.name in shaped else ()
            yield Command(node, ("ip", "link", "set", end.name, "up", *single))
    for link in network.links:
        for end, peer in (link.ends, reversed(link.ends)):
            yield neighbour(end.node, end.name, peer.ip, peer.mac)
    for node in network.nodes:
        for destination, gateway in network.routes[node]:
            yield Command(node, ("ip", "route", "add", destination, "via", gateway))


def _queue_plans(network: Network, scenario: Scenario) -> Iterator[QueuePlan]:
    crossed = {
        hop.out.name
        for flow in scenario.flows
        for hop in network.path(flow.src, flow.dst)
        if _is_bottleneck(network, hop)
    }
    for link in network.links:
        for end, shaper in zip(link.ends, link.shapers, strict=True):
            if shaper:
                yield QueuePlan(end.node, end.name, shaper, sampled=end.name in crossed)


def _longest_queue_s(network: Network) -> float:
    """How long a full queue of the network takes to drain."""
    shapers = [shaper for link in network.links for shaper in link.shapers if shaper]
    return max((shaper.limit.ms / 1e3 for shaper in shapers), default=0.0)


def _is_bottleneck(network: Network, hop: Hop) -> bool:
    return hop.link.name == network.bottleneck and hop.shaper is not None


def burst_bytes(rate_mbit: float) -> int:
    """htb's bucket: one frame, or what the rate makes in 0.2 ms, a late timer on a busy host."""
    return max(queues.FRAME_BYTES, math.ceil(rate_mbit * 1e6 / 8 * 200e-6))


def _shaper_commands(queue: QueuePlan) -> Iterator[Command]:
    shaper = queue.shaper
    rate = f"{round(shaper.rate_mbit * 1e6)}bit"
    burst = str(burst_bytes(shaper.rate_mbit))
    device = ("dev", queue.interface)
    yield Command(
        queue.node,
        ("tc", "qdisc", "add", *device, "root", "handle", "1:", "htb", "default", "3"),
    )
    # quantum: htb's own guess (rate / 10) warns and sends in bursts
    yield Command(
        queue.node,
        ("tc", "class", "add", *device, "parent", "1:", "classid", "1:3", "htb", "rate", rate)
        + ("ceil", rate, "burst", burst, "cburst", burst, "quantum", str(queues.FRAME_BYTES)),
    )
    words = queues.arguments(shaper.queue, shaper.limit, shaper.rate_mbit)
    yield Command(
        queue.node,
        ("tc", "qdisc", "add", *device, "parent", "1:3", "handle", LEAF_HANDLE, *words),
    )


def _captures(scenario: Scenario, network: Network) -> Iterator[CapturePlan]:
    roles: dict[tuple[str, str], list[str]] = {}

    def add(end: Interface, role: str) -> None:
        roles.setdefault((end.node, end.name), []).append(role)

    background = (as_flow(scenario.background),) if scenario.background else ()
    for flow in (*scenario.flows, *background):
        path = network.path(flow.src, flow.dst)
        if CapturePoint.SENDERS in scenario.captures and flow in scenario.flows:
            add(path[0].out, f"sender:{flow.name}")
        if CapturePoint.RECEIVERS in scenario.captures and flow in scenario.flows:
            add(path[-1].into, f"receiver:{flow.name}")
        if CapturePoint.BOTTLENECK in scenario.captures:
            for position, hop in enumerate(path):
                if _is_bottleneck(network, hop):
                    add(hop.out, f"bottleneck-out:{flow.name}")
                    if position:
                        add(path[position - 1].into, f"bottleneck-in:{flow.name}")
    for (node, interface), each in roles.items():
        yield CapturePlan(node, interface, tuple(each))


def _warnings(scenario: Scenario, network: Network) -> Iterator[str]:
    bottleneck = scenario.topology.bottleneck
    limit = queues.resolve(bottleneck.queue, bottleneck.rate_mbit, network.rtt_ms)
    if limit.bdp is not None and limit.bdp < 1:
        yield f"the bottleneck's buffer is {limit.bdp:.2f} BDP: one flow may not fill the link"
    yield from queues.warnings(bottleneck.queue, limit)
    if bottleneck.back_queue is not None:
        rate_mbit = bottleneck.back_rate_mbit or bottleneck.rate_mbit
        limit = queues.resolve(bottleneck.back_queue, rate_mbit, network.rtt_ms)
        yield from queues.warnings(bottleneck.back_queue, limit)
    for flow in scenario.flows:
        if flow.rate_mbit is not None and flow.rate_mbit > bottleneck.rate_mbit:
            yield (
                f"{flow.name}: {flow.rate_mbit:g} Mbit/s into a bottleneck of "
                f"{bottleneck.rate_mbit:g} Mbit/s: most of the rest is lost"
            )
    access: list[Path] = [scenario.topology.access, *scenario.topology.links.values()]
    if any(path.rate_mbit and path.rate_mbit < bottleneck.rate_mbit for path in access):
        yield "an access link is slower than the bottleneck: the queue forms there instead"
