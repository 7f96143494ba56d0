"""The network of a scenario as a small drawing: nodes, links with their settings, flows."""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import assert_never

from analysis.trials.labels import ACCESS_LINKS, queue_label, rate_label
from testbed.scenario.model import FlowKind, Path, Scenario, Topology, TopologyKind

WIDTH, STEP, TOP = 720, 64, 30
BOX_W, BOX_H = 92, 30
LETTER, LINE = 6.8, 15  # of the words at a link: a letter's width, a line's height
CLEAR = 10  # between the words and each box
KINDS = {FlowKind.TCP: "TCP", FlowKind.CBR: "CBR", FlowKind.VIDEO: "video"}


@dataclass(frozen=True)
class Node:
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
    """The network that the scenarios share, as an SVG element; what differs is written as such."""
    scenario = scenarios[0]
    nodes, edges = _layout(scenarios)
    notes = _flows(scenario)
    by_name = {node.name: node for node in nodes}
    lines = [
        by_name[each.one].y + LINE * len(_fitting(each.below, each, by_name)) for each in edges
    ]
    height = max(max(node.y for node in nodes) + 46, *(each + 24 for each in lines))
    parts = [
        '<svg class="network" role="img" '
        f'aria-label="The network: {escape(scenario.topology.kind)}" '
        f'viewBox="0 0 {WIDTH} {height:g}">'
    ]
    parts += [_edge(edge, by_name) for edge in edges]
    parts += [_node(node, notes.get(node.name, "")) for node in nodes]
    return "".join([*parts, "</svg>"])


def _layout(scenarios: Sequence[Scenario]) -> tuple[list[Node], list[Edge]]:
    topology = scenarios[0].topology
    hosts = topology.hosts
    middle = TOP + (hosts - 1) * STEP / 2
    neck = {"above": _neck(scenarios), "below": _queues(scenarios), "neck": True}
    match topology.kind:
        case TopologyKind.ROUTER_BOTTLENECK:
            nodes = [Node("router", 330, middle, True), Node("receiver", 660, middle)]
            edges = [Edge("router", "receiver", **neck)]  # type: ignore[arg-type]
            ends = [("sender", "router", 58.0)]
        case TopologyKind.DUMBBELL:
            nodes = [Node("left", 245, middle, True), Node("right", 475, middle, True)]
            edges = [Edge("left", "right", **neck)]  # type: ignore[arg-type]
            ends = [("sender", "left", 58.0), ("receiver", "right", 662.0)]
        case TopologyKind.ACCESS_LINK:
            return _home(scenarios, middle, neck)
        case _:
            assert_never(topology.kind)
    for side, router, x in ends:
        names = [f"{side}{number}" for number in range(1, hosts + 1)]
        paths = [topology.links.get(f"{name}-{router}", topology.access) for name in names]
        nodes += [Node(name, x, TOP + place * STEP) for place, name in enumerate(names)]
        edges += [
            Edge(name, router, *words) for name, words in zip(names, _paths(paths), strict=True)
        ]
    return nodes, edges


def _home(
    scenarios: Sequence[Scenario], y: float, neck: dict[str, object]
) -> tuple[list[Node], list[Edge]]:
    """Server, line and station in a row."""
    names = ("server", "isp", "ap", "station")
    nodes = [
        Node(name, 58.0 + place * 604 / 3, y, name in ("isp", "ap"))
        for place, name in enumerate(names)
    ]
    edges = []
    for name in ACCESS_LINKS:
        one, _, other = name.partition("-")
        networks = (scenario.topology for scenario in scenarios)
        found = {_path(each.links.get(name, each.access)) for each in networks}
        words = found.pop() if len(found) == 1 else (f"{len(found)} settings", "")
        edges.append(Edge(one, other, *words))
    return nodes, [Edge("isp", "ap", **neck), *edges]  # type: ignore[arg-type]


