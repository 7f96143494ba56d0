"""Checks of a scenario's network: what fields of links, nodes and paths must be together."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from ipaddress import IPv4Interface, IPv4Network, IPv6Interface, IPv6Network, ip_interface

from testbed.errors import quoted
from testbed.faults import Fault, unknown
from testbed.plan.network import (
    IPV6,
    interface_addresses,
    interface_name,
    ipv6_addresses,
    segments,
)
from testbed.scenario import losses, queues
from testbed.scenario.model import Scenario
from testbed.scenario.network import (
    PLAIN_QUEUE,
    TWO_ENDS,
    Change,
    Direction,
    Graph,
    Link,
    NodeKind,
    Shaping,
    Step,
    shortest_paths,
)
from testbed.scenario.trace import trace_fault

FIRST_RATE = (
    'give a link a rate: "forward": {"rate_mbit": 10, "queue": {"discipline": "pfifo", …}}; '
    "of a Topo: --link bw=10,delay=5ms"
)
SPANNING_TREE = (
    "with spanning trees, Mininet itself runs: testbed mininet -- mn --switch lxbr,stp=1 …"
)
MAX_INTERFACE = 15  # IFNAMSIZ, with a byte of zero
_NO_ADDRESS = "not a host's address with the length of its network, like"
ADDRESS_FORMS = {4: f"{_NO_ADDRESS} 10.0.0.1/8", IPV6: f"{_NO_ADDRESS} 2001:db8:1::2/64"}
Address = IPv4Interface | IPv6Interface
Network = IPv4Network | IPv6Network
Span = tuple[float, float]  # the first and the last second


def network_faults(scenario: Scenario, taken: Collection[str]) -> list[Fault]:
    """Return what is wrong with the network; `taken` are the names of nodes of the testbed's own.

    Paths are looked at when the nodes and the links' ends are sound.
    """
    graph = scenario.network
    faults = [*_form_faults(graph, taken), *_link_faults(scenario)]
    if not any(_form_faults(graph, taken)):
        faults += (
            list(_route_faults(graph))
            or list(_path_faults(scenario))
            or [*_port_faults(graph), *_two_interfaces(scenario)]
        )
    return [fault.inside("network") if fault.keys[:1] != ("flows",) else fault for fault in faults]


def _link_faults(scenario: Scenario) -> Iterator[Fault]:
    graph = scenario.network
    if not any(link.observed and link.forward.rate_mbit for link in graph.links):
        message = "no observed link has a rate_mbit forward: nothing would ever queue"
        yield Fault(("links",), message, FIRST_RATE)
    for index, link in enumerate(graph.links):
        for side, direction in (("forward", link.forward), ("reverse", link.reverse)):
            if direction is not None:
                for fault in direction_faults(direction, scenario.duration_s):
                    yield fault.inside("links", index, side)
    for index, node in enumerate(graph.nodes):
        times_s = [each.at_s for each in node.schedule]
        span_s = (0.0, scenario.duration_s)
        for fault in time_faults(times_s, span_s, "the trial", together=True):
            yield fault.inside("nodes", index)
    yield from _radio_places(graph)


def direction_faults(direction: Direction, duration_s: float) -> Iterator[Fault]:
    """Yield what is wrong with one direction of a link."""
    queue = direction.queue
    if queue is not None:
        yield from (fault.inside("queue") for fault in queues.queue_faults(queue))
        if direction.rate_mbit is None and direction.radio is None:
            yield Fault(("queue",), "a queue needs a rate_mbit to wait for")
        if queues.polices(queue.discipline):
            yield from _policer_faults(direction)
    if direction.shaping is not Shaping.LINK and (direction.rate_mbit is None or direction.trace):
        yield Fault(("shaping",), f"{direction.shaping}: needs a rate_mbit, and no trace")
    yield from _realism_faults(direction)
    if direction.jitter_ms > direction.delay_ms:
        yield Fault(("jitter_ms",), f"{direction.jitter_ms:g} is not between 0 and delay_ms")
    if direction.reorder and not direction.delay_ms:
        yield Fault(("reorder",), "without a delay_ms there is no packet to overtake")
    elif direction.reorder and direction.jitter_ms:
        message = "beside jitter_ms, with which none overtakes: give one of them"
        yield Fault(("reorder",), message)
    if direction.loss is not None:
        yield from (fault.inside("loss") for fault in losses.link_loss_faults(direction.loss))
    yield from _change_faults(direction)
    yield from _schedule_faults(direction.schedule, duration_s)
    if direction.radio is not None:
        yield from _radio_faults(direction)


def _policer_faults(direction: Direction) -> Iterator[Fault]:
    """Yield what a direction has that a policer, which holds no packet back, cannot have."""
    others = {
        "trace": direction.trace,
        "schedule": any(each.changes_queue for each in direction.schedule),
        "aggregate_packets": direction.aggregates,
        "shaping": direction.shaping is not Shaping.LINK,
    }
    for name in (name for name, given in others.items() if given):
        yield Fault((name,), "not with a policer, which has one rate and sends nothing itself")


def _realism_faults(direction: Direction) -> Iterator[Fault]:
    """Yield what is wrong with a direction's aggregation, and with the times of its receiver."""
    if direction.aggregates and not direction.is_exact:
        yield Fault(("aggregate_packets",), "needs a rate_mbit, and neither a trace nor htb")
    if direction.aggregate_ms and not direction.aggregates:
        message = f"{direction.aggregate_ms:g}: needs aggregate_packets above 1"
        yield Fault(("aggregate_ms",), message)
    if direction.takes_time_to_receive and direction.radio:
        yield Fault((), "hold_us, cost_us and wake_us are not for radio links")


