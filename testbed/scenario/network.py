"""Networks: nodes, and links with two directions, which may change while flows run.

Everything that can be said of a link is a field of `Direction`. Networks that have a name are
functions that return such a graph (`named_networks.py`).

The sentence below a field describes it, and the last word of the field's name is its unit:
`testbed schema` prints both.
"""

from __future__ import annotations

import dataclasses
import enum
import heapq
import itertools
import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations, permutations
from typing import Annotated

from testbed.scenario.discipline import MAX_TC_NUMBER
from testbed.scenario.limits import SAFE_NAME, Length, Microseconds, OneOf, Pattern, Range, Text
from testbed.scenario.losses import GilbertElliott, SmallChance
from testbed.scenario.omitted_defaults import OMIT_DEFAULT, repr_without_defaults

MAX_CHANGES = 10_000
MAX_SECONDS = 24 * 3600.0
MAX_DELAY_MS = 60_000.0
MAX_NODES = 250
MAX_LINKS = 400
MAX_NODE_NAME = 10  # with `-eth99` behind it an interface's name
MAX_PORT = 255  # of a node with a short name
FRAME_OVERHEAD_BYTES = 14  # Ethernet header: counted by links and by captures
MTU_BYTES = 1500
FRAME_BYTES = MTU_BYTES + FRAME_OVERHEAD_BYTES  # what a full packet counts in a byte limit
# Ethernet's header, IP's without options by its version, and TCP's with all of its options
HEADERS_BYTES = {4: FRAME_OVERHEAD_BYTES + 20 + 60, 6: FRAME_OVERHEAD_BYTES + 40 + 60}
IP_VERSIONS = OneOf("version of IP", (4, 6))

IN_32_BITS = "all that the kernel can hold"
RateMbit = Annotated[float, Range(0.001, 100_000.0)]  # tc counts whole bytes a second
DelayMs = Annotated[float, Range(0.0, MAX_DELAY_MS), Microseconds()]
ChangeTimeS = Annotated[
    float,
    Range(
        *(0.0, MAX_SECONDS),
        above=True,
        said="is not within the trial: above 0 and before its end",
        says="{field} takes seconds above 0, up to the trial's end",
    ),
]
ReceiptUs = Annotated[float, Range(0.0, 10_000.0)]  # of an interrupt, a packet or a wake-up
LimitBytes = Annotated[int, Range(FRAME_BYTES, MAX_TC_NUMBER, "a full frame", IN_32_BITS)]
LimitPackets = Annotated[int, Range(1, MAX_TC_NUMBER, high_is=IN_32_BITS)]
NodeName = Annotated[
    str,
    Pattern(
        rf"[A-Za-z][A-Za-z0-9_]{{0,{MAX_NODE_NAME - 1}}}",
        f"a letter, then letters, digits and _, at most {MAX_NODE_NAME} of them",
    ),
]
Sysctl = Annotated[
    str,
    Pattern(
        r"net(\.[A-Za-z0-9_-]+)+",
        "no sysctl of a host's network, as net.ipv4.tcp_recovery is; others are the whole kernel's",
    ),
]
Sysctls = Mapping[Sysctl, Annotated[str, Text()]]
NO_MORE = " can be emulated, because a guest's memory of 256 MB holds no more"
TWO_ENDS = 'a link joins two nodes: "ends": ["h1", "r1"]'