def _paths(paths: Sequence[Path]) -> Iterator[tuple[str, str]]:
    """What is written above and below each link: of links that are alike once, above the first
    and below the last, as there is no room between them."""
    last = len(paths) - 1
    alike = last > 0 and all(path == paths[0] for path in paths)
    for place, path in enumerate(paths):
        rate, delay = _path(path)
        if alike:
            rate, delay = rate if place == 0 else "", delay if place == last else ""
        yield rate, delay


def _path(path: Path) -> tuple[str, str]:
    jitter = f" ± {path.jitter_ms:g}" if path.jitter_ms else ""
    loss = f"{100 * path.loss.loss_rate:.2g} % lost" if path.loss else ""
    delay = f"{path.delay_ms:g}{jitter} ms" if path.delay_ms else ""
    busy = f"{100 * path.radio.busy:g} % others'" if path.radio and path.radio.busy else ""
    return rate_label(path), ", ".join(filter(None, (delay, loss, busy)))


def _several(texts: Iterable[str], what: str) -> str:
    found = list(dict.fromkeys(texts))
    return found[0] if len(found) == 1 else f"{len(found)} {what}"


def _neck(scenarios: Sequence[Scenario]) -> str:
    def words(topology: Topology) -> str:
        neck = topology.bottleneck
        delay = f", {neck.delay_ms:g} ms" if neck.delay_ms else ""
        return f"{rate_label(neck)}{delay}"

    return _several((words(s.topology) for s in scenarios), "settings")


def _queues(scenarios: Sequence[Scenario]) -> str:
    return _several((queue_label(s.topology.bottleneck.queue) for s in scenarios), "queues")


def _flows(scenario: Scenario) -> dict[str, str]:
    """The flows that start at each node."""
    notes: dict[str, list[str]] = {}
    for flow in scenario.flows:
        notes.setdefault(flow.src, []).append(f"{KINDS[flow.kind]} → {flow.dst}")
    return {name: ", ".join(dict.fromkeys(texts)) for name, texts in notes.items()}


def _edge(edge: Edge, nodes: dict[str, Node]) -> str:
    one, other = nodes[edge.one], nodes[edge.other]
    kind = "neck" if edge.neck else "link"
    line = f'<line class="{kind}" x1="{one.x:g}" y1="{one.y:g}" x2="{other.x:g}" y2="{other.y:g}"/>'
    x, y = (one.x + other.x) / 2, (one.y + other.y) / 2
    above = _fitting(edge.above, edge, nodes)
    places = [(words, -9 - LINE * (len(above) - 1 - at)) for at, words in enumerate(above)]
    below = _fitting(edge.below, edge, nodes)
    places += [(words, 19 + LINE * at) for at, words in enumerate(below)]
    for words, dy in places:
        line += f'<text class="halo" x="{x:g}" y="{y + dy:g}">{escape(words)}</text>'
    return line


def _fitting(words: str, edge: Edge, nodes: dict[str, Node]) -> list[str]:
    """The words in lines that fit between the two boxes, numbers together with their units."""
    apart = math.dist(*((nodes[name].x, nodes[name].y) for name in (edge.one, edge.other)))
    whole = re.sub(r"(?<=[\d%]) ", "\u00a0", words)
    lines = textwrap.wrap(whole, int((apart - BOX_W - 2 * CLEAR) / LETTER), break_long_words=False)
    return [line.replace("\u00a0", " ") for line in lines]


def _node(node: Node, note: str) -> str:
    x, y = node.x - BOX_W / 2, node.y - BOX_H / 2
    round_ = BOX_H / 2 if node.router else 5
    kind = "router" if node.router else "host"
    text = (
        f'<rect class="{kind}" x="{x:g}" y="{y:g}" '
        f'width="{BOX_W}" height="{BOX_H}" rx="{round_:g}"/>'
        f'<text x="{node.x:g}" y="{node.y + 4:g}">{escape(node.name)}</text>'
    )
    if note:
        text += f'<text class="note" x="{node.x:g}" y="{node.y + 29:g}">{escape(note)}</text>'
    return text
