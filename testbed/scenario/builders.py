"""The networks that have a name, as graphs: nodes and links in their order."""

from __future__ import annotations

import dataclasses
import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from testbed.memo import cached_by_repr
from testbed.scenario.links.schedule import of_queue, of_wire
from testbed.scenario.model import (
    Bottleneck,
    Direction,
    Graph,
    GraphLink,
    GraphNode,
    GraphPort,
    NodeKind,
    Topology,
    TopologyKind,
)
from testbed.scenario.shortest import Edge, paths

UNSAID = (GraphPort(), GraphPort())
KEPT = 32  # networks: those of a sweep are few, and come again and again


@dataclass(frozen=True)
class Builder:
    """A named network: what `hosts` counts, and the graph of its settings."""

    unit: str
    graph: Callable[[Topology], Graph]


def graph_of(topology: Topology | Graph) -> Graph:
    """The graph of a topology, named or not."""
    return topology if isinstance(topology, Graph) else _graph_of(topology)


@cached_by_repr(KEPT)
def _graph_of(topology: Topology) -> Graph:
    return BUILDERS[topology.kind].graph(topology)


def edges(graph: Graph) -> tuple[Edge, ...]:
    """A graph's links as paths see them."""
    return tuple(
        Edge((link.ends[0], link.ends[1]), sum(way.delay_ms for way in link.directions))
        for link in graph.links
    )


def transit(graph: Graph) -> frozenset[str]:
    """The nodes that pass packets on."""
    return frozenset(node.name for node in graph.nodes if node.kind is not NodeKind.HOST)


def interface_numbers(graph: Graph) -> dict[tuple[int, int], int]:
    """The number of the interface at each link's each end: in the order of its node's links, where
    the link does not say another."""
    used: Counter[str] = Counter()
    found = {}
    for index, link in enumerate(graph.links):
        for end, (node, port) in enumerate(zip(link.ends, link.ports or UNSAID, strict=True)):
            found[(index, end)] = used[node] if port.number is None else port.number
            used[node] += 1
    return found


def longest_rtt_ms(graph: Graph) -> float:
    """The round trip that limits in BDP are of: the longest between two hosts unless given."""
    if graph.rtt_ms is not None:
        return graph.rtt_ms
    hosts = [node.name for node in graph.nodes if node.kind is NodeKind.HOST]
    known, through = edges(graph), transit(graph)
    found = (paths(known, through, host) for host in hosts)
    steps = (trails[other] for trails in found for other in hosts if other in trails)
    return max((sum(known[n].delay_ms for n, _ in each) for each in steps), default=0.0)


def _router(name: str) -> GraphNode:
    return GraphNode(name, NodeKind.ROUTER)


def _neck(bottleneck: Bottleneck, one: str, other: str) -> GraphLink:
    """The bottleneck between two nodes."""
    return GraphLink((one, other), _neck_there(bottleneck), _neck_back(bottleneck))


def _neck_there(bottleneck: Bottleneck) -> Direction:
    return Direction(
        bottleneck.rate_mbit,
        bottleneck.delay_ms,
        bottleneck.queue,
        trace=bottleneck.trace,
        schedule=bottleneck.schedule,
    )


def _neck_back(bottleneck: Bottleneck) -> Direction:
    """The bottleneck's other direction."""
    alike = bottleneck.back_rate_mbit is None
    schedule = bottleneck.back_schedule
    if schedule is None:
        schedule = bottleneck.schedule if alike else of_wire(bottleneck.schedule)
    if not bottleneck.both_directions:
        return Direction(delay_ms=bottleneck.delay_ms, schedule=of_wire(schedule))
    return Direction(
        bottleneck.back_rate_mbit or bottleneck.rate_mbit,
        bottleneck.delay_ms,
        bottleneck.back_queue or bottleneck.queue,
        trace=bottleneck.back_trace or (bottleneck.trace if alike else None),
        schedule=schedule,
    )


def _access(topology: Topology, one: str, other: str) -> GraphLink:
    """Any other link, with settings of its own or those of all."""
    path = topology.links.get(f"{one}-{other}", topology.access)
    there, back = (
        Direction(
            rate,
            path.delay_ms,
            path.queue if rate else None,
            path.jitter_ms,
            path.loss,
            reorder=path.reorder,
        )
        for rate in (path.rate_mbit, path.rate_mbit and (path.back_rate_mbit or path.rate_mbit))
    )
    return GraphLink((one, other), there, back, observed=False)


def _router_bottleneck(topology: Topology) -> Graph:
    """With one router, its ways back to the senders are the bottleneck's other direction."""
    neck = topology.bottleneck
    names = [f"sender{n}" for n in range(1, topology.hosts + 1)]
    middle = _neck(neck, "router", "receiver")
    links = [_access(topology, name, "router") for name in names]
    if neck.both_directions:
        links = [dataclasses.replace(each, back=_slowed(each, neck)) for each in links]
    wire = Direction(delay_ms=neck.delay_ms, schedule=of_wire(middle.directions[1].schedule))
    return Graph(
        (_router("router"), GraphNode("receiver"), *map(GraphNode, names)),
        (*links, dataclasses.replace(middle, back=wire)),
        _longest(neck, [[link] for link in links]),
    )


