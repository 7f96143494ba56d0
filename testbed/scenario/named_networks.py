"""The networks that have a name, as functions that return their graph, and their form in JSON.

The papers' networks have the addresses of their Mininet Topo classes in `topologies/`.
"""

from __future__ import annotations

import dataclasses
import enum
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated

from testbed.errors import nearest, quoted
from testbed.faults import refusal
from testbed.scenario.limits import Range
from testbed.scenario.network import (
    IP_VERSIONS,
    MAX_DELAY_MS,
    Change,
    Direction,
    Graph,
    Link,
    Node,
    NodeKind,
    Port,
    Route,
    queue_changes,
    wire_changes,
)
from testbed.scenario.omitted_defaults import OMIT_DEFAULT, repr_without_defaults

MAX_HOSTS = 99  # receiver99-eth0 is as long as the name of an interface may be
MAX_BOTTLENECKS = 20  # in a row


@dataclass(frozen=True)
class LinkSettings(Direction):
    """A link's forward direction, and its reverse one."""

    reverse: Direction | None = None
    """The other direction with all its settings; the same unless given."""

    @property
    def both(self) -> tuple[Direction, Direction | None]:
        """The forward direction, and the reverse one if it is another."""
        names = (each.name for each in dataclasses.fields(Direction))
        return Direction(**{name: getattr(self, name) for name in names}), self.reverse


PLAIN = LinkSettings()
NO_LINKS: Mapping[str, LinkSettings] = {}


class NetworkName(enum.StrEnum):
    """The networks that have a name: the papers', then the general ones."""

    ROUTER_BOTTLENECK = "router-bottleneck"
    DUMBBELL = "dumbbell"
    ACCESS_LINK = "access-link"
    PARKING_LOT = "parking-lot"
    CHAIN = "chain"
    STAR = "star"


@repr_without_defaults
@dataclass(frozen=True)
class NamedNetwork:
    """A network by its name, whose bottlenecks are alike."""

    kind: NetworkName
    """Which network."""
    bottleneck: LinkSettings
    """The link or links whose queue is observed."""
    hosts: Annotated[int, Range(1, MAX_HOSTS)] = 1
    """The number of senders (router bottleneck), pairs (dumbbell), bottlenecks (parking lot, chain)
    or hosts (star); one home (access link)."""
    access: LinkSettings = PLAIN
    """All other links."""
    links: Mapping[str, LinkSettings] = field(default_factory=dict)
    """Single links in place of `access`, by name, e.g. `sender2-left`, `ap-station`."""
    rtts_ms: tuple[Annotated[float, Range(0.0, 2 * MAX_DELAY_MS)], ...] = ()
    """The round trips of a dumbbell's pairs, one after the other and from the start again; the
    delays of their access links follow from them."""
    ip: Annotated[int, IP_VERSIONS] = field(default=4, repr=False, metadata=OMIT_DEFAULT)
    """The version of IP of its flows: 4, or 6 with nodes that have addresses of both."""

    def graph(self) -> Graph:
        """Return the network; raises if the settings do not fit the name."""
        graph = self._ipv4_graph()
        if self.ip == 4:
            return graph
        computed = tuple(dataclasses.replace(node, routes=()) for node in graph.nodes)
        return dataclasses.replace(graph, nodes=computed, ip=self.ip)

    def _ipv4_graph(self) -> Graph:
        if self.kind is not NetworkName.DUMBBELL and self.rtts_ms:
            raise refusal("rtts_ms", message=f"a dumbbell's; {self.kind} has links")
        others = (self.access, self.links)
        match self.kind:
            case NetworkName.ROUTER_BOTTLENECK:
                return router_bottleneck(self.bottleneck, self.hosts, *others)
            case NetworkName.DUMBBELL:
                return dumbbell(self.bottleneck, self.hosts, *others, self.rtts_ms)
            case NetworkName.ACCESS_LINK:
                if self.hosts != 1:
                    raise refusal("hosts", message=f"{self.hosts}: an access link has one station")
                return access_link(self.bottleneck, *others)
            case NetworkName.PARKING_LOT:
                return parking_lot(self.bottleneck, self.hosts, *others)
            case NetworkName.CHAIN:
                return chain(self.bottleneck, self.hosts, *others)
            case NetworkName.STAR:
                return star(self.bottleneck, self.hosts, *others)


def router_bottleneck(
    bottleneck: LinkSettings,
    senders: int = 1,
    access: LinkSettings = PLAIN,
    links: Mapping[str, LinkSettings] = NO_LINKS,
) -> Graph:
    """Return `sender1 … senderN – router – receiver`.

    With one router, the bottleneck's reverse queues are those of the links to the senders.
    """
    _check_size("hosts", senders, MAX_HOSTS)
    middle = _bottleneck(bottleneck, "router", "receiver", ("10.0.0.1/24", "10.0.0.2/24"), (0, 0))
    reverse = middle.directions[1]
    names = [f"sender{n}" for n in range(1, senders + 1)]
    access_links = [
        _access(access, links, name, "router", (f"10.0.{n}.2/24", f"10.0.{n}.1/24"), (0, n))
        for n, name in enumerate(names, start=1)
    ]
    if reverse.rate_mbit is not None:
        access_links = [
            dataclasses.replace(each, reverse=_queued_as(reverse, each)) for each in access_links
        ]
    wire = _with_queue_of(Direction(), reverse, wire_changes(reverse.schedule))
    return _graph(
        NetworkName.ROUTER_BOTTLENECK,
        (_router("router"), Node("receiver"), *map(Node, names)),
        (*access_links, dataclasses.replace(middle, reverse=wire)),
        links,
    )


