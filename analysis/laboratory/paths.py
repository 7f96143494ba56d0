"""Round-trip times between the addresses of a laboratory: as its links say, and as measured."""

from __future__ import annotations

import bisect
import functools
import math
from collections import defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass

from analysis.laboratory.observation import SOCKET_CLOCK_NS, Observation, SocketChange
from analysis.laboratory.settings import QueueCommand, pair_of, queue_commands

IDLE_BYTES = 1000  # neighbour discovery and the like
MAX_ALIKE = 300  # devices with one index, or looks at one instant, that are told apart
LOOK_NS = 2_000_000  # before a handshake, within which iperf was looked at

Device = tuple[int, str]  # a namespace and a name in it
Node = tuple[int, str]  # a namespace; in the machine's own, where switches are, also a name


@dataclass(frozen=True)
class Handshake:
    """A client's handshake with a server."""

    begun_ns: int
    source: str
    destination: str
    took_ms: float  # the first one includes what the answer to ARP took
    forward_ms: float  # that its last packet took to the server; infinite if it is not known


def handshakes(sockets: Sequence[SocketChange]) -> Iterator[Handshake]:
    """Yield the handshakes that ended, from SYN to the answer."""
    begun: defaultdict[object, deque[int]] = defaultdict(deque)
    arrived: defaultdict[object, list[int]] = defaultdict(list)
    for each in sockets:
        if (each.old, each.new) == ("SYN_RECV", "ESTABLISHED"):
            arrived[each.destination, each.source].append(each.time_ns)
    for times in arrived.values():
        times.sort()
    for each in sockets:
        ends = (each.source[0], each.destination)
        if each.new == "SYN_SENT":
            begun[ends].append(each.time_ns)
        elif each.old == "SYN_SENT" and begun[ends]:
            start = begun[ends].popleft()
            if each.new == "ESTABLISHED":
                times = arrived[each.source, each.destination]
                later = bisect.bisect_left(times, each.time_ns)
                is_known = later < len(times)
                forward_ms = (times[later] - each.time_ns) / 1e6 if is_known else math.inf
                took_ms = (each.time_ns - start) / 1e6
                # what was done in the same microsecond came before it
                begun_ns = start + SOCKET_CLOCK_NS - 1
                yield Handshake(begun_ns, ends[0], ends[1][0], took_ms, forward_ms)


def pairs_of(observation: Observation) -> Set[frozenset[str]]:
    """Return the names of the devices that commands of ip made as pairs."""
    return set(filter(None, map(pair_of, observation.of("ip"))))