@repr_without_defaults
@dataclass(frozen=True)
class Change:
    """New settings of a link's direction; what is not given stays as it was."""

    at_s: ChangeTimeS
    """When they hold from."""
    rate_mbit: RateMbit | None = None
    """What it is shaped to."""
    delay_ms: DelayMs | None = None
    """Its propagation delay."""
    loss: Annotated[float, Range(0.0, 1.0, said="is not a probability from 0 to 1")] | None = None
    """The chance of each packet to be lost."""
    up: bool | None = None
    """A link that is not up loses all that is sent over it: packets leave its queue at its rate and
    do not arrive."""
    mark: bool | None = field(default=None, repr=False, metadata=OMIT_DEFAULT)
    """Whether it marks all packets that leave its queue with CE; others than ECN's flows' data are
    lost, and the trial is invalid: it is for single packets (`testbed whatif --mark`)."""
    limit_bytes: LimitBytes | None = field(default=None, repr=False, metadata=OMIT_DEFAULT)
    """The most that its queue holds, of a discipline that counts bytes."""
    limit_packets: LimitPackets | None = field(default=None, repr=False, metadata=OMIT_DEFAULT)
    """The most that its queue holds, of a discipline that counts packets."""
    ecn: bool | None = field(default=None, repr=False, metadata=OMIT_DEFAULT)
    """Whether its queue marks packets; flows ask for ECN only if one marks from the beginning."""
    options: Mapping[str, float] | None = field(default=None, repr=False, metadata=OMIT_DEFAULT)
    """Other values of its queue's options."""

    @property
    def limit(self) -> int | None:
        """The queue's limit in the unit that its discipline counts in."""
        return self.limit_packets if self.limit_bytes is None else self.limit_bytes

    @property
    def changes_queue(self) -> bool:
        """Whether it changes the rate, or what waits for it."""
        return self.rate_mbit is not None or self.changes_discipline

    @property
    def changes_discipline(self) -> bool:
        """Whether it changes the queue's limit, its options, or whether it marks."""
        return any((self.limit is not None, self.ecn is not None, self.options))

    @property
    def changes_wire(self) -> bool:
        """Whether it changes what happens to packets behind the queue."""
        return (self.delay_ms, self.loss, self.up, self.mark) != (None, None, None, None)


Schedule = Annotated[tuple[Change, ...], Length(0, MAX_CHANGES, "changes")]


def scheduled_rates(schedule: Schedule, rate_mbit: float) -> list[tuple[float, float]]:
    """Return every rate with the time from which it holds, the first from second 0."""
    set_ = [(each.at_s, each.rate_mbit) for each in schedule if each.rate_mbit is not None]
    return [(0.0, rate_mbit), *set_]


def queue_changes(schedule: Schedule) -> Schedule:
    """Return the changes of the rate, and of the queue before it."""
    return tuple(
        dataclasses.replace(each, delay_ms=None, loss=None, up=None, mark=None)
        for each in schedule
        if each.changes_queue
    )


def wire_changes(schedule: Schedule) -> Schedule:
    """Return the changes of what happens behind the queue."""
    return tuple(
        dataclasses.replace(
            each, rate_mbit=None, limit_bytes=None, limit_packets=None, ecn=None, options=None
        )
        for each in schedule
        if each.changes_wire
    )


Step = tuple[int, int]  # a link's number, and the end that it is left from: 0 forward, 1 reverse


class NodeKind(enum.StrEnum):
    """What a node does with packets of others: drop, route or bridge them."""

    HOST = "host"
    ROUTER = "router"
    SWITCH = "switch"


@dataclass(frozen=True)
class Queue:
    """A queue discipline with its limit, given in exactly one unit."""

    discipline: str
    """Its name, as tc has it."""
    limit_bytes: LimitBytes | None = None
    """The most that it holds, in bytes of whole frames."""
    limit_packets: LimitPackets | None = None
    """The most packets that it holds."""
    limit_bdp: (
        Annotated[float, Range(0.0, MAX_TC_NUMBER, high_is=IN_32_BITS, above=True)] | None
    ) = None
    """The most that it holds, as a part of its rate times the path's round trip."""
    ecn: bool = False
    """Whether it marks packets of flows that can ECN, where otherwise it would drop them."""
    options: Mapping[str, float] = field(default_factory=dict)
    """Settings of the discipline; what is left out is as in the kernel."""


PLAIN_QUEUE = Queue("pfifo", limit_packets=1000)  # as long as Linux's own txqueuelen