def _change_faults(direction: Direction) -> Iterator[Fault]:
    """Yield what is wrong with a direction's trace, its schedule, or with both together."""
    speeds = [each.rate_mbit for each in direction.schedule if each.rate_mbit is not None]
    if direction.trace is not None:
        if message := trace_fault(direction.trace):
            yield Fault(("trace",), message)
        if direction.rate_mbit is None:
            yield Fault(("trace",), "needs a rate_mbit, which limits in BDP are of")
        if speeds:
            yield Fault(("schedule",), "a rate_mbit beside a trace, which is the rate")
    if speeds and direction.rate_mbit is None:
        yield Fault(("schedule",), "there is no rate_mbit to change")
    for index, each in enumerate(direction.schedule):
        if each.delay_ms is not None and each.delay_ms < direction.jitter_ms:
            message = f"{each.delay_ms:g} is less than the jitter_ms"
            yield Fault(("schedule", index, "delay_ms"), message)
        if each.loss is not None and direction.loss is not None:
            message = "the link has a loss, too: give one of them"
            yield Fault(("schedule", index, "loss"), message)
        if each.mark is not None and direction.loses_packets:
            message = "the link loses packets, too: give one of them"
            yield Fault(("schedule", index, "mark"), message)
        yield from (fault.inside("schedule", index) for fault in _queue_faults(direction, each))


FIELDS_OF_QUEUES = ("limit_bytes", "limit_packets", "ecn", "options")  # of a change


def _queue_faults(direction: Direction, change: Change) -> Iterator[Fault]:
    """Yield changes that the link's queue cannot make."""
    queue = direction.queue or PLAIN_QUEUE
    if not change.changes_discipline or queue.discipline not in queues.DISCIPLINES:
        return
    if direction.rate_mbit is None:
        given = (n for n in FIELDS_OF_QUEUES if getattr(change, n) is not None)
        yield Fault((next(given),), "there is no rate_mbit, which a queue waits for")
    elif not queues.polices(queue.discipline):
        yield from queues.change_faults(queue, change)


def _schedule_faults(schedule: Sequence[Change], duration_s: float) -> Iterator[Fault]:
    """Yield changes that are not within the trial, not in order, or change nothing."""
    yield from time_faults([each.at_s for each in schedule], (0.0, duration_s), "the trial")
    for index, each in enumerate(schedule):
        if not each.changes_wire and not each.changes_queue:
            message = (
                "changes nothing: give rate_mbit, delay_ms, loss, up, mark, a limit, ecn or options"
            )
            yield Fault(("schedule", index), message)


