"""The network of a scenario: nodes, addresses, links and paths, read off the Mininet Topo."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, assert_never

from testbed.scenario import queues
from testbed.scenario.discipline import Limit
from testbed.scenario.losses import GilbertElliott
from testbed.scenario.model import Bottleneck, Path, Queue, Radio, Topology, TopologyKind
from topologies.access_link import AccessLink
from topologies.dumbbell import Dumbbell
from topologies.router import Router
from topologies.router_bottleneck import RouterBottleneck


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
    """An interface's rate and the queue in front of it."""

    rate_mbit: float
    queue: Queue
    limit: Limit


@dataclass(frozen=True)
class Link:
    """Two interfaces, what is between them (a delay that may vary, losses; or a radio), and the
    shapers on their way out."""

    name: str
    ends: tuple[Interface, Interface]
    delay_ms: float
    shapers: tuple[Shaper | None, Shaper | None]
    jitter_ms: float = 0.0
    loss: GilbertElliott | None = None
    radio: Radio | None = None


@dataclass(frozen=True)
class Hop:
    """A link as a flow crosses it, in one direction."""

    out: Interface
    into: Interface
    link: Link
    shaper: Shaper | None


@dataclass(frozen=True)
class Network:
    """All nodes and links, with the routes that the Topo gives them."""

    nodes: tuple[str, ...]
    routers: frozenset[str]
    links: tuple[Link, ...]
    routes: Mapping[str, tuple[tuple[str, str], ...]]  # node → (destination, gateway)
    bottleneck: str  # the link's name
    rtt_ms: float  # the longest path's, idle, without serialisation

    def path(self, src: str, dst: str) -> tuple[Hop, ...]:
        """The hops from one node to another: these networks are trees, so there is one way."""
        trails: list[tuple[str, tuple[Hop, ...]]] = [(src, ())]
        seen = {src}
        while trails:
            here, hops = trails.pop(0)
            if here == dst:
                return hops
            for hop in self._hops_from(here):
                if hop.into.node not in seen:
                    seen.add(hop.into.node)
                    trails.append((hop.into.node, (*hops, hop)))
        raise ValueError(f"no path from {src} to {dst}")

    def _hops_from(self, node: str) -> list[Hop]:
        return [
            Hop(link.ends[i], link.ends[1 - i], link, link.shapers[i])
            for link in self.links
            for i in (0, 1)
            if link.ends[i].node == node
        ]

    def interfaces(self, node: str) -> list[Interface]:
        """A node's interfaces, in the order of their links."""
        return [hop.out for hop in self._hops_from(node)]


def node_names(topology: Topology) -> tuple[str, ...]:
    """The nodes that flows may name."""
    return tuple(_topo(topology).nodes(sort=False))


def link_names(topology: Topology) -> tuple[str, ...]:
    """The links that `links` may override: all but the bottleneck."""
    topo = _topo(topology)
    names = [_link_name(one, other) for one, other in topo.links(sort=False)]
    return tuple(name for name in names if name != BOTTLENECKS[topology.kind])


def are_neighbours(topology: Topology, one: str, other: str) -> bool:
    """True if nothing but a link lies between two nodes."""
    return {one, other} in [set(ends) for ends in _topo(topology).links(sort=False)]


BOTTLENECKS = {
    TopologyKind.ROUTER_BOTTLENECK: "router-receiver",
    TopologyKind.DUMBBELL: "left-right",
    TopologyKind.ACCESS_LINK: "isp-ap",
}


def _topo(topology: Topology) -> RouterBottleneck | Dumbbell | AccessLink:
    match topology.kind:
        case TopologyKind.ROUTER_BOTTLENECK:
            return RouterBottleneck(senders=topology.hosts)
        case TopologyKind.DUMBBELL:
            return Dumbbell(pairs=topology.hosts)
        case TopologyKind.ACCESS_LINK:
            return AccessLink()
        case _:
            assert_never(topology.kind)


def _link_name(one: str, other: str) -> str:
    return f"{one}-{other}"


def build_network(topology: Topology) -> Network:
    """The Topo's nodes and links with the scenario's rates, delays and queues."""
    topo = _topo(topology)
    info = {name: topo.nodeInfo(name) for name in topo.nodes(sort=False)}
    routers = frozenset(name for name in info if info[name].get("cls") is Router)
    rtt_ms = 2 * (topology.bottleneck.delay_ms + _longest_access_ms(topology))
    links = tuple(
        _link(topology, number, one, other, details, info, rtt_ms, routers)
        for number, (one, other, details) in enumerate(topo.links(sort=False, withInfo=True))
    )
    return Network(
        nodes=tuple(info),
        routers=routers,
        links=links,
        routes={name: _routes(info[name]) for name in info},
        bottleneck=BOTTLENECKS[topology.kind],
        rtt_ms=rtt_ms,
    )


