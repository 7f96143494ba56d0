"""The plan of background traffic: its sessions, their round trips and starts, and its programs.

Two processes carry all sessions (`traffic/background/`, in C). A session is identified by its port
at the sending host: `session_delays.py` uses it to give each session the round trip drawn for it.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

from testbed.errors import UsageError, nearest, quoted
from testbed.plan.commands import Command
from testbed.plan.delay_links import end_names
from testbed.plan.network import Network, node_names
from testbed.scenario import variants
from testbed.scenario.model import (
    Background,
    Flow,
    FlowKind,
    Graph,
    NodeKind,
    Scenario,
    Topology,
)
from testbed.scenario.profiles import PROFILES
from testbed.store import BACKGROUND_FLOW

PROGRAM = "testbed-background"
FIRST_PORT = 7000
MAX_SESSIONS = 400  # two descriptors each at the server, of 1024
RANGES = {
    "shape": (1.001, 1000),  # at 1 and below, there is no mean
    "think_ms": (1e-3, 86_400_000),
    "mean_bytes": (1, 1 << 40),
    "window_bytes": (1000, 1 << 30),
}
LONGEST_RTT_MS = 4000.0  # fq holds nothing for longer than 10 s
NS_PER_MS = 1_000_000


@dataclass(frozen=True)
class Session:
    """One session; its packets wait `extra_ns` each way, beyond the path's own delay."""

    kind: str  # "long" or "web"
    rtt_ms: float
    start_s: float
    seed: int  # of its file sizes and think times
    extra_ns: int


@dataclass(frozen=True)
class BackgroundPlan:
    """The two programs with their arguments, and the link on which packets wait."""

    flow: Flow  # its hosts, variant and window, as a flow's
    src_address: str
    dst_address: str
    src_interface: str
    dst_interface: str
    link: str  # the receiving host's access link, which carries nothing else
    link_delay_ns: int
    link_ends: tuple[str, str]  # the two ends of that link in the node `wires`
    sessions: tuple[Session, ...]
    server: Command
    client: Command  # and then the sessions' table
    stop_s: float

    def table(self) -> str:
        """The sessions in the client's input format."""
        return "".join(f"{s.kind} {round(s.start_s * 1e9)} {s.seed}\n" for s in self.sessions)


def as_flow(background: Background) -> Flow:
    """A flow with the same demands on the stacks and routes."""
    return Flow(
        BACKGROUND_FLOW,
        FlowKind.TCP,
        background.src,
        background.dst,
        variant=background.variant,
        window_bytes=background.window_bytes,
    )


def path_rtt_ms(network: Network, background: Background) -> float:
    """The round-trip propagation delay of the links alone."""
    return network.path_rtt_ms(background.src, background.dst)


def plan_background(scenario: Scenario, network: Network) -> BackgroundPlan | None:
    """The plan, if the scenario has background traffic."""
    wanted = scenario.background
    if wanted is None:
        return None
    path = network.path(wanted.src, wanted.dst)
    src, dst, link = path[0].out, path[-1].into, path[-1].link
    number = network.links.index(link)
    mss = str(PROFILES[scenario.profile].mss or 0)
    ports = (str(FIRST_PORT), str(wanted.sessions), mss)
    draws = (f"{wanted.mean_bytes}", f"{wanted.shape:g}", f"{round(wanted.think_ms * NS_PER_MS)}")
    return BackgroundPlan(
        flow=as_flow(wanted),
        src_address=src.ip,
        dst_address=dst.ip,
        src_interface=src.name,
        dst_interface=dst.name,
        link=link.name,
        link_delay_ns=round(link.delay_ms * NS_PER_MS),
        link_ends=end_names(number),
        sessions=draw_sessions(wanted, scenario.seed, path_rtt_ms(network, wanted)),
        server=Command(wanted.src, (PROGRAM, "serve", *ports)),
        client=Command(wanted.dst, (PROGRAM, "fetch", src.ip, str(FIRST_PORT), mss, *draws)),
        stop_s=scenario.duration_s,
    )


