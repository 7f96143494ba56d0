"""The planned network: what planning adds to a scenario's graph.

That is the interfaces with their addresses, the queues' limits in all units, and the routes. All
else is read from the graph's links.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from ipaddress import IPv6Interface

from testbed.memo import cached_by_repr
from testbed.scenario import queues
from testbed.scenario.discipline import Limit
from testbed.scenario.model import Flow
from testbed.scenario.network import (
    PLAIN_QUEUE,
    Change,
    Direction,
    Graph,
    Link,
    NodeKind,
    Queue,
    Radio,
    Route,
    Schedule,
    Step,
    queue_changes,
    scheduled_rates,
    wire_changes,
)
from testbed.scenario.omitted_defaults import OMIT_DEFAULT, repr_without_defaults
from testbed.scenario.trace import OPPORTUNITY_BYTES, parse_trace

IPV6 = 6  # the version; the other is 4
CACHED_NETWORKS = 32  # those of a sweep are few, and come again and again


def ip_version(graph: Graph, flow: Flow) -> int:
    """Return the version of IP that a flow uses: its own choice, or the network's."""
    return flow.ip or graph.ip


@repr_without_defaults
@dataclass(frozen=True)
class Interface:
    """One end of a link."""

    node: str
    name: str
    address: str  # 10.0.0.1/24; a switch's has none
    mac: str
    ipv6_address: str = field(
        default="", repr=False, metadata=OMIT_DEFAULT
    )  # where the network has them

    @property
    def ip(self) -> str:
        """The address without its prefix length."""
        return self.address.partition("/")[0]

    def ip_of(self, version: int) -> str:
        """Return the address of that version of IP, without its prefix length."""
        return (self.ipv6_address if version == IPV6 else self.address).partition("/")[0]

    @property
    def place(self) -> tuple[str, str]:
        """The interface's node and name."""
        return self.node, self.name


