"""Networks as small drawings: nodes, links with their settings, flows."""

from __future__ import annotations

import math
import re
import textwrap
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape

from analysis.trials.labels import (
    BETWEEN,
    in_lines,
    losses_of_flows,
    queue_label,
    rate_label,
    variation_label,
)
from testbed.scenario.model import Flow, FlowKind, Scenario
from testbed.scenario.network import PLAIN_QUEUE, Graph, Link, NodeKind, shortest_paths

WIDTH, STEP, TOP = 720, 64, 30
MARGIN, LINK_STEP, NECK_STEP = 58, 187, 230  # from the edge, and from column to column
BOX_W, BOX_H = 92, 30
LETTER_WIDTH, LINE_HEIGHT = 6.8, 15  # of the words at a link: a letter's width, a line's height
ABOVE = 9  # between a link and the words above it
CLEAR = 10  # between the words and each box
NOTE_LETTER, NOTE_LINE = 7.4, 14  # of a note below a box, likewise
NOTE_LINES = 2  # above the next box
FLOW_KIND_LABELS = {
    FlowKind.TCP: "TCP",
    FlowKind.CBR: "CBR",
    FlowKind.VIDEO: "video",
    FlowKind.WORKLOAD: "workload",
    FlowKind.COMMAND: "program",
    FlowKind.CALL: "call",
    FlowKind.STACK: "stack",
}


@dataclass(frozen=True)
class NodeBox:
    """A box, by its middle."""

    name: str
    x: float
    y: float
    router: bool = False


@dataclass(frozen=True)
class Edge:
    """A line between two boxes, with words above and below its middle."""

    one: str
    other: str
    above: str = ""
    below: str = ""
    neck: bool = False


def drawing(scenarios: Sequence[Scenario]) -> str:
    """Draw the network that the scenarios share as an SVG element."""
    scenario = scenarios[0]
    routers = {node.name for node in scenario.network.nodes if node.kind is not NodeKind.HOST}
    columns = _columns(scenario, scenario.network)
    edges = list(_edges(scenarios, scenario.network))
    return network_svg(scenario.network.name, columns, edges, routers, _flows(scenario))


def positions(scenario: Scenario) -> dict[str, tuple[float, float]]:
    """Return where `drawing` puts the middle of each node."""
    graph = scenario.network
    routers = {node.name for node in graph.nodes if node.kind is not NodeKind.HOST}
    boxes = _layout(_columns(scenario, graph), list(_edges([scenario], graph)), routers)
    return {box.name: (round(box.x, 1), round(box.y, 1)) for box in boxes}


def network_svg(
    name: str,
    columns: Sequence[Sequence[str]],
    edges: Sequence[Edge],
    routers: Collection[str],
    notes: Mapping[str, Sequence[str]],
) -> str:
    """Draw nodes in columns, their links, and notes below nodes, as an SVG element."""
    nodes = _layout(columns, edges, routers)
    written = {name: _note_lines(parts) for name, parts in notes.items()}
    by_name = {node.name: node for node in nodes}
    lines = [
        by_name[each.one].y + LINE_HEIGHT * len(_fitting(each.below, each, by_name))
        for each in edges
    ]
    half = {
        node.name: max([MARGIN, *(len(t) * NOTE_LETTER / 2 for t in written.get(node.name, ()))])
        for node in nodes
    }
    left = min(node.x - half[node.name] for node in nodes)
    width = max(node.x + half[node.name] for node in nodes) - left
    below = max(node.y + NOTE_LINE * max(0, len(written.get(node.name, ())) - 1) for node in nodes)
    height = max(below + 46, *(each + 24 for each in lines))
    top = min(0, *(_words_top(each, by_name) for each in edges))
    parts = [
        '<svg class="network" role="img" '
        f'aria-label="The network: {escape(name)}" '
        f'viewBox="{left:g} {top:g} {width:g} {height - top:g}">'
    ]
    parts += [_edge(edge, by_name) for edge in edges]
    parts += [_node(node, written.get(node.name, ())) for node in nodes]
    return "".join([*parts, "</svg>"])


def _layout(
    columns: Sequence[Sequence[str]], edges: Sequence[Edge], routers: Collection[str]
) -> list[NodeBox]:
    """Place the nodes of columns from left to right."""
    most = max(len(names) for names in columns)
    step = STEP * (2 if _necks_meet(columns, edges) else 1)
    return [
        NodeBox(
            name, x, TOP + step * (place + (most - _centred(names, routers)) / 2), name in routers
        )
        for x, names in zip(_places(columns, edges), columns, strict=True)
        for place, name in enumerate(sorted(names, key=lambda each: each not in routers))
    ]