def time_faults(
    times_s: Sequence[float], span_s: Span, what: str, *, together: bool = False
) -> Iterator[Fault]:
    """Yield the times of a schedule that are not within a span, or not in order.

    `together`: several changes may have the same time.
    """
    first_s, last_s = span_s
    before_s = -1.0
    for index, at_s in enumerate(times_s):
        keys = ("schedule", index, "at_s")
        if not first_s < at_s < last_s:
            message = f"{at_s:g} is not within {what}: above {first_s:g} and below {last_s:g}"
            yield Fault(keys, message)
        if at_s < before_s or (at_s == before_s and not together):
            message = (
                f"{at_s:g} is not after {before_s:g}, the change before it: put them in "
                "order of time, one for each time"
            )
            yield Fault(keys, message)
        before_s = at_s


def _radio_faults(direction: Direction) -> Iterator[Fault]:
    queue = direction.queue
    if direction.delay_ms or direction.rate_mbit or direction.loss or direction.reorder:
        yield Fault(("radio",), "its delay, rate and losses are the radio's own")
    if queue and not (queue.discipline == "pfifo" and queue.limit_packets):
        yield Fault(("radio",), "its queue is a pfifo with limit_packets")


def _radio_places(graph: Graph) -> Iterator[Fault]:
    """Yield radio links, unless there is one, from a router (access point) to a host (station)."""
    kinds = {node.name: node.kind for node in graph.nodes}
    radios = [(n, link) for n, link in enumerate(graph.links) if _has_radio(link)]
    for index, link in radios:
        keys = ("links", index, "forward", "radio")
        if [kinds.get(end) for end in link.ends] != [NodeKind.ROUTER, NodeKind.HOST]:
            yield Fault(keys, "a radio link is from a router to a host")
        if link.directions[0] != link.directions[1]:
            yield Fault(keys, "a radio link is the same in both directions")
    if len(radios) > 1:
        yield Fault(("links",), f"{len(radios)} radio links; at most one can be emulated")


def _has_radio(link: Link) -> bool:
    return any(direction.radio for direction in link.directions)


def _form_faults(graph: Graph, taken: Collection[str]) -> Iterator[Fault]:
    """Yield what is wrong with the names of nodes, and with the links' ends."""
    counts = Counter(node.name for node in graph.nodes)
    for name, count in counts.items():
        if count > 1:
            yield Fault(("nodes",), f"the name {quoted(name)} is used {count} times")
        elif name in taken:
            message = f"{quoted(name)} is a name that the testbed uses itself"
            yield Fault(("nodes",), message, "choose another name")
    switches = graph.names(NodeKind.SWITCH)
    pairs: set[frozenset[str]] = set()
    for index, link in enumerate(graph.links):
        for fault in _end_faults(link, tuple(counts), switches):
            yield fault.inside("links", index)
        if frozenset(link.ends) in pairs:
            message = f"{link.ends[0]} and {link.ends[1]} have a link already: put a router in"
            yield Fault(("links", index, "ends"), message)
        pairs.add(frozenset(link.ends))


def _end_faults(link: Link, names: Sequence[str], switches: Sequence[str]) -> Iterator[Fault]:
    if link.ends[0] == link.ends[1]:
        yield Fault(("ends",), f"{quoted(link.name)}: two different nodes", TWO_ENDS)
    if len(link.ports) not in (0, 2):
        yield Fault(("ports",), "one for each end, or none")
    for name, port in zip(link.ends, link.ports, strict=False):
        if name in switches and port.address is not None:
            message = f"{quoted(port.address)}: a switch's interfaces have no addresses"
            yield Fault(("ports",), message)
    yield from (unknown(("ends",), "node", name, names) for name in link.ends if name not in names)


