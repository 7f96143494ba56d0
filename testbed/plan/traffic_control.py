"""Disciplines and classes as the plan wants to find them in the kernel, and what keeps to rates."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from testbed.plan.commands import HTB_CLASS, LEAF, ONLY_CLASS, SHAPER, Command, Handle
from testbed.plan.network import Hop, Network
from testbed.runner.recorded_netlink import LINK, LINK_PACKETS, LINK_RATE, LINK_TIME
from testbed.scenario import queues
from testbed.scenario.discipline import (
    MICROSECOND_TICKS,
    TICKS_PER_MICROSECOND,
    Field,
    Limit,
    Setting,
    whole_microseconds,
)
from testbed.scenario.model import Flow
from testbed.scenario.network import FRAME_BYTES, Queue
from testbed.scenario.trace import Trace, parse_trace

# linux/pkt_sched.h: TCA_HTB_PARMS holds struct tc_htb_opt
HTB_PARAMETERS, INIT, RATE64, CEIL64 = 1, 2, 6, 7
# a policer's discipline, which holds nothing back: a filter before it drops (linux/pkt_cls.h)
BANDS = 3
POLICED = ("prio", "bands", str(BANDS))
POLICER_FILTER = "matchall"
POLICE_OPTIONS = (2, 1, 2)  # TCA_MATCHALL_ACT, its first action, TCA_ACT_OPTIONS
POLICE_PARAMETERS, POLICE_RATE64 = (*POLICE_OPTIONS, 1), (*POLICE_OPTIONS, 8)
TRACE = "trace"  # our own discipline: kernel/queues/sch_trace.c
TRACE_TIMES, TRACE_START, TRACE_NUMBER = 1, 2, 3


@dataclass(frozen=True)
class TcObject:
    """A discipline, class or filter that the kernel must have once the network is set up."""

    node: str
    interface: str
    handle: Handle
    kind: str
    settings: tuple[Setting, ...]
    is_class: bool = False
    is_filter: bool = False  # whose handle is of the discipline that it is attached to


@dataclass(frozen=True)
class ChangePlan:
    """A scheduled change of a discipline or class.

    It has a time, the new settings, the interface that the packets leave by, and words for people.
    Where the kernel does not report all that it must be told again, tc's commands make the change,
    and set it back.
    """

    at_s: float
    target: TcObject
    interface: str
    words: str
    command: Command | None = None
    undoing: Command | None = None


@dataclass(frozen=True)
class QueuePlan:
    """A shaped hop, and whether its queue is sampled while flows run."""

    hop: Hop
    sampled: bool

    @property
    def node(self) -> str:
        """The node whose interface is shaped."""
        return self.hop.out.node

    @property
    def interface(self) -> str:
        """The interface that is shaped."""
        return self.hop.out.name


def queue_plans(network: Network, flows: Iterable[Flow]) -> Iterator[QueuePlan]:
    """Yield all shaped interfaces; an observed one that a flow's data cross is sampled."""
    crossed = {
        hop.out.name
        for flow in flows
        for hop in network.path(flow.src, flow.dst)
        if hop.is_observed
    }
    for hop in network.shaped:
        yield QueuePlan(hop, sampled=hop.out.name in crossed)


def longest_queue_s(network: Network) -> float:
    """Return the time that the network's slowest queue takes to drain when full."""
    return max((hop.drain_s for hop in network.shaped), default=0.0)


def burst_bytes(hop: Hop) -> int:
    """Return how many bytes may leave a shaped hop at once: none if it is exact."""
    if hop.polices:
        return hop.full.bytes
    return 0 if hop.is_exact else queues.bucket_bytes(hop.rate_mbit)


def _bits_per_s(rate_mbit: float) -> int:
    return round(rate_mbit * 1e6)


