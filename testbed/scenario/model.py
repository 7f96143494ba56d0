"""A scenario: what is to be emulated, as frozen values that travel as JSON.

A scenario holds everything that determines a trial's result except the engine:
the network, its queues, the flows, the settings of the stacks and the seed.
Sizes of packets are those of the IP packet; rates count Ethernet frames without
preamble and checksum (14 bytes more a packet), which is what links count and what
a capture shows.

The sentence below a field says what it is, and its name's last word the unit: `testbed schema`
prints both.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

from testbed.indented import indented
from testbed.scenario.call import Call
from testbed.scenario.limits import (
    NAME_OR_NONE,
    SAFE_NAME,
    Length,
    Pattern,
    Range,
    Text,
    Unique,
)
from testbed.scenario.losses import MAX_PACKETS, Loss
from testbed.scenario.network import (
    IP_VERSIONS,
    MAX_CHANGES,
    MAX_SECONDS,
    MTU_BYTES,
    ChangeTimeS,
    Graph,
    NodeChange,
    RateMbit,
    Sysctls,
)
from testbed.scenario.omitted_defaults import OMIT_DEFAULT, repr_without_defaults, serialized_names
from testbed.scenario.programs import Programs
from testbed.scenario.video import Viewing
from testbed.scenario.workload import Workload
from testbed.video_site import Transport

BASE_KERNEL = "6.1"  # of trials that do not name one
CLIENT_PORTS = (40_001, 49_999)  # local ones, of iperf3
MAX_PARALLEL = 64  # connections of a flow, each of which has a port, where there are few flows
MIN_PARALLEL = 8  # where there are many
SPACED_FLOWS = (CLIENT_PORTS[1] + 1 - CLIENT_PORTS[0]) // MAX_PARALLEL
MAX_FLOWS = SPACED_FLOWS * MAX_PARALLEL // MIN_PARALLEL
FLOW_PORTS = (
    f" can run, because each has {MIN_PARALLEL} of the local ports "
    f"{CLIENT_PORTS[0]} to {CLIENT_PORTS[1]}"
)
MIN_UDP_PACKET = 28 + 16  # IP and UDP headers, and iperf3's own of 16 bytes
MANY_TRANSFERS = "`kind: workload` has up to 30,000 transfers: docs/workloads.md"
EXAMPLE_FLOW = '"flows": [{"kind": "tcp", "variant": "cubic", "src": "h1", "dst": "h2"}]'

Name = Annotated[str, SAFE_NAME]
TimeS = Annotated[float, Range(0.0, MAX_SECONDS, above=True)]
StartS = Annotated[
    float,
    Range(
        *(0.0, MAX_SECONDS),
        said="is not within the trial: from 0 to its end",
        says="{field} takes seconds from 0 to the trial's end",
    ),
]
TurnS = Annotated[float, Range(0.0, 60.0, above=True)]  # iperf3's server gives up after 120 s
JitterMs = Annotated[float, Range(0.0, 60_000.0)]
Drops = Annotated[
    tuple[Annotated[int, Range(1, MAX_PACKETS, high_is="the last that is counted")], ...],
    Length(0, 1000, "drops"),
]


class FlowKind(enum.StrEnum):
    """What sends.

    These are iperf3 over TCP, iperf3 over UDP (CBR), a video's server, a server of many transfers,
    any program, one side of a call, and a transport in user space.
    """

    TCP = "tcp"
    CBR = "cbr"
    VIDEO = "video"
    WORKLOAD = "workload"
    COMMAND = "command"
    CALL = "call"
    STACK = "stack"  # becomes a command before it is planned (`testbed/stacks/flows.py`)


GREEDY = (FlowKind.TCP, FlowKind.STACK)  # send as much as the network lets them


class Misbehaviour(enum.StrEnum):
    """How a receiver misbehaves; the first two are attacks of Savage and others (1999)."""

    ACK_DIVISION = "ack-division"
    """It splits each acknowledgement into eight, each for an eighth of the bytes."""
    OPTIMISTIC_ACKS = "optimistic-acks"
    """It acknowledges what is lost, and up to eight segments that are still on their way."""
    BLEACHED_ECN = "bleached-ecn"
    """Between the network and its TCP, ECN's field becomes Not-ECT: it echoes no mark."""


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
class FlowChange:
    """Another congestion control of a flow, by its sockets."""

    at_s: ChangeTimeS
    """When it takes over."""
    control: Annotated[str, Pattern(r"[a-z][a-z0-9_]{0,14}", "not a congestion control's name")]
    """What the kernel calls it; the settings of the host stay as they are."""


