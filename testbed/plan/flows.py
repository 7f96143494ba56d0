"""Each flow's addresses, ports, times, and the commands of its client and server."""

from __future__ import annotations

import math
import random
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field

from testbed.plan.commands import Command, addresses_of, ipv4_addresses_of
from testbed.plan.control_network import server_ports
from testbed.plan.network import IPV6, Network, ip_version
from testbed.plan.video_commands import Serving, Watching
from testbed.scenario.call import Call, Datagram, datagrams
from testbed.scenario.model import (
    CLIENT_PORTS,
    MAX_PARALLEL,
    MIN_PARALLEL,
    SPACED_FLOWS,
    Flow,
    FlowKind,
    Scenario,
)
from testbed.scenario.network import FRAME_OVERHEAD_BYTES
from testbed.scenario.omitted_defaults import OMIT_DEFAULT, repr_without_defaults
from testbed.scenario.profiles import PROFILE_SETTINGS
from testbed.scenario.programs import Programs, filled
from testbed.scenario.transfers import PlannedTransfer, planned_transfers
from testbed.scenario.variants import variant
from testbed.scenario.video import Viewing
from testbed.scenario.workload import Connections, Workload
from testbed.video_site import CERTIFICATE, Site, Transport

BLOCK_BYTES = "131072"
UDP_IP_HEADERS = 28
COMMAND_PORT = 8000  # as above
CALL_PROGRAM = "testbed-call"
CALL_PORT = 20_000  # likewise
VIDEO_PORT = 443  # of the first flow, and on from there
WORKLOAD_PROGRAM = "testbed-workload"
WORKLOAD_PORT = 8000  # the same
WORKLOAD_CLIENT_PORT = 10_000  # of the first transfer, or connection that is kept
SESSION_PORTS = (61_000, 65_535)  # of servers: each session has one
UNSENT_BYTES = 131_072  # what a workload's server leaves in the kernel unsent; it refills at half
# All sockets share the kernel's TCP memory, some 15 MB in a guest before windows shrink.
SESSION_UNSENT_BYTES = 16_384
ANY_PORT = 0  # a flow's, whose connections each have another
FEW_FLOWS = 64  # whose programs are loaded one by one; of more they are copies (template.c)
IDLE_S = 120  # an iperf3 server gives a flow up that brings nothing for so long


@dataclass(frozen=True)
class VideoPlan:
    """The command lines of a video's server and player."""

    serving: Serving
    watching: Watching


@repr_without_defaults
@dataclass(frozen=True)
class FlowPlan:
    """A flow with its addresses, ports, times, and the commands of its two ends."""

    flow: Flow
    src_address: str
    dst_address: str
    src_ports: tuple[int, ...]
    dst_port: int
    start_s: float
    stop_s: float
    server: Command
    client: Command
    client_env: tuple[tuple[str, str], ...] = ()
    options: frozenset[str] = frozenset()  # TCP options that both hosts offer
    copied: bool = False  # the programs are copies of one that was loaded
    video: VideoPlan | None = None
    transfers: Iterable[PlannedTransfer] = ()
    datagrams: tuple[Datagram, ...] = field(default=(), repr=False, metadata=OMIT_DEFAULT)

    @property
    def is_ipv6(self) -> bool:
        """Whether its data go over IPv6."""
        return ":" in self.dst_address


def plan_flow(
    scenario: Scenario, network: Network, index: int, options: frozenset[str]
) -> FlowPlan:
    """Return the plan of the flow with that index.

    `options` are the TCP options that both hosts offer.
    """
    flow = scenario.flows[index]
    if flow.command is not None:
        return _plan_command(scenario, network, index, flow.command, options)
    if flow.call is not None:
        return _plan_call(scenario, network, index, flow.call)
    if flow.video is not None:
        return _plan_video(scenario, network, index, flow.video, options)
    if flow.workload is not None:
        return _plan_workload(scenario, network, index, flow.workload, options)
    return _plan_iperf3(scenario, network, index, options)


def mixed_senders(flows: Iterable[Flow]) -> frozenset[str]:
    """Return the hosts whose flows over TCP have more than one variant.

    The host's own congestion control (sysctl) is then one of them, and each flow chooses its own.
    """
    variants: dict[str, set[str]] = {}
    for flow in flows:
        if flow.variant is not None:
            variants.setdefault(flow.src, set()).add(flow.variant)
    return frozenset(host for host, names in variants.items() if len(names) > 1)