@dataclass(frozen=True)
class Radio:
    """802.11n at 2.4 GHz, 20 MHz, one stream: an access point and a station."""

    signal_dbm: Annotated[int, Range(-82, -20)]  # below, 802.11 expects nothing
    """How strongly they hear each other."""
    busy: Annotated[float, Range(0.0, 0.9)] = 0.0
    """The part of the time that other stations ask for."""


class Shaping(enum.StrEnum):
    """What keeps a link to its rate."""

    LINK = "link"
    HTB = "htb"


@dataclass(frozen=True)
class Direction:
    """One direction of a link."""

    rate_mbit: RateMbit | None = None
    """What it is shaped to; without it, it is as fast as the machine."""
    delay_ms: DelayMs = 0.0
    """Its propagation delay."""
    queue: Queue | None = None
    """What waits before it, if it has a rate."""
    jitter_ms: DelayMs = 0.0
    """Each packet's delay is drawn, uniformly from `delay_ms` ± this; none overtakes another."""
    loss: GilbertElliott | None = None
    """Loses packets in bursts."""
    reorder: SmallChance = 0.0
    """The chance of each packet to arrive at once: it overtakes those that wait for the delay."""
    trace: str | None = None
    """A file in Mahimahi's format, or one of ours by its name: packets leave at its opportunities,
    and `rate_mbit` only says what limits in BDP and figures are scaled to."""
    schedule: Schedule = ()
    """What changes while flows run."""
    radio: Radio | None = None
    """A radio link, in both directions, by the kernel's own 802.11: its rate, delays and losses
    come of themselves."""
    shaping: Shaping = Shaping.LINK
    """What keeps it to `rate_mbit`: `link` sends packets one after the other, each for its size
    over the rate; `htb` is Linux's token bucket, whose first packets leave at once. On the host
    engine it is always htb."""
    aggregate_packets: Annotated[int, Range(1, 1024)] = 1  # 1024: a block acknowledgement's
    """How many of the packets that wait the link sends as one, at most: they arrive together when
    the last bit of the last one does, as over a radio."""
    aggregate_ms: Annotated[float, Range(0.0, 100.0)] = 0.0
    """After how long it adds no packet to those that it sends as one; 0: there is no limit."""
    hold_us: ReceiptUs = 0.0
    """How long the receiving machine's network card holds back its interrupt after a packet; those
    that come meanwhile are received with it (`ethtool`'s `rx-usecs`)."""
    cost_us: ReceiptUs = 0.0
    """What a packet costs the receiving machine's processor, one after the other: drawn by the
    seed for each packet, uniformly up to twice this."""
    wake_us: ReceiptUs = 0.0
    """How long the receiving machine's processor takes to wake up when nothing waited: drawn by
    the seed, uniformly up to twice this."""

    @property
    def is_exact(self) -> bool:
        """Whether packets are sent one after the other, each for its size over the rate."""
        return self.rate_mbit is not None and self.shaping is Shaping.LINK and not self.trace

    @property
    def loses_packets(self) -> bool:
        """Whether it may lose packets behind its queue, or be down."""
        changed = any(each.loss or each.up is False for each in self.schedule)
        return self.loss is not None or changed

    @property
    def aggregates(self) -> bool:
        """Whether the link may send several packets as one."""
        return self.aggregate_packets > 1

    @property
    def takes_time_to_receive(self) -> bool:
        """Whether the machine at its end holds, wakes up or works on packets."""
        return any((self.hold_us, self.cost_us, self.wake_us))


@repr_without_defaults
@dataclass(frozen=True)
class Port:
    """A link's interface at one of its nodes."""

    number: Annotated[int, Range(0, MAX_PORT)] | None = None
    """Its number there; the next unless given."""
    address: str | None = None
    """Its address with the length of its network, `10.0.0.1/8`; it gets one unless given."""
    ipv6_address: str | None = field(default=None, repr=False, metadata=OMIT_DEFAULT)
    """Its address in a network where `ip` is 6, likewise: `2001:db8:1::2/64`."""


