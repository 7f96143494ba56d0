"""A scenario becomes data: the commands of every node, the captures, the flows, the checks.

Nothing here starts anything; `testbed plan` prints it and the trial applies it. Three kinds of
node carry the network: the scenario's own hosts and routers, `delay_node` (delay_links.py), and
`control` (control_network.py).
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from testbed.errors import UsageError
from testbed.plan.check import validate, warnings
from testbed.plan.commands import Command, Veth, neighbour, peer_mac
from testbed.plan.control_network import (
    CONTROL,
    control_commands,
    control_sysctls,
    control_veths,
    controlled,
)
from testbed.plan.delay_links import (
    DelayLink,
    SessionDelays,
    delay_changes,
    delay_commands,
    delay_links,
    delay_objects,
    session_delays,
)
from testbed.plan.ebpf_plans import (
    DropPlan,
    LossPlan,
    ReceiverPlan,
    clsact_commands,
    drop_plans,
    loss_plans,
    receiver_plans,
)
from testbed.plan.ect1_filters import relabelling_commands, relabelling_places
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
from testbed.plan.network import IPV6, Network, build_network, radio_of
from testbed.plan.radio import RadioPlan, plan_radio, radio_commands, radio_objects
from testbed.plan.requirements import Need, needs
from testbed.plan.traffic_control import (
    ChangePlan,
    QueuePlan,
    TcObject,
    longest_queue_s,
    queue_changes,
    queue_plans,
    shaper_commands,
    shaper_objects,
)
from testbed.scenario.model import CapturePoint, Flow, Scenario
from testbed.scenario.network import Direction, shaped_by_htb
from testbed.scenario.realism import (
    AGGREGATION_FIELDS,
    RECEIPT_FIELDS,
    refuse_in_real_time,
    with_realism,
)
from testbed.scenario.variations import drawn
from testbed.store.names import DELAY_NODE, QUEUE_ROLE, RETIRE_S, TAIL_S

# fields of links that a trial's runner and our queue disciplines make
RUNNERS_FIELDS = ("trace", "schedule", "radio", *AGGREGATION_FIELDS, *RECEIPT_FIELDS)
# fields of scenarios from which a trial has another network than the one that is written there
TRIALS_FIELDS = ("realistic", "network_jitter", "drawn_service_times", "drawn_share")


@dataclass(frozen=True)
class CapturePlan:
    """One interface to capture, and its roles, such as `sender:FLOW` and `bottleneck-in:FLOW`."""

    node: str
    interface: str
    roles: tuple[str, ...]


def capture_plans(scenario: Scenario, network: Network) -> Iterator[CapturePlan]:
    """Yield one plan for each interface, however many flows it is captured for."""
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
    """Yield the interfaces behind each observed queue, and before it unless the flow starts there.

    The slowest queue, the first of equals, is the flow's bottleneck; where there are several, they
    are numbered too.
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


ANSWER_MARGIN_S = 0.25  # the last segment out of a full queue crosses the path, and is answered
NO_OFFLOADS = ("tso", "off", "gso", "off", "gro", "off")
NO_UDP_OFFLOADS = (*NO_OFFLOADS, "tx-udp-segmentation", "off")  # that programs of UDP may use
ONE_SEGMENT = ("gso_max_segs", "1")


def has_udp_programs(flows: Iterable[Flow]) -> bool:
    """Return whether a flow's programs may hand several datagrams down as one packet."""
    return any(flow.command is not None and flow.protocol == "udp" for flow in flows)


Sysctls = Mapping[str, Mapping[str, str]]  # node → name → value