@dataclass(frozen=True)
class Hop:
    """One direction of a link: from one interface to the other."""

    out: Interface
    into: Interface
    number: int  # of the link
    link: Link
    direction: Direction
    limit: Limit | None  # of the queue, where there is a rate

    @property
    def is_shaped(self) -> bool:
        """Whether the hop has a rate, which packets wait for."""
        return self.limit is not None

    @property
    def is_observed(self) -> bool:
        """Whether packets wait in a queue that is captured and sampled."""
        return self.link.observed and self.is_shaped

    @property
    def is_exact(self) -> bool:
        """Whether it sends packets one after the other, each for its size over the rate."""
        return self.is_shaped and self.direction.is_exact and not self.polices

    @property
    def polices(self) -> bool:
        """Whether it drops what exceeds its rate, and holds nothing back."""
        return self.is_shaped and queues.polices(self.queue.discipline)

    @property
    def rate_mbit(self) -> float:
        """The rate of a shaped hop."""
        assert self.direction.rate_mbit is not None
        return self.direction.rate_mbit

    @property
    def queue(self) -> Queue:
        """The queue of a shaped hop."""
        return self.direction.queue or PLAIN_QUEUE

    @property
    def full(self) -> Limit:
        """The limit of a shaped hop's queue."""
        assert self.limit is not None
        return self.limit

    @property
    def queue_changes(self) -> Schedule:
        """The scheduled changes of the rate, and of the queue before it."""
        return queue_changes(self.direction.schedule)

    @property
    def changed_queues(self) -> Iterator[tuple[Change, Queue, Limit]]:
        """Each scheduled change of the queue's discipline, with what the queue is from then on."""
        queue, limit = self.queue, self.full
        for change in self.queue_changes:
            if change.changes_discipline:
                queue, limit = queues.changed(queue, limit, self.rate_mbit, change)
                yield change, queue, limit

    @property
    def rates_mbit(self) -> list[tuple[float, float]]:
        """Every rate of a shaped hop with the time from which it holds, the first from second 0."""
        return scheduled_rates(self.direction.schedule, self.rate_mbit)

    @property
    def wire_changes(self) -> Schedule:
        """The scheduled changes of what happens behind the queue."""
        return wire_changes(self.direction.schedule)

    def sending_ms(self, frame_bytes: int) -> float:
        """Return the time that an exact link takes for a frame; 0 for any other."""
        return frame_bytes * 8e-3 / self.rate_mbit if self.is_exact else 0.0

    @cached_property
    def drain_s(self) -> float:
        """The longest time that the full queue of a shaped hop takes to drain."""
        if self.direction.trace is not None:
            opportunities = -(-self.full.bytes // OPPORTUNITY_BYTES)
            return parse_trace(self.direction.trace).longest_ms(opportunities + 1) / 1e3
        slowest = min(rate for _, rate in self.rates_mbit)
        in_unit = queues.in_own_unit(self.queue, self.full)
        longest = max([in_unit, *(each.limit or 0 for each in self.queue_changes)]) / in_unit
        return longest * self.full.ms / 1e3 * (self.rate_mbit / slowest)


@dataclass(frozen=True)
class Network:
    """A graph with the interfaces, limits and routes that are planned for it."""

    graph: Graph
    hops: tuple[tuple[Hop, Hop], ...]  # of each link, forward and reverse
    routes: Mapping[str, tuple[Route, ...]]  # by node

    @property
    def nodes(self) -> tuple[str, ...]:
        """The names of all nodes."""
        return self.graph.names(*NodeKind)

    @property
    def routers(self) -> tuple[str, ...]:
        """The names of the routers."""
        return self.graph.names(NodeKind.ROUTER)

    @cached_property
    def switches(self) -> frozenset[str]:
        """The names of the switches."""
        return frozenset(self.graph.names(NodeKind.SWITCH))

    @cached_property
    def shaped(self) -> tuple[Hop, ...]:
        """The hops that have a rate."""
        return tuple(hop for both in self.hops for hop in both if hop.is_shaped)

    def path(self, src: str, dst: str) -> tuple[Hop, ...]:
        """Return the hops from one node to another."""
        return tuple(self.hops[number][end] for number, end in self.graph.steps_from(src)[dst])

    def path_rtt_ms(self, src: str, dst: str) -> float:
        """Return the round-trip propagation delay of the links between two nodes."""
        return self.graph.path(src, dst).rtt_ms

    def gateway(self, path: Sequence[Hop]) -> Interface:
        """Return the first node on a path that packets are addressed to on the wire: no switch."""
        return next(hop.into for hop in path if hop.into.node not in self.switches)

    def segments(self) -> list[list[Interface]]:
        """Return the groups of interfaces that reach each other without a router."""
        return [[self.hops[n][end].out for n, end in part] for part in segments(self.graph)]

    def interfaces(self, node: str) -> list[Interface]:
        """Return a node's interfaces, in the order of their links."""
        return [hop.out for both in self.hops for hop in both if hop.out.node == node]


@cached_by_repr(CACHED_NETWORKS)
def build_network(graph: Graph) -> Network:
    """Return the graph's links with addresses and limits, and the nodes' routes."""
    addresses, ipv6 = interface_addresses(graph), ipv6_addresses(graph)
    hops = []
    for number, link in enumerate(graph.links):
        one, other = (
            Interface(
                node,
                interface_name(graph, (number, end)),
                addresses[(number, end)],
                f"02:00:{number >> 8:02x}:00:{number & 255:02x}:{end + 1:02x}",
                ipv6.get((number, end), ""),
            )
            for end, node in enumerate(link.ends)
        )
        forward, reverse = link.directions
        hops.append(
            (
                Hop(one, other, number, link, forward, _limit(forward, graph)),
                Hop(other, one, number, link, reverse, _limit(reverse, graph)),
            )
        )
    network = Network(graph, tuple(hops), {})
    versions = (4, IPV6) if graph.ip == IPV6 else (4,)
    routes = {
        node.name: node.routes
        or tuple(each for ip in versions for each in _computed_routes(network, node.name, ip))
        for node in graph.nodes
    }
    return Network(graph, network.hops, routes)


def _limit(direction: Direction, graph: Graph) -> Limit | None:
    if direction.rate_mbit is None:
        return None
    queue = direction.queue or PLAIN_QUEUE
    return queues.resolve(queue, direction.rate_mbit, graph.longest_rtt_ms)


def _computed_routes(network: Network, node: str, ip: int) -> Iterator[Route]:
    """Yield a route to every node that is no neighbour.

    Where one gateway leads to all of them, it is the default route.
    """
    if node in network.switches:
        return
    routes = []
    for other in network.graph.steps_from(node):
        if other == node or other in network.switches:
            continue
        path = network.path(node, other)
        gateway = network.gateway(path)
        if gateway.node != other:
            routes.append(Route(path[-1].into.ip_of(ip), gateway.ip_of(ip)))
    gateways = {route.gateway for route in routes}
    everywhere = "::/0" if ip == IPV6 else "default"
    yield from [Route(everywhere, gateways.pop())] if len(gateways) == 1 else routes


def radio_of(link: Link) -> Radio | None:
    """Return the radio of a link that is one."""
    return link.forward.radio


def interface_name(graph: Graph, place: Step) -> str:
    """Return the name of the interface at one end of a link."""
    link = graph.links[place[0]]
    kind = "wlan" if radio_of(link) else "eth"
    return f"{link.ends[place[1]]}-{kind}{graph.interface_numbers[place]}"


def segments(graph: Graph) -> list[list[Step]]:
    """Return the interfaces that reach each other without a router.

    They belong to one link, or to several that switches join; a switch's are left out.
    """
    switches: Collection[str] = graph.names(NodeKind.SWITCH)
    group = list(range(len(graph.links)))  # of each link, the number of its segment's first
    for switch in switches:
        links = [number for number, link in enumerate(graph.links) if switch in link.ends]
        joined = {group[number] for number in links}
        group = [min(joined) if each in joined else each for each in group]
    parts: dict[int, list[Step]] = {}
    for number, link in enumerate(graph.links):
        places = [(number, end) for end in (0, 1) if link.ends[end] not in switches]
        parts.setdefault(group[number], []).extend(places)
    return list(parts.values())


def interface_addresses(graph: Graph) -> dict[Step, str]:
    """Return each interface's address; a switch's interfaces have none.

    Where a link does not give one, each segment is a network of 254 addresses.
    """
    numbered = {
        place: f"10.{number >> 8}.{number & 255}.{host}/24"
        for number, part in enumerate(segments(graph))
        for host, place in enumerate(part, start=1)
    }
    addresses = {}
    for place in graph.interface_numbers:
        number, end = place
        ports = graph.links[number].ports
        given = ports[end].address if ports else None
        addresses[place] = numbered.get(place, "") if given is None else given
    return addresses


def ipv6_addresses(graph: Graph) -> dict[Step, str]:
    """Return each interface's IPv6 address in a network that has them; a switch's have none.

    Where a link does not give one, each segment is a network of 2001:db8::/32, the range for
    documentation. All are written as captures write them.
    """
    if graph.ip != IPV6:
        return {}
    addresses = {
        place: f"2001:db8:{number + 1:x}::{host:x}/64"
        for number, part in enumerate(segments(graph))
        for host, place in enumerate(part, start=1)
    }
    for number, end in addresses:
        ports = graph.links[number].ports
        if ports and (given := ports[end].ipv6_address) is not None:
            with contextlib.suppress(ValueError):  # a fault, which the checks tell
                given = str(IPv6Interface(given))
            addresses[number, end] = given
    return addresses
