"""A scenario becomes data: the commands of every node, the captures, the flows, the checks.

Nothing here starts anything; `testbed plan` prints it and the trial applies it. Three kinds of
node carry the network: the Topo's own hosts and routers, `wires` (wires.py), and `control`
(control.py).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from testbed import layout, queues
from testbed.background import BackgroundPlan, as_flow, plan_background
from testbed.commands import Command, Veth, neighbour, peer_mac
from testbed.control import (
    CONTROL,
    control_commands,
    control_sysctls,
    control_veths,
    controlled,
)
from testbed.flow_plan import FlowPlan, own_port, plan_flow
from testbed.layout import Hop, Interface, Link, Network, Shaper
from testbed.loss_plan import DropPlan, LossPlan, clsact_commands, drop_plans, loss_plans
from testbed.process import CHROMIUM
from testbed.profiles import PROFILES
from testbed.radio import RadioPlan, plan_radio, radio_commands
from testbed.scenario import Bottleneck, CapturePoint, Flow, Path, Scenario
from testbed.validate import validate
from testbed.variants import Variant, variant
from testbed.viewing import Player
from testbed.wires import WIRES, is_wire, wire_commands, wire_ends

# after the last flow: queues drain, and tcpdump's blocks retire
TAIL_S = 2.0
RETIRE_S = 1.0


@dataclass(frozen=True)
class Need:
    """A kernel feature, or a program, without which the scenario cannot run."""

    kind: str  # "congestion control", "queue discipline", "classifier", "radio", "program"
    name: str
    symbol: str = ""
    module: str = ""


@dataclass(frozen=True)
class CapturePlan:
    """One interface to capture, and what the capture is good for."""

    node: str
    interface: str
    roles: tuple[str, ...]


@dataclass(frozen=True)
class RoutePlan:
    """A route between a flow's hosts and what it asks of TCP, as `ip route` names it."""

    node: str
    peer: str  # an address
    gateway: str  # empty: a neighbour
    interface: str
    attributes: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Parameter:
    """A setting of a congestion control, for the whole kernel."""

    control: str
    name: str
    value: int

    @property
    def file(self) -> str:
        """Where the kernel shows it."""
        return f"/sys/module/tcp_{self.control}/parameters/{self.name}"


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
    network = layout.build(scenario.topology)
    background = plan_background(scenario, network)
    many = background.link if background else ""  # the link with many delays
    wired = any(is_wire(link, many) for link in network.links)
    endpoints = _hosts(controlled(scenario))
    shaped = tuple(_queue_plans(network, scenario))
    sysctls = {node: _sysctls(scenario, network, node) for node in network.nodes}
    routes = tuple(_route_plans(scenario, network))
    flows = tuple(
        plan_flow(scenario, network, index, _options(flow, sysctls))
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
        *(_route_command(route) for route in routes),
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
        parameters=tuple(_parameters(scenario)),
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
        needs=tuple(dict.fromkeys(_needs(scenario, network))),
        warnings=tuple(_warnings(scenario, network)),
        end_s=max([*(flow.stop_s for flow in flows), *([background.stop_s] if background else [])])
        + max(TAIL_S, RETIRE_S + _longest_queue_s(network) + (radio.drain_s if radio else 0)),
    )


# What Linux 6.1 gives itself with 1 GB of memory or more; with less it would be less.
BUFFERS = (
    ("net.ipv4.tcp_rmem", "4096\t131072\t6291456"),
    ("net.ipv4.tcp_wmem", "4096\t16384\t4194304"),
)
NO_OFFLOADS = ("tso", "off", "gso", "off", "gro", "off")
NO_IPV6 = (("net.ipv6.conf.all.disable_ipv6", "1"), ("net.ipv6.conf.default.disable_ipv6", "1"))


def _hosts(flows: Iterable[Flow]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(node for flow in flows for node in (flow.src, flow.dst)))