@dataclass(frozen=True)
class Plan:
    """Everything that a trial does, in order."""

    network: Network
    nodes: tuple[str, ...]
    veths: tuple[Veth, ...]
    sysctls: tuple[tuple[str, tuple[tuple[str, str], ...]], ...]  # node → (name, value)…
    parameters: tuple[Parameter, ...]
    routes: tuple[RoutePlan, ...]
    setup: tuple[Command, ...]
    queues: tuple[QueuePlan, ...]
    delays: tuple[DelayLink, ...]
    plain_interfaces: tuple[tuple[str, str], ...]  # (node, interface) without offloads
    one_segment: tuple[tuple[str, str], ...]  # those to which TCP may not hand several at once
    captures: tuple[CapturePlan, ...]
    drops: tuple[DropPlan, ...]
    losses: tuple[LossPlan, ...]
    flows: tuple[FlowPlan, ...]
    session_delays: tuple[SessionDelays, ...]
    radio: RadioPlan | None
    needs: tuple[Need, ...]
    warnings: tuple[str, ...]
    end_s: float

    def flow(self, name: str) -> FlowPlan:
        """Return the plan of the flow of that name."""
        return next(each for each in self.flows if each.flow.name == name)

    @property
    def receivers(self) -> tuple[ReceiverPlan, ...]:
        """The receivers that misbehave."""
        return tuple(receiver_plans(self.network, self.flows))

    @property
    def tc_objects(self) -> Iterator[TcObject]:
        """Every discipline and class that is read back from the kernel."""
        for queue in self.queues:
            yield from shaper_objects(queue)
        yield from radio_objects(self.radio)
        yield from delay_objects(self.delays)

    @property
    def changes(self) -> Iterator[ChangePlan]:
        """The changes while flows run, each discipline's and class's in their order."""
        for queue in self.queues:
            yield from queue_changes(queue)
        yield from delay_changes(self.delays)

    @property
    def has_changing_links(self) -> bool:
        """Whether a link follows a trace or a schedule."""
        return bool(self.changing_queues) or any(True for _ in self.changes)

    @property
    def changing_queues(self) -> tuple[QueuePlan, ...]:
        """The queues whose rate is not one number."""
        return tuple(
            each for each in self.queues if each.hop.direction.trace or len(each.hop.rates_mbit) > 1
        )


@dataclass(frozen=True)
class _Layout:
    """What the parts of the plan are computed from: the network, and all that is attached to it."""

    scenario: Scenario
    network: Network
    session_delays: tuple[SessionDelays, ...]
    delays: tuple[DelayLink, ...]
    endpoints: tuple[str, ...]  # hosts on the control network
    queues: tuple[QueuePlan, ...]
    radio: RadioPlan | None
    sysctls: Sysctls
    routes: tuple[RoutePlan, ...]

    @property
    def nodes(self) -> tuple[str, ...]:
        """The scenario's nodes, and those that the testbed adds."""
        delay_node = (DELAY_NODE,) if self.delays else ()
        return (*self.network.nodes, *delay_node, *((CONTROL,) if self.endpoints else ()))

    @property
    def plain_interfaces(self) -> tuple[tuple[str, str], ...]:
        """The interfaces that flows cross: none may join segments."""
        on_path = (hop.out.place for hops in self.network.hops for hop in hops)
        return (*on_path, *((DELAY_NODE, end) for each in self.delays for end in each.ends))


def make_plan(scenario: Scenario, *, virtual_time: bool = True) -> Plan:
    """Return everything that running this scenario takes; raise if the scenario has faults.

    In real time timers are late, and no kernel but the guest's has exact links: htb is in their
    place.
    """
    scenario = with_realism(scenario)
    validate(scenario)
    scenario = drawn(scenario)
    if not virtual_time:
        refuse_in_real_time(scenario)
        scenario = replace(scenario, network=shaped_by_htb(scenario.network))
    layout = _layout(scenario, build_network(scenario.network))
    network = layout.network
    flows = _flows(scenario, network, layout.sysctls)
    drops = tuple(drop_plans(network, flows))
    losses = tuple(loss_plans(scenario, network, flows))
    on_the_way = (*drops, *losses, *receiver_plans(network, flows))
    relabelling = relabelling_places(network, scenario.flows)
    one_segment = () if virtual_time else tuple(hop.out.place for hop in network.shaped)
    return Plan(
        network=network,
        nodes=layout.nodes,
        veths=(*_veths(layout), *control_veths(layout.endpoints)),
        sysctls=tuple(_sysctls(layout)),
        parameters=tuple(parameters(scenario)),
        routes=layout.routes,
        setup=_setup(
            layout,
            (
                *clsact_commands((*(each.place for each in on_the_way), *relabelling)),
                *relabelling_commands(relabelling),
            ),
            one_segment,
        ),
        queues=layout.queues,
        delays=layout.delays,
        plain_interfaces=layout.plain_interfaces,
        one_segment=one_segment,
        captures=tuple(capture_plans(scenario, network)),
        drops=drops,
        losses=losses,
        flows=flows,
        session_delays=layout.session_delays,
        radio=layout.radio,
        needs=tuple(dict.fromkeys(needs(scenario, network))),
        warnings=tuple(warnings(scenario, network, one_segment)),
        end_s=_end_s(network, layout.radio, flows),
    )


