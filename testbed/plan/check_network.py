"""Checks of a scenario's network: nodes, links, addresses, paths between the flows' hosts.

Each fault begins with its field.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from ipaddress import IPv4Interface, IPv4Network, IPv6Interface, IPv6Network, ip_interface

from testbed.errors import nearest, quoted, range_faults
from testbed.plan.check_flows import RATES_MBIT, in_range
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
    Direction,
    Graph,
    Link,
    NodeKind,
    Port,
    Radio,
    Shaping,
    Step,
    schedule_faults,
    shortest_paths,
)
from testbed.scenario.trace import trace_faults

NODE_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
LONGEST_NODE_NAME = 10  # with `-eth99` behind it an interface's name
LONGEST_INTERFACE = 15  # IFNAMSIZ, with a byte of zero
MOST_PORT = 255  # of a node with a short name
MOST_NODES = 250
MOST_LINKS = 400
LONGEST_DELAY_MS = 60_000.0
SIGNALS_DBM = (-82, -20)  # below, 802.11 expects no receiver to understand anything
MOST_BUSY = 0.9
AGGREGATES = (1, 1024)  # the widest window of a block acknowledgement, of 802.11be
LONGEST_BURST_MS = 100.0
LONGEST_RECEIPT_US = 10_000.0  # of an interrupt, a packet or a wake-up
MOST_LOSS = 0.2  # of a link's packets, in the long run
WHOLE_MICROSECOND = 1e-3  # so near is a whole number
_NO_ADDRESS = "not a host's address with the length of its network, like"
ADDRESS_FORMS = {4: f"{_NO_ADDRESS} 10.0.0.1/8", IPV6: f"{_NO_ADDRESS} 2001:db8:1::2/64"}
Address = IPv4Interface | IPv6Interface
Network = IPv4Network | IPv6Network


def network_faults(scenario: Scenario, taken: Collection[str]) -> list[str]:
    """Return what is wrong with the network; `taken` are the names of nodes of the testbed's own.

    Links are looked at when the nodes are sound, and paths when the links are.
    """
    graph = scenario.network
    return (
        list(form_faults(graph, taken))
        or list(_route_faults(graph))
        or list(_link_faults(scenario))
        or list(path_faults(scenario))
        or list(_port_faults(graph))
        or list(_two_interfaces(scenario))
    )


def _link_faults(scenario: Scenario) -> Iterator[str]:
    graph = scenario.network
    if graph.ip not in (4, IPV6):
        yield f"network.ip: {graph.ip}: 4 or 6"
    if graph.rtt_ms is not None:
        yield from in_range("network.rtt_ms", graph.rtt_ms, 0, LONGEST_DELAY_MS)
    for index, link in enumerate(graph.links):
        for side, direction in (("forward", link.forward), ("reverse", link.reverse)):
            if direction is not None:
                where = f"network.links[{index}].{side}"
                yield from direction_faults(where, direction, scenario.duration_s)
                queue = direction.queue
                if queue and queue.limit_bdp is not None and not graph.longest_rtt_ms:
                    yield f"{where}.queue.limit_bdp: no path has a delay, so there is no BDP"
    yield from _radio_places(graph)


def direction_faults(where: str, direction: Direction, duration_s: float) -> Iterator[str]:
    """Yield what is wrong with one direction of a link."""
    yield from _delay_faults(f"{where}.delay_ms", direction.delay_ms)
    yield from range_faults(f"{where}.rate_mbit", direction.rate_mbit, *RATES_MBIT)
    if direction.queue is not None:
        yield from queues.faults(direction.queue, f"{where}.queue")
        if direction.rate_mbit is None and direction.radio is None:
            yield f"{where}.queue: a queue needs a rate_mbit to wait for"
    yield from _policer_faults(where, direction)
    if direction.shaping is not Shaping.LINK and (direction.rate_mbit is None or direction.trace):
        yield f"{where}.shaping: {direction.shaping}: needs a rate_mbit, and no trace"
    yield from _realism_faults(where, direction)
    if not 0 <= direction.jitter_ms <= direction.delay_ms:
        yield f"{where}.jitter_ms: {direction.jitter_ms:g} is not between 0 and delay_ms"
    yield from _microsecond_faults(f"{where}.jitter_ms", direction.jitter_ms)
    yield from _reorder_faults(where, direction)
    if direction.loss is not None:
        found = list(losses.channel_faults(direction.loss, f"{where}.loss"))
        yield from found
        if not found and direction.loss.loss_rate > MOST_LOSS:
            yield (
                f"{where}.loss: loses {direction.loss.loss_rate:.0%} of all packets: with more "
                f"than {MOST_LOSS:.0%} hardly any connection opens"
            )
    yield from _change_faults(where, direction, duration_s)
    if direction.radio is not None:
        yield from _radio_faults(f"{where}.radio", direction, direction.radio)


def _policer_faults(where: str, direction: Direction) -> Iterator[str]:
    """Yield what a direction has that a policer, which holds no packet back, cannot have."""
    if direction.queue is None or not queues.polices(direction.queue.discipline):
        return
    others = {
        "trace": direction.trace,
        "schedule": any(each.rate_mbit is not None for each in direction.schedule),
        "aggregate_packets": direction.aggregates,
        "shaping": direction.shaping is not Shaping.LINK,
    }
    for name in (name for name, given in others.items() if given):
        yield f"{where}.{name}: not with a policer, which has one rate and sends nothing itself"


def _realism_faults(where: str, direction: Direction) -> Iterator[str]:
    """Yield what is wrong with a direction's aggregation, and with the times of its receiver."""
    packets = direction.aggregate_packets
    yield from range_faults(f"{where}.aggregate_packets", packets, *AGGREGATES)
    yield from range_faults(f"{where}.aggregate_ms", direction.aggregate_ms, 0, LONGEST_BURST_MS)
    if direction.aggregates and not direction.is_exact:
        yield f"{where}.aggregate_packets: needs a rate_mbit, and neither a trace nor htb"
    if direction.aggregate_ms and not direction.aggregates:
        yield f"{where}.aggregate_ms: {direction.aggregate_ms:g}: needs aggregate_packets above 1"
    for name in ("hold_us", "cost_us", "wake_us"):
        yield from range_faults(f"{where}.{name}", getattr(direction, name), 0, LONGEST_RECEIPT_US)
    if direction.takes_time_to_receive and direction.radio:
        yield f"{where}: hold_us, cost_us and wake_us are not for radio links"


