"""A scenario: what is to be emulated, as frozen values that travel as JSON.

A scenario holds everything that determines a trial's result except the engine:
the network, its queues, the flows, the settings of the stacks and the seed.
Sizes of packets are those of the IP packet; rates count Ethernet frames without
preamble and checksum (14 bytes more a packet), which is what htb counts and what
a capture shows.
"""

from __future__ import annotations

import dataclasses
import enum
import json
import typing
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from testbed.scenario import json_form
from testbed.scenario.links.schedule import Schedule
from testbed.scenario.losses import GilbertElliott, Loss
from testbed.scenario.video import Transport, Viewing
from testbed.scenario.workload.workload import Workload

FRAME_OVERHEAD_BYTES = 14  # Ethernet header: counted by htb and by captures


LATER = {"later": True}  # of a field that is younger than the trials that lack it


def written(value: Any) -> dict[str, Any]:
    """A dataclass's fields with their values: of younger ones only those that are set, so that
    what was written and hashed before them stays the same."""
    return {
        f.name: found
        for f in dataclasses.fields(value)
        if (found := getattr(value, f.name)) != f.default or not f.metadata.get("later")
    }


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
    """What sends: iperf3 over TCP, iperf3 over UDP (CBR), a video's server, or a server of many
    transfers."""

    TCP = "tcp"
    CBR = "cbr"
    VIDEO = "video"
    WORKLOAD = "workload"


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
    limit_bytes: int | None = None
    limit_packets: int | None = None
    limit_bdp: float | None = None
    ecn: bool = False
    options: Mapping[str, float] = field(default_factory=dict)


PLAIN_QUEUE = Queue("pfifo", limit_packets=1000)  # as long as Linux's own txqueuelen


@dataclass(frozen=True)
class Bottleneck:
    """The shaped link: its rate, the queue before it, and its propagation delay one way.

    The other way has the same rate and queue, unless `back_rate_mbit` or `back_queue` are given.
    With a `trace` packets leave at its opportunities, as in Mahimahi, and `rate_mbit` only says
    what limits in BDP and figures are scaled to. A `schedule` changes the link while flows run.
    The other way has the same trace and schedule, unless it has its own or `back_rate_mbit`.
    """

    rate_mbit: float
    queue: Queue
    delay_ms: float = 0.0
    both_directions: bool = True
    back_rate_mbit: float | None = None
    back_queue: Queue | None = None
    trace: str | None = field(default=None, metadata=LATER)
    back_trace: str | None = field(default=None, metadata=LATER)
    schedule: Schedule = field(default=(), metadata=LATER)
    back_schedule: Schedule | None = field(default=None, metadata=LATER)


@dataclass(frozen=True)
class Radio:
    """802.11n at 2.4 GHz, 20 MHz, one stream: an access point and a station that hear each other
    with `signal_dbm`, while other stations ask for the part `busy` of the time."""

    signal_dbm: int
    busy: float = 0.0


@dataclass(frozen=True)
class Path:
    """Any other link; without a rate it is as fast as the machine.

    `back_rate_mbit` is the rate from the second node of the link's name to the first, if it is
    another. With `jitter_ms` each packet's delay is drawn, uniformly from `delay_ms` ± that, and
    no packet overtakes another. `loss` loses whatever goes either way, in bursts. `radio` makes it
    a radio link, by the kernel's own 802.11, whose rate, delays and losses come of themselves.
    """

    delay_ms: float = 0.0
    rate_mbit: float | None = None
    queue: Queue | None = None
    back_rate_mbit: float | None = None
    jitter_ms: float = 0.0
    loss: GilbertElliott | None = None
    radio: Radio | None = None


@dataclass(frozen=True)
class Topology:
    """A network by its name (`builders.py` draws them), whose bottlenecks are alike: `hosts`
    senders (router bottleneck), pairs (dumbbell), bottlenecks (parking lot, chain) or hosts
    (star), or one home (access link).

    `links` overrides `access` for single links by name, e.g. `sender2-left`, `ap-station`.
    `rtts_ms` gives a dumbbell's pairs their round trips, one after the other and from the start
    again, by the delays of their access links.
    """

    kind: TopologyKind
    bottleneck: Bottleneck
    hosts: int = 1
    access: Path = Path()
    links: Mapping[str, Path] = field(default_factory=dict)
    rtts_ms: tuple[float, ...] = field(default=(), metadata=LATER)


@dataclass(frozen=True)
class GraphNode:
    """A node of a graph; flows begin and end at hosts and routers."""

    name: str
    kind: NodeKind = NodeKind.HOST


@dataclass(frozen=True)
class Direction:
    """One direction of a link, as `Path` describes both; without a rate as fast as the machine.

    `trace` and `schedule` are as a bottleneck's.
    """

    rate_mbit: float | None = None
    delay_ms: float = 0.0
    queue: Queue | None = None
    jitter_ms: float = 0.0
    loss: GilbertElliott | None = None
    trace: str | None = field(default=None, metadata=LATER)
    schedule: Schedule = field(default=(), metadata=LATER)


@dataclass(frozen=True)
class GraphPort:
    """A link's interface at one of its nodes: its number there, and its address with the length of
    its network, `10.0.0.1/8`. Without a number it is the next, without an address it gets one."""

    number: int | None = None
    address: str | None = None


