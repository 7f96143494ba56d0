"""The networks that a program built: their nodes and links, and what tc set at each end.

A script may build one network after the other, or change one while it runs.
"""

from __future__ import annotations

import bisect
import dataclasses
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from analysis.laboratory.observation import ExecutedCommand, Observation, ObservedNamespace
from analysis.laboratory.paths import Device, Node, Paths, pairs_of
from analysis.laboratory.settings import QueueCommand, queue_command, rate_mbit
from testbed.store.names import DELAY_NODE

CLASSFUL = ("htb", "hfsc", "tbf", "prio", "drr", "netem")  # what shapes, delays or sorts for others


@dataclass(frozen=True)
class LinkEnd:
    """One end of a link: a device, what was set there, and what left it."""

    node: str
    interface: str
    addresses: Sequence[str]
    settings: Sequence[str]  # of queues and their classes, in the words of tc
    rate_mbit: float  # 0: none was set
    delay_ms: float
    queue: str  # the discipline that holds what waits, with its arguments; empty: the device's own
    sent_packets: int
    drops: int
    has_tso: bool


@dataclass(frozen=True)
class BuiltNetwork:
    """A network when it was complete."""

    nodes: Mapping[str, bool]  # name → whether it is a switch or forwards
    links: Sequence[tuple[LinkEnd, LinkEnd]]


def built_networks(observation: Observation) -> list[BuiltNetwork]:
    """Return the networks that have links, in order, each as it was with most devices."""
    networks, since = [], 0
    commands = sorted(observation.of("tc"), key=lambda command: command.order)
    pairs = pairs_of(observation)
    for snapshot in _complete(_snapshots(observation)):
        until = bisect.bisect_left(commands, snapshot[0].order, key=lambda each: each.order)
        settings = _Settings(commands[since:until])
        seen = dataclasses.replace(observation, namespaces=snapshot, commands=())
        networks.append(_network(seen, Paths(seen, pairs), settings))
        since = until
    return [network for network in networks if network.links]


def _snapshots(observation: Observation) -> list[list[ObservedNamespace]]:
    """Return what was observed of all namespaces at once, between the same two commands."""
    orders = sorted(command.order for command in observation.commands)
    together: defaultdict[int, list[ObservedNamespace]] = defaultdict(list)
    for namespace in observation.namespaces:
        together[bisect.bisect(orders, namespace.order)].append(namespace)
    return [together[place] for place in sorted(together)]


def _complete(
    snapshots: Sequence[Sequence[ObservedNamespace]],
) -> Iterator[Sequence[ObservedNamespace]]:
    """Yield the last snapshot of each network that has all of its devices."""
    largest: Sequence[ObservedNamespace] = ()
    sent_most: Mapping[Device, int] = {}
    before = 0
    for snapshot in snapshots:
        sent = _sent(snapshot)
        is_more = len(sent) > before and before < len(sent_most)
        if sent_most and (is_more or _is_another(sent_most, sent)):
            yield largest
            sent_most = {}
        if sent and len(sent) >= len(sent_most):
            largest, sent_most = snapshot, sent
        before = len(sent)
    if sent_most:
        yield largest


def _is_another(first: Mapping[Device, int], second: Mapping[Device, int]) -> bool:
    """Return whether a device was made again in between: its counter restarted."""
    return any(sent < first.get(device, 0) for device, sent in second.items())


def _sent(snapshot: Sequence[ObservedNamespace]) -> Mapping[Device, int]:
    """Return the packets that the links' devices have sent."""
    return {
        (seen.inode, device.name): device.sent_packets
        for seen in snapshot
        for device in seen.devices.values()
        if device.peer
    }


class _Settings:
    """The queues and classes that tc set at devices between two moments."""

    def __init__(self, commands: Iterable[ExecutedCommand]) -> None:
        self._of: defaultdict[Device, list[ExecutedCommand]] = defaultdict(list)
        for command in commands:
            device = (command.namespace, command.after("dev"))
            if command.status != 0:
                continue
            if {"del", "delete"} & set(command.words) or _is_new_root(command):
                self._of[device].clear()
            self._of[device].append(command)

    def of(self, device: Device) -> Iterator[tuple[str, QueueCommand | None]]:
        """Yield a device's queues and classes in the words of tc."""
        for command in self._of.get(device, ()):
            if queue := queue_command(command):
                yield " ".join(queue.discipline), queue
            elif name := command.after("classid"):
                rest = command.words[command.words.index(name) + 1 :]
                yield f"class {name}: {' '.join(rest)}", None


def _is_new_root(command: ExecutedCommand) -> bool:
    return "root" in command.words and "qdisc" in command.words


def _network(observation: Observation, paths: Paths, settings: _Settings) -> BuiltNetwork:
    names = _names(observation, paths)
    nodes: dict[str, bool] = {}
    links: dict[frozenset[Device], tuple[LinkEnd, LinkEnd]] = {}
    for node, here in paths.links.items():
        is_switch = bool(node[1]) or len(here) > 1
        nodes[names[node]] = is_switch
        for pair in here:
            one, other = (_end(paths, names, device, settings) for device in pair)
            links.setdefault(frozenset(pair), (one, other))
    nodes.pop(DELAY_NODE, None)
    return BuiltNetwork(nodes, tuple(_without_wires(links.values())))


def _without_wires(links: Iterable[tuple[LinkEnd, LinkEnd]]) -> Iterator[tuple[LinkEnd, LinkEnd]]:
    """Yield the links; two that meet in the place of delays (docs/network.md) are one."""
    halves: dict[str, tuple[LinkEnd, LinkEnd]] = {}
    for link in links:
        here, wire = link if link[1].node == DELAY_NODE else link[::-1]
        if wire.node != DELAY_NODE:
            yield link
            continue
        there, other_wire = halves.pop(wire.interface[:-1], (None, None))
        if there is None or other_wire is None:
            halves[wire.interface[:-1]] = (here, wire)
            continue
        yield _delayed(here, other_wire), _delayed(there, wire)


def _delayed(end: LinkEnd, wire: LinkEnd) -> LinkEnd:
    """Return a link's end with the delays that its outgoing packets meet."""
    settings = (*end.settings, *wire.settings)
    delay_ms = end.delay_ms + wire.delay_ms
    return dataclasses.replace(end, settings=settings, delay_ms=delay_ms)


def _names(observation: Observation, paths: Paths) -> dict[Node, str]:
    return {
        node: node[1] or observation.label(node[0])
        for node in {paths.node(device) for device in paths.devices}
    }


def _end(paths: Paths, names: Mapping[Node, str], device: Device, settings: _Settings) -> LinkEnd:
    seen = paths.devices[device]
    commands = list(settings.of(device))
    queues = [queue for _words, queue in commands if queue]
    waiting = [command for command, queue in commands if queue and queue.kind not in CLASSFUL]
    rates = [_rate(command) for command, _queue in commands]
    return LinkEnd(
        names[paths.node(device)],
        device[1],
        tuple(each for each in seen.addresses if not each.startswith("fe80:")),
        tuple(command for command, _queue in commands),
        min(filter(None, rates), default=0.0),
        sum(each.delay_ms for each in queues),
        waiting[-1] if waiting else "",
        seen.sent_packets,
        max((each.drops for each in seen.queues), default=0),
        seen.segments_later,
    )


def _rate(command: str) -> float:
    _before, _name, rest = command.partition(" rate ")
    return rate_mbit(rest.partition(" ")[0])