@dataclass(frozen=True)
class Route:
    """A node's route."""

    destination: str
    """An address, or a network with its length."""
    gateway: str
    """The neighbour's address that leads there."""


@dataclass(frozen=True)
class NodeChange:
    """Another value of one of a node's sysctls, which is set back when all flows have ended."""

    at_s: ChangeTimeS
    """When it holds from."""
    sysctl: Sysctl
    """Its name."""
    value: Annotated[str, Text()]
    """What is written, and must be read back."""


@repr_without_defaults
@dataclass(frozen=True)
class Node:
    """A node of a network; flows begin and end at hosts and routers."""

    name: NodeName
    """What links and flows call it."""
    kind: NodeKind = NodeKind.HOST
    """What it does with packets of others."""
    routes: tuple[Route, ...] = ()
    """Its routes; computed unless given."""
    schedule: Annotated[tuple[NodeChange, ...], Length(0, MAX_CHANGES, "changes")] = field(
        default=(), repr=False, metadata=OMIT_DEFAULT
    )
    """What changes while flows run."""
    sysctls: Sysctls | None = field(default=None, repr=False, metadata=OMIT_DEFAULT)
    """Settings of its kernel by their names, such as `net.ipv4.tcp_notsent_lowat`; they come
    last, after what profile and variants set, and are read back."""


@dataclass(frozen=True)
class Link:
    """A link between two nodes."""

    ends: Annotated[tuple[str, ...], Length(2, 2, "nodes", few=TWO_ENDS, many=TWO_ENDS)]
    """Both nodes' names."""
    forward: Direction = Direction()
    """From the first node to the second."""
    reverse: Direction | None = None
    """From the second node to the first; the same unless given."""
    observed: bool = True
    """Whether a direction that has a rate and that a flow's data cross is captured before and
    behind its queue, and sampled."""
    ports: tuple[Port, ...] = ()
    """The interfaces at its ends, where they are not numbered in the order of the links."""
    drawn_as: str = ""
    """What `network_jitter` draws its rates and delays for: links that say the same are drawn
    alike. Unless given, each direction is drawn by itself."""
    rtt_ms: float | None = None
    """The round trip that is drawn in place of its delay, which is then half of what the
    bottleneck leaves of it."""

    @property
    def name(self) -> str:
        """Both nodes' names."""
        return "-".join(self.ends)

    @property
    def directions(self) -> tuple[Direction, Direction]:
        """The forward and the reverse direction."""
        return self.forward, self.forward if self.reverse is None else self.reverse

    @property
    def is_observed(self) -> bool:
        """Whether packets wait for a rate in a direction that is captured and sampled."""
        return self.observed and any(each.rate_mbit for each in self.directions)

    @property
    def both_delays_ms(self) -> float:
        """The delay of both directions together."""
        return sum(direction.delay_ms for direction in self.directions)


@dataclass(frozen=True)
class PathSummary:
    """What data would take from one node to another if nothing else were there."""

    rate_mbit: float  # the slowest link's; infinite where no link has a rate
    rtt_ms: float  # of the delays alone


