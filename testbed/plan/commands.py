"""The elements of a plan: commands in nodes, cables between them, addresses, handles of tc."""

from __future__ import annotations

from dataclasses import dataclass, replace

from testbed.plan.network import Network, ip_version
from testbed.scenario.model import Flow
from testbed.store.names import LEAF_MAJOR


@dataclass(frozen=True)
class Command:
    """One command and the node that it runs in."""

    node: str
    argv: tuple[str, ...]


@dataclass(frozen=True)
class Veth:
    """A pair of interfaces, each created in its node with its own hardware address."""

    node1: str
    name1: str
    mac1: str
    node2: str
    name2: str
    mac2: str


def peer_mac(mac: str) -> str:
    """Return the hardware address of the cable's other end, in `wires` or `control`."""
    return "06" + mac[2:]


def neighbour(node: str, interface: str, ip: str, mac: str) -> Command:
    """Return a permanent neighbour entry, so that no ARP comes between a flow's packets."""
    argv = ("ip", "neigh", "replace", ip, "lladdr", mac, "dev", interface, "nud", "permanent")
    return Command(node, argv)


def addresses_of(network: Network, flow: Flow) -> tuple[str, str]:
    """Return the addresses of the first and the last interface on a flow's path."""
    path, version = network.path(flow.src, flow.dst), ip_version(network.graph, flow)
    return path[0].out.ip_of(version), path[-1].into.ip_of(version)


def ipv4_addresses_of(network: Network, flow: Flow) -> tuple[str, str]:
    """Return those by which its hosts exchange what is no data: iperf3's results, echo requests."""
    return addresses_of(network, replace(flow, ip=4))


@dataclass(frozen=True)
class Handle:
    """tc's name for a discipline or class on an interface: two numbers in hexadecimal."""

    major: int
    minor: int = 0

    def __str__(self) -> str:
        return f"{self.major:x}:{self.minor:x}" if self.minor else f"{self.major:x}:"

    @property
    def number(self) -> int:
        """The kernel's own form."""
        return self.major << 16 | self.minor


SHAPER = Handle(1)  # what keeps to the rate, at the root
HTB_CLASS = Handle(1, 3)  # htb's only class
ONLY_CLASS = Handle(1, 1)  # that of a link, or of a trace
LEAF = Handle(LEAF_MAJOR)  # the queue below it
RECEIVER = Handle(3)  # what lets packets wait for the machine at the end of a link
RECEIVER_CLASS = Handle(2, 1)  # netem's only class
DELAY_HANDLE = Handle(2)  # what lets packets wait on a link with a delay