class Paths:
    """The links between nodes, and the delays that commands gave them."""

    def __init__(self, observation: Observation, pairs: Set[frozenset[str]] | None = None) -> None:
        self.looks = sorted(observation.namespaces, key=lambda seen: seen.time_ns)
        self.devices = observation.last_seen()
        self.labels = {seen.inode: seen.label for seen in observation.namespaces}
        self.removals = defaultdict(list)
        for each in observation.of("tc"):
            if {"del", "delete"} & set(each.words):
                self.removals[each.namespace, each.after("dev")].append(each)
        self.delays = defaultdict(list)
        for queue in queue_commands(observation):
            if queue.kind == "netem":
                self.delays[queue.command.namespace, queue.device].append(queue)
        for delays in self.delays.values():
            delays.sort(key=lambda delay: delay.command.time_ns)
        self.holders = dict[str, Device]()
        # devices by their own index and their peer's, all and those of a name: with what they got
        self._ends = defaultdict[tuple[int, int, str], list[tuple[int, Device]]](list)
        self.addresses = defaultdict[int, list[str]](list)  # by namespace
        for key, device in self.devices.items():
            for name in ("", key[1]):
                self._ends[device.index, device.peer, name].append((device.received_bytes, key))
            self.addresses[key[0]] += device.addresses
            for address in device.addresses:
                self.holders.setdefault(address, key)
        for ends in self._ends.values():
            ends.sort()
        self._partners = defaultdict[str, list[str]](list)  # names, by that of the other of a pair
        for pair in pairs_of(observation) if pairs is None else pairs:
            for name in pair:
                self._partners[name] += pair - {name} or pair  # both ends may have one name
        self.links = self._links()
        self._ways: dict[tuple[Node, Node], list[tuple[Device, Device]] | None] = {}

    def node(self, device: Device) -> Node:
        """Return the node of a device: of switches in the machine's own namespace by its name."""
        inode, name = device
        of_switch = self.labels.get(inode) == "-" and "-" in name
        return (inode, name.rpartition("-")[0] if of_switch else "")

    def peer(self, device: Device) -> Device | None:
        """Return the other end of a pair of devices, by the command that made it or its counters.

        An index of a device is not unique: each namespace counts its own.
        """
        here = self.devices[device]
        for names in (self._partners[device[1]][:MAX_ALIKE], ("",)):
            there = [
                (abs(here.sent_bytes - received), key)
                for name in names
                for received, key in self._nearest((here.peer, here.index, name), here.sent_bytes)
                if key != device
            ]
            if there:
                return min(there)[1]
        return None

    def _nearest(self, which: tuple[int, int, str], sent: int) -> Iterator[tuple[int, Device]]:
        """Yield the two devices, or a few more, that got most nearly what another one sent."""
        ends = self._ends.get(which, ())
        above = bisect.bisect_left(ends, sent, key=lambda end: end[0])
        yield from ends[above : above + 2]
        for received, _key in reversed(ends[max(0, above - 2) : above]):
            first = bisect.bisect_left(ends, received, key=lambda end: end[0])
            yield from ends[first : first + 2]

    def _links(self) -> Mapping[Node, list[tuple[Device, Device]]]:
        links = defaultdict(list)
        for device, seen in self.devices.items():
            if seen.peer and (other := self.peer(device)):
                links[self.node(device)].append((device, other))
        return links

    def holder(self, address: str) -> Device | None:
        """Return the device with an address."""
        return self.holders.get(address)

    def way(self, source: str, destination: str) -> list[Device] | None:
        """Return the devices that packets leave on their way from an address to another."""
        here, there = self.holder(source), self.holder(destination)
        if here is None or there is None:
            return None
        ends = (self.node(here), self.node(there))
        if ends not in self._ways:
            self._ways[ends] = self._way(*ends)
        links = self._ways[ends]
        return None if links is None else [link[0] for link in links]

    def between(self, source: str, destination: str, time_ns: int) -> list[QueueCommand]:
        """Return what scripts had made to delay packets from an address to another by a time."""
        delays = []
        for device in self.way(source, destination) or ():
            made = self.delays.get(device, ())
            place = bisect.bisect_right(made, time_ns, key=lambda delay: delay.command.time_ns)
            if place and not self._is_removed(made[place - 1], time_ns):
                delays.append(made[place - 1])
        return delays

    def says_all_delays(self) -> bool:
        """Tell whether all delays are at ends of links: what is at an ifb is on no way."""
        ends = {here for links in self.links.values() for here, _there in links}
        return self.delays.keys() <= ends

    def is_only_way(self, source: str, destination: str) -> bool:
        """Tell whether packets can take one way alone."""
        here = self.holder(source)
        return here is not None and (
            self.node(here) in self._of_trees and self.way(source, destination) is not None
        )

    @functools.cached_property
    def _of_trees(self) -> frozenset[Node]:
        """The nodes whose links make up a tree with those of all that they reach."""
        of_trees: set[Node] = set()
        reached: set[Node] = set()
        for first in self.links:
            if first in reached:
                continue
            tree, queue, ends = {first}, deque([first]), 0
            while queue:
                for _device, other in self.links.get(queue.popleft(), ()):
                    ends += 1
                    if (following := self.node(other)) not in tree:
                        tree.add(following)
                        queue.append(following)
            reached |= tree
            if ends == 2 * (len(tree) - 1):
                of_trees |= tree
        return frozenset(of_trees)

    def is_idle(self, handshake: Handshake) -> bool:
        """Tell whether hardly anything was seen to wait, there and back, as a handshake began."""
        ends = (handshake.source, handshake.destination)
        way = {*(self.way(*ends) or ()), *(self.way(*ends[::-1]) or ())}
        begun_ns = handshake.begun_ns
        first = bisect.bisect_left(self.looks, begun_ns - LOOK_NS, key=lambda seen: seen.time_ns)
        last = bisect.bisect_right(self.looks, begun_ns, key=lambda seen: seen.time_ns)
        looks = self.looks[first : min(last, first + MAX_ALIKE)]
        devices = {(n.inode, d.name): d for n in looks for d in n.devices.values()}
        return way <= devices.keys() and not any(
            queue.waiting_bytes > IDLE_BYTES for device in way for queue in devices[device].queues
        )

    def _is_removed(self, delay: QueueCommand, time_ns: int) -> bool:
        """Tell whether a script removed its own delay; a link's it may not have meant."""
        if delay.by_mininet:
            return False
        removals = self.removals.get((delay.command.namespace, delay.device), ())
        place = bisect.bisect_right(removals, delay.command.order, key=lambda each: each.order)
        return place < len(removals) and removals[place].time_ns <= time_ns

    def rtt_ms(self, handshake: Handshake) -> float:
        """Return the round-trip time that the links say, or else the handshake's, an upper limit.

        A first handshake waits for the answer to ARP, too.
        """
        here, there, begun_ns = handshake.source, handshake.destination, handshake.begun_ns
        delays = [*self.between(here, there, begun_ns), *self.between(there, here, begun_ns)]
        return sum(each.delay_ms for each in delays) if delays else handshake.took_ms

    def _way(self, here: Node, there: Node) -> list[tuple[Device, Device]] | None:
        """Return the links of a shortest way."""
        ways: dict[Node, list[tuple[Device, Device]]] = {here: []}
        queue = deque([here])
        while queue:
            node = queue.popleft()
            if node == there:
                return ways[node]
            for link in self.links.get(node, ()):
                if (following := self.node(link[1])) not in ways:
                    ways[following] = [*ways[node], link]
                    queue.append(following)
        return None


paths_of = functools.lru_cache(maxsize=1)(Paths)  # for all rules that judge one observation