def _longest_access_ms(topology: Topology) -> float:
    """The access links' share of the longest path, one way."""
    delays = {
        name: topology.links.get(name, topology.access).delay_ms for name in link_names(topology)
    }
    return max(
        sum(delays[name] for name in names)
        for names in _access_paths(topology.kind, topology.hosts)
    )


def _access_paths(kind: TopologyKind, hosts: int) -> Iterator[tuple[str, ...]]:
    """The access links of every path from end to end."""
    match kind:
        case TopologyKind.ROUTER_BOTTLENECK:
            yield from ((f"sender{n}-router",) for n in range(1, hosts + 1))
        case TopologyKind.DUMBBELL:
            yield from ((f"sender{n}-left", f"receiver{n}-right") for n in range(1, hosts + 1))
        case TopologyKind.ACCESS_LINK:
            yield "server-isp", "ap-station"
        case _:
            assert_never(kind)


def _routes(info: Mapping[str, object]) -> tuple[tuple[str, str], ...]:
    default = str(info.get("defaultRoute", "")).removeprefix("via ")
    routes: list[tuple[str, str]] = list(info.get("routes", ()))  # type: ignore[call-overload]
    return (*routes, *((("default", default),) if default else ()))


def _link(
    topology: Topology,
    number: int,
    one: str,
    other: str,
    details: Mapping[str, Any],
    info: Mapping[str, Mapping[str, str]],
    rtt_ms: float,
    routers: frozenset[str],
) -> Link:
    name = _link_name(one, other)
    path = topology.links.get(name, topology.access)
    kind = "wlan" if path.radio else "eth"
    ends = (
        _interface(number, 1, one, kind, details, info),
        _interface(number, 2, other, kind, details, info),
    )
    bottleneck = topology.bottleneck
    neck, neck_back = _bottleneck_shapers(bottleneck, rtt_ms)
    if name == BOTTLENECKS[topology.kind]:
        back = neck_back if other in routers else None
        return Link(name, ends, bottleneck.delay_ms, (neck, back))
    own, own_back = _path_shapers(path, rtt_ms)
    # with one router, its ways back to the senders are the bottleneck's other direction
    if topology.kind is TopologyKind.ROUTER_BOTTLENECK and neck_back is not None:
        own_back = neck_back
    return Link(name, ends, path.delay_ms, (own, own_back), path.jitter_ms, path.loss, path.radio)


def _bottleneck_shapers(bottleneck: Bottleneck, rtt_ms: float) -> tuple[Shaper, Shaper | None]:
    """The shapers of both directions: forward, then back."""
    there = _shaper(bottleneck.rate_mbit, bottleneck.queue, rtt_ms)
    if not bottleneck.both_directions:
        return there, None
    rate_mbit = bottleneck.back_rate_mbit or bottleneck.rate_mbit
    return there, _shaper(rate_mbit, bottleneck.back_queue or bottleneck.queue, rtt_ms)


def _shaper(rate_mbit: float, queue: Queue, rtt_ms: float) -> Shaper:
    return Shaper(rate_mbit, queue, queues.resolve(queue, rate_mbit, rtt_ms))


def _interface(
    number: int,
    end: int,
    node: str,
    kind: str,
    details: Mapping[str, Any],
    info: Mapping[str, Mapping[str, str]],
) -> Interface:
    port = details[f"port{end}"]
    address = details.get(f"params{end}", {}).get("ip") or info[node]["ip"]
    return Interface(node, f"{node}-{kind}{port}", address, f"02:00:00:00:{number:02x}:{end:02x}")


DEFAULT_PATH_QUEUE = Queue("pfifo", limit_packets=1000)  # as long as Linux's own txqueuelen


def _path_shapers(path: Path, rtt_ms: float) -> tuple[Shaper | None, Shaper | None]:
    """The shapers of both directions: forward, then back."""
    if path.rate_mbit is None:
        return None, None
    queue = path.queue or DEFAULT_PATH_QUEUE
    there = _shaper(path.rate_mbit, queue, rtt_ms)
    return there, _shaper(path.back_rate_mbit or path.rate_mbit, queue, rtt_ms)
