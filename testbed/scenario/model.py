"""A scenario: what is to be emulated, as frozen values that travel as JSON.

A scenario holds everything that determines a trial's result except the engine:
the network, its queues, the flows, the settings of the stacks and the seed.
Sizes of packets are those of the IP packet; rates count Ethernet frames without
preamble and checksum (14 bytes more a packet), which is what htb counts and what
a capture shows.

The sentence below a field says what it is, and its name's last word the unit: `testbed schema`
prints both.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import json
import typing
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from testbed.scenario.form import reading, trusted
from testbed.scenario.links.schedule import Schedule
from testbed.scenario.losses import GilbertElliott, Loss
from testbed.scenario.program.programs import Programs
from testbed.scenario.video import Transport, Viewing
from testbed.scenario.workload.workload import Workload

FRAME_OVERHEAD_BYTES = 14  # Ethernet header: counted by htb and by captures


BASE_KERNEL = "6.1"  # of trials that do not name one

LATER = {"later": True}  # of a field that is younger than the trials that lack it


def written(value: Any) -> dict[str, Any]:
    """A dataclass's fields with their values: of younger ones only those that are set, so that
    what was written and hashed before them stays the same."""
    found, kind = {}, typing.cast(Any, type(value))
    for name, is_younger, default in _fields(kind):
        now = getattr(value, name)
        if not is_younger or now != default:
            found[name] = now
    return found


@functools.cache  # there are few types, and they are asked for often
def _fields(kind: Any) -> tuple[tuple[str, bool, Any], ...]:
    """Of each field its name, whether it is younger, and its default."""
    found = dataclasses.fields(kind)
    return tuple((each.name, "later" in each.metadata, each.default) for each in found)


class TopologyKind(enum.StrEnum):
    """The networks that have a name: the papers', then the general ones."""

    ROUTER_BOTTLENECK = "router-bottleneck"
    DUMBBELL = "dumbbell"
    ACCESS_LINK = "access-link"
    PARKING_LOT = "parking-lot"
    CHAIN = "chain"
    STAR = "star"


class NodeKind(enum.StrEnum):
    """What a graph's node does with packets of others: drop, route or bridge them."""

    HOST = "host"
    ROUTER = "router"
    SWITCH = "switch"


class FlowKind(enum.StrEnum):
    """What sends: iperf3 over TCP, iperf3 over UDP (CBR), a video's server, a server of many
    transfers, or any program."""

    TCP = "tcp"
    CBR = "cbr"
    VIDEO = "video"
    WORKLOAD = "workload"
    COMMAND = "command"


class Profile(enum.StrEnum):
    """The stacks' settings beside their variants (`profiles.py`)."""

    MODERN = "modern"
    NS2 = "ns2"


class CapturePoint(enum.StrEnum):
    """A place where packets are captured."""

    SENDERS = "senders"
    RECEIVERS = "receivers"
    BOTTLENECK = "bottleneck"  # both sides of it: before the queue and after it


@dataclass(frozen=True)
class Queue:
    """A queue discipline with its limit, given in exactly one unit."""

    discipline: str
    """Its name, as tc has it."""
    limit_bytes: int | None = None
    """The most that it holds, in bytes of whole frames."""
    limit_packets: int | None = None
    """The most packets that it holds."""
    limit_bdp: float | None = None
    """The most that it holds, as a part of its rate times the path's round trip."""
    ecn: bool = False
    """Whether it marks packets of flows that can ECN, where otherwise it would drop them."""
    options: Mapping[str, float] = field(default_factory=dict)
    """Settings of the discipline; what is left out is as in the kernel."""


PLAIN_QUEUE = Queue("pfifo", limit_packets=1000)  # as long as Linux's own txqueuelen


