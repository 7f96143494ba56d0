"""Links with a delay: two interfaces tied together by mirred, each with a netem of its own.

So a delay never shares an interface with a queue that is measured, nor sits on a sender's egress.
A jitter, losses and packets that overtake are netem's too, each direction with its own dice. What
the receiving machine does before a packet is seen there is a discipline below netem.

One link may have many delays, one for each session of a workload: a program writes on each packet
when it may leave (trial/parts/session_delays.py), and fq in netem's place holds it until then. A
session is identified by its port at the sending host.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

from testbed.faults import Fault
from testbed.plan.commands import DELAY_HANDLE, RECEIVER, RECEIVER_CLASS, Command
from testbed.plan.flows import session_port
from testbed.plan.network import Hop, Network
from testbed.plan.traffic_control import ChangePlan, TcObject
from testbed.runner.recorded_netlink import RECEIVE, RECEIVE_COST, RECEIVE_HOLD, RECEIVE_WAKE
from testbed.scenario.discipline import OFF_ON, Field, Setting
from testbed.scenario.losses import GilbertElliott
from testbed.scenario.model import Flow, Scenario
from testbed.scenario.network import Change, Direction, wire_changes
from testbed.scenario.transfers import draw_sessions
from testbed.scenario.workload import Sessions
from testbed.store.names import DELAY_NODE

NETEM_LIMIT = 10_000_000  # packets: a delay must never drop
# With a rate netem lets no packet overtake another, whatever delay was drawn for it: a radio's
# receiver puts frames in order too. At this one a full frame takes 1.2 µs.
IN_ORDER_GBIT = 10

# linux/pkt_sched.h: netem's options are struct tc_netem_qopt, then attributes
HEAD_BYTES = 24
NETEM_REORDER, NETEM_CORRUPT, NETEM_LOSS, NETEM_RATE, NETEM_ECN = 3, 4, 5, 6, 7
LATENCY64, JITTER64 = 10, 11
LOSS_STATES, LOSS_GILBERT_ELLIOTT = 1, 2
TICK_NS = 64
CERTAIN = 0xFFFFFFFF  # netem's probability of 1
PROBABILITY_SLACK = 43  # 1e-8: tc is told millionths of a percent
ALL_LOST = GilbertElliott(to_bad=1.0, to_good=0.0, loss_in_bad=1.0, loss_in_good=1.0)


@dataclass(frozen=True)
class DelayLink:
    """A link that leads through `wires`: its interfaces, and how packets are delayed."""

    hops: tuple[Hop, Hop]
    ends: tuple[str, str]
    many: bool  # delays: one for each session of a workload

    @property
    def name(self) -> str:
        """The link's name."""
        return self.hops[0].link.name

    def hop(self, end: int) -> Hop:
        """Return the hop of packets that leave here by that end: they come in by the other."""
        return self.hops[1 - end]

    def words(self, end: int) -> tuple[str, ...]:
        """Return the discipline at one end as tc's words."""
        if self.many:
            limits = ("limit", str(NETEM_LIMIT), "flow_limit", str(NETEM_LIMIT))
            return ("fq", *limits, "nopacing", "timer_slack", "0")
        direction = self.hop(end).direction
        return (
            *("netem", "delay", f"{direction.delay_ms * 1000:.3f}us", *_jitter(direction)),
            *(loss_words(direction.loss) if direction.loss else ()),
            *(("reorder", f"{100 * direction.reorder:.6f}%") if direction.reorder else ()),
            *("limit", str(NETEM_LIMIT)),
        )

    def settings(self, end: int) -> tuple[Setting, ...]:
        """Return the numbers that the kernel must report of the discipline at one end."""
        return tuple(_fq_settings()) if self.many else netem_settings(self.hop(end).direction)


def is_delay_link(hops: tuple[Hop, Hop], many: frozenset[str] = frozenset()) -> bool:
    """Return whether a link leads through `wires`: it does something behind its queue."""
    return hops[0].link.name in many or any(
        hop.direction.delay_ms
        or hop.direction.loss
        or hop.direction.takes_time_to_receive
        or hop.wire_changes
        for hop in hops
    )