def _necks_meet(columns: Sequence[Sequence[str]], edges: Sequence[Edge]) -> bool:
    """Return whether observed links of one column lead to one node: their labels are close."""
    column = {name: place for place, names in enumerate(columns) for name in names}
    ends = [(each.one, each.other) for each in edges if each.neck]
    meeting = Counter(
        (to, column[of]) for one, other in ends for of, to in ((one, other), (other, one))
    )
    return any(count > 1 for count in meeting.values())


def _centred(names: Sequence[str], routers: Collection[str]) -> int:
    """Return how many of a column's nodes stand around the middle: its routers, or all."""
    return sum(name in routers for name in names) or len(names)


def _places(columns: Sequence[Sequence[str]], links: Sequence[Edge]) -> list[float]:
    """Return the middles of the columns, with more room before an observed link."""
    column = {name: place for place, names in enumerate(columns) for name in names}
    wide = {max(column[each.one], column[each.other]) for each in links if each.neck}
    steps = [NECK_STEP if place in wide else LINK_STEP for place in range(1, len(columns))]
    stretch = max(1.0, (WIDTH - 2 * MARGIN) / max(1, sum(steps)))
    return [MARGIN + stretch * sum(steps[:place]) for place in range(len(columns))]


def _columns(scenario: Scenario, graph: Graph) -> list[list[str]]:
    """Place routers by their distance from the first flow's sender.

    Hosts that only send stand before their router, others behind it.
    """
    kinds = {node.name: node.kind for node in graph.nodes}
    first = scenario.flows[0].src
    start = first if first in kinds else graph.nodes[0].name
    known = shortest_paths(graph.links, kinds, start)
    distance = {name: len(steps) for name, steps in known.items()}
    receivers = {flow.dst for flow in scenario.flows}
    for name, kind in kinds.items():
        if kind is NodeKind.HOST:
            nearest = min(distance[other] for other in _neighbours(graph, name))
            behind = name in receivers or name.startswith("receiver")
            distance[name] = nearest + (1 if behind else -1)
    least = min(distance.values())
    columns: list[list[str]] = [[] for _ in range(max(distance.values()) - least + 1)]
    for name in kinds:
        columns[distance[name] - least].append(name)
    return [names for names in columns if names]


def _neighbours(graph: Graph, name: str) -> list[str]:
    others = [end for link in graph.links if name in link.ends for end in link.ends if end != name]
    routers = [node.name for node in graph.nodes if node.kind is not NodeKind.HOST]
    return [end for end in others if end in routers] or others


def _edges(scenarios: Sequence[Scenario], graph: Graph) -> Iterator[Edge]:
    """Describe observed links with their queue, and like links of one node once.

    There is no room for more between them.
    """
    settings = {link.name: list(_settings(scenarios, link.name)) for link in graph.links}
    hubs = Counter(end for link in graph.links for end in link.ends)
    groups: dict[str, list[Link]] = {}
    for link in graph.links:
        if link.observed and link.forward.rate_mbit:
            necks = settings[link.name]
            yield Edge(link.ends[0], link.ends[1], _bottleneck(necks), _queues(necks), neck=True)
        else:
            hub = max(link.ends, key=lambda end: hubs[end])
            groups.setdefault(hub, []).append(link)
    for links in groups.values():
        texts = [_several_links(settings[link.name]) for link in links]
        for link, each in zip(links, _once(texts), strict=True):
            yield Edge(link.ends[0], link.ends[1], *each)


def _settings(scenarios: Sequence[Scenario], name: str) -> Iterator[tuple[Link, list[Flow]]]:
    """Yield the link of that name in each scenario that has one, and the flows that end there."""
    for scenario in scenarios:
        graph = scenario.network
        if (link := graph.link(name)) is not None:
            last = ((flow, graph.steps_from(flow.src).get(flow.dst)) for flow in scenario.flows)
            yield (
                link,
                [flow for flow, steps in last if steps and graph.links[steps[-1][0]] is link],
            )


def _several_links(settings: Iterable[tuple[Link, list[Flow]]]) -> tuple[str, str]:
    texts = {_link_words(*each) for each in settings}
    return texts.pop() if len(texts) == 1 else (f"{len(texts)} settings", "")


