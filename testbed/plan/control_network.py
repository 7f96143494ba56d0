"""The control network, beside the emulated one: iperf3's control connections and UDP greetings.

So flows start on time, whatever queues are on their paths, and the captures hold nothing but
the flows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from testbed.plan.commands import Command, Veth, ipv4_addresses_of, neighbour, peer_mac
from testbed.plan.network import Network
from testbed.scenario.model import CLIENT_PORTS, Flow, FlowKind, Scenario

CONTROL = "control"
FEW_SERVER_PORTS = (5201, 5999)
CONTROL_TABLE = "9"
CONTROL_MARK = "9"  # pace.c puts it on UDP sockets until their first paced packet


def controlled(scenario: Scenario) -> tuple[Flow, ...]:
    """Return the flows that need a control connection: iperf3's."""
    return tuple(flow for flow in scenario.flows if flow.kind in (FlowKind.TCP, FlowKind.CBR))


def server_ports(flows: Sequence[Flow]) -> tuple[int, int]:
    """Return the first and the last port of iperf3 servers: each flow has one, by its place."""
    first, last = FEW_SERVER_PORTS
    return first, max(last, first + len(flows) - 1)


def control_veths(endpoints: tuple[str, ...]) -> Iterator[Veth]:
    """Yield a cable from every host with flows to the control network's router."""
    for number, node in enumerate(endpoints):
        mac = _control_mac(number)
        yield Veth(node, f"{node}-ctl", mac, CONTROL, f"c{number}", peer_mac(mac))


def control_sysctls(endpoints: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Yield the router's settings: it forwards, also where answers take another path."""
    yield "net.ipv4.ip_forward", "1"
    yield "net.ipv4.conf.all.rp_filter", "0"
    for number in range(len(endpoints)):
        yield f"net.ipv4.conf.c{number}.rp_filter", "0"


def _control_mac(number: int) -> str:
    return f"02:00:{number >> 8:02x}:01:{number & 255:02x}:01"


def control_commands(
    scenario: Scenario, network: Network, endpoints: tuple[str, ...]
) -> Iterator[Command]:
    """Yield the commands that set up interfaces, neighbours, routes and rules.

    These are routes and no bridge: a new bridge's ports may take a second to forward.
    """
    for number, node in enumerate(endpoints):
        yield Command(CONTROL, ("ip", "link", "set", f"c{number}", "up"))
        yield Command(node, ("ip", "link", "set", f"{node}-ctl", "up"))
    for flow in controlled(scenario):
        src, dst = ipv4_addresses_of(network, flow)
        for node, address, peer_ip in ((flow.src, src, dst), (flow.dst, dst, src)):
            number = endpoints.index(node)
            own_mac = _control_mac(number)
            to, device = f"c{number}", f"{node}-ctl"
            yield neighbour(CONTROL, to, address, own_mac)
            yield Command(CONTROL, ("ip", "route", "replace", address, "dev", to))
            yield neighbour(node, device, peer_ip, peer_mac(own_mac))
            route = ("ip", "route", "replace", peer_ip, "dev", device, "src", address)
            yield Command(node, (*route, "table", CONTROL_TABLE))
    for node in endpoints:
        yield from _control_rules(node, server_ports(scenario.flows))


def _control_rules(node: str, ports: tuple[int, int]) -> Iterator[Command]:
    """Yield the rules that send control packets over the control network.

    TCP between a server's and a client's port is data; all else from or to a server's is control.
    """
    server = "{}-{}".format(*ports)
    client = "{}-{}".format(*CLIENT_PORTS)
    tcp = ("ipproto", "tcp")
    rules: tuple[tuple[tuple[str, ...], str], ...] = (
        ((*tcp, "sport", client, "dport", server), "main"),
        ((*tcp, "sport", server, "dport", client), "main"),
        ((*tcp, "dport", server), CONTROL_TABLE),
        ((*tcp, "sport", server), CONTROL_TABLE),
        (("fwmark", CONTROL_MARK), CONTROL_TABLE),
    )
    for preference, (match, table) in enumerate(rules, start=100):
        yield Command(node, ("ip", "rule", "add", "pref", str(preference), *match, "lookup", table))
