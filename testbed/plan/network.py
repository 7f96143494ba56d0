"""The network of a scenario: nodes, addresses, links, routes and paths."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from testbed.memo import cached_by_repr
from testbed.plan.addresses import (
    Place,
    Port,
    Routes,
    ports_by_number,
    ports_in,
    routes_in,
    segments,
    topo_of,
)
from testbed.scenario import queues
from testbed.scenario.builders import KEPT, graph_of, longest_rtt_ms
from testbed.scenario.discipline import Limit
from testbed.scenario.links.schedule import Schedule, of_queue, of_wire, rates
from testbed.scenario.links.trace import OPPORTUNITY_BYTES, parse
from testbed.scenario.losses import GilbertElliott
from testbed.scenario.model import (
    LATER,
    PLAIN_QUEUE,
    Direction,
    Graph,
    GraphLink,
    NodeKind,
    Queue,
    Radio,
    Topology,
    TopologyKind,
)
from testbed.scenario.shortest import Edge, Step, paths


@dataclass(frozen=True)
class Interface:
    """One end of a link."""

    node: str
    name: str
    address: str  # 10.0.0.1/24
    mac: str

    @property
    def ip(self) -> str:
        """The address without its prefix length."""
        return self.address.partition("/")[0]

    @property
    def place(self) -> tuple[str, str]:
        """Its node and its name."""
        return self.node, self.name


@dataclass(frozen=True)
class Shaper:
    """An interface's rate and the queue in front of it; the rate may change, or be a trace's."""

    rate_mbit: float
    queue: Queue
    limit: Limit
    trace: str | None = field(default=None, metadata=LATER)
    schedule: Schedule = field(default=(), metadata=LATER)

    @cached_property
    def drain_s(self) -> float:
        """How long the queue takes to drain when full, at worst."""
        if self.trace is not None:
            opportunities = -(-self.limit.bytes // OPPORTUNITY_BYTES)
            return parse(self.trace).longest_ms(opportunities + 1) / 1e3
        slowest = min(rate for _, rate in rates(self.schedule, self.rate_mbit))
        return self.limit.ms / 1e3 * (self.rate_mbit / slowest)


@dataclass(frozen=True)
class Wire:
    """What a link does to packets of one direction."""

    delay_ms: float
    jitter_ms: float = 0.0
    loss: GilbertElliott | None = None
    schedule: Schedule = field(default=(), metadata=LATER)
    reorder: float = field(default=0.0, metadata=LATER)


@dataclass(frozen=True)
class Link:
    """Two interfaces, what is between them (a delay that may vary, losses; or a radio), and the
    shapers on their way out. The way back is as the way there, unless `back` says otherwise."""

    name: str
    ends: tuple[Interface, Interface]
    delay_ms: float
    shapers: tuple[Shaper | None, Shaper | None]
    jitter_ms: float = 0.0
    loss: GilbertElliott | None = None
    radio: Radio | None = None
    back: Wire | None = field(default=None, metadata=LATER)
    schedule: Schedule = field(default=(), metadata=LATER)
    reorder: float = field(default=0.0, metadata=LATER)

    @cached_property
    def wires(self) -> tuple[Wire, Wire]:
        """There and back."""
        there = Wire(self.delay_ms, self.jitter_ms, self.loss, self.schedule, self.reorder)
        return there, self.back or there

    @property
    def rtt_ms(self) -> float:
        """The delay of both directions together."""
        return sum(wire.delay_ms for wire in self.wires)


@dataclass(frozen=True)
class Hop:
    """A link as a flow crosses it, in one direction."""

    out: Interface
    into: Interface
    link: Link
    shaper: Shaper | None


@dataclass(frozen=True)
class Network:
    """All nodes and links, with the nodes' routes."""

    nodes: tuple[str, ...]
    routers: frozenset[str]
    links: tuple[Link, ...]
    routes: Mapping[str, Routes]  # by node
    bottleneck: str  # the names of the observed links, with blanks between
    rtt_ms: float  # of limits in BDP: the longest path's, idle, without serialisation
    switches: frozenset[str] = field(default=frozenset(), metadata=LATER)

    @cached_property
    def observed(self) -> frozenset[str]:
        """The names of the links whose queues are captured and sampled."""
        return frozenset(self.bottleneck.split())

    @cached_property
    def _edges(self) -> tuple[Edge, ...]:
        return tuple(
            Edge((link.ends[0].node, link.ends[1].node), link.rtt_ms) for link in self.links
        )

    def path(self, src: str, dst: str) -> tuple[Hop, ...]:
        """The hops from one node to another."""
        return self.paths(src)[dst]

    def paths(self, src: str) -> Mapping[str, tuple[Hop, ...]]:
        """The hops to every node."""
        if src not in self._paths:
            found = paths(self._edges, self.routers | self.switches, src)
            self._paths[src] = {
                dst: tuple(self._hops[step] for step in steps) for dst, steps in found.items()
            }
        return self._paths[src]

    @cached_property
    def _paths(self) -> dict[str, Mapping[str, tuple[Hop, ...]]]:
        return {}  # of the nodes that were asked for

    @cached_property
    def _hops(self) -> Mapping[Step, Hop]:
        return {
            (number, end): Hop(link.ends[end], link.ends[1 - end], link, link.shapers[end])
            for number, link in enumerate(self.links)
            for end in (0, 1)
        }

    def path_rtt_ms(self, src: str, dst: str) -> float:
        """The round-trip propagation delay of the links between two nodes."""
        return sum(hop.link.rtt_ms for hop in self.path(src, dst))

    def gateway(self, path: Sequence[Hop]) -> Interface:
        """The first node on a path that packets are addressed to on the wire: no switch."""
        return next(hop.into for hop in path if hop.into.node not in self.switches)

    def segments(self) -> list[list[Interface]]:
        """Interfaces that reach each other without a router."""
        ends = [[end.node for end in link.ends] for link in self.links]
        parts = segments(ends, self.switches)
        return [[self.links[number].ends[end] for number, end in part] for part in parts]

    def interfaces(self, node: str) -> list[Interface]:
        """A node's interfaces, in the order of their links."""
        return [end for link in self.links for end in link.ends if end.node == node]


