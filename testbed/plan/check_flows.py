"""Checks of a scenario's flows: each kind's fields, and what two flows cannot have in common.

A setting of a host or of a route has one value, which flows that share it must agree on.
"""

from __future__ import annotations

import contextlib
import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import assert_never

from testbed.errors import UsageError, nearest, quoted, range_faults
from testbed.plan.control_network import CLIENT_PORTS, server_ports
from testbed.plan.flows import (
    LEAST_PORTS,
    MAX_FLOWS,
    SESSION_PORTS,
    mixed_senders,
    most_parallel,
    session_count,
)
from testbed.plan.host_settings import sent_with
from testbed.plan.network import IPV6, ip_version
from testbed.plan.relabelling import relabelled_flows
from testbed.scenario import call, losses, programs, queues, variants, video, workload
from testbed.scenario.model import Flow, FlowKind, Profile, Scenario
from testbed.scenario.video import PlayerKind

RATES_MBIT = (0.001, 100_000.0)  # tc counts whole bytes a second
MAX_SECONDS = 24 * 3600.0
LEAST_SECONDS = 0.1  # of a flow
MAX_IPERF3_S = 86_400.0 - 10  # MAX_TIME of iperf3, whose client has 10 s more than it needs
MIN_UDP_PACKET = 28 + 16  # IP and UDP headers, and iperf3's own of 16 bytes
MAX_RTO_MS = 120_000  # TCP_RTO_MAX
WINDOW_LIMITS = (88, 1 << 30)  # bytes: the least segment, and as far as TCP's window scale goes
MAX_BYTES = 1 << 50  # which pace.c reads as a double
MAX_DROPS = 1000
LONGEST_TURN_S = 60.0  # iperf3's server gives up after 120 s without a packet
STACK_FIELDS = frozenset({"variant", "mss", "window_bytes", "rto_min_ms"})
FIELDS_OF_KIND = {  # beyond those that every flow has
    FlowKind.TCP: STACK_FIELDS | {"bytes", "drops", "loss", "parallel", "receiver"},
    FlowKind.CBR: frozenset({"rate_mbit", "packet_bytes", "jitter", "on_s", "off_s"}),
    FlowKind.VIDEO: frozenset({"variant", "video"}),
    FlowKind.WORKLOAD: STACK_FIELDS | {"workload"},
    FlowKind.COMMAND: frozenset({"variant", "command"}),
    FlowKind.CALL: frozenset({"call"}),
}
KINDS_OVER_IPV6 = (FlowKind.TCP, FlowKind.COMMAND, FlowKind.CALL)
FIELDS_OF_SOME_KIND = sorted(frozenset().union(*FIELDS_OF_KIND.values()))


def in_range(where: str, value: float, low: float, high: float) -> Iterator[str]:
    """Yield a fault unless the value is above `low` and at most `high`."""
    if not low < value <= high:
        yield f"{where}: {value:g} is not above {low:g} and at most {high:g}"


def flows_faults(scenario: Scenario) -> Iterator[str]:
    """Yield everything that is wrong with a scenario's flows, one by one and together."""
    if not 1 <= len(scenario.flows) <= MAX_FLOWS:
        yield (
            f"flows: {len(scenario.flows)} flows; between 1 and {MAX_FLOWS} can run, because each "
            f"has {LEAST_PORTS} of the local ports {_span(CLIENT_PORTS)}"
        )
        return  # the rest compares flows with one another
    yield from _name_clashes([flow.name for flow in scenario.flows])
    nodes = scenario.network.endpoints
    for index, flow in enumerate(scenario.flows):
        where = f"flows[{index}]"
        for end, node in (("src", flow.src), ("dst", flow.dst)):
            if node not in nodes:
                yield f"{where}.{end}: unknown node {quoted(node)}: {nearest(node, nodes)}"
        if flow.src == flow.dst:
            yield f"{where}: goes from {flow.src} to itself"
        yield from _ip_faults(scenario, flow, where)
        yield from _time_faults(scenario, flow, where)
        yield from _foreign_fields(flow, where)
        yield from _kind_faults(scenario, flow, where)
        yield from _loss_faults(scenario, flow, f"{where}.loss")
    most = SESSION_PORTS[1] + 1 - SESSION_PORTS[0]
    if (sessions := sum(map(session_count, scenario.flows))) > most:
        yield f"flows: {sessions} sessions; at most {most}, each of which has a port"
    yield from _shared_ports(scenario)
    yield from host_conflicts(scenario)


