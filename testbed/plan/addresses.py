"""The addresses of a network's interfaces: the papers' by their Mininet Topo, others by number."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from testbed.scenario.model import Graph, NodeKind, Topology, TopologyKind
from topologies.access_link import AccessLink
from topologies.dumbbell import Dumbbell
from topologies.router_bottleneck import RouterBottleneck

Topo = RouterBottleneck | Dumbbell | AccessLink
Place = tuple[int, int]  # a link's number, and its end
Routes = tuple[tuple[str, str], ...]  # destination, gateway


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


def segments(graph: Graph) -> list[list[Place]]:
    """The interfaces of hosts and routers that reach each other without a router: of one link, or
    of several that switches join."""
    switches = {node.name for node in graph.nodes if node.kind is NodeKind.SWITCH}
    group = list(range(len(graph.links)))  # of each link, the number of its segment's first
    for switch in switches:
        own = [number for number, link in enumerate(graph.links) if switch in link.ends]
        joined = {group[number] for number in own}
        group = [min(joined) if each in joined else each for each in group]
    found: dict[int, list[Place]] = {}
    for number, link in enumerate(graph.links):
        places = [(number, end) for end in (0, 1) if link.ends[end] not in switches]
        found.setdefault(group[number], []).extend(places)
    return list(found.values())


def ports_by_number(graph: Graph) -> dict[Place, Port]:
    """Interfaces in the order of their node's links; a network of 254 addresses a segment."""
    addresses = {
        place: f"10.{number >> 8}.{number & 255}.{host}/24"
        for number, part in enumerate(segments(graph))
        for host, place in enumerate(part, start=1)
    }
    found: dict[Place, Port] = {}
    used: Counter[str] = Counter()
    for number, link in enumerate(graph.links):
        for end, node in enumerate(link.ends):
            found[(number, end)] = Port(used[node], addresses.get((number, end), ""))
            used[node] += 1
    return found
