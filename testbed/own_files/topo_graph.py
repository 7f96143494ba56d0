"""A Mininet Topo as a graph: hosts with their addresses, switches as bridges, links' options.

What Mininet itself would do with a Topo and its default classes is done, or refused with the
reason; what has no effect here is left out, and that is said.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

from mininet.topo import Topo

from testbed.errors import UsageError, quoted
from testbed.own_files import link_options, topo_class
from testbed.scenario.network import Graph, Link, Node, NodeKind, Port

FIRST_ADDRESS = IPv4Address("10.0.0.0")  # Mininet's ipBase: hosts have numbers in it, from 1
PREFIX = "/8"
PLAIN_HOSTS = ("Node", "Host")
BRIDGES = ("LinuxBridge", "OVSBridge")
OF_CONTROLLERS = ("dpid", "listenPort", "protocols", "opts", "datapath", "failMode", "batch")
SILENT = ("cls", "ip", "defaultRoute", "routes", "isSwitch", "inNamespace", *OF_CONTROLLERS)
WHY_LEFT_OUT = {
    "cpu": "Mininet's own Host has no limit either",
    "mac": "hardware addresses are numbered",
}
_PORT = re.compile(r".*-eth(\d+)")


@dataclass(frozen=True)
class TopoGraph:
    """The graph, a word for it, and what of the Topo is not in it."""

    word: str
    graph: Graph
    left_out: tuple[str, ...]


def topo_graph(text: str, link: str = "", folder: Path = Path()) -> TopoGraph:
    """The network of a Topo by its name; `link` has options for all its links."""
    name = topo_class.parse(text)
    topo = topo_class.build(name, folder)
    try:
        graph = _graph(topo, link_options.parse(link))
    except UsageError as error:
        raise UsageError(f"{text}: {error.message}", error.hint) from error
    if not any(each.rate_mbit for link in graph.links for each in link.directions):
        raise UsageError(
            f"{text}: no link has a bw: nothing would ever queue",
            "--link bw=10,delay=5ms gives one to all",
        )
    return TopoGraph(name.word, graph, tuple(_left_out(topo)))


def _graph(topo: Topo, defaults: Mapping[str, Any]) -> Graph:
    links = topo.links(sort=True, withInfo=True)
    addresses = _addresses(topo, links)
    gateways = _gateways(topo)
    nodes = [Node(name, _kind(topo, name, gateways)) for name in topo.hosts()]
    nodes += [Node(name, _switch(topo, name)) for name in topo.switches()]
    made = (_link(one, other, {**defaults, **own}, addresses) for one, other, own in links)
    return Graph(tuple(nodes), tuple(made))


def _kind(topo: Topo, name: str, gateways: Set[str]) -> NodeKind:
    """A host, or a router, if its class forwards or another host's default route leads to it."""
    info = topo.nodeInfo(name)
    if not info.get("inNamespace", True):
        raise UsageError(f"{name} would be in the machine's own network", "leave it out")
    kind = getattr(info.get("cls"), "func", info.get("cls"))  # a functools.partial's
    if kind is None or kind.__name__ in PLAIN_HOSTS:
        return NodeKind.ROUTER if name in gateways else NodeKind.HOST
    if not kind.__module__.startswith("mininet.no") and _forwards(kind):
        return NodeKind.ROUTER
    raise UsageError(
        f"{name}: what its class {kind.__name__} does when it starts is not emulated",
        "hosts are of Mininet's Host, or of a class that only sets ip_forward: a router",
    )


def _forwards(kind: type) -> bool:
    """Whether the class itself switches forwarding on, as Mininet's example of a router does."""
    own = [each for each in kind.__mro__ if not each.__module__.startswith("mininet.no")]
    try:
        return any("ip_forward" in inspect.getsource(each) for each in own if each is not object)
    except (OSError, TypeError):
        return False


def _gateways(topo: Topo) -> Set[str]:
    """The hosts that a host's default route leads to."""
    found = [(name, topo.nodeInfo(name)) for name in topo.hosts()]
    routes = [str(info.get("defaultRoute", "")) for _, info in found]
    wanted = {route.removeprefix("via ").strip() for route in routes if route}
    for one, other, info in topo.links(withInfo=True):
        found += [(one, info.get("params1") or {}), (other, info.get("params2") or {})]
    return {name for name, info in found if str(info.get("ip", "")).partition("/")[0] in wanted}


def _switch(topo: Topo, name: str) -> NodeKind:
    kind = topo.nodeInfo(name).get("cls")
    called = getattr(getattr(kind, "func", kind), "__name__", None)
    if called not in (None, *BRIDGES):
        raise UsageError(
            f"{name}: a switch of class {quoted(str(called))}: switches are Linux bridges, which "
            "learn by themselves and have no controller",
            "leave its cls out",
        )
    return NodeKind.SWITCH


Place = tuple[str, int]  # a node, and its port's number


def _addresses(topo: Topo, links: list[tuple[str, str, Any]]) -> dict[Place, str]:
    """Of hosts' interfaces: what the link says, and for the first the host's own, or a number."""
    numbers = {name: number for number, name in enumerate(topo.hosts(), start=1)}
    ports: dict[str, list[tuple[int, str]]] = {}
    for one, other, info in links:
        for node, end in ((one, 1), (other, 2)):
            said = str((info.get(f"params{end}") or {}).get("ip") or "")
            ports.setdefault(node, []).append((info[f"port{end}"], said))
    found = {}
    for name, own in ports.items():
        if name not in numbers:
            continue
        (first, said), *others = sorted(own)
        given = topo.nodeInfo(name).get("ip")
        found[(name, first)] = str(given or said or FIRST_ADDRESS + numbers[name])
        found |= {(name, port): address for port, address in others if address}
    return {place: ip if "/" in ip else ip + PREFIX for place, ip in found.items()}


def _link(one: str, other: str, options: dict[str, Any], addresses: dict[Place, str]) -> Link:
    forward, reverse = link_options.directions(f"link {one}-{other}", options)
    ports = (
        Port(_number(options, end), addresses.get((node, options[f"port{end}"])))
        for node, end in ((one, 1), (other, 2))
    )
    return Link((one, other), forward, None if reverse == forward else reverse, ports=tuple(ports))


def _number(options: Mapping[str, Any], end: int) -> int:
    """The interface's number: its name's, which may be given, or its port's."""
    named = _PORT.fullmatch(str(options.get(f"intfName{end}") or ""))
    return int(named[1]) if named else int(options[f"port{end}"])


def _left_out(topo: Topo) -> Iterator[str]:
    """What nodes are given that has no effect here, by name."""
    found: dict[str, list[str]] = {}
    for name in (*topo.hosts(), *topo.switches()):
        for key in topo.nodeInfo(name):
            if key not in SILENT:
                found.setdefault(key, []).append(name)
    for key, names in found.items():
        yield f"{key} of {', '.join(names)} is left out: {WHY_LEFT_OUT.get(key, 'not known here')}"