def end_names(number: int) -> tuple[str, str]:
    """Return the names of the two interfaces, in `wires`, of the link with that number."""
    return f"w{number}a", f"w{number}b"


def delay_links(network: Network, many: frozenset[str] = frozenset()) -> Iterator[DelayLink]:
    """Yield all links that lead through `wires`; `many` names those with many delays."""
    for number, hops in enumerate(network.hops):
        if is_delay_link(hops, many):
            yield DelayLink(hops, end_names(number), hops[0].link.name in many)


def has_channels(network: Network) -> bool:
    """Return whether a link can lose packets, be down, or let packets overtake."""
    return any(
        hop.direction.loss or hop.direction.reorder or hop.wire_changes
        for hops in network.hops
        for hop in hops
    )


def _jitter(direction: Direction) -> tuple[str, ...]:
    arguments = (f"{direction.jitter_ms * 1000:.3f}us", "rate", f"{IN_ORDER_GBIT}gbit")
    return arguments if direction.jitter_ms else ()


def loss_words(channel: GilbertElliott) -> tuple[str, ...]:
    """Return the channel as netem takes it.

    The chances are: into the bad state, out of it, lost in it, and lost in the good one.
    """
    chances = (channel.to_bad, channel.to_good, channel.loss_in_bad, channel.loss_in_good)
    return ("loss", "gemodel", *(f"{100 * chance:.6f}%" for chance in chances))


def marks(direction: Direction) -> bool:
    """Return whether netem marks packets, at some time, where it would lose them."""
    return any(each.mark is not None for each in direction.schedule)


def delay_commands(links: tuple[DelayLink, ...]) -> Iterator[Command]:
    """Yield the commands that tie each link's two ends together and delay packets there."""
    for each in links:
        for end in each.ends:
            yield Command(DELAY_NODE, ("ip", "link", "set", end, "up"))
    for each in links:
        for number, end in enumerate(each.ends):
            peer = each.ends[1 - number]
            add = ("add", "dev", end)
            yield Command(DELAY_NODE, ("tc", "qdisc", *add, "clsact"))
            to_peer = ("action", "mirred", "egress", "redirect", "dev", peer)
            yield Command(DELAY_NODE, ("tc", "filter", *add, "ingress", "matchall", *to_peer))
            arguments = each.words(number)
            root = ("dev", end, "root", "handle", str(DELAY_HANDLE))
            direction = each.hop(number).direction
            if marks(direction):  # tc takes the word only with a loss, which the kernel forgets
                certain = (*arguments, "loss", "100%", "ecn")
                yield Command(DELAY_NODE, ("tc", "qdisc", "add", *root, *certain))
                yield Command(DELAY_NODE, ("tc", "qdisc", "change", *root, *arguments))
            else:
                yield Command(DELAY_NODE, ("tc", "qdisc", "add", *root, *arguments))
            if direction.takes_time_to_receive:
                place = ("parent", str(RECEIVER_CLASS), "handle", str(RECEIVER), RECEIVE)
                yield Command(
                    DELAY_NODE, ("tc", "qdisc", *add, *place, *_receiver_words(direction))
                )


def delay_objects(links: tuple[DelayLink, ...]) -> Iterator[TcObject]:
    """Yield the disciplines that delay packets, with their numbers."""
    for each in links:
        for number, end in enumerate(each.ends):
            yield TcObject(
                DELAY_NODE, end, DELAY_HANDLE, each.words(number)[0], each.settings(number)
            )
            direction = each.hop(number).direction
            if direction.takes_time_to_receive:
                yield TcObject(
                    DELAY_NODE, end, RECEIVER, RECEIVE, tuple(_receiver_settings(direction))
                )


RECEIPT_TIMES = (
    ("hold", RECEIVE_HOLD, "hold_us"),
    ("cost", RECEIVE_COST, "cost_us"),
    ("wake", RECEIVE_WAKE, "wake_us"),
)


def _receiver_words(direction: Direction) -> Iterator[str]:
    for word, _, field in RECEIPT_TIMES:
        yield from (word, f"{round(getattr(direction, field) * 1e3)}ns")


