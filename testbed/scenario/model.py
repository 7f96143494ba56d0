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
from testbed.scenario.losses import GilbertElliott, Loss
from testbed.scenario.video import Transport, Viewing

FRAME_OVERHEAD_BYTES = 14  # Ethernet header: counted by htb and by captures


class TopologyKind(enum.StrEnum):
    """The networks of the papers."""

    ROUTER_BOTTLENECK = "router-bottleneck"
    DUMBBELL = "dumbbell"
    ACCESS_LINK = "access-link"


class FlowKind(enum.StrEnum):
    """The program that sends: iperf3 over TCP, iperf3 over UDP (CBR), or a video's server."""

    TCP = "tcp"
    CBR = "cbr"
    VIDEO = "video"


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


@dataclass(frozen=True)
class Bottleneck:
    """The shaped link: its rate, the queue before it, and its propagation delay one way.

    The other way has the same rate and queue, unless `back_rate_mbit` or `back_queue` are given.
    """

    rate_mbit: float
    queue: Queue
    delay_ms: float = 0.0
    both_directions: bool = True
    back_rate_mbit: float | None = None
    back_queue: Queue | None = None


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
    """A network of the papers: `hosts` senders (router bottleneck) or pairs (dumbbell), or one
    home (access link).

    `links` overrides `access` for single links by name, e.g. `sender2-left`, `ap-station`.
    """

    kind: TopologyKind
    bottleneck: Bottleneck
    hosts: int = 1
    access: Path = Path()
    links: Mapping[str, Path] = field(default_factory=dict)


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
    `duration_s` at most.
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
    topology: Topology
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

    def to_json(self) -> str:
        """The scenario as JSON, complete: every default written out."""
        return json.dumps(_plain(dataclasses.asdict(self)), indent=2) + "\n"

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

    def flow(self, name: str) -> Flow:
        """The flow of that name."""
        return next(flow for flow in self.flows if flow.name == name)

    def stop_s(self, flow: Flow) -> float:
        """The latest time at which the flow stops sending."""
        if flow.duration_s is None:
            return self.duration_s
        return min(self.duration_s, flow.start_s + flow.duration_s)


def _plain(value: Any) -> Any:
    """JSON's own types; 60.0 and 60 are written alike, so that they hash alike."""
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value