def draw_sessions(wanted: Background, seed: int, path_ms: float) -> tuple[Session, ...]:
    """Kinds to the exact share, in random order; round trips and starts uniform."""
    dice = random.Random(f"{seed} {BACKGROUND_FLOW}")
    long = round(wanted.sessions * wanted.long_share)
    kinds = ["long"] * long + ["web"] * (wanted.sessions - long)
    dice.shuffle(kinds)
    return tuple(_draw(wanted, dice, kind, path_ms) for kind in kinds)


def _draw(wanted: Background, dice: random.Random, kind: str, path_ms: float) -> Session:
    rtt_ms = round(dice.uniform(wanted.rtt_min_ms, wanted.rtt_max_ms), 3)
    return Session(
        kind=kind,
        rtt_ms=rtt_ms,
        start_s=round(dice.uniform(0, wanted.spread_s), 6),
        seed=dice.getrandbits(64),
        extra_ns=max(0, round((rtt_ms - path_ms) * NS_PER_MS / 2)),
    )


def faults(scenario: Scenario) -> Iterator[str]:
    """Faults of the background traffic, but for its round trips (`rtt_faults`)."""
    wanted = scenario.background
    if wanted is None:
        return
    yield from _host_faults(scenario, wanted)
    if not 1 <= wanted.sessions <= MAX_SESSIONS:
        yield f"background.sessions: {wanted.sessions} is not between 1 and {MAX_SESSIONS}"
    if not 0 <= wanted.long_share <= 1:
        yield f"background.long_share: {wanted.long_share:g} is not between 0 and 1"
    for name, (low, high) in RANGES.items():
        if not low <= (value := getattr(wanted, name)) <= high:
            yield f"background.{name}: {value:g} is not between {low:g} and {high:g}"
    if not 0 <= wanted.rtt_min_ms <= wanted.rtt_max_ms <= LONGEST_RTT_MS:
        yield f"background: rtt_min_ms, rtt_max_ms: rising, from 0 to {LONGEST_RTT_MS:g}"
    if not 0 <= wanted.spread_s < scenario.duration_s:
        yield f"background.spread_s: {wanted.spread_s:g} is not within the trial"


def _host_faults(scenario: Scenario, wanted: Background) -> Iterator[str]:
    hosts = _hosts(scenario.topology)
    busy = {host for flow in scenario.flows for host in (flow.src, flow.dst)}
    for end, host in (("src", wanted.src), ("dst", wanted.dst)):
        if host not in hosts:
            yield f"background.{end}: unknown host {quoted(host)}: {nearest(host, hosts)}"
        elif host in busy:
            yield f"background.{end}: {host} has a flow: its hosts carry nothing else"
    if wanted.src == wanted.dst:
        yield f"background: goes from {wanted.src} to itself"
    if any(flow.name == BACKGROUND_FLOW for flow in scenario.flows):
        yield f"flows: the name {BACKGROUND_FLOW!r} is taken"
    try:
        variants.variant(wanted.variant)
    except UsageError as error:
        yield f"background.variant: {error.message}: {error.hint}"


def _hosts(topology: Topology | Graph) -> tuple[str, ...]:
    """The hosts that background traffic may use: of an access link, none."""
    if isinstance(topology, Graph):
        return tuple(node.name for node in topology.nodes if node.kind is NodeKind.HOST)
    names = node_names(topology)
    return tuple(name for name in names if name.startswith(("sender", "receiver", "host")))


def rtt_faults(scenario: Scenario, network: Network) -> Iterator[str]:
    """Round trips shorter than the path's, or a link that cannot have them."""
    wanted = scenario.background
    if wanted is not None:
        last = network.path(wanted.src, wanted.dst)[-1].link
        if last.jitter_ms or last.loss or last.back or last.schedule or last.reorder:
            yield (
                f"background.dst: {last.name} has jitter, losses, reordering, a schedule or "
                "another delay back: it takes delays of its own"
            )
        least_ms = path_rtt_ms(network, wanted)
        if wanted.rtt_min_ms < least_ms:
            yield f"background.rtt_min_ms: {wanted.rtt_min_ms:g}: its path has {least_ms:g} ms"