def traffic_hosts(scenario: Scenario) -> tuple[str, ...]:
    """Where traffic starts and ends, the background's too."""
    background = scenario.background
    return (*_hosts(scenario.flows), *((background.src, background.dst) if background else ()))


def _tcp_flows(scenario: Scenario) -> Iterator[tuple[Flow, Variant]]:
    """All that runs over TCP, the background too."""
    background = (as_flow(scenario.background),) if scenario.background else ()
    for flow in (*scenario.flows, *background):
        if flow.variant is not None:
            yield flow, variant(flow.variant)


def _viewers(scenario: Scenario) -> Iterator[tuple[str, Variant]]:
    """Hosts that watch a video with a variant of their own."""
    for flow in scenario.flows:
        if flow.video is not None and flow.video.viewer_variant is not None:
            yield flow.dst, variant(flow.video.viewer_variant)


def _recipes(scenario: Scenario) -> Iterator[Variant]:
    """Every host's variant that is asked for."""
    yield from (recipe for _, recipe in (*_tcp_flows(scenario), *_viewers(scenario)))


def _sysctls(scenario: Scenario, network: Network, node: str) -> dict[str, str]:
    """A node's settings: the later ones of these go before the earlier ones."""
    settings = {
        **dict(NO_IPV6),
        # iperf3's control connection takes another way than its data
        "net.ipv4.conf.all.rp_filter": "0",
        "net.ipv4.tcp_no_metrics_save": "1",
        **dict(BUFFERS),
        # leaves the data connections' ports alone
        "net.ipv4.ip_local_port_range": "50000\t60999",
        "net.ipv4.tcp_sack": "1",
        "net.ipv4.tcp_timestamps": "1",
        "net.ipv4.tcp_ecn": "1" if _marks(scenario.topology.bottleneck) else "2",
    }
    if node in network.routers:
        settings["net.ipv4.ip_forward"] = "1"
    if node in _hosts(controlled(scenario)):
        settings[f"net.ipv4.conf.{node}-ctl.rp_filter"] = "0"
    if node in traffic_hosts(scenario):
        settings |= PROFILES[scenario.profile].sysctls
    for flow, recipe in _tcp_flows(scenario):
        if flow.dst == node:
            settings |= {f"net.ipv4.{name}": value for name, value in recipe.receiver.items()}
    for flow, recipe in _tcp_flows(scenario):
        if flow.src == node:
            settings |= recipe.sysctls
    for host, recipe in _viewers(scenario):
        if host == node:
            settings |= recipe.sysctls
    for browser in browsers(scenario):
        if browser.dst == node:
            # the only way to tell a browser which port to come from
            port = own_port(scenario.flows.index(browser))
            settings["net.ipv4.ip_local_port_range"] = f"{port}\t{port}"
    return settings


def browsers(scenario: Scenario) -> list[Flow]:
    """Videos that a real browser plays."""
    return [f for f in scenario.flows if f.video and f.video.player is Player.CHROMIUM]


def _marks(bottleneck: Bottleneck) -> bool:
    """Whether a queue of either direction marks packets."""
    return bottleneck.queue.ecn or (bottleneck.back_queue or bottleneck.queue).ecn


def _options(flow: Flow, sysctls: Mapping[str, Mapping[str, str]]) -> frozenset[str]:
    """What both hosts offer is what the connection uses."""
    return frozenset(
        option
        for option in ("sack", "timestamps")
        if all(sysctls[end][f"net.ipv4.tcp_{option}"] == "1" for end in (flow.src, flow.dst))
    )


def _parameters(scenario: Scenario) -> Iterator[Parameter]:
    """Every control's own, once; the profile's go before the variant's."""
    profile = PROFILES[scenario.profile]
    values = {
        (recipe.control, name): value
        for recipe in _recipes(scenario)
        for name, value in {
            **recipe.parameters,
            **profile.parameters.get(recipe.control, {}),
        }.items()
    }
    for (control, name), value in values.items():
        yield Parameter(control, name, value)


