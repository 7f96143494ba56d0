"""What plans are made of: a command in a node, a cable between two, and their small parts."""

from __future__ import annotations

from dataclasses import dataclass

from testbed.plan.network import Network
from testbed.scenario.model import Flow


@dataclass(frozen=True)
class Command:
    """One command in one node."""

    node: str
    argv: tuple[str, ...]


@dataclass(frozen=True)
class Veth:
    """A pair of interfaces, each born in its node with its own hardware address."""

    node1: str
    name1: str
    mac1: str
    node2: str
    name2: str
    mac2: str


def peer_mac(mac: str) -> str:
    """The other end's hardware address, in wires or control."""
    return "06" + mac[2:]


def neighbour(node: str, interface: str, ip: str, mac: str) -> Command:
    """A fixed entry: no ARP between a flow's packets."""
    argv = ("ip", "neigh", "replace", ip, "lladdr", mac, "dev", interface, "nud", "permanent")
    return Command(node, argv)


def addresses_of(network: Network, flow: Flow) -> tuple[str, str]:
    """The ends of a flow: the interfaces that its path leaves by and arrives at."""
    path = network.path(flow.src, flow.dst)
    return path[0].out.ip, path[-1].into.ip
