"""Checks of a scenario's flows: each kind's fields, and what two flows cannot have in common.

A setting of a host or of a route has one value, which flows that share it must agree on.
"""

from __future__ import annotations

import contextlib
import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import assert_never

from testbed.errors import UsageError
from testbed.faults import Fault, Keys, unknown
from testbed.plan.check_network import time_faults
from testbed.plan.control_network import server_ports
from testbed.plan.ect1_filters import relabelled_flows
from testbed.plan.flows import SESSION_PORTS, mixed_senders, most_parallel, session_count
from testbed.plan.host_settings import sent_with
from testbed.plan.network import IPV6, ip_version
from testbed.scenario import call, losses, programs, variants, video, workload
from testbed.scenario.model import CLIENT_PORTS, Flow, FlowKind, Profile, Scenario
from testbed.scenario.video import PlayerKind

MIN_FLOW_S = 0.1
MAX_IPERF3_S = 86_400.0 - 10  # MAX_TIME of iperf3, whose client has 10 s more than it needs
ROUTE_FIELDS = ("window_bytes", "rto_min_ms", "initcwnd", "initrwnd", "quickack")
STACK_FIELDS = frozenset({"variant", "mss", *ROUTE_FIELDS})
FIELDS_OF_KIND = {  # beyond those that every flow has
    FlowKind.TCP: STACK_FIELDS | {"bytes", "drops", "loss", "parallel", "receiver", "schedule"},
    FlowKind.CBR: frozenset({"rate_mbit", "packet_bytes", "jitter", "on_s", "off_s"}),
    FlowKind.VIDEO: frozenset({"variant", "video"}),
    FlowKind.WORKLOAD: STACK_FIELDS | {"workload"},
    FlowKind.COMMAND: frozenset({"variant", "command"}),
    FlowKind.CALL: frozenset({"call"}),
    FlowKind.STACK: frozenset({"variant", "stack"}),
}
KINDS_OVER_IPV6 = (FlowKind.TCP, FlowKind.COMMAND, FlowKind.CALL)
FIELDS_OF_SOME_KIND = sorted(frozenset().union(*FIELDS_OF_KIND.values()))


def flows_faults(scenario: Scenario) -> Iterator[Fault]:
    """Yield everything that is wrong with a scenario's flows, one by one and together."""
    yield from _name_clashes([flow.name for flow in scenario.flows])
    for index, flow in enumerate(scenario.flows):
        yield from (fault.inside("flows", index) for fault in _flow_faults(scenario, flow))
    yield from _session_ports(scenario)
    yield from _shared_ports(scenario)
    yield from _host_conflicts(scenario)


def _flow_faults(scenario: Scenario, flow: Flow) -> Iterator[Fault]:
    nodes = scenario.network.endpoints
    for end, node in (("src", flow.src), ("dst", flow.dst)):
        if node not in nodes:
            yield unknown((end,), "node", node, nodes)
    if flow.src == flow.dst:
        hint = f"name two hosts: --flow {flow.src},OTHER, or another dst"
        yield Fault((), f"goes from {flow.src} to itself", hint)
    yield from _ip_faults(scenario, flow)
    yield from _time_faults(scenario, flow)
    yield from _foreign_fields(flow)
    yield from _kind_faults(scenario, flow)
    yield from _loss_faults(scenario, flow)


def _name_clashes(flows: Sequence[str]) -> Iterator[Fault]:
    """Yield names that are used twice, or are a part of the names of another flow's files."""
    counts = Counter(flows)
    for name in counts:
        if counts[name] > 1:
            yield Fault(("flows",), f"the name {name!r} is used twice", "rename one")
        parts = name.split(".")
        for length in range(1, len(parts)):
            if (other := ".".join(parts[:length])) in counts:
                message = f"{name!r} could be a file of {other!r}: name it without that dot"
                yield Fault(("flows",), message)


