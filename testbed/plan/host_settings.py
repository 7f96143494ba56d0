"""Settings of hosts: sysctls, parameters of congestion controls, routes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from testbed.plan.commands import Command
from testbed.plan.control_network import controlled
from testbed.plan.flows import mixed_senders, own_port
from testbed.plan.network import IPV6, Network, ip_version
from testbed.scenario.model import Flow, FlowKind, Scenario
from testbed.scenario.profiles import PROFILE_SETTINGS
from testbed.scenario.variants import Variant, variant
from testbed.scenario.video import PlayerKind


@dataclass(frozen=True)
class RoutePlan:
    """A route between a flow's hosts with its TCP attributes, as `ip route` names them."""

    node: str
    peer: str  # an address
    gateway: str  # empty: a neighbour
    interface: str
    attributes: tuple[tuple[str, int | str], ...]


@dataclass(frozen=True)
class Parameter:
    """A congestion control's module parameter, which holds for the whole kernel."""

    control: str
    name: str
    value: int

    @property
    def file(self) -> str:
        """The parameter's file in /sys."""
        return f"/sys/module/tcp_{self.control}/parameters/{self.name}"


# The defaults of Linux 6.1 with 1 GB of memory or more; with less they would be smaller.
BUFFERS = (
    ("net.ipv4.tcp_rmem", "4096\t131072\t6291456"),
    ("net.ipv4.tcp_wmem", "4096\t16384\t4194304"),
)
# of an interface that has IPv6 addresses: no packets of its own
QUIET_IPV6 = (
    ("disable_ipv6", "0"),
    ("addr_gen_mode", "1"),  # no link-local address
    ("accept_dad", "0"),
    ("accept_ra", "0"),
    ("router_solicitations", "0"),
)
NO_IPV6 = (("net.ipv6.conf.all.disable_ipv6", "1"), ("net.ipv6.conf.default.disable_ipv6", "1"))


def hosts(flows: Iterable[Flow]) -> tuple[str, ...]:
    """Return the hosts at both ends of these flows, each once."""
    return tuple(dict.fromkeys(node for flow in flows for node in (flow.src, flow.dst)))


def tcp_flows(scenario: Scenario) -> Iterator[tuple[Flow, Variant]]:
    """Yield all flows over TCP with their variants."""
    for flow in scenario.flows:
        if flow.variant is not None:
            yield flow, variant(flow.variant)


def _viewers(scenario: Scenario) -> Iterator[tuple[str, Variant]]:
    """Yield the hosts that play a video and have a variant for it."""
    for flow in scenario.flows:
        if flow.video is not None and flow.video.viewer_variant is not None:
            yield flow.dst, variant(flow.video.viewer_variant)


def recipes(scenario: Scenario) -> Iterator[Variant]:
    """Yield the variants of all sending hosts, some more than once."""
    yield from (recipe for _, recipe in (*tcp_flows(scenario), *_viewers(scenario)))


def sysctls_of(scenario: Scenario, network: Network) -> dict[str, dict[str, str]]:
    """Return every node's sysctls; later entries override earlier ones."""
    everywhere = {
        **dict(NO_IPV6),
        # iperf3's control connection takes another path than its data
        "net.ipv4.conf.all.rp_filter": "0",
        "net.ipv4.tcp_no_metrics_save": "1",
        **dict(BUFFERS),
        # leaves the data connections' ports alone
        "net.ipv4.ip_local_port_range": "50000\t60999",
        "net.ipv4.tcp_sack": "1",
        "net.ipv4.tcp_timestamps": "1",
        "net.ipv4.tcp_ecn": _ecn(scenario),
    }
    settings = {node: dict(everywhere) for node in network.nodes}
    if network.graph.ip == IPV6:
        for node in settings.keys() - network.switches:
            settings[node] |= _ipv6_settings(network, node)
    for node in network.routers:
        settings[node]["net.ipv4.ip_forward"] = "1"
    if network.graph.routes:  # packets come in where answers do not go out
        for node in settings.keys() - network.switches:
            for each in network.interfaces(node):
                settings[node][f"net.ipv4.conf.{each.name}.rp_filter"] = "0"
    for node in hosts(controlled(scenario)):
        settings[node][f"net.ipv4.conf.{node}-ctl.rp_filter"] = "0"
    for node in hosts(scenario.flows):
        settings[node] |= PROFILE_SETTINGS[scenario.profile].sysctls
    for flow, recipe in tcp_flows(scenario):
        receiver = recipe.receiver.items()
        settings[flow.dst] |= {f"net.ipv4.{name}": value for name, value in receiver}
    for flow, recipe in tcp_flows(scenario):
        settings[flow.src] |= recipe.sysctls
    for host, recipe in _viewers(scenario):
        settings[host] |= recipe.sysctls
    for browser in browsers(scenario):
        # the only way to tell a browser which port to come from
        port = own_port(scenario.flows.index(browser))
        settings[browser.dst]["net.ipv4.ip_local_port_range"] = f"{port}\t{port}"
    return {node: of_node | _given_sysctls(scenario, node) for node, of_node in settings.items()}


