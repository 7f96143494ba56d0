"""The addresses of a network's interfaces: the papers' by their Mininet Topo, others by number."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Interface, IPv4Network

from testbed.errors import quoted
from testbed.scenario.builders import interface_numbers
from testbed.scenario.model import Graph, NodeKind, Topology, TopologyKind
from topologies.access_link import AccessLink
from topologies.dumbbell import Dumbbell
from topologies.router_bottleneck import RouterBottleneck

Topo = RouterBottleneck | Dumbbell | AccessLink
Place = tuple[int, int]  # a link's number, and its end
Routes = tuple[tuple[str, str], ...]  # destination, gateway
LONGEST = 15  # of an interface's name: IFNAMSIZ, with a byte of zero
FORM = "not a host's address with the length of its network, like 10.0.0.1/8"


def topo_of(topology: Topology | Graph) -> Topo | None:
    """The Topo class of a paper's network."""
    if isinstance(topology, Topology):
        match topology.kind:
            case TopologyKind.ROUTER_BOTTLENECK:
                return RouterBottleneck(senders=topology.hosts)
            case TopologyKind.DUMBBELL:
                return Dumbbell(pairs=topology.hosts)
            case TopologyKind.ACCESS_LINK:
                return AccessLink()
    return None


@dataclass(frozen=True)
class Port:
    """An interface's number at its node, and its address; a switch's has none."""

    number: int
    address: str = ""


def ports_in(topo: Topo) -> dict[Place, Port]:
    """Every interface's number and address, which is its own or else its node's."""
    found = {}
    for number, (*ends, details) in enumerate(topo.links(sort=False, withInfo=True)):
        for end, node in enumerate(ends):
            own = details.get(f"params{end + 1}", {}).get("ip")
            address = own or topo.nodeInfo(node)["ip"]
            found[(number, end)] = Port(details[f"port{end + 1}"], address)
    return found


def routes_in(topo: Topo) -> dict[str, Routes]:
    """Every node's routes, its default route last."""
    return {name: _routes(topo.nodeInfo(name)) for name in topo.nodes(sort=False)}


def _routes(info: Mapping[str, object]) -> Routes:
    default = str(info.get("defaultRoute", "")).removeprefix("via ")
    routes: list[tuple[str, str]] = list(info.get("routes", ()))  # type: ignore[call-overload]
    return (*routes, *((("default", default),) if default else ()))


def segments(ends: Sequence[Sequence[str]], switches: Collection[str]) -> list[list[Place]]:
    """The interfaces of hosts and routers that reach each other without a router: of one link, or
    of several that switches join."""
    group = list(range(len(ends)))  # of each link, the number of its segment's first
    for switch in switches:
        own = [number for number, each in enumerate(ends) if switch in each]
        joined = {group[number] for number in own}
        group = [min(joined) if each in joined else each for each in group]
    found: dict[int, list[Place]] = {}
    for number, each in enumerate(ends):
        places = [(number, end) for end in (0, 1) if each[end] not in switches]
        found.setdefault(group[number], []).extend(places)
    return list(found.values())


def _segments_of(graph: Graph) -> list[list[Place]]:
    switches = {node.name for node in graph.nodes if node.kind is NodeKind.SWITCH}
    return segments([link.ends for link in graph.links], switches)


def ports_by_number(graph: Graph) -> dict[Place, Port]:
    """Interfaces in the order of their node's links, and a network of 254 addresses a segment,
    where a link does not say otherwise."""
    addresses = {
        place: f"10.{number >> 8}.{number & 255}.{host}/24"
        for number, part in enumerate(_segments_of(graph))
        for host, place in enumerate(part, start=1)
    }
    found = {}
    for place, number in interface_numbers(graph).items():
        link, end = place
        own = graph.links[link].ports[end].address if graph.links[link].ports else None
        found[place] = Port(number, addresses.get(place, "") if own is None else own)
    return found


def port_faults(graph: Graph) -> Iterator[str]:
    """Interfaces that would have one name, or one that Linux would cut off, and addresses that
    could not reach each other."""
    ports = ports_by_number(graph)
    names = {
        place: f"{graph.links[place[0]].ends[place[1]]}-eth{port.number}"
        for place, port in ports.items()
    }
    for name, count in Counter(names.values()).items():
        if count > 1:
            yield f"topology.links: {count} interfaces are {name}: give their ports other numbers"
        if len(name) > LONGEST:
            yield f"topology.nodes: {name} is longer than an interface's name ({LONGEST})"
    if any(link.ports for link in graph.links):
        yield from _address_faults(graph, ports, names)


def _address_faults(
    graph: Graph, ports: Mapping[Place, Port], names: Mapping[Place, str]
) -> Iterator[str]:
    networks: dict[IPv4Network, str] = {}  # with the first interface in each
    for part in _segments_of(graph):
        own = {place: _interface(ports[place].address) for place in part}
        for place in part:
            if own[place] is None:
                yield f"topology.links[{place[0]}].ports: {quoted(ports[place].address)}: {FORM}"
                return
        if own:
            yield from _segment_faults({names[p]: ip for p, ip in own.items() if ip}, networks)


def _segment_faults(
    own: Mapping[str, IPv4Interface], networks: dict[IPv4Network, str]
) -> Iterator[str]:
    """Interfaces without a router between them, and the networks of segments before."""
    first = next(iter(own))
    home = own[first].network
    for name, each in own.items():
        if each.network != home:
            yield (
                f"topology.links: {first} ({own[first]}) and {name} ({each}) have no router "
                "between them, and are in two networks: give them addresses of one"
            )
            return
    for other, its in networks.items():
        if other.overlaps(home):
            yield (
                f"topology.links: {its} ({other}) and {first} ({home}) have a router between them, "
                "and are in one network: give them addresses of two"
            )
    networks[home] = first
    for ip, count in Counter(each.ip for each in own.values()).items():
        if count > 1:
            yield f"topology.links: the address {ip} is used {count} times"


def _interface(text: str) -> IPv4Interface | None:
    """The address that a text is; None if it is none, or none of a host's."""
    try:
        found = IPv4Interface(text)
    except ValueError:
        return None
    ends = (found.network.network_address, found.network.broadcast_address)
    odd = found.is_multicast or found.is_loopback or found.is_reserved or found.is_unspecified
    return None if odd or "/" not in text or found.ip in ends else found