@dataclass(frozen=True)
class TrafficPlan:
    """The part of a plan that decides how long a trial takes."""

    network: Network
    flows: tuple[FlowPlan, ...]
    end_s: float

    def flow(self, name: str) -> FlowPlan:
        """Return the plan of the flow of that name."""
        return next(each for each in self.flows if each.flow.name == name)


def plan_traffic(scenario: Scenario) -> TrafficPlan:
    """Plan only the traffic of a valid scenario, for estimates: a third of a plan's time."""
    scenario = drawn(with_realism(scenario))
    network = build_network(scenario.network)
    flows = _flows(scenario, network, sysctls_of(scenario, network))
    return TrafficPlan(network, flows, _end_s(network, plan_radio(scenario, network), flows))


def _flows(scenario: Scenario, network: Network, sysctls: Sysctls) -> tuple[FlowPlan, ...]:
    return tuple(
        plan_flow(scenario, network, index, agreed_options(flow, sysctls))
        for index, flow in enumerate(scenario.flows)
    )


@dataclass(frozen=True)
class NetworkPlan:
    """What makes a scenario's network, without its flows, with any machine's ip and tc."""

    network: Network
    nodes: tuple[str, ...]
    veths: tuple[Veth, ...]
    sysctls: tuple[tuple[str, tuple[tuple[str, str], ...]], ...]
    setup: tuple[Command, ...]


def plan_network(scenario: Scenario) -> NetworkPlan:
    """Return what makes the network; raise if it has what ip and tc alone do not make."""
    fields = [name for name in RUNNERS_FIELDS if _is_used(scenario, name)]
    fields += [name for name in TRIALS_FIELDS if getattr(scenario, name)]
    fields += ["schedule"] if any(node.schedule for node in scenario.network.nodes) else []
    if fields:
        raise UsageError(f"not for whole programs: {', '.join(fields)}", "leave them out")
    scenario = replace(scenario, flows=(), network=shaped_by_htb(scenario.network))
    layout = _layout(scenario, build_network(scenario.network))
    return NetworkPlan(
        network=layout.network,
        nodes=layout.nodes,
        veths=tuple(_veths(layout)),
        sysctls=tuple(_sysctls(layout)),
        setup=_setup(layout, ()),
    )


def _is_used(scenario: Scenario, name: str) -> bool:
    directions = (each for link in scenario.network.links for each in link.directions)
    return any(getattr(each, name) != getattr(Direction(), name) for each in directions)


def _layout(scenario: Scenario, network: Network) -> _Layout:
    delayed = tuple(session_delays(scenario, network))
    return _Layout(
        scenario=scenario,
        network=network,
        session_delays=delayed,
        delays=tuple(delay_links(network, frozenset(each.link for each in delayed))),
        endpoints=hosts(controlled(scenario)),
        queues=tuple(queue_plans(network, scenario.flows)),
        radio=plan_radio(scenario, network),
        sysctls=sysctls_of(scenario, network),
        routes=tuple(route_plans(scenario, network)),
    )


def _setup(
    layout: _Layout, clsacts: Iterable[Command], one_segment: Collection[tuple[str, str]] = ()
) -> tuple[Command, ...]:
    """Return the commands that set the network up, node by node.

    No node's commands need another's, so those of one tool can share a process.
    """
    network, offloads = layout.network, layout.plain_interfaces
    switched_off = NO_UDP_OFFLOADS if has_udp_programs(layout.scenario.flows) else NO_OFFLOADS
    commands = (
        *_address_commands(network, one_segment),
        *(route_command(route) for route in layout.routes),
        *bridge_commands(network),
        *control_commands(layout.scenario, network, layout.endpoints),
        *delay_commands(layout.delays),
        *radio_commands(layout.radio),
        *clsacts,
        *(Command(node, ("ethtool", "-K", name, *switched_off)) for node, name in offloads),
        *(command for queue in layout.queues for command in shaper_commands(queue)),
    )
    places = {node: place for place, node in enumerate(layout.nodes)}
    return tuple(sorted(commands, key=lambda command: places[command.node]))