@repr_without_defaults
@dataclass(frozen=True)
class Graph:
    """Any network."""

    nodes: Annotated[tuple[Node, ...], Length(1, MAX_NODES, "nodes", NO_MORE)]
    """All nodes, each with its name."""
    links: Annotated[tuple[Link, ...], Length(1, MAX_LINKS, "links", NO_MORE)]
    """All links; a node's interfaces are numbered in their order."""
    name: Annotated[str, SAFE_NAME] = "graph"
    """What tables and figures call it."""
    rtt_ms: Annotated[float, Range(0.0, MAX_DELAY_MS, above=True)] | None = None
    """What limits in BDP are of; unless given, the longest round trip between two hosts across an
    observed link."""
    routes: tuple[tuple[str, ...], ...] = field(default=(), repr=False, metadata=OMIT_DEFAULT)
    """Paths that are not the shortest: of each, the names of all nodes from the first to the last.
    They hold for all packets to the last node that come by, and for one direction: the way back
    is the shortest unless it is given, too."""
    ip: Annotated[int, IP_VERSIONS] = field(default=4, repr=False, metadata=OMIT_DEFAULT)
    """The version of IP of its flows: 4, or 6 with nodes that have addresses of both."""

    def names(self, *kinds: NodeKind) -> tuple[str, ...]:
        """Return the names of all nodes of these kinds, in their order."""
        return tuple(node.name for node in self.nodes if node.kind in kinds)

    @property
    def endpoints(self) -> tuple[str, ...]:
        """The nodes that flows may name: switches have no addresses."""
        return self.names(NodeKind.HOST, NodeKind.ROUTER)

    @property
    def bottleneck_link(self) -> Link:
        """The link with the slowest observed forward direction, the first of equals."""
        shaped = [link for link in self.links if link.observed and link.forward.rate_mbit]
        return min(shaped, key=lambda link: link.forward.rate_mbit or 0)

    @property
    def bottleneck(self) -> Direction:
        """The slowest observed forward direction: what figures are scaled to."""
        return self.bottleneck_link.forward

    @property
    def bottleneck_mbit(self) -> float:
        """The rate of the slowest observed forward direction."""
        return self.bottleneck.rate_mbit or 0

    @property
    def bottleneck_queue(self) -> Queue:
        """The queue before the slowest observed forward direction."""
        return self.bottleneck.queue or PLAIN_QUEUE

    def link(self, name: str) -> Link | None:
        """Return the link of that name, `left-right`."""
        return next((link for link in self.links if link.name == name), None)

    @cached_property
    def longest_rtt_ms(self) -> float:
        """The round trip that limits in BDP are of.

        Unless given, it is the longest between two hosts across an observed link.
        """
        if self.rtt_ms is not None:
            return self.rtt_ms
        hosts = self.names(NodeKind.HOST)
        observed = {number for number, link in enumerate(self.links) if link.is_observed}
        pairs = permutations(hosts, 2) if self.routes else combinations(hosts, 2)
        crossing = (
            (one, other)
            for one, other in pairs
            if any(number in observed for number, _ in self.steps_from(one).get(other, ()))
        )
        return max((self._rtt_ms(*pair) for pair in crossing), default=0.0)

    def steps_from(self, src: str) -> Mapping[str, tuple[Step, ...]]:
        """Return the shortest path to every node that packets from `src` can reach."""
        if src not in self._steps:
            shortest = self._shortest(src)
            self._steps[src] = (
                {dst: self._routed(src, dst) for dst in shortest} if self.routes else shortest
            )
        return self._steps[src]

    def _shortest(self, src: str) -> Mapping[str, tuple[Step, ...]]:
        if src not in self._shortest_steps:
            transit = self.names(NodeKind.ROUTER, NodeKind.SWITCH)
            self._shortest_steps[src] = shortest_paths(self.links, transit, src)
        return self._shortest_steps[src]

    def _routed(self, src: str, dst: str) -> tuple[Step, ...]:
        """Return the path to `dst` with the routes to it; empty if these contradict each other."""
        steps: list[Step] = []
        node = src
        while node != dst:
            if len(steps) == len(self.nodes):
                return ()
            following = self._next_nodes.get((node, dst))
            ahead = self._shortest(node).get(dst) if following is None else None
            step = ahead[0] if ahead else self._step(node, following)
            if step is None:
                return ()
            steps.append(step)
            node = self.links[step[0]].ends[1 - step[1]]
        return tuple(steps)

    @cached_property
    def _next_nodes(self) -> dict[tuple[str, str], str]:
        """The node that a route continues to, by where a packet is and where it goes."""
        return {
            (node, route[-1]): following
            for route in self.routes
            for node, following in itertools.pairwise(route)
        }

    def _step(self, node: str, other: str | None) -> Step | None:
        """Return the link from a node to its neighbour."""
        return next(
            (
                (number, link.ends.index(node))
                for number, link in enumerate(self.links)
                if {node, other} == set(link.ends)
            ),
            None,
        )

    @cached_property
    def _shortest_steps(self) -> dict[str, Mapping[str, tuple[Step, ...]]]:
        return {}

    @cached_property
    def _steps(self) -> dict[str, Mapping[str, tuple[Step, ...]]]:
        return {}

    def path(self, src: str, dst: str) -> PathSummary:
        """Return the slowest rate and the round trip between two nodes."""
        steps = self.steps_from(src)[dst]
        rates = (self.links[number].directions[end].rate_mbit for number, end in steps)
        slowest = min((rate for rate in rates if rate is not None), default=math.inf)
        return PathSummary(slowest, self._rtt_ms(src, dst))

    def _rtt_ms(self, src: str, dst: str) -> float:
        there = self.steps_from(src)[dst]
        if not self.routes:  # the way back is the way there
            return sum(self.links[number].both_delays_ms for number, _ in there)
        both = (*there, *self.steps_from(dst)[src])
        return sum(self.links[number].directions[end].delay_ms for number, end in both)

    @cached_property
    def interface_numbers(self) -> Mapping[Step, int]:
        """The interface number at both ends of every link.

        Interfaces are numbered in the order of their node's links, where the link does not give
        one.
        """
        used: Counter[str] = Counter()
        numbers = {}
        for index, link in enumerate(self.links):
            for end, (node, port) in enumerate(zip(link.ends, link.ports or UNSAID, strict=True)):
                numbers[(index, end)] = used[node] if port.number is None else port.number
                used[node] += 1
        return numbers