def _plan_iperf3(
    scenario: Scenario, network: Network, index: int, options: frozenset[str]
) -> FlowPlan:
    """Plan an iperf3 flow: data go from client to server, over one connection for each port."""
    flow = scenario.flows[index]
    src, dst = addresses_of(network, flow)
    server_port = server_ports(scenario.flows)[0] + index
    first = own_port(index)
    stop_s = scenario.stop_s(flow)
    start_s = _start_s(scenario, flow)
    # longer than needed: the trial ends the client itself, to the instant
    seconds = math.ceil(stop_s - start_s) + 10
    length = ("--bytes", str(flow.bytes)) if flow.bytes else ("--time", str(seconds))
    client: tuple[str, ...] = (
        "iperf3",
        "--client",
        dst,
        "--port",
        str(server_port),
        "--json",
        *length,
    )
    client += ("--interval", "1", "--cport", str(first))
    env: tuple[tuple[str, str], ...] = ()
    if flow.kind is FlowKind.CBR:
        client += _cbr_arguments(flow)
        env = _pace_environment(scenario, flow, index)
    else:
        mss = flow.mss or PROFILE_SETTINGS[scenario.profile].mss
        client += ("--set-mss", str(mss)) if mss else ()
        client += ("--parallel", str(flow.parallel)) if flow.parallel > 1 else ()
        if flow.src in mixed_senders(scenario.flows) and flow.variant:
            client += ("--congestion", variant(flow.variant).control)
        if flow.bytes:
            client += ("--length", BLOCK_BYTES)  # pace.c knows a data connection by it
            env = (("LIMIT_BYTES", str(flow.bytes)),)
    if ip_version(network.graph, flow) == IPV6:
        env += (("CONTROL_ADDRESS", ipv4_addresses_of(network, flow)[1]),)
    return FlowPlan(
        flow=flow,
        src_address=src,
        dst_address=dst,
        src_ports=tuple(range(first, first + flow.parallel)),
        dst_port=server_port,
        start_s=start_s,
        stop_s=stop_s,
        server=Command(flow.dst, _iperf3_server(server_port, seconds)),
        client=Command(flow.src, client),
        client_env=env,
        options=options if flow.kind is FlowKind.TCP else frozenset(),
        copied=len(scenario.flows) > FEW_FLOWS,
    )


def _iperf3_server(port: int, seconds: int) -> tuple[str, ...]:
    """Return the server's command, which does not give up during a flow's long back-off."""
    argv = ("iperf3", "--server", "--one-off", "--json", "--port", str(port))
    return (*argv, "--rcv-timeout", str(seconds * 1000)) if seconds > IDLE_S else argv


def own_port(index: int) -> int:
    """Return the first local port of the client of the flow with that index.

    Flows beyond those that have 64 ports each begin in the midst of these: at 32, then at 16 and
    48, then at the odd multiples of 8.
    """
    lap, place = divmod(index, SPACED_FLOWS)
    shift, step = 0, MAX_PARALLEL
    while lap:
        step //= 2
        shift += step * (lap % 2)
        lap //= 2
    return CLIENT_PORTS[0] + MAX_PARALLEL * place + shift


def most_parallel(flows: int) -> int:
    """Return the most connections that each flow may have, by the number of flows."""
    ports = MAX_PARALLEL
    while MAX_PARALLEL // ports * SPACED_FLOWS < flows and ports > MIN_PARALLEL:
        ports //= 2
    return ports


def _plan_video(
    scenario: Scenario, network: Network, index: int, video: Viewing, options: frozenset[str]
) -> FlowPlan:
    """Plan a video: data go from the server to the player, who opens the connection."""
    flow = scenario.flows[index]
    src, dst = addresses_of(network, flow)
    port, local = VIDEO_PORT + index, own_port(index)
    authority = "" if video.transport is Transport.HTTP else CERTIFICATE
    site = Site(src, port, authority, local)
    plan = VideoPlan(
        Serving(video.transport, port, video.control or ""),
        Watching(video.transport, site, video.rule, player=video.player),
    )
    return FlowPlan(
        flow=flow,
        src_address=src,
        dst_address=dst,
        src_ports=(port,),
        dst_port=local,
        start_s=_start_s(scenario, flow),
        stop_s=scenario.stop_s(flow),
        server=Command(flow.src, plan.serving.words),
        client=Command(flow.dst, plan.watching.words),
        options=options if flow.protocol == "tcp" else frozenset(),
        video=plan,
    )


def _plan_workload(
    scenario: Scenario,
    network: Network,
    index: int,
    workload: Workload,
    options: frozenset[str],
) -> FlowPlan:
    """Plan a workload: data go from the server to the client, who opens every connection."""
    flow = scenario.flows[index]
    src, dst = addresses_of(network, flow)
    mss = str(flow.mss or PROFILE_SETTINGS[scenario.profile].mss or 0)
    pool = workload.pool if workload.connections is Connections.KEPT else 0
    sessions = workload.arrivals.sessions
    ports = sessions.number if sessions else 1
    first = session_port(scenario, index) if sessions else WORKLOAD_PORT + index
    unsent = SESSION_UNSENT_BYTES if sessions else UNSENT_BYTES
    served = (str(first), str(ports), str(unsent), mss)
    number = str(ports if sessions else 0)
    asked = (src, str(first), number, str(WORKLOAD_CLIENT_PORT), str(pool), mss)
    return FlowPlan(
        flow=flow,
        src_address=src,
        dst_address=dst,
        src_ports=tuple(range(first, first + ports)),
        dst_port=ANY_PORT,
        start_s=_start_s(scenario, flow),
        stop_s=scenario.stop_s(flow),
        server=Command(flow.src, (WORKLOAD_PROGRAM, "serve", *served)),
        client=Command(flow.dst, (WORKLOAD_PROGRAM, "ask", *asked)),
        options=options,
        transfers=planned_transfers(scenario, flow),
    )