def _slowed(link: GraphLink, neck: Bottleneck) -> Direction:
    """A link's way back with the bottleneck's rate and queue."""
    back = link.directions[1]
    shaped = _neck_back(neck)
    return dataclasses.replace(
        back,
        rate_mbit=shaped.rate_mbit,
        queue=shaped.queue,
        trace=shaped.trace,
        schedule=of_queue(shaped.schedule),
    )


def _dumbbell(topology: Topology) -> Graph:
    numbers = range(1, topology.hosts + 1)
    hosts = (GraphNode(f"{side}{n}") for n in numbers for side in ("sender", "receiver"))
    senders = [_pair_access(topology, n, f"sender{n}", "left") for n in numbers]
    receivers = [_pair_access(topology, n, f"receiver{n}", "right") for n in numbers]
    neck = topology.bottleneck
    pairs = zip(senders, receivers, strict=True)
    return Graph(
        (_router("left"), _router("right"), *hosts),
        (_neck(neck, "left", "right"), *senders, *receivers),
        _longest(neck, pairs),
    )


def _pair_access(topology: Topology, number: int, one: str, other: str) -> GraphLink:
    """A host's link to its router; where pairs have round trips of their own, with its share."""
    link = _access(topology, one, other)
    if not topology.rtts_ms:
        return link
    rtt_ms = topology.rtts_ms[(number - 1) % len(topology.rtts_ms)]
    delay_ms = access_share_ms(topology.bottleneck, rtt_ms)
    there, back = (dataclasses.replace(way, delay_ms=delay_ms) for way in link.directions)
    return dataclasses.replace(link, there=there, back=back)


def access_share_ms(bottleneck: Bottleneck, rtt_ms: float) -> float:
    """The delay of each of a pair's two access links that makes up its round trip."""
    return round((rtt_ms / 2 - bottleneck.delay_ms) / 2, 3)


def _access_link(topology: Topology) -> Graph:
    links = (
        _access(topology, "server", "isp"),
        _neck(topology.bottleneck, "isp", "ap"),
        _access(topology, "ap", "station"),
    )
    nodes = (_router("isp"), _router("ap"), GraphNode("server"), GraphNode("station"))
    return Graph(nodes, links, _longest(topology.bottleneck, [(links[0], links[2])]))


def _parking_lot(topology: Topology) -> Graph:
    """Pair 1 crosses all bottlenecks, and each of the others one of them."""
    last = topology.hosts + 1
    ends = [(1, 1, last), *((n + 1, n, n + 1) for n in range(1, last))]
    return _row(topology, ends)


def _chain(topology: Topology) -> Graph:
    return _row(topology, [(1, 1, topology.hosts + 1)])


def _row(topology: Topology, pairs: Sequence[tuple[int, int, int]]) -> Graph:
    """Bottlenecks in a row, and pairs of hosts: a number, and the routers of both."""
    routers = [f"router{n}" for n in range(1, topology.hosts + 2)]
    necks = (_neck(topology.bottleneck, *ends) for ends in itertools.pairwise(routers))
    hosts = (GraphNode(f"{side}{n}") for n, _, _ in pairs for side in ("sender", "receiver"))
    access = (
        _access(topology, f"{side}{n}", f"router{at}")
        for n, first, last in pairs
        for side, at in (("sender", first), ("receiver", last))
    )
    return Graph((*map(_router, routers), *hosts), (*necks, *access))


def _star(topology: Topology) -> Graph:
    """Each host's link has the bottleneck on its way to the host, and the access the other way."""
    neck = topology.bottleneck
    down = _neck_there(neck)
    names = [f"host{n}" for n in range(1, topology.hosts + 1)]
    links = (GraphLink(("hub", name), down, _access(topology, "hub", name).there) for name in names)
    return Graph((_router("hub"), *map(GraphNode, names)), tuple(links))


def _longest(neck: Bottleneck, pairs: Iterable[Iterable[GraphLink]]) -> float:
    """The round trip across the bottleneck and the slowest pair of access links."""
    return 2 * (neck.delay_ms + max(sum(link.there.delay_ms for link in pair) for pair in pairs))


BUILDERS: Mapping[TopologyKind, Builder] = {
    TopologyKind.ROUTER_BOTTLENECK: Builder("sender", _router_bottleneck),
    TopologyKind.DUMBBELL: Builder("pair", _dumbbell),
    TopologyKind.ACCESS_LINK: Builder("station", _access_link),
    TopologyKind.PARKING_LOT: Builder("bottleneck", _parking_lot),
    TopologyKind.CHAIN: Builder("bottleneck", _chain),
    TopologyKind.STAR: Builder("host", _star),
}