def _change_faults(where: str, direction: Direction, duration_s: float) -> Iterator[str]:
    """Yield what is wrong with a direction's trace, its schedule, or with both together."""
    speeds = [each.rate_mbit for each in direction.schedule if each.rate_mbit is not None]
    if direction.trace is not None:
        yield from trace_faults(direction.trace, f"{where}.trace")
        if direction.rate_mbit is None:
            yield f"{where}.trace: needs a rate_mbit, which limits in BDP are of"
        if speeds:
            yield f"{where}.schedule: a rate_mbit beside a trace, which is the rate"
    if speeds and direction.rate_mbit is None:
        yield f"{where}.schedule: there is no rate_mbit to change"
    yield from schedule_faults(direction.schedule, f"{where}.schedule", duration_s)
    for index, each in enumerate(direction.schedule):
        place = f"{where}.schedule[{index}]"
        yield from range_faults(f"{place}.rate_mbit", each.rate_mbit, *RATES_MBIT)
        if each.delay_ms is not None:
            yield from _delay_faults(f"{place}.delay_ms", each.delay_ms)
            if each.delay_ms < direction.jitter_ms:
                yield f"{place}.delay_ms: {each.delay_ms:g} is less than the jitter_ms"
        if each.loss is not None and direction.loss is not None:
            yield f"{place}.loss: the link has a loss, too: give one of them"