@repr_without_defaults
@dataclass(frozen=True)
class Flow:
    """One stream of traffic between two nodes."""

    name: Name
    """What tables, figures and files call it."""
    kind: FlowKind
    """The program that sends."""
    src: str
    """The node that sends."""
    dst: str
    """The node that receives."""
    start_s: StartS = 0.0
    """When it begins."""
    duration_s: TimeS | None = None
    """How long it sends at most (a video: is watched); unless given, until the trial ends. A
    workload ends with its last transfer."""
    bytes: Annotated[int, Range(1, 1 << 50)] | None = None
    """How much a TCP flow sends, if that ends it."""
    variant: str | None = None
    """The sender's TCP (`testbed check --variants`), or a stack's congestion control."""
    mss: Annotated[int, Range(88, 1448)] | None = None
    """The most payload of one of its segments; unless given, what the profile says."""
    window_bytes: Annotated[int, Range(88, 1 << 30)] | None = None
    """The most that a TCP flow's receiver lets be in flight."""
    rto_min_ms: Annotated[int, Range(1, 120_000)] | None = None
    """The least that the retransmit timer adds to the smoothed round trip, rounded up to the
    kernel's ticks of 4 ms; 200 unless said."""
    drops: Drops = ()
    """The numbers of the segments of new data that are lost once, at the first router; number 1
    holds the 37 bytes by which iperf3 knows the connection."""
    loss: Loss | None = None
    """Losses by chance, on the receiver's access link."""
    parallel: Annotated[int, Range(1, MAX_PARALLEL, high_is="the local ports of a flow")] = 1
    """The number of connections that share it."""
    rate_mbit: RateMbit | None = None
    """What a CBR flow sends, as it is on the wire."""
    packet_bytes: Annotated[int, Range(MIN_UDP_PACKET, MTU_BYTES)] | None = None
    """The size of a CBR flow's IP packets."""
    jitter: Annotated[float, Range(0.0, 1.0)] = 0.5
    """Each gap of a CBR flow is drawn, uniformly from (1 ± this) times the even gap."""
    on_s: TurnS | None = None
    """How long a CBR flow sends before each pause."""
    off_s: TurnS | None = None
    """How long each of its pauses is."""
    video: Viewing | None = None
    """The video that `src` serves and `dst` watches."""
    workload: Workload | None = None
    """The transfers that `dst` asks of `src`."""
    command: Programs | None = None
    """The programs of a command flow."""
    captured: bool = True
    """Whether its packets are captured at its own hosts. A workload that is not has no rows in
    tables of transfers: it is load for others."""
    call: Call | None = field(default=None, repr=False, metadata=OMIT_DEFAULT)
    """What `src` sends in a call."""
    ip: Annotated[int, IP_VERSIONS] | None = field(default=None, repr=False, metadata=OMIT_DEFAULT)
    """The version of IP that it uses; unless given, the network's."""
    receiver: Misbehaviour | None = field(default=None, repr=False, metadata=OMIT_DEFAULT)
    """How a TCP flow's receiver misbehaves, if it does."""
    stack: str | None = field(default=None, repr=False, metadata=OMIT_DEFAULT)
    """The transport in user space that sends, with `variant` as its congestion control: one of
    `testbed stack list`, or the folder of another."""
    schedule: Annotated[tuple[FlowChange, ...], Length(0, MAX_CHANGES, "changes")] = field(
        default=(), repr=False, metadata=OMIT_DEFAULT
    )
    """What changes while it runs; flows of kind tcp."""
    initcwnd: Annotated[int, Range(1, 1000)] | None = field(
        default=None, repr=False, metadata=OMIT_DEFAULT
    )
    """The segments that the sender's TCP may send at first, as a route's `initcwnd`; unless given,
    what the profile says, or Linux's 10."""
    initrwnd: Annotated[int, Range(1, 1000)] | None = field(
        default=None, repr=False, metadata=OMIT_DEFAULT
    )
    """The segments of the window that the receiver offers at first, as a route's `initrwnd`."""
    quickack: bool = field(default=False, repr=False, metadata=OMIT_DEFAULT)
    """Whether the receiver acknowledges each segment at once, as by a route's `quickack`."""

    @property
    def protocol(self) -> str:
        """The transport: `tcp` or `udp`."""
        if self.command is not None:
            return str(self.command.protocol)
        quic = self.video is not None and self.video.transport is Transport.QUIC
        return "udp" if quic or self.kind in (FlowKind.CBR, FlowKind.CALL) else "tcp"

    def control_at(self, second: float, first: str) -> str:
        """Return the congestion control that it has then, beginning with the first."""
        return [first, *(each.control for each in self.schedule if each.at_s <= second)][-1]

    @property
    def sort(self) -> FlowKind:
        """The kind that tables have: programs that are a stack's are a stack."""
        is_stack = self.command is not None and self.command.stack
        return FlowKind.STACK if is_stack else self.kind

    @property
    def conceals_losses(self) -> bool:
        """Whether its receiver lets its application read on behind what was lost."""
        return self.receiver is Misbehaviour.OPTIMISTIC_ACKS