def _sysctls(layout: _Layout) -> Iterator[tuple[str, tuple[tuple[str, str], ...]]]:
    for node, settings in layout.sysctls.items():
        yield node, tuple(settings.items())
    if layout.endpoints:
        yield CONTROL, (*NO_IPV6, *control_sysctls(layout.endpoints))
    if layout.delays:
        yield DELAY_NODE, NO_IPV6


def _end_s(network: Network, radio: RadioPlan | None, flows: Iterable[FlowPlan]) -> float:
    """Return the time by which all flows have stopped and their packets have been captured."""
    stops = [flow.stop_s for flow in flows]
    radio_s = radio.drain_s if radio else 0
    return max(stops) + max(TAIL_S, RETIRE_S + ANSWER_MARGIN_S + longest_queue_s(network) + radio_s)


def _veths(layout: _Layout) -> Iterator[Veth]:
    through = {each.name: each.ends for each in layout.delays}
    for hop, _ in layout.network.hops:
        one, other = hop.out, hop.into
        if radio_of(hop.link) is not None:
            continue
        if hop.link.name not in through:
            yield Veth(one.node, one.name, one.mac, other.node, other.name, other.mac)
            continue
        for end, name in zip((one, other), through[hop.link.name], strict=True):
            yield Veth(end.node, end.name, end.mac, DELAY_NODE, name, peer_mac(end.mac))


def _address_commands(
    network: Network, one_segment: Collection[tuple[str, str]]
) -> Iterator[Command]:
    """Yield the commands for addresses, neighbours and routes.

    TCP hands down several segments as one packet, whatever the offloads are: a queue at the sending
    host would count them as one, and let them out at one instant. The guest's kernel cuts them
    before the queue; other kernels are told to hand down single segments where there is one.
    """
    for node in network.nodes:
        yield Command(node, ("ip", "link", "set", "lo", "up"))
        for end in network.interfaces(node):
            if node not in network.switches:
                yield Command(node, ("ip", "address", "add", end.address, "dev", end.name))
            if end.ipv6_address:
                ipv6_argv = ("ip", "address", "add", end.ipv6_address, "dev", end.name, "nodad")
                yield Command(node, ipv6_argv)
            single = ONE_SEGMENT if end.place in one_segment else ()
            yield Command(node, ("ip", "link", "set", end.name, "up", *single))
    for segment in network.segments():
        for end, peer in itertools.permutations(segment, 2):
            yield neighbour(end.node, end.name, peer.ip, peer.mac)
            if peer.ipv6_address:
                yield neighbour(end.node, end.name, peer.ip_of(IPV6), peer.mac)
    for node in network.nodes:
        for route in network.routes[node]:
            argv = ("ip", "route", "add", route.destination, "via", route.gateway)
            yield Command(node, argv)


BRIDGE = "bridge"


def bridge_commands(network: Network) -> Iterator[Command]:
    """Yield the commands that make switches bridges, which learn from the first echo requests."""
    for node in sorted(network.switches):
        options = ("type", "bridge", "stp_state", "0", "mcast_snooping", "0")
        yield Command(node, ("ip", "link", "add", BRIDGE, *options))
        for port in network.interfaces(node):
            yield Command(node, ("ip", "link", "set", port.name, "master", BRIDGE))
        yield Command(node, ("ip", "link", "set", BRIDGE, "up"))


@dataclass(frozen=True)
class Task:
    """One trial of a sweep: the scenario with its plan, to be run, estimated or checked."""

    scenario: Scenario
    plan: Plan


def tasks(scenarios: Iterable[Scenario]) -> list[Task]:
    """Plan all scenarios; the first one with faults raises, before anything runs."""
    return [Task(scenario, make_plan(scenario)) for scenario in scenarios]