def _name_clashes(flows: Sequence[str]) -> Iterator[str]:
    """Yield names that are used twice, or are a part of the names of another flow's files."""
    counts = Counter(flows)
    yield from (f"flows: the name {name!r} is used twice" for name in counts if counts[name] > 1)
    for name in counts:
        parts = name.split(".")
        for length in range(1, len(parts)):
            if (other := ".".join(parts[:length])) in counts:
                yield f"flows: {name!r} could be a file of {other!r}: name it without that dot"


def _ip_faults(scenario: Scenario, flow: Flow, where: str) -> Iterator[str]:
    """Yield a version of IP that the network does not speak, or the flow's programs do not."""
    if flow.ip is not None and flow.ip not in (4, IPV6):
        yield f"{where}.ip: {flow.ip}: 4 or 6"
    elif flow.ip == IPV6 != scenario.network.ip:
        yield f"{where}.ip: 6: give the network `ip: 6`, so that its nodes have such addresses"
    elif ip_version(scenario.network, flow) == IPV6 and flow.kind not in KINDS_OVER_IPV6:
        kinds = ", ".join(KINDS_OVER_IPV6)
        yield f"{where}: a flow of kind {flow.kind} is over IPv4: give it `ip: 4` (6: {kinds})"
    elif ip_version(scenario.network, flow) == IPV6 and any(relabelled_flows((flow,))):
        yield f"{where}: {flow.variant} gets its ECT(1) from a filter of IPv4: give it `ip: 4`"


def _time_faults(scenario: Scenario, flow: Flow, where: str) -> Iterator[str]:
    latest_s = flow.start_s + scenario.start_jitter_ms / 1e3
    if flow.start_s < 0 or latest_s >= scenario.stop_s(flow):
        length = f"{scenario.duration_s:g} s"
        yield f"{where}.start_s: {flow.start_s:g} is not within the trial's {length}"
    elif scenario.stop_s(flow) - latest_s < LEAST_SECONDS:
        yield f"{where}: runs for less than {LEAST_SECONDS:g} s, and then says nothing of TCP"
    if flow.duration_s is not None:
        yield from in_range(f"{where}.duration_s", flow.duration_s, 0, MAX_SECONDS)


def _iperf3_faults(scenario: Scenario, flow: Flow, where: str) -> Iterator[str]:
    """Yield a duration that iperf3 refuses."""
    if scenario.stop_s(flow) - flow.start_s > MAX_IPERF3_S:
        yield f"{where}: runs for more than {MAX_IPERF3_S:g} s, which iperf3 cannot"


def _foreign_fields(flow: Flow, where: str) -> Iterator[str]:
    """Yield the fields that flows of other kinds have."""
    for name in FIELDS_OF_SOME_KIND:
        if name not in FIELDS_OF_KIND[flow.kind] and getattr(flow, name) != getattr(Flow, name):
            kinds = " or ".join(kind for kind, names in FIELDS_OF_KIND.items() if name in names)
            yield f"{where}.{name}: of flows of kind {kinds}; this is {flow.kind}"


def _kind_faults(scenario: Scenario, flow: Flow, where: str) -> Iterator[str]:
    match flow.kind:
        case FlowKind.TCP:
            yield from _iperf3_faults(scenario, flow, where)
            yield from _tcp_faults(flow, where, len(scenario.flows))
        case FlowKind.CBR:
            yield from _iperf3_faults(scenario, flow, where)
            yield from _cbr_faults(flow, where)
        case FlowKind.VIDEO:
            yield from _video_faults(scenario, flow, where)
        case FlowKind.WORKLOAD:
            yield from _workload_faults(flow, where)
        case FlowKind.COMMAND:
            yield from _command_faults(flow, where)
            yield from _port_faults(scenario, flow, where)
        case FlowKind.CALL:
            yield from _call_faults(flow, where)
        case _:
            assert_never(flow.kind)


def _variant_faults(name: str | None, where: str) -> Iterator[str]:
    if name is not None:
        try:
            variants.variant(name)
        except UsageError as error:
            yield f"{where}: {error.message}: {error.hint}"