def _queued_as(bottleneck: Direction, link: Link) -> Direction:
    """Return the link's reverse direction with the bottleneck's rate and queue."""
    return _with_queue_of(bottleneck, link.directions[1], queue_changes(bottleneck.schedule))


# what belongs to a direction's queue, and not to the way behind it
QUEUE_FIELDS = ("rate_mbit", "queue", "trace", "shaping", "aggregate_packets", "aggregate_ms")


def _with_queue_of(
    other: Direction, direction: Direction, schedule: tuple[Change, ...]
) -> Direction:
    """Return a direction with another's queue, and a schedule."""
    taken = {name: getattr(other, name) for name in QUEUE_FIELDS}
    return dataclasses.replace(direction, schedule=schedule, **taken)


def dumbbell(
    bottleneck: LinkSettings,
    pairs: int = 1,
    access: LinkSettings = PLAIN,
    links: Mapping[str, LinkSettings] = NO_LINKS,
    rtts_ms: Sequence[float] = (),
) -> Graph:
    """Return `sender1 … senderN – left – right – receiver1 … receiverN`."""
    _check_size("hosts", pairs, MAX_HOSTS)
    for rtt_ms in rtts_ms:
        if rtt_ms < 2 * bottleneck.delay_ms:
            rtt_text = f"the bottleneck's own, {2 * bottleneck.delay_ms:g}"
            raise refusal("rtts_ms", message=f"{rtt_ms:g} is less than {rtt_text}")
    numbers = range(1, pairs + 1)
    senders, receivers = (
        [
            _with_rtt(
                _access(
                    access,
                    links,
                    f"{side}{n}",
                    router,
                    (f"10.{network}.{n}.2/24", f"10.{network}.{n}.1/24"),
                ),
                bottleneck.delay_ms,
                rtts_ms,
                n,
            )
            for n in numbers
        ]
        for side, router, network in (("sender", "left", 1), ("receiver", "right", 2))
    )
    hosts = (Node(f"{side}{n}") for n in numbers for side in ("sender", "receiver"))
    return _graph(
        NetworkName.DUMBBELL,
        (
            _router("left", Route("10.2.0.0/16", "10.0.0.2")),
            _router("right", Route("10.1.0.0/16", "10.0.0.1")),
            *hosts,
        ),
        (
            _bottleneck(bottleneck, "left", "right", ("10.0.0.1/24", "10.0.0.2/24")),
            *senders,
            *receivers,
        ),
        links,
    )


def _with_rtt(link: Link, bottleneck_ms: float, rtts_ms: Sequence[float], pair: int) -> Link:
    """Return a pair's access link with its share of the pair's round trip, if pairs have theirs."""
    if not rtts_ms:
        return link
    index = (pair - 1) % len(rtts_ms)
    shared = dataclasses.replace(link, rtt_ms=rtts_ms[index], drawn_as=f"rtt {index}")
    return with_share_of_rtt(shared, bottleneck_ms)


def with_share_of_rtt(link: Link, bottleneck_ms: float) -> Link:
    """Return one of a pair's two access links with the delay that makes up its round trip."""
    assert link.rtt_ms is not None
    delay_ms = round((link.rtt_ms / 2 - bottleneck_ms) / 2, 3)
    forward, reverse = (dataclasses.replace(each, delay_ms=delay_ms) for each in link.directions)
    return dataclasses.replace(link, forward=forward, reverse=reverse)


def access_link(
    bottleneck: LinkSettings,
    access: LinkSettings = PLAIN,
    links: Mapping[str, LinkSettings] = NO_LINKS,
) -> Graph:
    """Return `server – isp – ap – station`."""
    first = _access(access, links, "server", "isp", ("10.1.1.2/24", "10.1.1.1/24"))
    last = _access(access, links, "ap", "station", ("10.2.1.1/24", "10.2.1.2/24"))
    line = _bottleneck(bottleneck, "isp", "ap", ("10.0.0.1/24", "10.0.0.2/24"))
    nodes = (
        _router("isp", Route("10.2.0.0/16", "10.0.0.2")),
        _router("ap", Route("10.1.0.0/16", "10.0.0.1")),
        Node("server"),
        Node("station"),
    )
    return _graph(NetworkName.ACCESS_LINK, nodes, (first, line, last), links)


def parking_lot(
    bottleneck: LinkSettings,
    bottlenecks: int = 1,
    access: LinkSettings = PLAIN,
    links: Mapping[str, LinkSettings] = NO_LINKS,
) -> Graph:
    """Return routers in a row: pair 1 crosses all bottlenecks, each other pair one of them."""
    last = bottlenecks + 1
    pairs = [(1, 1, last), *((n + 1, n, n + 1) for n in range(1, last))]
    return _row(NetworkName.PARKING_LOT, bottleneck, bottlenecks, access, links, pairs)