def _delay_faults(where: str, delay_ms: float) -> Iterator[str]:
    if not 0 <= delay_ms <= LONGEST_DELAY_MS:
        yield f"{where}: {delay_ms:g} ms is not between 0 and {LONGEST_DELAY_MS:g}"
    yield from _microsecond_faults(where, delay_ms)


def _microsecond_faults(where: str, time_ms: float) -> Iterator[str]:
    """Yield a fault unless netem can be told the time: tc cuts it to microseconds."""
    us = time_ms * 1000  # infinite for what is out of bounds anyway
    if abs((us + 0.5) % 1 - 0.5) > WHOLE_MICROSECOND:
        yield f"{where}: {time_ms:.12g} ms is not a whole number of microseconds, tc's unit"


def _reorder_faults(where: str, direction: Direction) -> Iterator[str]:
    if not 0 <= direction.reorder <= 1:
        yield f"{where}.reorder: {direction.reorder:g} is not a probability from 0 to 1"
    elif 0 < direction.reorder < losses.LEAST_LOSS_CHANCE:
        yield f"{where}.reorder: {direction.reorder:g} is less than {losses.LEAST_LOSS_CHANCE:g}"
    elif direction.reorder and not direction.delay_ms:
        yield f"{where}.reorder: without a delay_ms there is no packet to overtake"
    elif direction.reorder and direction.jitter_ms:
        yield f"{where}.reorder: beside jitter_ms, with which none overtakes: give one of them"


def _radio_faults(where: str, direction: Direction, radio: Radio) -> Iterator[str]:
    yield from range_faults(f"{where}.signal_dbm", radio.signal_dbm, *SIGNALS_DBM)
    yield from range_faults(f"{where}.busy", radio.busy, 0, MOST_BUSY)
    if direction.delay_ms or direction.rate_mbit or direction.loss or direction.reorder:
        yield f"{where}: its delay, rate and losses are the radio's own"
    if direction.queue and not (
        direction.queue.discipline == "pfifo" and direction.queue.limit_packets
    ):
        yield f"{where}: its queue is a pfifo with limit_packets"


def _radio_places(graph: Graph) -> Iterator[str]:
    """Yield radio links, unless there is one, from a router (access point) to a host (station)."""
    kinds = {node.name: node.kind for node in graph.nodes}
    radios = [(n, link) for n, link in enumerate(graph.links) if _has_radio(link)]
    for index, link in radios:
        where = f"network.links[{index}].forward.radio"
        if [kinds[end] for end in link.ends] != [NodeKind.ROUTER, NodeKind.HOST]:
            yield f"{where}: a radio link is from a router to a host"
        if link.directions[0] != link.directions[1]:
            yield f"{where}: a radio link is the same in both directions"
    if len(radios) > 1:
        yield f"network.links: {len(radios)} radio links; at most one can be emulated"


def _has_radio(link: Link) -> bool:
    return any(direction.radio for direction in link.directions)


def form_faults(graph: Graph, taken: Collection[str]) -> Iterator[str]:
    """Yield what is wrong with the nodes and with the links' ends."""
    for what, found, most in (
        ("nodes", graph.nodes, MOST_NODES),
        ("links", graph.links, MOST_LINKS),
    ):
        if not 1 <= len(found) <= most:
            yield (
                f"network.{what}: {len(found)}; between 1 and {most} can be emulated, because a "
                "guest's memory of 256 MB holds no more"
            )
            return
    counts = Counter(node.name for node in graph.nodes)
    for name, count in counts.items():
        if count > 1:
            yield f"network.nodes: the name {quoted(name)} is used {count} times"
        if not NODE_NAME.fullmatch(name) or len(name) > LONGEST_NODE_NAME:
            yield (
                f"network.nodes: {quoted(name)}: a letter, then letters, digits and _, at most "
                f"{LONGEST_NODE_NAME} of them"
            )
        elif name in taken:
            yield f"network.nodes: {quoted(name)} is a name that the testbed uses itself"
    yield from _end_faults(graph, tuple(counts))