def _workload_faults(flow: Flow, where: str) -> Iterator[str]:
    if flow.workload is None:
        yield f"{where}.workload: missing for a flow of kind workload"
        return
    yield from workload.workload_faults(flow.workload, f"{where}.workload")
    yield from _stack_faults(flow, where)


def _tcp_faults(flow: Flow, where: str, flows: int) -> Iterator[str]:
    yield from _stack_faults(flow, where)
    yield from _drop_faults(flow, where)
    most = most_parallel(flows)
    for fault in range_faults(f"{where}.parallel", flow.parallel, 1, most):
        yield (
            f"{fault}, because each of {flows} flows has {most} of the local ports "
            f"{_span(CLIENT_PORTS)}"
        )
    if flow.receiver and flow.parallel > 1:
        yield f"{where}.receiver: which of {flow.parallel} parallel connections is meant?"
    if flow.bytes is not None:
        yield from in_range(f"{where}.bytes", flow.bytes, 0, MAX_BYTES)


def _stack_faults(flow: Flow, where: str) -> Iterator[str]:
    """Yield the faults of a flow's settings of TCP."""
    if flow.variant is None:
        yield f"{where}.variant: missing for a TCP flow"
    yield from _variant_faults(flow.variant, f"{where}.variant")
    yield from range_faults(f"{where}.mss", flow.mss, 88, 1448)
    yield from range_faults(f"{where}.window_bytes", flow.window_bytes, *WINDOW_LIMITS)
    yield from range_faults(f"{where}.rto_min_ms", flow.rto_min_ms, 1, MAX_RTO_MS)


def _drop_faults(flow: Flow, where: str) -> Iterator[str]:
    if list(flow.drops) != sorted(set(flow.drops)) or any(number < 1 for number in flow.drops):
        yield f"{where}.drops: numbers from 1 in rising order, each once"
    if len(flow.drops) > MAX_DROPS:
        yield f"{where}.drops: {len(flow.drops)} drops; at most {MAX_DROPS}"
    if max(flow.drops, default=0) > losses.MAX_PACKETS:
        yield f"{where}.drops: {max(flow.drops)} is above {losses.MAX_PACKETS}, the last counted"
    if flow.drops and flow.parallel > 1:
        yield f"{where}.drops: which of {flow.parallel} parallel connections is meant?"


def _loss_faults(scenario: Scenario, flow: Flow, where: str) -> Iterator[str]:
    if flow.loss is None:
        return
    yield from losses.faults(flow.loss, where)
    if flow.parallel > 1:
        yield f"{where}: which of {flow.parallel} parallel connections is meant?"
    if flow.drops:
        yield f"{where}: the flow has drops already"
    if any({flow.src, flow.dst} == set(link.ends) for link in scenario.network.links):
        yield f"{where}: no router between {flow.src} and {flow.dst}"


def _video_faults(scenario: Scenario, flow: Flow, where: str) -> Iterator[str]:
    if flow.video is None:
        yield f"{where}.video: missing for a video flow"
        return
    yield from video.viewing_faults(flow.video, f"{where}.video")
    yield from _variant_faults(flow.variant, f"{where}.variant")
    yield from _variant_faults(flow.video.viewer_variant, f"{where}.video.viewer_variant")
    if flow.protocol == "tcp" and flow.variant is None:
        yield f"{where}.variant: missing for a video over TCP"
    if flow.protocol == "udp" and flow.variant is not None:
        yield f"{where}.variant: TCP's; QUIC's own is video.control"
    if scenario.profile is not Profile.MODERN:
        yield f"{where}: a video's stacks are as the kernel ships them: profile modern"


def _command_faults(flow: Flow, where: str) -> Iterator[str]:
    if flow.command is None:
        yield f"{where}.command: missing for a command flow"
        return
    yield from programs.faults(flow.command, f"{where}.command")
    if flow.protocol == "udp":
        if flow.variant is not None:
            yield f"{where}.variant: TCP's; the programs speak UDP"
    elif flow.variant is None:
        yield f"{where}.variant: missing: what {flow.src} sends with"
    yield from _variant_faults(flow.variant, f"{where}.variant")


def _call_faults(flow: Flow, where: str) -> Iterator[str]:
    if flow.call is None:
        yield f"{where}.call: missing for a call"
        return
    yield from call.call_faults(flow.call, f"{where}.call")