def node_names(topology: Topology | Graph) -> tuple[str, ...]:
    """The nodes that flows may name: switches have no addresses."""
    nodes = graph_of(topology).nodes
    return tuple(node.name for node in nodes if node.kind is not NodeKind.SWITCH)


def link_names(topology: Topology) -> tuple[str, ...]:
    """The links that `links` may override: those with an access link's settings."""
    star = topology.kind is TopologyKind.STAR
    return tuple(link.name for link in graph_of(topology).links if star or not link.observed)


def are_neighbours(topology: Topology | Graph, one: str, other: str) -> bool:
    """True if nothing but a link lies between two nodes."""
    return {one, other} in [set(link.ends) for link in graph_of(topology).links]


@cached_by_repr(KEPT)
def build_network(topology: Topology | Graph) -> Network:
    """The graph's nodes and links with addresses, rates and queues, and the routes."""
    graph = graph_of(topology)
    topo = topo_of(topology)
    kinds = {node.name: node.kind for node in graph.nodes}
    rtt_ms = longest_rtt_ms(graph)
    ports = ports_in(topo) if topo else ports_by_number(graph)
    links = tuple(
        _link(link, number, ports, rtt_ms, _radio(topology, link.name))
        for number, link in enumerate(graph.links)
    )
    network = Network(
        nodes=tuple(kinds),
        routers=_of_kind(kinds, NodeKind.ROUTER),
        links=links,
        routes=routes_in(topo) if topo else {},
        bottleneck=" ".join(link.name for link in graph.links if link.observed),
        rtt_ms=rtt_ms,
        switches=_of_kind(kinds, NodeKind.SWITCH),
    )
    return network if topo else replace(network, routes=computed_routes(network))


def _of_kind(kinds: Mapping[str, NodeKind], wanted: NodeKind) -> frozenset[str]:
    return frozenset(name for name, kind in kinds.items() if kind is wanted)


def computed_routes(network: Network) -> dict[str, Routes]:
    """To each node's address at the end of the path there; where all leave by one gateway, a
    default route."""
    return {
        node: _routes_of(network, node) for node in network.nodes if node not in network.switches
    } | dict.fromkeys(network.switches, ())


def _routes_of(network: Network, node: str) -> Routes:
    routes = []
    for other, path in network.paths(node).items():
        if other == node or other in network.switches:
            continue
        gateway = network.gateway(path)
        if gateway.node != other:
            routes.append((path[-1].into.ip, gateway.ip))
    gateways = {gateway for _, gateway in routes}
    return (("default", gateways.pop()),) if len(gateways) == 1 else tuple(routes)


def _ends(
    link: GraphLink, number: int, ports: Mapping[Place, Port], kind: str
) -> tuple[Interface, Interface]:
    one, other = (
        Interface(
            node,
            f"{node}-{kind}{ports[(number, end)].number}",
            ports[(number, end)].address,
            f"02:00:00:00:{number:02x}:{end + 1:02x}",
        )
        for end, node in enumerate(link.ends)
    )
    return one, other


def _radio(topology: Topology | Graph, name: str) -> Radio | None:
    if isinstance(topology, Graph):
        return None
    return topology.links.get(name, topology.access).radio


def _link(
    link: GraphLink,
    number: int,
    ports: Mapping[Place, Port],
    rtt_ms: float,
    radio: Radio | None,
) -> Link:
    there, back = link.directions
    wires = tuple(map(_wire, (there, back)))
    return Link(
        link.name,
        _ends(link, number, ports, "wlan" if radio else "eth"),
        there.delay_ms,
        (_shaper(there, rtt_ms), _shaper(back, rtt_ms)),
        there.jitter_ms,
        there.loss,
        radio,
        back=None if wires[0] == wires[1] else wires[1],
        schedule=wires[0].schedule,
        reorder=there.reorder,
    )


def _wire(way: Direction) -> Wire:
    return Wire(way.delay_ms, way.jitter_ms, way.loss, of_wire(way.schedule), way.reorder)


def _shaper(way: Direction, rtt_ms: float) -> Shaper | None:
    if way.rate_mbit is None:
        return None
    queue = way.queue or PLAIN_QUEUE
    limit = queues.resolve(queue, way.rate_mbit, rtt_ms)
    return Shaper(way.rate_mbit, queue, limit, way.trace, of_queue(way.schedule))