def _port_of_node_faults(where: str, at_switch: bool, port: Port) -> Iterator[str]:
    yield from range_faults(where, port.number, 0, MOST_PORT)
    if at_switch and port.address is not None:
        yield f"{where}: {quoted(port.address)}: a switch's interfaces have no addresses"


def _end_faults(graph: Graph, names: tuple[str, ...]) -> Iterator[str]:
    switches = {node.name for node in graph.nodes if node.kind is NodeKind.SWITCH}
    pairs: set[frozenset[str]] = set()
    for index, link in enumerate(graph.links):
        where = f"network.links[{index}].ends"
        if len(link.ends) != 2 or len(set(link.ends)) != 2:
            yield f"{where}: {quoted(link.name)}: two different nodes"
            continue
        if len(link.ports) not in (0, 2):
            yield f"network.links[{index}].ports: one for each end, or none"
        for name, port in zip(link.ends, link.ports, strict=False):
            yield from _port_of_node_faults(f"network.links[{index}].ports", name in switches, port)
        for name in link.ends:
            if name not in names:
                yield f"{where}: unknown node {quoted(name)}: {nearest(name, names)}"
        if frozenset(link.ends) in pairs:
            yield f"{where}: {link.ends[0]} and {link.ends[1]} have a link already: put a router in"
        pairs.add(frozenset(link.ends))


def path_faults(scenario: Scenario) -> Iterator[str]:
    """Yield loops of switches, and flows between whose hosts no path leads."""
    graph = scenario.network
    kinds = {node.name: node.kind for node in graph.nodes}
    yield from _switch_loops(graph, kinds)
    lonely = set(kinds) - set(shortest_paths(graph.links, kinds, graph.nodes[0].name))
    if lonely:
        names = ", ".join(name for name in kinds if name in lonely)
        yield f"network: not connected: no links lead from {graph.nodes[0].name} to {names}"
        return
    shaped = {link.name for link in graph.links if link.observed and link.forward.rate_mbit}
    for index, flow in enumerate(scenario.flows):
        if not {flow.src, flow.dst} <= kinds.keys():
            continue
        path = graph.steps_from(flow.src).get(flow.dst)
        if path and flow.drops and (len(path) < 2 or graph.links[path[1][0]].name not in shaped):
            yield f"flows[{index}].drops: the first router on the way has no observed queue"
        if path is None:
            yield (
                f"flows[{index}]: {flow.dst} cannot be reached from {flow.src}: only routers and "
                "switches pass packets on"
            )


def _route_faults(graph: Graph) -> Iterator[str]:
    """Yield routes over links that there are not, and routes that contradict each other."""
    known = list(_unknown_steps(graph))
    yield from known or _contradictions(graph)


def _two_interfaces(scenario: Scenario) -> Iterator[str]:
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
                yield (
                    f"flows[{index}]: {node} sends over {graph.links[out[0]].name} and receives "
                    f"over {graph.links[into[0]].name}: put a router before it, whose ways differ"
                )


def _unknown_steps(graph: Graph) -> Iterator[str]:
    names, links = {node.name for node in graph.nodes}, {frozenset(e.ends) for e in graph.links}
    passing = graph.names(NodeKind.ROUTER, NodeKind.SWITCH)
    for index, route in enumerate(graph.routes):
        where = f"network.routes[{index}]"
        if len(route) < 2 or len(set(route)) < len(route):
            yield f"{where}: the names of all nodes on the way, from first to last, each once"
            continue
        for name in route:
            if name not in names:
                yield f"{where}: unknown node {quoted(name)}: {nearest(name, names)}"
        for one, other in itertools.pairwise(route):
            if {one, other} <= names and frozenset((one, other)) not in links:
                yield f"{where}: there is no link from {one} to {other}"
        for name in route[1:-1]:
            if name in names and name not in passing:
                yield f"{where}: {name} passes nothing on: only routers and switches do"
    if graph.routes and any(node.routes for node in graph.nodes):
        yield "network.routes: some nodes have `routes` of their own: give one of them"