def _span(ports: tuple[int, int]) -> str:
    return f"{ports[0]} to {ports[1]}"


def _port_faults(scenario: Scenario, flow: Flow, where: str) -> Iterator[str]:
    """Yield a port of the user's program that an iperf3 server has."""
    ports = server_ports(scenario.flows)
    port = flow.command.port if flow.command else None
    if port is not None and ports[0] <= port <= ports[1]:
        yield f"{where}.command.port: {port} is one of iperf3's, {_span(ports)}"


def _shared_ports(scenario: Scenario) -> Iterator[str]:
    """Yield flows between the same hosts that a command flow's port cannot tell apart.

    Connections between two hosts are a command flow's by its port.
    """
    seen: dict[frozenset[str], list[tuple[str, int | None]]] = {}
    for index, flow in enumerate(scenario.flows):
        port = flow.command.listens_on(-1 - index) if flow.command else None
        others = seen.setdefault(frozenset((flow.src, flow.dst)), [])
        for other, its in others:
            if 0 in (port, its) or (port == its and port is not None):
                yield (
                    f"flows: {other} and {flow.name} are between the same hosts: give them ports "
                    "of their own"
                )
        others.append((flow.name, port))


def _cbr_faults(flow: Flow, where: str) -> Iterator[str]:
    if flow.rate_mbit is None or flow.packet_bytes is None:
        yield f"{where}: a CBR flow needs rate_mbit and packet_bytes"
        return
    sizes = (MIN_UDP_PACKET, queues.MTU_BYTES)
    yield from range_faults(f"{where}.rate_mbit", flow.rate_mbit, *RATES_MBIT)
    yield from range_faults(f"{where}.packet_bytes", flow.packet_bytes, *sizes)
    yield from range_faults(f"{where}.jitter", flow.jitter, 0, 1)
    if (flow.on_s is None) != (flow.off_s is None):
        yield f"{where}: on_s and off_s belong together"
    for name, seconds in (("on_s", flow.on_s), ("off_s", flow.off_s)):
        if seconds is not None:
            yield from in_range(f"{where}.{name}", seconds, 0, LONGEST_TURN_S)


def host_conflicts(scenario: Scenario) -> Iterator[str]:
    """Yield every pair of flows whose hosts would need two values of one setting."""
    yield from _one_variant_per_viewer(scenario)
    yield from _variants_of_one_host(scenario)
    yield from _one_browser_per_host(scenario)
    yield from _one_recipe_per_receiver(scenario)
    yield from _one_route_per_pair(scenario)
    yield from _one_control_per_route(scenario)


def _one_variant_per_viewer(scenario: Scenario) -> Iterator[str]:
    """Yield hosts that play a video with one variant and send with another: it is a sysctl there.

    A player's requests cannot choose.
    """
    seen: dict[str, str | None] = {}
    viewers = {flow.dst for flow in scenario.flows if _viewer_variant(flow) is not None}
    for flow in scenario.flows:
        wishes = [(flow.src, flow.variant)] if flow.protocol == "tcp" else []
        if _viewer_variant(flow) is not None:
            wishes.append((flow.dst, _viewer_variant(flow)))
        for host, wish in wishes:
            if host in viewers and seen.setdefault(host, wish) != wish:
                yield (
                    f"flows: {host} sends {seen[host]} and {wish}: one variant per host that "
                    "plays a video"
                )


def _viewer_variant(flow: Flow) -> str | None:
    return flow.video.viewer_variant if flow.video else None


def _variants_of_one_host(scenario: Scenario) -> Iterator[str]:
    """Yield pairs of variants that one host cannot send.

    Flows of iperf3 choose their congestion control at the socket, others by the route to their
    receiver. All other settings of a variant are its host's.
    """
    for host in sorted(mixed_senders(scenario.flows)):
        members = [(flow, recipe) for flow, recipe in _recipes(scenario) if flow.src == host]
        recipes = {recipe.name: recipe for _, recipe in members}
        for pair in itertools.combinations(recipes.values(), 2):
            yield from _setting_conflicts(scenario, host, *pair)
        for (one, its), (other, theirs) in itertools.combinations(members, 2):
            if one.dst != other.dst or its.name == theirs.name:
                continue
            by_route = next((f for f in (one, other) if f.kind is not FlowKind.TCP), None)
            if by_route is not None:
                yield (
                    f"flows: {one.name} and {other.name}: {host} chooses the variant of a flow of "
                    f"kind {by_route.kind} by the route to its receiver: give them two receivers"
                )
            elif its.receiver_route != theirs.receiver_route:
                yield (
                    f"flows: {one.name} and {other.name}: {one.dst} answers {its.name} and "
                    f"{theirs.name} by one route, but not alike: give them two receivers"
                )


