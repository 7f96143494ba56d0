"""Scenarios with a Mininet Topo: `"topology": {"topo": …}` in JSON, or the command line's words."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from testbed.errors import UsageError, quoted
from testbed.own_files.topo_class import settings
from testbed.own_files.topo_graph import TopoGraph, topo_graph
from testbed.scenario.model import plain
from testbed.scenario.reading import NETWORK, TOPOLOGY

TOPO, LINK = "topo", "link"
FORM = "--flow h1,h2,variant=cubic"
VARIANT = "cubic"  # of a TCP flow that names none


@dataclass(frozen=True)
class Document:
    """A scenario in JSON's types, without a Topo any more, and what of the Topo is not in it."""

    data: Any
    left_out: tuple[str, ...] = ()


@dataclass(frozen=True)
class TopoReference:
    """A Mininet Topo class as it is; any field of a network may be given beside it."""

    topo: str
    """A class in a file with its arguments, `net.py:MyTopo,hosts=3`, or one of Mininet's own:
    `tree,2,2`."""
    link: str = ""
    """Options of all links that have none of their own: `bw=10,delay=5ms`."""


def with_graph(data: Any, folder: Path) -> Document:
    """The same data with the Topo's graph in its place; `folder` is where a file's path begins."""
    topology = data.get(TOPOLOGY) if isinstance(data, dict) else None
    if not isinstance(topology, dict) or TOPO not in topology:
        return Document(data)  # whoever reads it tells its faults, with their places
    others = {key: value for key, value in topology.items() if key not in (TOPO, LINK)}
    name, link = topology[TOPO], topology.get(LINK, "")
    if not isinstance(name, str) or not isinstance(link, str):
        raise UsageError("topology: topo and link are texts", 'like "topo": "tree,2,2"')
    found = topo_graph(name, link, folder)
    rest = {key: value for key, value in data.items() if key != TOPOLOGY}
    return Document({**rest, NETWORK: {**plain(found.graph), **others}}, found.left_out)


def of_words(topo: str, link: str, flows: Iterable[str], duration_s: float) -> Document:
    """The scenario of `--topo`, `--link`, `--flow` and `--duration`."""
    found = topo_graph(topo, link)
    data = {
        "experiment": found.word,
        NETWORK: plain(found.graph),
        "flows": _named([_flow(text) for text in flows], found),
        "duration_s": duration_s,
    }
    return Document(data, found.left_out)


def _flow(text: str) -> dict[str, Any]:
    """`h1,h2,variant=cubic`: where from, where to, and any field of a flow's."""
    words = settings(text.split(","))
    ends = [str(each) for each in words.positional]
    if len(ends) != 2:
        raise UsageError(f"--flow {quoted(text)}: not SRC,DST[,FIELD=VALUE…]", FORM)
    flow: dict[str, Any] = {"kind": "tcp", "src": ends[0], "dst": ends[1], **words.named}
    if flow["kind"] == "tcp":
        flow.setdefault("variant", VARIANT)
    return flow


def _named(flows: list[dict[str, Any]], found: TopoGraph) -> list[dict[str, Any]]:
    """Each flow with a name of its own: its ends, and a number if others have the same."""
    if not flows:
        hosts = " and ".join(node.name for node in found.graph.nodes[:2])
        raise UsageError("no flow is asked for", f"{FORM}; there are {hosts}, for example")
    taken: dict[str, int] = {}
    for flow in flows:
        name = flow.setdefault("name", f"{flow['src']}-{flow['dst']}")
        taken[name] = taken.get(name, 0) + 1
        if taken[name] > 1:
            flow["name"] = f"{name}-{taken[name]}"
    return flows