@dataclass(frozen=True)
class GraphLink:
    """A link from its first node to its second, and `back`, which is the same unless given.

    An observed direction that has a rate and that a flow's data cross is captured before and
    behind its queue, and sampled. `ports` are the interfaces at its ends, where they are not
    numbered in the order of the links.
    """

    ends: tuple[str, ...]
    there: Direction = Direction()
    back: Direction | None = None
    observed: bool = True
    ports: tuple[GraphPort, ...] = field(default=(), metadata=LATER)

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
    """Any network: nodes and links, loops allowed. Limits in BDP are of `rtt_ms`, the longest round
    trip between two hosts unless given."""

    nodes: tuple[GraphNode, ...]
    links: tuple[GraphLink, ...]
    rtt_ms: float | None = None

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
    """One stream of traffic from `src` to `dst`, from `start_s` on.

    A TCP flow ends after `duration_s` or after `bytes`. Its receiver lets at most
    `window_bytes` be in flight; its retransmit timer adds at least `rto_min_ms` to the
    smoothed round trip (200 unless said). The segments of new data whose numbers are in `drops` are
    lost once, at the first router; number 1 holds the 37 bytes by which iperf3 knows the
    connection. `loss` loses by chance, on the receiver's access link. A CBR flow sends IP
    packets of `packet_bytes` at `rate_mbit` on the wire, each gap drawn uniformly from
    (1 ± `jitter`) times the even gap. A video flow is one that `src` serves and `dst` watches, for
    `duration_s` at most. A flow of kind workload is all transfers that `dst` asks of `src`; it ends
    with the last of them, or after `duration_s`.
    """

    name: str
    kind: FlowKind
    src: str
    dst: str
    start_s: float = 0.0
    duration_s: float | None = None
    bytes: int | None = None
    variant: str | None = None
    mss: int | None = None
    window_bytes: int | None = None
    rto_min_ms: int | None = None
    drops: tuple[int, ...] = ()
    loss: Loss | None = None
    parallel: int = 1
    rate_mbit: float | None = None
    packet_bytes: int | None = None
    jitter: float = 0.5
    video: Viewing | None = None
    workload: Workload | None = field(default=None, metadata=LATER)

    @property
    def protocol(self) -> str:
        """The transport: `tcp` or `udp`."""
        quic = self.video is not None and self.video.transport is Transport.QUIC
        return "udp" if quic or self.kind is FlowKind.CBR else "tcp"


@dataclass(frozen=True)
class Background:
    """Traffic from `src` to `dst`, two hosts that do nothing else, in `sessions` sessions.

    The part `long_share` of them are transfers without an end. The others are web sessions: one
    asks for a file, waits for all of it, thinks, and asks for the next; files are Pareto with
    `mean_bytes` and `shape`, thoughts exponential with the mean `think_ms`. Each has a round trip
    of its own, drawn uniformly, its path's included, and at most `window_bytes` in flight. The
    first `spread_s` seconds see them start. All of it follows from the scenario's seed.
    """

    src: str
    dst: str
    sessions: int
    long_share: float = 0.25
    think_ms: float = 500.0
    mean_bytes: int = 48_000
    shape: float = 1.2
    rtt_min_ms: float = 20.0
    rtt_max_ms: float = 460.0
    window_bytes: int = 64_000
    variant: str = "newreno"
    spread_s: float = 1.0


@dataclass(frozen=True)
class Scenario:
    """Everything that determines a trial's result, except the engine that runs it."""

    experiment: str
    topology: Topology | Graph
    flows: tuple[Flow, ...]
    duration_s: float
    seed: int = 1
    profile: Profile = Profile.MODERN
    label: str = ""  # what distinguishes this trial within its experiment, readable
    axes: Mapping[str, str] = field(default_factory=dict)  # the same, by the experiment's axes
    captures: tuple[CapturePoint, ...] = tuple(CapturePoint)
    snaplen_bytes: int = 144  # whole headers: 14 + 60 (IP options) + 60 (TCP options), rounded up
    sample_interval_ms: float = 10.0  # of sockets and queues; 0: no samples
    background: Background | None = None  # what shares the bottleneck with the flows
    start_jitter_ms: float = 0.0  # each flow starts later by up to this, drawn by the seed
    measure_from_s: float = 0.0  # metrics leave out what was before: how a flow settles in
    asks_ecn: bool = (
        True  # whether senders ask for ECN where a queue marks; Linux's do not by itself
    )
    # each rate and delay of the network lies within this part of it, drawn by the seed
    network_jitter: float = field(default=0.0, metadata=LATER)

    def to_json(self) -> str:
        """The scenario as JSON, complete: every default written out."""
        return json.dumps(plain(self), indent=2) + "\n"

    @staticmethod
    def from_json(text: str | bytes) -> Scenario:
        """Read a scenario; every fault of form is reported at once, with its field."""
        return typing.cast(Scenario, json_form.read(Scenario, text, "scenario"))

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
    if dataclasses.is_dataclass(value):
        return plain(written(value))
    if isinstance(value, Mapping):
        return {key: plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value