def _path_faults(scenario: Scenario) -> Iterator[Fault]:
    """Yield loops of switches, and flows between whose hosts no path leads."""
    graph = scenario.network
    kinds = {node.name: node.kind for node in graph.nodes}
    yield from _switch_loops(graph, kinds)
    lonely = set(kinds) - set(shortest_paths(graph.links, kinds, graph.nodes[0].name))
    if lonely:
        names = ", ".join(name for name in kinds if name in lonely)
        yield Fault((), f"not connected: no links lead from {graph.nodes[0].name} to {names}")
        return
    shaped = {link.name for link in graph.links if link.observed and link.forward.rate_mbit}
    for index, flow in enumerate(scenario.flows):
        if not {flow.src, flow.dst} <= kinds.keys():
            continue
        path = graph.steps_from(flow.src).get(flow.dst)
        if path and flow.drops and (len(path) < 2 or graph.links[path[1][0]].name not in shaped):
            message = "the first router on the way has no observed queue"
            yield Fault(("flows", index, "drops"), message)
        if path is None:
            message = (
                f"{flow.dst} cannot be reached from {flow.src}: only routers and switches pass "
                "packets on"
            )
            yield Fault(("flows", index), message)
    yield from _without_bdp(graph)


def _without_bdp(graph: Graph) -> Iterator[Fault]:
    """Yield limits in BDP where no path has a delay."""
    for index, link in enumerate(graph.links):
        for side, direction in (("forward", link.forward), ("reverse", link.reverse)):
            queue = direction and direction.queue
            if queue and queue.limit_bdp is not None and not graph.longest_rtt_ms:
                keys = ("links", index, side, "queue", "limit_bdp")
                yield Fault(keys, "no path has a delay, so there is no BDP")


def _route_faults(graph: Graph) -> Iterator[Fault]:
    """Yield routes over links that there are not, and routes that contradict each other."""
    known = list(_unknown_steps(graph))
    yield from known or _contradictions(graph)


def _two_interfaces(scenario: Scenario) -> Iterator[Fault]:
    """Yield flows whose host would send over one of its links and receive over another."""
    graph = scenario.network
    for index, flow in enumerate(scenario.flows if graph.routes else ()):
        there, back = (
            graph.steps_from(one).get(other)
            for one, other in ((flow.src, flow.dst), (flow.dst, flow.src))
        )
        if not there or not back:
            continue  # a fault of its own
        for node, out, into in ((flow.src, there[0], back[-1]), (flow.dst, back[0], there[-1])):
            if out[0] != into[0]:
                message = (
                    f"{node} sends over {graph.links[out[0]].name} and receives over "
                    f"{graph.links[into[0]].name}: put a router before it, whose ways differ"
                )
                yield Fault(("flows", index), message)


def _unknown_steps(graph: Graph) -> Iterator[Fault]:
    names, links = {node.name for node in graph.nodes}, {frozenset(e.ends) for e in graph.links}
    passing = graph.names(NodeKind.ROUTER, NodeKind.SWITCH)
    for index, route in enumerate(graph.routes):
        keys = ("routes", index)
        if len(route) < 2 or len(set(route)) < len(route):
            message = "the names of all nodes on the way, from first to last, each once"
            yield Fault(keys, message, '"routes": [["h1", "r1", "h2"]]')
            continue
        for name in route:
            if name not in names:
                yield unknown(keys, "node", name, names)
        for one, other in itertools.pairwise(route):
            if {one, other} <= names and frozenset((one, other)) not in links:
                yield Fault(keys, f"there is no link from {one} to {other}")
        for name in route[1:-1]:
            if name in names and name not in passing:
                yield Fault(keys, f"{name} passes nothing on: only routers and switches do")
    if graph.routes and any(node.routes for node in graph.nodes):
        yield Fault(("routes",), "some nodes have `routes` of their own: give one of them")


def _contradictions(graph: Graph) -> Iterator[Fault]:
    """Yield routes to one node that part from another: packets only say where they go."""
    seen: dict[tuple[str, str], tuple[str, int]] = {}
    for index, route in enumerate(graph.routes):
        for node, following in itertools.pairwise(route):
            before, other = seen.setdefault((node, route[-1]), (following, index))
            if before != following:
                message = (
                    f"to {route[-1]}, {node} sends by {following}, and by routes[{other}] by "
                    f"{before}: routers look at where packets go, not at where they come from"
                )
                yield Fault(("routes", index), message)