def _setting_conflicts(
    scenario: Scenario, host: str, one: variants.Variant, other: variants.Variant
) -> Iterator[str]:
    """Yield the settings of a host that one variant needs and the other does without."""
    wishes = [(recipe, sent_with(scenario, recipe)) for recipe in (one, other)]
    names = sorted({name for _, needs in wishes for name in needs})
    unlike = [name for name in names if wishes[0][1].get(name) != wishes[1][1].get(name)]
    if unlike:
        needy = next(recipe for recipe, needs in wishes if unlike[0] in needs)
        rest = other if needy is one else one
        values = ", ".join(f"{name} {sent_with(scenario, needy).get(name)}" for name in unlike)
        yield (
            f"flows: {host} sends {one.name} and {other.name}: {needy.name} needs {values} there, "
            f"and {rest.name} does not: give each its own host"
        )


def _one_browser_per_host(scenario: Scenario) -> Iterator[str]:
    """Yield hosts with two browsers: the port of a browser's connection is the host's setting."""
    viewers = [f.dst for f in scenario.flows if f.video and f.video.player is PlayerKind.CHROMIUM]
    for host in {host for host in viewers if viewers.count(host) > 1}:
        yield f"flows: {host} has several browsers: one per host"


def _one_recipe_per_receiver(scenario: Scenario) -> Iterator[str]:
    """Yield flows whose variants need different settings of one receiver."""
    wishes: dict[tuple[str, str], tuple[str, str]] = {}
    found = _recipes(scenario)
    for flow, recipe in found:
        for name, value in recipe.receiver.items():
            for other, theirs in found:
                sacks = theirs.sender.get("tcp_sack", "1") == "1"
                if other.dst == flow.dst and sacks and theirs.receiver.get(name) != value:
                    wishes[(flow.dst, name)] = (flow.name, other.name)
    for (host, name), (one, another) in wishes.items():
        yield (
            f"flows: {one} needs another {name} at {host} than {another}: "
            "give them receivers of their own"
        )


def _recipes(scenario: Scenario) -> list[tuple[Flow, variants.Variant]]:
    found = []
    for flow in scenario.flows:
        with contextlib.suppress(UsageError):  # already reported as a fault of the flow
            if flow.protocol == "tcp" and flow.variant is not None:
                found.append((flow, variants.variant(flow.variant)))
    return found


def _one_route_per_pair(scenario: Scenario) -> Iterator[str]:
    """Yield flows that differ in their route's window or minimum timer."""
    firsts: dict[tuple[str, str], Flow] = {}
    for flow in scenario.flows:
        if flow.protocol == "tcp":
            first = firsts.setdefault((flow.src, flow.dst), flow)
            for name in ("window_bytes", "rto_min_ms"):
                if getattr(first, name) != getattr(flow, name):
                    yield f"flows: {first.name} and {flow.name}: one {name} per pair of hosts"


def _one_control_per_route(scenario: Scenario) -> Iterator[str]:
    """Yield flows whose route to the sender would need two congestion controls.

    A route's congestion control holds for both ends of its host's connections.
    """
    for flow, recipe in _recipes(scenario):
        answer = recipe.receiver_route.get("congctl")
        back = [f for f in scenario.flows if (f.src, f.dst) == (flow.dst, flow.src)]
        wishes = [(other.name, other.variant) for other in back if other.protocol == "tcp"]
        if flow.video is not None:
            wishes.append((f"{flow.name}'s viewer", flow.video.viewer_variant))
        for name, wish in wishes:
            if answer and wish not in (None, answer):
                yield (
                    f"flows: {flow.dst} answers {flow.name} with {answer}, and {name} sends "
                    f"{wish} the same way: give them hosts of their own"
                )