def _once(pairs: Sequence[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Return the words above and below each link.

    What all have alike stands once, above the first and below the last.
    """
    last = len(pairs) - 1
    alike = last > 0 and len(set(pairs)) == 1
    for place, (above, below) in enumerate(pairs):
        if alike:
            yield above if place == 0 else "", below if place == last else ""
        else:
            yield above, below


def _link_words(link: Link, flows: Iterable[Flow]) -> tuple[str, str]:
    """Return a link's rate and its other settings, with the losses of the flows that end there."""
    one = link.forward
    jitter = f" ± {one.jitter_ms:g}" if one.jitter_ms else ""
    losses = [
        f"{100 * each.loss.loss_rate:.2g} % lost to {end}"
        for each, end in zip(link.directions, link.ends[::-1], strict=True)
        if each.loss
    ]
    if one.loss and one.loss == link.directions[1].loss:
        losses = [f"{100 * one.loss.loss_rate:.2g} % lost each way"]
    ahead = f"{100 * one.reorder:.2g} % overtake" if one.reorder else ""
    delay = f"{one.delay_ms:g}{jitter} ms" if one.delay_ms else ""
    busy = f"{100 * one.radio.busy:g} % others'" if one.radio and one.radio.busy else ""
    parts = (variation_label(link), delay, *losses, *losses_of_flows(flows), ahead, busy)
    return rate_label(link), ", ".join(filter(None, parts))


def _several(texts: Iterable[str], what: str) -> str:
    different = list(dict.fromkeys(texts))
    return different[0] if len(different) == 1 else f"{len(different)} {what}"


def _bottleneck(links: Iterable[tuple[Link, list[Flow]]]) -> str:
    labels = (", ".join(filter(None, _link_words(*each))) for each in links)
    return _several(labels, "settings")


def _queues(links: Iterable[tuple[Link, list[Flow]]]) -> str:
    queues = (link.forward.queue or PLAIN_QUEUE for link, _ in links)
    return _several(map(queue_label, queues), "queues")


def _flows(scenario: Scenario) -> dict[str, list[str]]:
    """Return the flows that start at each node."""
    notes: dict[str, dict[str, None]] = {}
    for flow in scenario.flows:
        notes.setdefault(flow.src, {})[f"{FLOW_KIND_LABELS[flow.sort]} → {flow.dst}"] = None
    return {name: list(texts) for name, texts in notes.items()}


def _note_lines(parts: Sequence[str]) -> list[str]:
    """Return a note in the lines that have room below a box."""
    lines = in_lines(parts, int(LINK_STEP / NOTE_LETTER)).split("\n")
    if len(lines) <= NOTE_LINES:
        return lines
    shown = lines[: NOTE_LINES - 1]
    more = len(parts) - sum(len(each.split(BETWEEN)) for each in shown)
    return [*shown, f"and {more} more"]


def _words_top(edge: Edge, nodes: dict[str, NodeBox]) -> float:
    """Return how high the words above a link reach."""
    middle = (nodes[edge.one].y + nodes[edge.other].y) / 2
    return middle - ABOVE - LINE_HEIGHT * len(_fitting(edge.above, edge, nodes))


def _edge(edge: Edge, nodes: dict[str, NodeBox]) -> str:
    one, other = nodes[edge.one], nodes[edge.other]
    kind = "neck" if edge.neck else "link"
    line = f'<line class="{kind}" x1="{one.x:g}" y1="{one.y:g}" x2="{other.x:g}" y2="{other.y:g}"/>'
    x, y = (one.x + other.x) / 2, (one.y + other.y) / 2
    above = _fitting(edge.above, edge, nodes)
    places = [(text, -ABOVE - LINE_HEIGHT * (len(above) - 1 - at)) for at, text in enumerate(above)]
    below = _fitting(edge.below, edge, nodes)
    places += [(text, 19 + LINE_HEIGHT * at) for at, text in enumerate(below)]
    for text, dy in places:
        line += f'<text class="halo" x="{x:g}" y="{y + dy:g}">{escape(text)}</text>'
    return line


def _fitting(text: str, edge: Edge, nodes: dict[str, NodeBox]) -> list[str]:
    """Break words into lines that fit between two boxes, numbers beside their units."""
    apart = math.dist(*((nodes[name].x, nodes[name].y) for name in (edge.one, edge.other)))
    whole = re.sub(r"(?<=[\d%]) (?!\w+=)", "\u00a0", text)
    letters = max(1, int((apart - BOX_W - 2 * CLEAR) / LETTER_WIDTH))
    lines = textwrap.wrap(whole, letters, break_long_words=False)
    return [line.replace("\u00a0", " ") for line in lines]


def _node(node: NodeBox, note: Sequence[str]) -> str:
    x, y = node.x - BOX_W / 2, node.y - BOX_H / 2
    round_ = BOX_H / 2 if node.router else 5
    kind = "router" if node.router else "host"
    text = (
        f'<rect class="{kind}" x="{x:g}" y="{y:g}" '
        f'width="{BOX_W}" height="{BOX_H}" rx="{round_:g}"/>'
        f'<text x="{node.x:g}" y="{node.y + 4:g}">{escape(node.name)}</text>'
    )
    for number, line in enumerate(note):
        place = node.y + 29 + NOTE_LINE * number
        text += f'<text class="note" x="{node.x:g}" y="{place:g}">{escape(line)}</text>'
    return text