def _receiver_settings(direction: Direction) -> Iterator[Setting]:
    for word, number, field in RECEIPT_TIMES:
        yield Setting(word, (Field((number,)),), getattr(direction, field), "us", 1e3, round)


def delay_changes(links: tuple[DelayLink, ...]) -> Iterator[ChangePlan]:
    """Yield the scheduled changes of netem's delays and losses.

    Packets that netem holds already keep their delay, and arrive.
    """
    for each in links:
        for number, end in enumerate(each.ends):
            hop = each.hop(number)
            direction, chance, up = hop.direction, 0.0, True
            for change in hop.wire_changes:
                delay_ms = direction.delay_ms if change.delay_ms is None else change.delay_ms
                direction = replace(direction, delay_ms=delay_ms)
                chance = chance if change.loss is None else change.loss
                chance = chance if change.mark is None else float(change.mark)
                up = up if change.up is None else change.up
                down = replace(direction, loss=direction.loss and ALL_LOST)
                settings = netem_settings(direction, chance) if up else netem_settings(down, 1.0)
                target = TcObject(DELAY_NODE, end, DELAY_HANDLE, "netem", settings)
                yield ChangePlan(change.at_s, target, hop.out.name, _words(change))


def _words(change: Change) -> str:
    changes = []
    if change.delay_ms is not None:
        changes.append(f"delay {change.delay_ms:g} ms")
    if change.loss is not None:
        changes.append(f"loss {change.loss:g}")
    if change.up is not None:
        changes.append("up" if change.up else "down")
    if change.mark is not None:
        changes.append("marks all" if change.mark else "marks none")
    return ", ".join(changes)


def netem_settings(direction: Direction, chance: float = 0.0) -> tuple[Setting, ...]:
    """Return netem's numbers for a direction, with a chance of losses beside its own."""
    wire = replace(direction, rate_mbit=None, queue=None, trace=None, schedule=())
    return _settings_of(wire, chance, marks(direction))


@lru_cache(maxsize=256)
def _settings_of(wire: Direction, chance: float, marking: bool) -> tuple[Setting, ...]:
    return tuple(_netem_settings(wire, chance, marking))


def _netem_settings(wire: Direction, chance: float, marking: bool) -> Iterator[Setting]:
    if marking:
        yield Setting("ecn", _attribute(NETEM_ECN), 1, words=OFF_ON)
    for name, at, value in (
        ("delay", _attribute(LATENCY64, "q"), wire.delay_ms),
        ("jitter", _attribute(JITTER64, "q"), wire.jitter_ms),
    ):
        # in nanoseconds, of which tc makes psched's ticks
        yield Setting(name, at, value, "ms", 1e6, round, TICK_NS)
    bits = IN_ORDER_GBIT * 10**9 if wire.jitter_ms else 0
    yield Setting("rate", _attribute(NETEM_RATE), bits, "bit/s", 1 / 8)
    yield Setting("limit", (Field(offset=4, head=HEAD_BYTES),), NETEM_LIMIT)
    random = (Field(offset=8, head=HEAD_BYTES),)
    yield Setting("random loss", random, chance, "", CERTAIN, round, PROBABILITY_SLACK)
    # of every gap's packets the last has the chance to overtake: with tc's 1 each
    for name, offset, value in (("gap", 12, 1 if wire.reorder else 0), ("duplication", 16, 0)):
        yield Setting(name, (Field(offset=offset, head=HEAD_BYTES),), value)
    yield _reordering(wire.reorder)
    yield Setting("corruption", _attribute(NETEM_CORRUPT), 0)
    if wire.loss:
        yield from _channel_settings(wire.loss)
    else:
        yield Setting("loss model", (_loss(LOSS_STATES), _loss(LOSS_GILBERT_ELLIOTT)), None)


def _reordering(chance: float) -> Setting:
    if not chance:
        return Setting("reordering", _attribute(NETEM_REORDER), 0)
    return Setting(
        "reordering", _attribute(NETEM_REORDER), chance, "", CERTAIN, round, PROBABILITY_SLACK
    )


def _attribute(number: int, form: str = "I") -> tuple[Field, ...]:
    return (Field((number,), 0, form, head=HEAD_BYTES),)


def _loss(model: int, offset: int = 0) -> Field:
    return Field((NETEM_LOSS, model), offset, head=HEAD_BYTES)