def session_port(scenario: Scenario, index: int) -> int:
    """Return the server's port of the first session of the flow with that index."""
    return SESSION_PORTS[0] + sum(map(session_count, scenario.flows[:index]))


def session_count(flow: Flow) -> int:
    """Return the number of a workload's sessions; 0 without any."""
    sessions = flow.workload.arrivals.sessions if flow.workload else None
    return sessions.number if sessions else 0


def _plan_command(
    scenario: Scenario, network: Network, index: int, command: Programs, options: frozenset[str]
) -> FlowPlan:
    """Plan a flow of the user's programs.

    A port of 0 stands for any: the client's is not known, nor the server's if it is not given.
    """
    flow = scenario.flows[index]
    ends = addresses_of(network, flow)
    port = command.listens_on(COMMAND_PORT + index)
    at_server, at_client = (1, 0) if command.upload else (0, 1)
    nodes = (flow.src, flow.dst)
    start_s, stop_s = _start_s(scenario, flow), scenario.stop_s(flow)
    values = {
        "server_ip": ends[at_server],
        "client_ip": ends[at_client],
        "port": str(port),
        "seed": str(scenario.seed),
        "duration_s": f"{stop_s - start_s:g}",
        "python": sys.executable,
    }
    return FlowPlan(
        flow=flow,
        src_address=ends[0],
        dst_address=ends[1],
        src_ports=(port,) if port and not command.upload else (),
        dst_port=port if command.upload else 0,
        start_s=start_s,
        stop_s=stop_s,
        server=Command(nodes[at_server], filled(command.server, values)),
        client=Command(nodes[at_client], filled(command.client, values)),
        options=options,
    )


def _plan_call(scenario: Scenario, network: Network, index: int, call: Call) -> FlowPlan:
    """Plan one side of a call: the client sends to the server."""
    flow = scenario.flows[index]
    src, dst = addresses_of(network, flow)
    port, local_port = CALL_PORT + index, own_port(index)
    start_s, stop_s = _start_s(scenario, flow), scenario.stop_s(flow)
    return FlowPlan(
        flow=flow,
        src_address=src,
        dst_address=dst,
        src_ports=(local_port,),
        dst_port=port,
        start_s=start_s,
        stop_s=stop_s,
        server=Command(flow.dst, (CALL_PROGRAM, "receive", str(port))),
        client=Command(flow.src, (CALL_PROGRAM, "send", dst, str(port), str(local_port))),
        datagrams=tuple(datagrams(call, stop_s - start_s, f"{scenario.seed} {flow.name} call")),
    )


def _start_s(scenario: Scenario, flow: Flow) -> float:
    """Return the flow's start, delayed by what the seed draws, to the microsecond.

    Flows that are meant to start together never quite do in reality.
    """
    late_ms = random.Random(f"{scenario.seed} {flow.name}").uniform(0, scenario.start_jitter_ms)
    return round(flow.start_s + late_ms / 1e3, 6)


def cbr_gap_ns(flow: Flow) -> int:
    """Return the nanoseconds from packet to packet at the flow's rate on the wire."""
    assert flow.packet_bytes is not None and flow.rate_mbit is not None
    return round((flow.packet_bytes + FRAME_OVERHEAD_BYTES) * 8e3 / flow.rate_mbit)


def _cbr_arguments(flow: Flow) -> tuple[str, ...]:
    assert flow.packet_bytes is not None
    payload = flow.packet_bytes - UDP_IP_HEADERS
    # as fast as it can: pace.c holds each packet until its time
    return ("--udp", "--length", str(payload), "--bitrate", "0")


def _pace_environment(scenario: Scenario, flow: Flow, index: int) -> tuple[tuple[str, str], ...]:
    assert flow.packet_bytes is not None
    return (
        ("PACE_BYTES", str(flow.packet_bytes - UDP_IP_HEADERS)),
        ("PACE_GAP_NS", "0" if flow.on_s else str(cbr_gap_ns(flow))),
        ("PACE_JITTER", f"{flow.jitter:g}"),
        ("PACE_SEED", str(scenario.seed * 1000 + index)),
        *_turns(flow),
    )


def _turns(flow: Flow) -> tuple[tuple[str, str], ...]:
    """Return the environment of a CBR flow with pauses, whose gaps on_off.c then keeps."""
    if flow.on_s is None or flow.off_s is None:
        return ()
    gap_ns, on_ns, off_ns = cbr_gap_ns(flow), round(flow.on_s * 1e9), round(flow.off_s * 1e9)
    return (("ON_OFF_GAP_NS", f"{gap_ns}"), ("ON_NS", f"{on_ns}"), ("OFF_NS", f"{off_ns}"))