def _route_plans(scenario: Scenario, network: Network) -> Iterator[RoutePlan]:
    profile = PROFILES[scenario.profile]
    found: dict[tuple[str, str], dict[str, int]] = {}
    for flow, _ in _tcp_flows(scenario):
        there = found.setdefault((flow.src, flow.dst), {})
        there.update(profile.sender_route)
        if flow.rto_min_ms is not None:
            there["rto_min"] = flow.rto_min_ms
        back = found.setdefault((flow.dst, flow.src), {})
        back.update(profile.receiver_route)
        if flow.window_bytes is not None:
            back["window"] = flow.window_bytes
    for (node, peer), attributes in found.items():
        if attributes:
            path = network.path(node, peer)
            gateway = path[0].into.ip if len(path) > 1 else ""
            # a flow's own addresses, which are those of the way that it goes
            address = path[-1].into.ip
            yield RoutePlan(node, address, gateway, path[0].out.name, tuple(attributes.items()))


ROUTE_UNITS = {"rto_min": "ms"}  # `ip route` shows it without


def _route_command(route: RoutePlan) -> Command:
    via = ("via", route.gateway) if route.gateway else ()
    words = tuple(
        word
        for name, value in route.attributes
        for word in (name, f"{value}{ROUTE_UNITS.get(name, '')}")
    )
    argv = ("ip", "route", "replace", route.peer, *via, "dev", route.interface, *words)
    return Command(route.node, argv)


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


def _address_commands(network: Network) -> Iterator[Command]:
    for node in network.nodes:
        yield Command(node, ("ip", "link", "set", "lo", "up"))
        for end in network.interfaces(node):
            yield Command(node, ("ip", "address", "add", end.address, "dev", end.name))
            yield Command(node, ("ip", "link", "set", end.name, "up"))
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
        ("tc", "qdisc", "add", *device, "parent", "1:3", "handle", "30:", *words),
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


# reno is part of TCP itself
ODD_SYMBOLS = {"reno": "CONFIG_INET", "highspeed": "CONFIG_TCP_CONG_HSTCP"}


def control_need(control: str) -> Need:
    """What a kernel must have to run a congestion control."""
    symbol = ODD_SYMBOLS.get(control, f"CONFIG_TCP_CONG_{control.upper()}")
    return Need("congestion control", control, symbol, f"tcp_{control}")


def _needs(scenario: Scenario, network: Network) -> Iterator[Need]:
    if browsers(scenario):
        yield Need("program", CHROMIUM)
    for recipe in _recipes(scenario):
        yield control_need(recipe.control)
    for flow in scenario.flows:
        if flow.drops or flow.loss:
            yield Need("queue discipline", "clsact", "CONFIG_NET_SCH_INGRESS", "sch_ingress")
            yield Need("classifier", "bpf", "CONFIG_NET_CLS_BPF", "cls_bpf")
    for link in network.links:
        yield from _link_needs(link)
    if scenario.background:
        yield Need("queue discipline", "fq", "CONFIG_NET_SCH_FQ", "sch_fq")
        yield Need("queue discipline", "clsact", "CONFIG_NET_SCH_INGRESS", "sch_ingress")
        yield Need("classifier", "bpf", "CONFIG_NET_CLS_BPF", "cls_bpf")


def _link_needs(link: Link) -> Iterator[Need]:
    for shaper in link.shapers:
        if shaper:
            row = queues.DISCIPLINES[shaper.queue.discipline]
            yield Need("queue discipline", "htb", "CONFIG_NET_SCH_HTB", "sch_htb")
            yield Need("queue discipline", row.name, row.symbol, f"sch_{row.name}")
    if link.radio is not None:
        yield Need("radio", "mac80211_hwsim", "CONFIG_MAC80211_HWSIM", "mac80211_hwsim")
    if is_wire(link):
        yield Need("queue discipline", "netem", "CONFIG_NET_SCH_NETEM", "sch_netem")
        yield Need("queue discipline", "clsact", "CONFIG_NET_SCH_INGRESS", "sch_ingress")


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
