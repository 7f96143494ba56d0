"""Faults of a graph, each with its place: names, links, ways between the flows' hosts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator

from testbed.errors import nearest, quoted
from testbed.scenario.builders import edges, transit
from testbed.scenario.model import Graph, GraphPort, NodeKind, Scenario
from testbed.scenario.shortest import paths

NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
LONGEST_NAME = 10  # with `-eth99` behind it an interface's name, of which Linux keeps 15 bytes
MOST_PORT = 255  # of a node with a short name
MOST_NODES = 200
MOST_LINKS = 250


def form_faults(graph: Graph, taken: Collection[str]) -> Iterator[str]:
    """What is wrong with the nodes and with the links' ends; `taken` are nodes of our own."""
    for what, found, most in (
        ("nodes", graph.nodes, MOST_NODES),
        ("links", graph.links, MOST_LINKS),
    ):
        if not 1 <= len(found) <= most:
            yield f"topology.{what}: {len(found)}; between 1 and {most} can be emulated"
            return
    counts = Counter(node.name for node in graph.nodes)
    for name, count in counts.items():
        if count > 1:
            yield f"topology.nodes: the name {quoted(name)} is used {count} times"
        if not NAME.fullmatch(name) or len(name) > LONGEST_NAME:
            yield (
                f"topology.nodes: {quoted(name)}: a letter, then letters, digits and _, at most "
                f"{LONGEST_NAME} of them"
            )
        elif name in taken:
            yield f"topology.nodes: {quoted(name)} is the name of a node of the testbed's own"
    yield from _end_faults(graph, tuple(counts))


def _port_faults(where: str, at_switch: bool, port: GraphPort) -> Iterator[str]:
    if port.number is not None and not 0 <= port.number <= MOST_PORT:
        yield f"{where}: {port.number} is not between 0 and {MOST_PORT}"
    if at_switch and port.address is not None:
        yield f"{where}: {quoted(port.address)}: a switch's interfaces have no addresses"


def _end_faults(graph: Graph, names: tuple[str, ...]) -> Iterator[str]:
    switches = {node.name for node in graph.nodes if node.kind is NodeKind.SWITCH}
    pairs: set[frozenset[str]] = set()
    for index, link in enumerate(graph.links):
        where = f"topology.links[{index}].ends"
        if len(link.ends) != 2 or len(set(link.ends)) != 2:
            yield f"{where}: {quoted(link.name)}: two different nodes"
            continue
        if len(link.ports) not in (0, 2):
            yield f"topology.links[{index}].ports: one for each end, or none"
        for name, port in zip(link.ends, link.ports, strict=False):
            yield from _port_faults(f"topology.links[{index}].ports", name in switches, port)
        for name in link.ends:
            if name not in names:
                yield f"{where}: unknown node {quoted(name)}: {nearest(name, names)}"
        if frozenset(link.ends) in pairs:
            yield f"{where}: {link.ends[0]} and {link.ends[1]} have a link already: put a router in"
        pairs.add(frozenset(link.ends))


def way_faults(scenario: Scenario, graph: Graph) -> Iterator[str]:
    """What only the whole graph shows; the nodes and the links' ends are known to be sound."""
    kinds = {node.name: node.kind for node in graph.nodes}
    yield from _switch_loops(graph, kinds)
    known, through = edges(graph), transit(graph)
    lonely = set(kinds) - set(paths(known, kinds, graph.nodes[0].name))
    if lonely:
        names = ", ".join(name for name in kinds if name in lonely)
        yield f"topology: not connected: no links lead from {graph.nodes[0].name} to {names}"
        return
    shaped = {link.name for link in graph.links if link.observed and link.there.rate_mbit}
    for index, flow in enumerate(scenario.flows):
        if not {flow.src, flow.dst} <= kinds.keys():
            continue
        path = paths(known, through, flow.src).get(flow.dst)
        if path and flow.drops and (len(path) < 2 or graph.links[path[1][0]].name not in shaped):
            yield f"flows[{index}].drops: the first router on the way has no observed queue"
        if path is None:
            yield (
                f"flows[{index}]: {flow.dst} cannot be reached from {flow.src}: only routers and "
                "switches pass packets on"
            )


def _switch_loops(graph: Graph, kinds: dict[str, NodeKind]) -> Iterator[str]:
    """Bridges would send a packet round for ever: here none speaks the spanning tree protocol."""
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
            f"topology.links[{closing[0]}]: {graph.links[closing[0]].name} closes a loop of "
            f"switches{more}: make one of them a router"
        )