def _switch_loops(graph: Graph, kinds: dict[str, NodeKind]) -> Iterator[Fault]:
    """Yield a loop of switches, in which a packet would go round for ever.

    The bridges do not speak the spanning tree protocol.
    """
    group = {name: name for name, kind in kinds.items() if kind is NodeKind.SWITCH}
    closing = []
    for index, link in enumerate(graph.links):
        if all(end in group for end in link.ends):
            one, other = (group[end] for end in link.ends)
            if one == other:
                closing.append(index)
            group = {name: one if its == other else its for name, its in group.items()}
    if closing:
        more = f" (and {len(closing) - 1} more do)" if len(closing) > 1 else ""
        name = graph.links[closing[0]].name
        message = f"{name} closes a loop of switches{more}: make one of them a router"
        yield Fault(("links", closing[0]), message, SPANNING_TREE)


def _port_faults(graph: Graph) -> Iterator[Fault]:
    """Yield faults of interfaces' names and addresses.

    Two may have one name, Linux may cut one off, or addresses may not reach each other.
    """
    names = {place: interface_name(graph, place) for place in graph.interface_numbers}
    for name, count in Counter(names.values()).items():
        if count > 1:
            message = f"{count} interfaces are {name}: give their ports other numbers"
            yield Fault(("links",), message)
        if len(name) > MAX_INTERFACE:
            message = f"{name} is longer than an interface's name ({MAX_INTERFACE})"
            yield Fault(("nodes",), message)
    if any(link.ports for link in graph.links):
        yield from _address_faults(graph, names)


def _address_faults(graph: Graph, names: Mapping[Step, str]) -> Iterator[Fault]:
    for version, addresses in ((4, interface_addresses(graph)), (IPV6, ipv6_addresses(graph))):
        networks: dict[Network, str] = {}  # with the first interface in each
        for part in segments(graph) if addresses else ():
            ips = {place: _interface(addresses[place], version) for place in part}
            for place in part:
                if ips[place] is None:
                    address, form = quoted(addresses[place]), ADDRESS_FORMS[version]
                    yield Fault(("links", place[0], "ports"), f"{address}: {form}")
                    return
            if ips:
                yield from _segment_faults({names[p]: ip for p, ip in ips.items() if ip}, networks)
    given = [each for link in graph.links for each in link.ports if each.ipv6_address is not None]
    if given and graph.ip != IPV6:
        yield Fault(("links",), "a port has an ipv6_address: give the network `ip: 6`")


def _segment_faults(ips: Mapping[str, Address], networks: dict[Network, str]) -> Iterator[Fault]:
    """Yield interfaces without a router between them in two networks, and the reverse."""
    first = next(iter(ips))
    home = ips[first].network
    for name, each in ips.items():
        if each.network != home:
            message = (
                f"{first} ({ips[first]}) and {name} ({each}) have no router between them, and are "
                "in two networks: give them addresses of one"
            )
            yield Fault(("links",), message)
            return
    for other, its in networks.items():
        if other.overlaps(home):
            message = (
                f"{its} ({other}) and {first} ({home}) have a router between them, and are in one "
                "network: give them addresses of two"
            )
            yield Fault(("links",), message)
    networks[home] = first
    for ip, count in Counter(each.ip for each in ips.values()).items():
        if count > 1:
            yield Fault(("links",), f"the address {ip} is used {count} times")


def _interface(text: str, version: int) -> Address | None:
    """Return the address that a text is, or None if it is no host's."""
    try:
        address = ip_interface(text)
    except ValueError:
        return None
    ends = (address.network.network_address, address.network.broadcast_address)
    odd = (
        address.is_multicast or address.is_loopback or address.is_reserved or address.is_unspecified
    )
    odd |= address.version != version or (version == IPV6 and address.is_link_local)
    return None if odd or "/" not in text or address.ip in ends else address