def shaper_commands(queue: QueuePlan) -> Iterator[Command]:
    """Yield the commands for what keeps a link to its rate or its trace, and the queue below."""
    hop = queue.hop
    add = ("add", "dev", queue.interface)
    if hop.polices:
        yield from _policer_commands(queue)
        return
    root = ("tc", "qdisc", *add, "root", "handle", str(SHAPER))
    if hop.direction.trace is not None:
        yield Command(queue.node, (*root, TRACE))
        yield _leaf_command(queue, ONLY_CLASS)
        return
    rate = f"{_bits_per_s(hop.rate_mbit)}bit"
    if hop.is_exact:
        yield Command(queue.node, (*root, LINK, "rate", rate, *_aggregation(hop)))
        yield _leaf_command(queue, ONLY_CLASS)
        return
    yield Command(queue.node, (*root, "htb", "default", f"{HTB_CLASS.minor:x}"))
    place = ("parent", str(SHAPER), "classid", str(HTB_CLASS))
    burst = str(burst_bytes(hop))
    # quantum: htb's own guess (rate / 10) warns and sends in bursts
    bursts = ("burst", burst, "cburst", burst, "quantum", str(FRAME_BYTES))
    arguments = ("htb", "rate", rate, "ceil", rate, *bursts)
    yield Command(queue.node, ("tc", "class", *add, *place, *arguments))
    yield _leaf_command(queue, HTB_CLASS)


def _policer_commands(queue: QueuePlan) -> Iterator[Command]:
    """Yield what drops packets by a filter, whose drops the discipline that it is of counts."""
    hop, add = queue.hop, ("add", "dev", queue.interface)
    yield Command(queue.node, ("tc", "qdisc", *add, "root", "handle", str(LEAF), *POLICED))
    action = queues.arguments(hop.queue, hop.full, hop.rate_mbit)
    place = ("parent", str(LEAF), POLICER_FILTER, "action")
    yield Command(queue.node, ("tc", "filter", *add, *place, *action))


def _aggregation(hop: Hop) -> tuple[str, ...]:
    if not hop.direction.aggregates:
        return ()
    packets, time_ns = hop.direction.aggregate_packets, round(hop.direction.aggregate_ms * 1e6)
    return ("packets", str(packets), "time", f"{time_ns}ns")


def _leaf_command(queue: QueuePlan, parent: Handle) -> Command:
    hop = queue.hop
    leaf = queues.arguments(hop.queue, hop.full, hop.rate_mbit)
    place = ("dev", queue.interface, "parent", str(parent), "handle", str(LEAF))
    return Command(queue.node, ("tc", "qdisc", "add", *place, *leaf))


def shaper_objects(queue: QueuePlan) -> Iterator[TcObject]:
    """Yield the shaper and its queue, with the numbers that the kernel must report."""
    where, hop = (queue.node, queue.interface), queue.hop
    if hop.polices:
        yield TcObject(*where, LEAF, POLICED[0], (Setting("bands", (Field(),), BANDS),))
        bucket = tuple(_policer_settings(hop.rate_mbit, hop.full.bytes))
        yield TcObject(*where, LEAF, POLICER_FILTER, bucket, is_filter=True)
        return
    if hop.direction.trace is not None:
        yield TcObject(
            *where, SHAPER, TRACE, tuple(_trace_settings(parse_trace(hop.direction.trace)))
        )
    else:
        if not hop.is_exact:
            default = Setting("default class", (Field((INIT,), 8),), HTB_CLASS.minor)
            yield TcObject(*where, SHAPER, "htb", (default,))
        yield _rated(queue, hop.rate_mbit)
    leaf = tuple(queues.settings(hop.queue, hop.full, hop.rate_mbit))
    yield TcObject(*where, LEAF, hop.queue.discipline, leaf)


def _rated(queue: QueuePlan, rate_mbit: float) -> TcObject:
    """Return the discipline or the class that holds the rate, at that rate."""
    where = (queue.node, queue.interface)
    if queue.hop.is_exact:
        rate = Setting("rate", (Field((LINK_RATE,), 0, "Q"),), _bits_per_s(rate_mbit), "bit/s")
        most, time_ms = queue.hop.direction.aggregate_packets, queue.hop.direction.aggregate_ms
        packets = Setting("longest burst", (Field((LINK_PACKETS,)),), most, "packets")
        time = Setting("longest burst's time", (Field((LINK_TIME,)),), time_ms, "ms", 1e6, round)
        return TcObject(*where, SHAPER, LINK, (rate, packets, time))
    return TcObject(*where, HTB_CLASS, "htb", _class_settings(rate_mbit), is_class=True)