def _ip_faults(scenario: Scenario, flow: Flow) -> Iterator[Fault]:
    """Yield a version of IP that the network does not speak, or the flow's programs do not."""
    if flow.ip == IPV6 != scenario.network.ip:
        yield Fault(("ip",), "6: give the network `ip: 6`, so that its nodes have such addresses")
    elif ip_version(scenario.network, flow) == IPV6 and flow.kind not in KINDS_OVER_IPV6:
        kinds = ", ".join(KINDS_OVER_IPV6)
        message = f"a flow of kind {flow.kind} is over IPv4: give it `ip: 4` (6: {kinds})"
        yield Fault((), message)
    elif ip_version(scenario.network, flow) == IPV6 and any(relabelled_flows((flow,))):
        yield Fault((), f"{flow.variant} gets its ECT(1) from a filter of IPv4: give it `ip: 4`")


def _time_faults(scenario: Scenario, flow: Flow) -> Iterator[Fault]:
    latest_s = flow.start_s + scenario.start_jitter_ms / 1e3
    if latest_s >= scenario.stop_s(flow):
        message = f"{flow.start_s:g} is not within the trial's {scenario.duration_s:g} s"
        hint = f"start_s takes seconds from 0 to {scenario.duration_s:g}"
        yield Fault(("start_s",), message, hint)
    elif scenario.stop_s(flow) - latest_s < MIN_FLOW_S:
        yield Fault((), f"runs for less than {MIN_FLOW_S:g} s, and then says nothing of TCP")
    span_s = (latest_s, scenario.stop_s(flow))
    yield from time_faults([each.at_s for each in flow.schedule], span_s, "the flow's time")
    is_iperf3 = flow.kind in (FlowKind.TCP, FlowKind.CBR)
    if is_iperf3 and scenario.stop_s(flow) - flow.start_s > MAX_IPERF3_S:
        yield Fault((), f"runs for more than {MAX_IPERF3_S:g} s, which iperf3 cannot")


def _foreign_fields(flow: Flow) -> Iterator[Fault]:
    """Yield the fields that flows of other kinds have."""
    for name in FIELDS_OF_SOME_KIND:
        if name not in FIELDS_OF_KIND[flow.kind] and getattr(flow, name) != getattr(Flow, name):
            kinds = " or ".join(kind for kind, names in FIELDS_OF_KIND.items() if name in names)
            yield Fault((name,), f"of flows of kind {kinds}; this is {flow.kind}")


def _kind_faults(scenario: Scenario, flow: Flow) -> Iterator[Fault]:
    yield from _variant_faults(flow)
    match flow.kind:
        case FlowKind.TCP:
            yield from _tcp_faults(flow, len(scenario.flows))
        case FlowKind.CBR:
            yield from _cbr_faults(flow)
        case FlowKind.VIDEO if flow.video:
            yield from (f.inside("video") for f in video.viewing_faults(flow.video))
            if scenario.profile is not Profile.MODERN:
                message = "a video's stacks are as the kernel ships them: profile modern"
                yield Fault((), message)
        case FlowKind.WORKLOAD if flow.workload:
            yield from (f.inside("workload") for f in workload.workload_faults(flow.workload))
        case FlowKind.COMMAND if flow.command:
            yield from (f.inside("command") for f in programs.program_faults(flow.command))
            yield from _port_faults(scenario, flow.command.port)
        case FlowKind.CALL if flow.call:
            yield from (f.inside("call") for f in call.call_faults(flow.call))
        case FlowKind.STACK:
            message = "a stack's programs come with `testbed run`, or testbed.run in Python"
            yield Fault(("kind",), message)
        case FlowKind.VIDEO | FlowKind.WORKLOAD | FlowKind.COMMAND | FlowKind.CALL:
            yield Fault((flow.kind,), f"missing for a flow of kind {flow.kind}")
        case _:
            assert_never(flow.kind)


def _variant_faults(flow: Flow) -> Iterator[Fault]:
    """Yield a variant that is unknown, missing, or of a flow that does not use TCP."""
    viewer = flow.video.viewer_variant if flow.video else None
    named: list[tuple[Keys, str | None]] = [(("variant",), flow.variant)]
    for keys, name in (*named, (("video", "viewer_variant"), viewer)):
        if name is not None and not variants.can_be(name):
            yield unknown(keys, "variant", name, variants.SPELLINGS)
    if "variant" in FIELDS_OF_KIND[flow.kind]:
        if flow.protocol == "tcp" and flow.variant is None:
            yield Fault(("variant",), f"missing: what {flow.src} sends with", '"variant": "cubic"')
        if flow.protocol == "udp" and flow.variant is not None:
            control = "QUIC's own is video.control" if flow.video else "the programs speak UDP"
            yield Fault(("variant",), f"TCP's; {control}")