@repr_without_defaults
@dataclass(frozen=True)
class Scenario:
    """Everything that determines a trial's result, except the engine that runs it."""

    experiment: Name
    """What its results are stored under."""
    network: Graph
    """The network."""
    flows: Annotated[
        tuple[Flow, ...],
        Length(1, MAX_FLOWS, "flows", FLOW_PORTS, few=EXAMPLE_FLOW, many=MANY_TRANSFERS),
    ]
    """What is sent and measured."""
    duration_s: TimeS
    """When the last flow has stopped."""
    seed: Annotated[int, Range(0, (1 << 32) - 1)] = 1  # pace.c reads 1000 times it as a double
    """Makes everything that is drawn."""
    profile: Profile = Profile.MODERN
    """The stacks' settings beside their variants."""
    label: Annotated[str, NAME_OR_NONE] = ""
    """What tells this trial from others of its experiment, for people."""
    axes: Mapping[Name, Annotated[str, Text()]] = field(default_factory=dict)
    """The same for tables and figures: the value of each of the experiment's axes."""
    captures: Annotated[tuple[CapturePoint, ...], Unique()] = tuple(CapturePoint)
    """Where packets are captured."""
    snaplen_bytes: Annotated[
        int, Range(54, 262_144, "which holds the headers", "tcpdump's most")
    ] = 144  # 14 + 60 (IP options) + 60 (TCP options), rounded up
    """What is captured of each packet: whole headers unless given."""
    sample_interval_ms: Annotated[float, Range(0.1, 60_000.0, or_zero=True)] = 10.0
    """How often sockets and queues are sampled; 0: never."""
    start_jitter_ms: JitterMs = 0.0
    """Each flow starts later by up to this, drawn by the seed."""
    measure_from_s: StartS = 0.0
    """Metrics leave out what was before: how a flow settles in."""
    asks_ecn: bool = True
    """Whether senders ask for ECN where a queue marks; Linux's do not by themselves."""
    network_jitter: Annotated[float, Range(0.0, 0.2)] = 0.0
    """Each rate and delay of the network lies within this part of it, drawn by the seed."""
    drawn_service_times: Annotated[float, Range(0.0, 10.0)] = 0.0
    """Each delay of the network is drawn by the seed from a range around it that is as wide as the
    bottleneck takes for this many full frames, so that seeds sample the phases of a full queue."""
    drawn_share: Annotated[float, Range(0.0, 0.2)] = field(
        default=0.0, repr=False, metadata=OMIT_DEFAULT
    )
    """Each delay and each buffer of the network lies within this part of it, and a buffer at least
    within a packet, drawn by the seed, so that a result is of networks like the scenario's."""
    realistic: bool = False
    """Whether links aggregate and hosts take time to receive, by a set of published figures
    (`docs/realism.md`), where the network says nothing about it."""
    kernel: Name = BASE_KERNEL
    """The guest's kernel: a version of Linux, or one of your own (`testbed kernel list`)."""
    memory_mb: Annotated[int, Range(128, 65_536, or_zero=True)] = field(
        default=0, repr=False, metadata=OMIT_DEFAULT
    )
    """The guest's memory; 0: what its flows are estimated to need. TCP's limits depend on it."""
    sysctls: Sysctls | None = field(default=None, repr=False, metadata=OMIT_DEFAULT)
    """Settings of all hosts with flows by their names, as a node's `sysctls`, which override
    them."""

    def to_json(self) -> str:
        """Return the scenario as JSON, complete: every default is written out."""
        return indented(plain(self), 2) + "\n"

    def with_programs(self, change: Callable[[Programs], Programs]) -> Scenario:
        """Return the scenario with other programs in its command flows."""
        if not any(flow.command for flow in self.flows):
            return self
        flows = tuple(
            dataclasses.replace(flow, command=change(flow.command)) if flow.command else flow
            for flow in self.flows
        )
        return dataclasses.replace(self, flows=flows)

    @property
    def unplaced(self) -> Scenario:
        """The scenario with the names of its programs' files, and not where they lie."""
        return self.with_programs(lambda programs: programs.unplaced)

    @functools.cached_property
    def hash(self) -> str:
        """A short name of everything that is in the scenario."""
        import hashlib  # loads a big library, and the trial itself needs no names

        return hashlib.sha256(self.unplaced.to_json().encode()).hexdigest()[:10]

    @property
    def name(self) -> str:
        """The trial directory's name: readable parameters and the hash."""
        label = "-".join(part for part in (self.label, f"seed{self.seed}") if part)
        return f"{label}-{self.hash}"

    @property
    def runs_programs(self) -> bool:
        """Whether programs of the user's run in the trial, besides the testbed's own."""
        return any(flow.command is not None for flow in self.flows)

    @property
    def host_changes(self) -> Iterator[tuple[str, NodeChange | FlowChange]]:
        """What changes of nodes and flows while these run, each with its name."""
        for node in self.network.nodes:
            yield from ((node.name, change) for change in node.schedule)
        for flow in self.flows:
            yield from ((flow.name, change) for change in flow.schedule)

    def flow(self, name: str) -> Flow:
        """Return the flow of that name."""
        return next(flow for flow in self.flows if flow.name == name)

    def stop_s(self, flow: Flow) -> float:
        """Return the latest time at which the flow stops sending."""
        if flow.duration_s is None:
            return self.duration_s
        return min(self.duration_s, flow.start_s + flow.duration_s)


def plain(value: Any, names: Callable[[Any], Sequence[str]] = serialized_names) -> Any:
    """Return JSON's own types; 60.0 and 60 are written alike, so that they hash alike.

    `names` are those of the fields of a dataclass that are written.
    """
    if value is None or isinstance(value, str | int):  # the most frequent first
        return value
    if isinstance(value, float):
        return int(value) if value.is_integer() else value
    if isinstance(value, list | tuple):
        return [plain(each, names) for each in value]
    if isinstance(value, Mapping):
        return {key: plain(each, names) for key, each in value.items()}
    return {name: plain(getattr(value, name), names) for name in names(value)}