@dataclass(frozen=True)
class Bottleneck:
    """The shaped link."""

    rate_mbit: float
    """What it is shaped to."""
    queue: Queue
    """What waits before it."""
    delay_ms: float = 0.0
    """Its propagation delay, one way."""
    both_directions: bool = True
    """Whether the other way is shaped too."""
    back_rate_mbit: float | None = None
    """The other way's rate, if it is another."""
    back_queue: Queue | None = None
    """The other way's queue, if it is another."""
    trace: str | None = field(default=None, metadata=LATER)
    """A file in Mahimahi's format, or one of ours by its name: packets leave at its opportunities,
    and `rate_mbit` only says what limits in BDP and figures are scaled to."""
    back_trace: str | None = field(default=None, metadata=LATER)
    """The other way's trace; the same unless this or `back_rate_mbit` is given."""
    schedule: Schedule = field(default=(), metadata=LATER)
    """What changes while flows run."""
    back_schedule: Schedule | None = field(default=None, metadata=LATER)
    """The other way's schedule; the same unless this or `back_rate_mbit` is given."""


@dataclass(frozen=True)
class Radio:
    """802.11n at 2.4 GHz, 20 MHz, one stream: an access point and a station."""

    signal_dbm: int
    """How strongly they hear each other."""
    busy: float = 0.0
    """The part of the time that other stations ask for."""


@dataclass(frozen=True)
class Path:
    """Any other link."""

    delay_ms: float = 0.0
    """Its propagation delay, one way."""
    rate_mbit: float | None = None
    """What it is shaped to; without it, it is as fast as the machine."""
    queue: Queue | None = None
    """What waits before it, if it has a rate."""
    back_rate_mbit: float | None = None
    """The rate from the second node of the link's name to the first, if it is another."""
    jitter_ms: float = 0.0
    """Each packet's delay is drawn, uniformly from `delay_ms` ± this; none overtakes another."""
    loss: GilbertElliott | None = None
    """Loses whatever goes either way, in bursts."""
    radio: Radio | None = None
    """A radio link, by the kernel's own 802.11: its rate, delays and losses come of themselves."""
    reorder: float = field(default=0.0, metadata=LATER)
    """The chance of each packet, either way, to arrive at once: it overtakes those that wait for
    the delay."""


@dataclass(frozen=True)
class Topology:
    """A network by its name (`builders.py` draws them), whose bottlenecks are alike."""

    kind: TopologyKind
    """Which network."""
    bottleneck: Bottleneck
    """The link or links whose queue is observed."""
    hosts: int = 1
    """The number of senders (router bottleneck), pairs (dumbbell), bottlenecks (parking lot, chain)
    or hosts (star); one home (access link)."""
    access: Path = Path()
    """All other links."""
    links: Mapping[str, Path] = field(default_factory=dict)
    """Single links in place of `access`, by name, e.g. `sender2-left`, `ap-station`."""
    rtts_ms: tuple[float, ...] = field(default=(), metadata=LATER)
    """The round trips of a dumbbell's pairs, one after the other and from the start again; the
    delays of their access links follow from them."""


@dataclass(frozen=True)
class GraphNode:
    """A node of a graph; flows begin and end at hosts and routers."""

    name: str
    """What links and flows call it."""
    kind: NodeKind = NodeKind.HOST
    """What it does with packets of others."""


@dataclass(frozen=True)
class Direction:
    """One direction of a link."""

    rate_mbit: float | None = None
    """What it is shaped to; without it, it is as fast as the machine."""
    delay_ms: float = 0.0
    """Its propagation delay."""
    queue: Queue | None = None
    """What waits before it, if it has a rate."""
    jitter_ms: float = 0.0
    """Each packet's delay is drawn, uniformly from `delay_ms` ± this; none overtakes another."""
    loss: GilbertElliott | None = None
    """Loses whatever goes this way, in bursts."""
    trace: str | None = field(default=None, metadata=LATER)
    """A file in Mahimahi's format, or one of ours by its name: packets leave at its opportunities,
    and `rate_mbit` only says what limits in BDP and figures are scaled to."""
    schedule: Schedule = field(default=(), metadata=LATER)
    """What changes while flows run."""
    reorder: float = field(default=0.0, metadata=LATER)
    """The chance of each packet to arrive at once: it overtakes those that wait for the delay."""


@dataclass(frozen=True)
class GraphPort:
    """A link's interface at one of its nodes."""

    number: int | None = None
    """Its number there; the next unless given."""
    address: str | None = None
    """Its address with the length of its network, `10.0.0.1/8`; it gets one unless given."""