def queue_changes(queue: QueuePlan) -> Iterator[ChangePlan]:
    """Yield the scheduled rates, and the changes of the discipline before them.

    A packet being sent leaves at the rate before. What a FIFO holds beyond a lower limit stays
    there; other disciplines drop it.
    """
    hop = queue.hop
    for each in hop.queue_changes:
        if each.rate_mbit is not None:
            setting = f"rate {each.rate_mbit:g} Mbit/s"
            yield ChangePlan(each.at_s, _rated(queue, each.rate_mbit), queue.interface, setting)
    undoing = _discipline_command(queue, hop.queue, hop.full)
    for change, then, limit in hop.changed_queues:
        numbers = tuple(queues.settings(then, limit, hop.rate_mbit))
        leaf = TcObject(queue.node, queue.interface, LEAF, then.discipline, numbers)
        command = _discipline_command(queue, then, limit)
        setting = " ".join(queues.change_words(hop.queue, change))
        yield ChangePlan(change.at_s, leaf, queue.interface, setting, command, undoing)


def _discipline_command(queue: QueuePlan, then: Queue, limit: Limit) -> Command:
    parent = ONLY_CLASS if queue.hop.is_exact or queue.hop.direction.trace else HTB_CLASS
    place = ("dev", queue.interface, "parent", str(parent), "handle", str(LEAF))
    arguments = queues.change_arguments(then, limit, queue.hop.rate_mbit)
    return Command(queue.node, ("tc", "qdisc", "change", *place, *arguments))


def _trace_settings(trace: Trace) -> Iterator[Setting]:
    """Yield the numbers that kernel/queues/sch_trace.c reports of its trace."""
    values = (len(trace.times), trace.opportunities, trace.period_ms, trace.crc32)
    names = ("times", "opportunities", "period", "checksum")
    for number, (name, value) in enumerate(zip(names, values, strict=True), start=TRACE_NUMBER):
        yield Setting(name, (Field((number,)),), value)


@functools.lru_cache(maxsize=256)
def _class_settings(rate_mbit: float) -> tuple[Setting, ...]:
    return tuple(_settings_at(rate_mbit))


def _settings_at(rate_mbit: float) -> Iterator[Setting]:
    """Yield the numbers of htb's class at a rate.

    Rates are whole bytes per second; a burst is the time that it takes at the rate, in ticks of 64
    ns, of which tc may have cut off the part below a microsecond.
    """
    burst = queues.bucket_bytes(rate_mbit)
    for name, wide, offset in (("rate", RATE64, 8), ("ceil", CEIL64, 20)):
        at = (Field((wide,), 0, "Q"), Field((HTB_PARAMETERS,), offset))
        yield _byte_rate(name, at, rate_mbit)
    for name, offset in (("burst", 24), ("cburst", 28)):
        yield _bucket_time(name, Field((HTB_PARAMETERS,), offset), rate_mbit, burst)
    yield Setting("quantum", (Field((HTB_PARAMETERS,), 32),), FRAME_BYTES, "bytes")


def _policer_settings(rate_mbit: float, bucket_bytes: int) -> Iterator[Setting]:
    """Yield the numbers of a policer (struct tc_police)."""
    at = (Field(POLICE_RATE64, 0, "Q"), Field(POLICE_PARAMETERS, 28))
    yield _byte_rate("rate", at, rate_mbit)
    yield _bucket_time("burst", Field(POLICE_PARAMETERS, 12), rate_mbit, bucket_bytes)


def _byte_rate(name: str, at: tuple[Field, ...], rate_mbit: float) -> Setting:
    return Setting(name, at, _bits_per_s(rate_mbit), "bit/s", 1 / 8)


def _bucket_time(name: str, at: Field, rate_mbit: float, size_bytes: int) -> Setting:
    """Return a bucket's size, which the kernel keeps as the time that it takes at the rate."""
    per_byte = 1e6 / (_bits_per_s(rate_mbit) // 8) * TICKS_PER_MICROSECOND  # of the rate kept
    return Setting(
        name, (at,), size_bytes, "bytes", per_byte, whole_microseconds, MICROSECOND_TICKS
    )