def chain(
    bottleneck: LinkSettings,
    bottlenecks: int = 1,
    access: LinkSettings = PLAIN,
    links: Mapping[str, LinkSettings] = NO_LINKS,
) -> Graph:
    """Return routers in a row with one pair of hosts at its ends."""
    pairs = [(1, 1, bottlenecks + 1)]
    return _row(NetworkName.CHAIN, bottleneck, bottlenecks, access, links, pairs)


def _row(
    name: NetworkName,
    bottleneck: LinkSettings,
    bottlenecks: int,
    access: LinkSettings,
    links: Mapping[str, LinkSettings],
    pairs: Sequence[tuple[int, int, int]],
) -> Graph:
    """Return bottlenecks in a row, and pairs of hosts: a number, and the routers of both."""
    _check_size("hosts", bottlenecks, MAX_BOTTLENECKS)
    routers = [f"router{n}" for n in range(1, bottlenecks + 2)]
    row = (_bottleneck(bottleneck, *ends) for ends in itertools.pairwise(routers))
    hosts = (Node(f"{side}{n}") for n, _, _ in pairs for side in ("sender", "receiver"))
    others = (
        _access(access, links, f"{side}{n}", f"router{at}")
        for n, first, last in pairs
        for side, at in (("sender", first), ("receiver", last))
    )
    return _graph(name, (*map(_router, routers), *hosts), (*row, *others), links)


def star(
    bottleneck: LinkSettings,
    hosts: int = 1,
    access: LinkSettings = PLAIN,
    links: Mapping[str, LinkSettings] = NO_LINKS,
) -> Graph:
    """Return hosts around a router.

    Each link's forward direction, to the host, is a bottleneck; its reverse is an access link.
    """
    _check_size("hosts", hosts, MAX_HOSTS)
    names = [f"host{n}" for n in range(1, hosts + 1)]
    spokes = (
        dataclasses.replace(
            _bottleneck(bottleneck, "hub", name),
            reverse=_access(access, links, "hub", name).forward,
        )
        for name in names
    )
    return _graph(NetworkName.STAR, (_router("hub"), *map(Node, names)), tuple(spokes), links)


def described(graph: Graph) -> str:
    """Return the network's name and its size: `dumbbell, 2 pairs`."""
    hosts, routers = (len(graph.names(kind)) for kind in (NodeKind.HOST, NodeKind.ROUTER))
    counts = {
        NetworkName.ROUTER_BOTTLENECK: (hosts - 1, "sender"),
        NetworkName.DUMBBELL: (hosts // 2, "pair"),
        NetworkName.ACCESS_LINK: (hosts - 1, "station"),
        NetworkName.PARKING_LOT: (routers - 1, "bottleneck"),
        NetworkName.CHAIN: (routers - 1, "bottleneck"),
        NetworkName.STAR: (hosts, "host"),
    }
    if graph.name not in counts:
        return f"{graph.name}, {len(graph.nodes)} nodes, {len(graph.links)} links"
    count, unit = counts[NetworkName(graph.name)]
    return f"{graph.name}, {count} {unit}{'s' * (count > 1)}"


def _check_size(field_name: str, count: int, most: int) -> None:
    if not 1 <= count <= most:
        raise refusal(field_name, message=f"{count} is not between 1 and {most}")


def _router(name: str, *routes: Route) -> Node:
    return Node(name, NodeKind.ROUTER, routes)


def _ports(addresses: Sequence[str], numbers: Sequence[int]) -> tuple[Port, ...]:
    return tuple(
        Port(number, address)
        for number, address in itertools.zip_longest(numbers, addresses)
        if address
    )


def _bottleneck(
    settings: LinkSettings,
    one: str,
    other: str,
    addresses: Sequence[str] = (),
    numbers: Sequence[int] = (),
) -> Link:
    forward, reverse = settings.both
    ports = _ports(addresses, numbers)
    return Link((one, other), forward, reverse, ports=ports, drawn_as="bottleneck")


def _access(
    access: LinkSettings,
    links: Mapping[str, LinkSettings],
    one: str,
    other: str,
    addresses: Sequence[str] = (),
    numbers: Sequence[int] = (),
) -> Link:
    """Return any other link, with its settings or those of all."""
    name = f"{one}-{other}"
    forward, reverse = links.get(name, access).both
    return Link(
        (one, other),
        forward,
        reverse,
        observed=False,
        ports=_ports(addresses, numbers),
        drawn_as=name if name in links else "access",
    )


def _graph(
    name: NetworkName,
    nodes: tuple[Node, ...],
    links: tuple[Link, ...],
    single: Mapping[str, LinkSettings],
) -> Graph:
    """Return the graph, if every link that has settings by its name is there."""
    known = [link.name for link in links if not link.observed or name is NetworkName.STAR]
    for each in single:
        if each not in known:
            raise refusal("links", message=f"unknown link {quoted(each)}: {nearest(each, known)}")
    return Graph(nodes, links, str(name))