@dataclass(frozen=True)
class GraphLink:
    """A link between two nodes."""

    ends: tuple[str, ...]
    """Both nodes' names."""
    there: Direction = Direction()
    """From the first node to the second."""
    back: Direction | None = None
    """The other way; the same unless given."""
    observed: bool = True
    """Whether a direction that has a rate and that a flow's data cross is captured before and
    behind its queue, and sampled."""
    ports: tuple[GraphPort, ...] = field(default=(), metadata=LATER)
    """The interfaces at its ends, where they are not numbered in the order of the links."""

    @property
    def name(self) -> str:
        """Both nodes' names."""
        return "-".join(self.ends)

    @property
    def directions(self) -> tuple[Direction, Direction]:
        """There and back."""
        return self.there, self.there if self.back is None else self.back


@dataclass(frozen=True)
class Graph:
    """Any network, loops allowed."""

    nodes: tuple[GraphNode, ...]
    """All nodes, each with a name of its own."""
    links: tuple[GraphLink, ...]
    """All links; a node's interfaces are numbered in their order."""
    rtt_ms: float | None = None
    """What limits in BDP are of; the longest round trip between two hosts unless given."""

    @property
    def kind(self) -> str:
        """In place of a name."""
        return "graph"

    @property
    def slowest(self) -> GraphLink | None:
        """The slowest of the observed links, the first of equals."""
        shaped = [each for each in self.links if each.observed and each.there.rate_mbit]
        return min(shaped, key=lambda each: each.there.rate_mbit or 0, default=None)

    @property
    def bottleneck(self) -> Bottleneck:
        """The slowest observed link: what figures are scaled to."""
        link = self.slowest
        assert link is not None  # names.scenario_faults
        there, back = link.directions
        return Bottleneck(
            rate_mbit=there.rate_mbit or 0,
            queue=there.queue or PLAIN_QUEUE,
            delay_ms=there.delay_ms,
            both_directions=back.rate_mbit is not None,
            back_rate_mbit=None if back == there else back.rate_mbit,
            back_queue=None if back == there else back.queue,
            trace=there.trace,
            back_trace=None if back == there else back.trace,
            schedule=there.schedule,
            back_schedule=None if back == there else back.schedule,
        )


@dataclass(frozen=True)
class Flow:
    """One stream of traffic between two nodes."""

    name: str
    """What tables, figures and files call it."""
    kind: FlowKind
    """The program that sends."""
    src: str
    """The node that sends."""
    dst: str
    """The node that receives."""
    start_s: float = 0.0
    """When it begins."""
    duration_s: float | None = None
    """How long it sends at most (a video: is watched); unless given, until the trial ends. A
    workload ends with its last transfer."""
    bytes: int | None = None
    """How much a TCP flow sends, if that ends it."""
    variant: str | None = None
    """The sender's TCP (`testbed check --variants`)."""
    mss: int | None = None
    """The most payload of one of its segments; unless given, what the profile says."""
    window_bytes: int | None = None
    """The most that a TCP flow's receiver lets be in flight."""
    rto_min_ms: int | None = None
    """The least that the retransmit timer adds to the smoothed round trip; 200 unless said."""
    drops: tuple[int, ...] = ()
    """The numbers of the segments of new data that are lost once, at the first router; number 1
    holds the 37 bytes by which iperf3 knows the connection."""
    loss: Loss | None = None
    """Losses by chance, on the receiver's access link."""
    parallel: int = 1
    """The number of connections that share it."""
    rate_mbit: float | None = None
    """What a CBR flow sends, as it is on the wire."""
    packet_bytes: int | None = None
    """The size of a CBR flow's IP packets."""
    jitter: float = 0.5
    """Each gap of a CBR flow is drawn, uniformly from (1 ± this) times the even gap."""
    on_s: float | None = field(default=None, metadata=LATER)
    """How long a CBR flow sends before each pause."""
    off_s: float | None = field(default=None, metadata=LATER)
    """How long each of its pauses is."""
    video: Viewing | None = None
    """The video that `src` serves and `dst` watches."""
    workload: Workload | None = field(default=None, metadata=LATER)
    """The transfers that `dst` asks of `src`."""
    command: Programs | None = field(default=None, metadata=LATER)
    """The programs of a command flow, which speak TCP."""
    captured: bool = field(default=True, metadata=LATER)
    """Whether its packets are captured at its own hosts. A workload that is not has no rows in
    tables of transfers: it is load for others."""

    @property
    def protocol(self) -> str:
        """The transport: `tcp` or `udp`."""
        quic = self.video is not None and self.video.transport is Transport.QUIC
        return "udp" if quic or self.kind is FlowKind.CBR else "tcp"