def shaped_by_htb(graph: Graph) -> Graph:
    """Return the network with htb on every link that has a rate and no trace."""

    def by_htb(direction: Direction) -> Direction:
        if direction.rate_mbit is None or direction.trace is not None:
            return direction
        return dataclasses.replace(direction, shaping=Shaping.HTB)

    links = (
        dataclasses.replace(
            link, forward=by_htb(link.forward), reverse=link.reverse and by_htb(link.reverse)
        )
        for link in graph.links
    )
    return dataclasses.replace(graph, links=tuple(links))


UNSAID = (Port(), Port())


def shortest_paths(
    links: Sequence[Link], transit: Collection[str], src: str
) -> Mapping[str, tuple[Step, ...]]:
    """Return the shortest paths from a node to every other that it reaches.

    Hops count first, then delays, then the order of the links; only `transit` nodes pass packets
    on. The last rule makes paths unique, so that a path's parts are shortest paths too, and the
    path in the other direction is the same: every router agrees with every other.
    """
    leaving: dict[str, list[tuple[int, int, str]]] = {}
    for number, link in enumerate(links):
        for end in (0, 1):
            leaving.setdefault(link.ends[end], []).append((number, end, link.ends[1 - end]))
    delays_us = [round(1000 * link.both_delays_ms) for link in links]
    first = 1 << len(links)  # what a path gains by the first link, which outweighs all others
    paths: dict[str, tuple[Step, ...]] = {}
    waiting: list[tuple[int, int, int, str, tuple[Step, ...]]] = [(0, 0, 0, src, ())]
    while waiting:
        hops, delay_us, rank, node, steps = heapq.heappop(waiting)
        if node in paths:
            continue
        paths[node] = steps
        if node != src and node not in transit:
            continue
        for number, end, other in leaving.get(node, ()):
            if other not in paths:
                further_us = delay_us + delays_us[number]
                longer = (*steps, (number, end))
                heapq.heappush(
                    waiting, (hops + 1, further_us, rank - (first >> number), other, longer)
                )
    return paths