def _tcp_faults(flow: Flow, flows: int) -> Iterator[Fault]:
    most = most_parallel(flows)
    if flow.parallel > most:
        message = f"{flow.parallel} is not between 1 and {most}, because each of {flows} flows has "
        message += f"{most} of the local ports {_span(CLIENT_PORTS)}"
        yield Fault(("parallel",), message, f"parallel takes numbers from 1 to {most}")
    if list(flow.drops) != sorted(set(flow.drops)):
        yield Fault(("drops",), "numbers from 1 in rising order, each once")
    if flow.parallel > 1:
        for name in ("receiver", "drops", "loss"):
            if getattr(flow, name):
                message = f"which of {flow.parallel} parallel connections is meant?"
                yield Fault((name,), message)


def _loss_faults(scenario: Scenario, flow: Flow) -> Iterator[Fault]:
    if flow.loss is None:
        return
    yield from (fault.inside("loss") for fault in losses.loss_faults(flow.loss))
    if flow.drops:
        yield Fault(("loss",), "the flow has drops already")
    if any({flow.src, flow.dst} == set(link.ends) for link in scenario.network.links):
        yield Fault(("loss",), f"no router between {flow.src} and {flow.dst}")


def _span(ports: tuple[int, int]) -> str:
    return f"{ports[0]} to {ports[1]}"


def _port_faults(scenario: Scenario, port: int | None) -> Iterator[Fault]:
    """Yield a port of the user's program that an iperf3 server has."""
    ports = server_ports(scenario.flows)
    if port is not None and ports[0] <= port <= ports[1]:
        yield Fault(("command", "port"), f"{port} is one of iperf3's, {_span(ports)}")


def _of_all(message: str, hint: str = "") -> Fault:
    """Return a fault of what flows have in common."""
    return Fault(("flows",), message, hint)


def _session_ports(scenario: Scenario) -> Iterator[Fault]:
    """Yield that there are more sessions than ports."""
    most = SESSION_PORTS[1] + 1 - SESSION_PORTS[0]
    if (sessions := sum(map(session_count, scenario.flows))) > most:
        yield _of_all(f"{sessions} sessions; at most {most}, each of which has a port")


def _shared_ports(scenario: Scenario) -> Iterator[Fault]:
    """Yield flows between the same hosts that a command flow's port cannot tell apart.

    Connections between two hosts are a command flow's by its port.
    """
    ports: dict[frozenset[str], set[int]] = {}
    for index, flow in enumerate(scenario.flows):
        port = flow.command.listens_on(-1 - index) if flow.command else -1 - index
        others = ports.setdefault(frozenset((flow.src, flow.dst)), set())
        if port in others or (others and programs.EVERY_PORT in (port, *others)):
            message = f"{flow.name} has no port that tells it from others between the same hosts"
            yield _of_all(message, 'its server\'s in its command, as "port": 8080; or other hosts')
            return
        others.add(port)


def _cbr_faults(flow: Flow) -> Iterator[Fault]:
    if flow.rate_mbit is None or flow.packet_bytes is None:
        message = "a CBR flow needs rate_mbit and packet_bytes"
        yield Fault((), message, '"rate_mbit": 1, "packet_bytes": 1000')
    elif (flow.on_s is None) != (flow.off_s is None):
        yield Fault((), "on_s and off_s belong together")


def _host_conflicts(scenario: Scenario) -> Iterator[Fault]:
    """Yield every pair of flows whose hosts would need two values of one setting."""
    yield from _one_variant_per_viewer(scenario)
    yield from _variants_of_one_host(scenario)
    yield from _one_browser_per_host(scenario)
    yield from _one_recipe_per_receiver(scenario)
    yield from _one_route_per_pair(scenario)
    yield from _one_control_per_route(scenario)