def _contradictions(graph: Graph) -> Iterator[str]:
    """Yield routes to one node that part from another: packets only say where they go."""
    seen: dict[tuple[str, str], tuple[str, int]] = {}
    for index, route in enumerate(graph.routes):
        for node, following in itertools.pairwise(route):
            before, other = seen.setdefault((node, route[-1]), (following, index))
            if before != following:
                yield (
                    f"network.routes[{index}]: to {route[-1]}, {node} sends by {following}, and by "
                    f"routes[{other}] by {before}: routers look at where packets go, not at where "
                    "they come from"
                )


def _switch_loops(graph: Graph, kinds: dict[str, NodeKind]) -> Iterator[str]:
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
        yield (
            f"network.links[{closing[0]}]: {graph.links[closing[0]].name} closes a loop of "
            f"switches{more}: make one of them a router"
        )


def _port_faults(graph: Graph) -> Iterator[str]:
    """Yield faults of interfaces' names and addresses.

    Two may have one name, Linux may cut one off, or addresses may not reach each other.
    """
    names = {place: interface_name(graph, place) for place in graph.interface_numbers}
    for name, count in Counter(names.values()).items():
        if count > 1:
            yield f"network.links: {count} interfaces are {name}: give their ports other numbers"
        if len(name) > LONGEST_INTERFACE:
            yield f"network.nodes: {name} is longer than an interface's name ({LONGEST_INTERFACE})"
    if any(link.ports for link in graph.links):
        yield from _address_faults(graph, names)


def _address_faults(graph: Graph, names: Mapping[Step, str]) -> Iterator[str]:
    for version, addresses in ((4, interface_addresses(graph)), (IPV6, ipv6_addresses(graph))):
        networks: dict[Network, str] = {}  # with the first interface in each
        for part in segments(graph) if addresses else ():
            own = {place: _interface(addresses[place], version) for place in part}
            for place in part:
                if own[place] is None:
                    address, form = quoted(addresses[place]), ADDRESS_FORMS[version]
                    yield f"network.links[{place[0]}].ports: {address}: {form}"
                    return
            if own:
                yield from _segment_faults({names[p]: ip for p, ip in own.items() if ip}, networks)
    given = [each for link in graph.links for each in link.ports if each.ipv6_address is not None]
    if given and graph.ip != IPV6:
        yield "network.links: a port has an ipv6_address: give the network `ip: 6`"


def _segment_faults(own: Mapping[str, Address], networks: dict[Network, str]) -> Iterator[str]:
    """Yield interfaces without a router between them in two networks, and the reverse."""
    first = next(iter(own))
    home = own[first].network
    for name, each in own.items():
        if each.network != home:
            yield (
                f"network.links: {first} ({own[first]}) and {name} ({each}) have no router "
                "between them, and are in two networks: give them addresses of one"
            )
            return
    for other, its in networks.items():
        if other.overlaps(home):
            yield (
                f"network.links: {its} ({other}) and {first} ({home}) have a router between them, "
                "and are in one network: give them addresses of two"
            )
    networks[home] = first
    for ip, count in Counter(each.ip for each in own.values()).items():
        if count > 1:
            yield f"network.links: the address {ip} is used {count} times"


def _interface(text: str, version: int) -> Address | None:
    """Return the address that a text is, or None if it is no host's."""
    try:
        found = ip_interface(text)
    except ValueError:
        return None
    ends = (found.network.network_address, found.network.broadcast_address)
    odd = found.is_multicast or found.is_loopback or found.is_reserved or found.is_unspecified
    odd |= found.version != version or (version == IPV6 and found.is_link_local)
    return None if odd or "/" not in text or found.ip in ends else found