def _given_sysctls(scenario: Scenario, name: str) -> dict[str, str]:
    """Return the sysctls that the scenario names for a node."""
    ends = hosts(scenario.flows)
    given = dict(scenario.sysctls or {}) if name in ends else {}
    node = next((each for each in scenario.network.nodes if each.name == name), None)
    return given | dict(node.sysctls or {} if node else {})


def _ipv6_settings(network: Network, node: str) -> dict[str, str]:
    """Return the settings of a node that speaks IPv6, by the interfaces that do."""
    settings = {"net.ipv6.conf.all.disable_ipv6": "0"}
    if node in network.routers:
        settings["net.ipv6.conf.all.forwarding"] = "1"
    return settings | {
        f"net.ipv6.conf.{each.name}.{name}": value
        for each in network.interfaces(node)
        for name, value in QUIET_IPV6
    }


def sent_with(scenario: Scenario, recipe: Variant) -> dict[str, str]:
    """Return what a variant needs of its host beside its congestion control, by short names.

    A setting that is the same without the variant is left out.
    """
    given = {
        "tcp_sack": "1",
        "tcp_timestamps": "1",
        "tcp_ecn": _ecn(scenario),
        **{
            name.removeprefix("net.ipv4."): value
            for name, value in PROFILE_SETTINGS[scenario.profile].sysctls.items()
        },
    }
    return {name: value for name, value in recipe.sender.items() if given.get(name) != value}


def _ecn(scenario: Scenario) -> str:
    return "1" if scenario.asks_ecn and marks(scenario) else "2"


def browsers(scenario: Scenario) -> list[Flow]:
    """Return the flows whose video is played by a real browser."""
    return [f for f in scenario.flows if f.video and f.video.player is PlayerKind.CHROMIUM]


def marks(scenario: Scenario) -> bool:
    """Return whether a queue of the network marks packets."""
    directions = (each for link in scenario.network.links for each in link.directions)
    return any(each.queue is not None and each.queue.ecn for each in directions)


def agreed_options(flow: Flow, sysctls: Mapping[str, Mapping[str, str]]) -> frozenset[str]:
    """Return the TCP options that both hosts offer, and the connection therefore uses."""
    return frozenset(
        option
        for option in ("sack", "timestamps")
        if all(sysctls[end][f"net.ipv4.tcp_{option}"] == "1" for end in (flow.src, flow.dst))
    )


def parameters(scenario: Scenario) -> Iterator[Parameter]:
    """Yield the parameters of all congestion controls; a profile's override a variant's."""
    profile = PROFILE_SETTINGS[scenario.profile]
    values = {
        (recipe.control, name): value
        for recipe in recipes(scenario)
        for name, value in {
            **recipe.parameters,
            **profile.parameters.get(recipe.control, {}),
        }.items()
    }
    for (control, name), value in values.items():
        yield Parameter(control, name, value)


def route_plans(scenario: Scenario, network: Network) -> Iterator[RoutePlan]:
    """Yield the routes between hosts of TCP flows that have attributes."""
    profile = PROFILE_SETTINGS[scenario.profile]
    mixed = mixed_senders(scenario.flows)
    by_destination: dict[tuple[str, str, int], dict[str, int | str]] = {}
    for flow, recipe in tcp_flows(scenario):
        version = ip_version(network.graph, flow)
        forward = by_destination.setdefault((flow.src, flow.dst, version), {})
        forward.update(profile.sender_route)
        if flow.src in mixed and flow.kind is not FlowKind.TCP:  # iperf3 chooses at its socket
            forward["congctl"] = recipe.control
        if flow.rto_min_ms is not None:
            forward["rto_min"] = flow.rto_min_ms
        if flow.initcwnd is not None:
            forward["initcwnd"] = flow.initcwnd
        reverse = by_destination.setdefault((flow.dst, flow.src, version), {})
        reverse.update(profile.receiver_route)
        reverse.update(recipe.receiver_route)
        if flow.window_bytes is not None:
            reverse["window"] = flow.window_bytes
        if flow.initrwnd is not None:
            reverse["initrwnd"] = flow.initrwnd
        if flow.quickack:
            reverse["quickack"] = 1
    for (node, peer, version), attributes in by_destination.items():
        if attributes:
            path = network.path(node, peer)
            door = network.gateway(path)
            gateway = "" if door.node == peer else door.ip_of(version)
            # the address on the flow's own path
            address = path[-1].into.ip_of(version)
            yield RoutePlan(node, address, gateway, path[0].out.name, tuple(attributes.items()))


ROUTE_UNITS = {"rto_min": "ms"}  # `ip route` shows it without


def route_command(route: RoutePlan) -> Command:
    """Return the route as an `ip route` command."""
    via = ("via", route.gateway) if route.gateway else ()
    arguments = tuple(
        word
        for name, value in route.attributes
        for word in (name, f"{value}{ROUTE_UNITS.get(name, '')}")
    )
    argv = ("ip", "route", "replace", route.peer, *via, "dev", route.interface, *arguments)
    return Command(route.node, argv)