def _one_variant_per_viewer(scenario: Scenario) -> Iterator[Fault]:
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
                yield _of_all(
                    f"{host} sends {seen[host]} and {wish}: one variant per host that "
                    "plays a video",
                    "give each variant a sender of its own",
                )


def _viewer_variant(flow: Flow) -> str | None:
    return flow.video.viewer_variant if flow.video else None


def _variants_of_one_host(scenario: Scenario) -> Iterator[Fault]:
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
                yield _of_all(
                    f"{one.name} and {other.name}: {host} chooses the variant of a flow of "
                    f"kind {by_route.kind} by the route to its receiver: give them two receivers"
                )
            elif its.receiver_route != theirs.receiver_route:
                yield _of_all(
                    f"{one.name} and {other.name}: {one.dst} answers {its.name} and "
                    f"{theirs.name} by one route, but not alike: give them two receivers"
                )


def _setting_conflicts(
    scenario: Scenario, host: str, one: variants.Variant, other: variants.Variant
) -> Iterator[Fault]:
    """Yield the settings of a host that one variant needs and the other does without."""
    wishes = [(recipe, sent_with(scenario, recipe)) for recipe in (one, other)]
    names = sorted({name for _, needs in wishes for name in needs})
    unlike = [name for name in names if wishes[0][1].get(name) != wishes[1][1].get(name)]
    if unlike:
        needy = next(recipe for recipe, needs in wishes if unlike[0] in needs)
        rest = other if needy is one else one
        values = ", ".join(f"{name} {sent_with(scenario, needy).get(name)}" for name in unlike)
        yield _of_all(
            f"{host} sends {one.name} and {other.name}: {needy.name} needs {values} there, "
            f"and {rest.name} does not: give each its own host"
        )


def _one_browser_per_host(scenario: Scenario) -> Iterator[Fault]:
    """Yield hosts with two browsers: the port of a browser's connection is the host's setting."""
    viewers = [f.dst for f in scenario.flows if f.video and f.video.player is PlayerKind.CHROMIUM]
    for host in {host for host in viewers if viewers.count(host) > 1}:
        yield _of_all(f"{host} has several browsers: one per host")


def _one_recipe_per_receiver(scenario: Scenario) -> Iterator[Fault]:
    """Yield flows whose variants need different settings of one receiver."""
    wishes: dict[tuple[str, str], tuple[str, str]] = {}
    recipes = _recipes(scenario)
    for flow, recipe in recipes:
        for name, value in recipe.receiver.items():
            for other, theirs in recipes:
                sacks = theirs.sender.get("tcp_sack", "1") == "1"
                if other.dst == flow.dst and sacks and theirs.receiver.get(name) != value:
                    wishes[(flow.dst, name)] = (flow.name, other.name)
    for (host, name), (one, another) in wishes.items():
        yield _of_all(
            f"{one} needs another {name} at {host} than {another}: give them receivers of their own"
        )


def _recipes(scenario: Scenario) -> list[tuple[Flow, variants.Variant]]:
    recipes = []
    for flow in scenario.flows:
        with contextlib.suppress(UsageError):  # already reported as a fault of the flow
            if flow.protocol == "tcp" and flow.variant is not None:
                recipes.append((flow, variants.variant(flow.variant)))
    return recipes


def _one_route_per_pair(scenario: Scenario) -> Iterator[Fault]:
    """Yield flows that differ in what their route sets."""
    firsts: dict[tuple[str, str], Flow] = {}
    for flow in scenario.flows:
        if flow.protocol == "tcp":
            first = firsts.setdefault((flow.src, flow.dst), flow)
            for name in ROUTE_FIELDS:
                if getattr(first, name) != getattr(flow, name):
                    yield _of_all(f"{first.name} and {flow.name}: one {name} per pair of hosts")


def _one_control_per_route(scenario: Scenario) -> Iterator[Fault]:
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
                yield _of_all(
                    f"{flow.dst} answers {flow.name} with {answer}, and {name} sends "
                    f"{wish} the same way: give them hosts of their own"
                )