@dataclass(frozen=True)
class Scenario:
    """Everything that determines a trial's result, except the engine that runs it."""

    experiment: str
    """What its results are stored under."""
    topology: Topology | Graph
    """The network."""
    flows: tuple[Flow, ...]
    """What is sent and measured."""
    duration_s: float
    """When the last flow has stopped."""
    seed: int = 1
    """Makes everything that is drawn."""
    profile: Profile = Profile.MODERN
    """The stacks' settings beside their variants."""
    label: str = ""
    """What tells this trial from others of its experiment, for people."""
    axes: Mapping[str, str] = field(default_factory=dict)
    """The same for tables and figures: the value of each of the experiment's axes."""
    captures: tuple[CapturePoint, ...] = tuple(CapturePoint)
    """Where packets are captured."""
    snaplen_bytes: int = 144  # 14 + 60 (IP options) + 60 (TCP options), rounded up
    """What is captured of each packet: whole headers unless given."""
    sample_interval_ms: float = 10.0
    """How often sockets and queues are sampled; 0: never."""
    start_jitter_ms: float = 0.0
    """Each flow starts later by up to this, drawn by the seed."""
    measure_from_s: float = 0.0
    """Metrics leave out what was before: how a flow settles in."""
    asks_ecn: bool = True
    """Whether senders ask for ECN where a queue marks; Linux's do not by themselves."""
    network_jitter: float = field(default=0.0, metadata=LATER)
    """Each rate and delay of the network lies within this part of it, drawn by the seed."""
    kernel: str = field(default=BASE_KERNEL, metadata=LATER)
    """The guest's kernel: a version of Linux, or one of your own (`testbed kernel list`)."""

    def to_json(self) -> str:
        """The scenario as JSON, complete: every default written out."""
        return json.dumps(plain(self), indent=2) + "\n"

    @staticmethod
    def from_json(text: str | bytes, name: str = "scenario") -> Scenario:
        """Read a scenario; every fault of form is reported at once, with its line and field."""
        return typing.cast(Scenario, reading.read(Scenario, text, name))

    @staticmethod
    def from_data(data: Any, name: str = "scenario", text: str = "") -> Scenario:
        """The same of JSON's own types; `text` is where faults find their lines, if anywhere."""
        return typing.cast(Scenario, reading.read_data(Scenario, data, name, text))

    @staticmethod
    def as_written(text: str) -> Scenario:
        """Read what `to_json` wrote, and nothing else: nothing is checked, nor loaded for that."""
        return typing.cast(Scenario, trusted.rebuilt(Scenario, json.loads(text)))

    @property
    def hash(self) -> str:
        """Short name of everything that is in the scenario."""
        import hashlib  # loads a big library, and the trial itself needs no names

        return hashlib.sha256(self.to_json().encode()).hexdigest()[:10]

    @property
    def name(self) -> str:
        """The trial directory's name: readable parameters and the hash."""
        label = "-".join(part for part in (self.label, f"seed{self.seed}") if part)
        return f"{label}-{self.hash}"

    @property
    def named(self) -> Topology:
        """The topology of a scenario whose network has a name."""
        assert isinstance(self.topology, Topology)
        return self.topology

    def flow(self, name: str) -> Flow:
        """The flow of that name."""
        return next(flow for flow in self.flows if flow.name == name)

    def stop_s(self, flow: Flow) -> float:
        """The latest time at which the flow stops sending."""
        if flow.duration_s is None:
            return self.duration_s
        return min(self.duration_s, flow.start_s + flow.duration_s)


def plain(value: Any) -> Any:
    """JSON's own types; 60.0 and 60 are written alike, so that they hash alike."""
    if value is None or isinstance(value, str | int):  # most of all first
        return value
    if isinstance(value, float):
        return int(value) if value.is_integer() else value
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    fields = value if isinstance(value, Mapping) else written(value)
    return {key: plain(each) for key, each in fields.items()}