def _channel_settings(channel: GilbertElliott) -> Iterator[Setting]:
    """Yield the channel's numbers in the kernel.

    For netem, `h` is the chance to deliver in the bad state, `1-k` to lose in the good one.
    """
    chances = {
        "p": channel.to_bad,
        "r": channel.to_good,
        "h": 1 - channel.loss_in_bad,
        "1-k": channel.loss_in_good,
    }
    for index, (name, chance) in enumerate(chances.items()):
        at = (_loss(LOSS_GILBERT_ELLIOTT, 4 * index),)
        yield Setting(f"loss model's {name}", at, chance, "", CERTAIN, round, PROBABILITY_SLACK)


def _fq_settings() -> Iterator[Setting]:
    yield Setting("limit", (Field((1,)),), NETEM_LIMIT)
    yield Setting("flow_limit", (Field((2,)),), NETEM_LIMIT)
    yield Setting("pacing", (Field((5,)),), 0, words=OFF_ON)
    yield Setting("timer_slack", (Field((13,)),), 0, "ns")


NS_PER_MS = 1_000_000


@dataclass(frozen=True)
class SessionDelays:
    """The link to a flow's receiver, on which each session's packets wait both ways."""

    link: str
    ends: tuple[str, str]  # its interfaces in the node `wires`
    link_delay_ns: int
    first_port: int
    extra_ns: tuple[int, ...]  # of each session, each way, beyond the link's own delay


def session_delays(scenario: Scenario, network: Network) -> Iterator[SessionDelays]:
    """Plan the delays of every flow whose sessions have their own round trips."""
    for index, flow, sessions in _with_round_trips(scenario):
        hop = _last_hop(network, flow)
        path_ms = network.path_rtt_ms(flow.src, flow.dst)
        drawn = draw_sessions(sessions, f"{scenario.seed} {flow.name}")
        yield SessionDelays(
            link=hop.link.name,
            ends=end_names(hop.number),
            link_delay_ns=round(hop.direction.delay_ms * NS_PER_MS),
            first_port=session_port(scenario, index),
            extra_ns=tuple(
                max(0, round(((each.rtt_ms or 0) - path_ms) * NS_PER_MS / 2)) for each in drawn
            ),
        )


def session_rtt_faults(scenario: Scenario, network: Network) -> Iterator[Fault]:
    """Yield round trips shorter than the path's, and links that cannot add to them."""
    links: dict[str, str] = {}
    for index, flow, sessions in _with_round_trips(scenario):
        keys = ("flows", index, "workload", "arrivals", "sessions", "rtt_min_ms")
        link = _last_hop(network, flow).link
        one, other = link.directions
        if one.delay_ms != other.delay_ms or any(
            each.jitter_ms
            or each.loss
            or each.reorder
            or each.takes_time_to_receive
            or wire_changes(each.schedule)
            for each in (one, other)
        ):
            message = (
                f"{link.name} has jitter, losses, reordering, a receiver that takes time, a "
                "schedule or another delay back: sessions need a plain link to their receiver"
            )
            yield Fault(keys, message)
        if (first := links.setdefault(link.name, flow.name)) != flow.name:
            yield Fault(keys, f"{link.name} delays the sessions of {first} already")
        least_ms = network.path_rtt_ms(flow.src, flow.dst)
        if sessions.rtt_min_ms is not None and sessions.rtt_min_ms < least_ms:
            yield Fault(keys, f"{sessions.rtt_min_ms:g}: its path has {least_ms:g} ms")


def has_session_delays(scenario: Scenario) -> bool:
    """Return whether a flow has sessions with their own round trips."""
    return any(True for _ in _with_round_trips(scenario))


def _with_round_trips(scenario: Scenario) -> Iterator[tuple[int, Flow, Sessions]]:
    for index, flow in enumerate(scenario.flows):
        sessions = flow.workload.arrivals.sessions if flow.workload else None
        if sessions is not None and sessions.rtt_min_ms is not None:
            yield index, flow, sessions


def _last_hop(network: Network, flow: Flow) -> Hop:
    return network.path(flow.src, flow.dst)[-1]
