"""The check of a scenario: all faults are found before anything is done, each with its field.

What concerns one table's rows is checked beside the table (queues, losses, workloads, programs,
videos), what concerns the network in `check_network.py`, and flows in `check_flows.py`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from testbed.errors import UsageError, listed, range_faults
from testbed.plan.check_flows import MAX_SECONDS, flows_faults, in_range
from testbed.plan.check_network import network_faults
from testbed.plan.control_network import CONTROL
from testbed.plan.delay_links import session_rtt_faults
from testbed.plan.host_settings import marks, tcp_flows
from testbed.plan.network import Hop, Network, build_network, radio_of
from testbed.plan.traffic_control import longest_queue_s
from testbed.scenario import queues
from testbed.scenario.fault_hints import hint_of, of_axes
from testbed.scenario.model import Flow, FlowKind, Scenario
from testbed.scenario.names import scenario_faults
from testbed.scenario.network import scheduled_rates
from testbed.scenario.trace import trace_summary
from testbed.scenario.transfers import transfer_faults
from testbed.scenario.variations import MAX_NETWORK_JITTER, MAX_SERVICE_TIMES, exact_delays
from testbed.store import WIRES

MAX_SEED = (1 << 32) - 1  # pace.c reads a thousand times it as a double
SNAPLENS = (54, 262_144)  # Ethernet, IP and TCP without options; MAXIMUM_SNAPLEN in tcpdump
LEAST_INTERVAL_MS = 0.1
MOST_SAMPLES = 300_000  # rows of sockets: kept until the end in the 256 MB that a guest has
LONGEST_RTT_S = 60.0  # a listener forgets a SYN after 63 s (tcp_synack_retries)
HANDSHAKES = 2  # round trips before a flow can send
SHORT_BUFFER_BDP = 0.9
SHORTEST_MS = 0.05  # of a laboratory's cable with the hosts at its ends


def validate(scenario: Scenario) -> None:
    """Raise one error that lists all faults, if there are any."""
    if found := of_axes(list(faults(scenario)), scenario.axes):
        raise UsageError(listed(found), hint_of(found))


def faults(scenario: Scenario) -> Iterator[str]:
    """Yield every fault; those of the whole network when every number is sound by itself."""
    sound = True
    for fault in _field_faults(scenario):
        sound = False
        yield fault
    if sound:
        yield from _whole_faults(scenario)


def _field_faults(scenario: Scenario) -> Iterator[str]:
    yield from scenario_faults(scenario)
    yield from in_range("duration_s", scenario.duration_s, 0, MAX_SECONDS)
    if unsound := network_faults(scenario, (WIRES, CONTROL)):
        yield from unsound
        return  # what follows needs the nodes
    yield from _trial_faults(scenario)
    yield from flows_faults(scenario)


def _trial_faults(scenario: Scenario) -> Iterator[str]:
    """Yield what is wrong with the numbers of the whole trial."""
    yield from range_faults("seed", scenario.seed, 0, MAX_SEED)
    low, high = SNAPLENS
    if not low <= scenario.snaplen_bytes <= high:
        yield (
            f"snaplen_bytes: {scenario.snaplen_bytes} is not between {low}, which holds the "
            f"headers, and {high}, tcpdump's most"
        )
    if len(set(scenario.captures)) < len(scenario.captures):
        yield "captures: a point is named twice"
    interval_ms = scenario.sample_interval_ms
    if interval_ms and not LEAST_INTERVAL_MS <= interval_ms <= 60_000:
        yield (
            f"sample_interval_ms: {interval_ms:g} is neither 0 nor between {LEAST_INTERVAL_MS:g} "
            "and 60000"
        )
    yield from range_faults("start_jitter_ms", scenario.start_jitter_ms, 0, 60_000)
    yield from range_faults("network_jitter", scenario.network_jitter, 0, MAX_NETWORK_JITTER)
    service_times = scenario.drawn_service_times
    yield from range_faults("drawn_service_times", service_times, 0, MAX_SERVICE_TIMES)
    if not 0 <= scenario.measure_from_s < scenario.duration_s:
        yield (
            f"measure_from_s: {scenario.measure_from_s:g} is not within the trial's "
            f"{scenario.duration_s:g} s"
        )


def _whole_faults(scenario: Scenario) -> Iterator[str]:
    """Yield the faults that only the whole network shows.

    These concern limits in bytes, drain times, round trips and rows of samples.
    """
    built = build_network(scenario.network)
    for hop in built.shaped:
        yield from (f"{hop.out.name}: {fault}" for fault in _queue_faults(hop))
    for index, flow in enumerate(scenario.flows):
        yield from _round_trip_faults(scenario, built, flow, f"flows[{index}]")
    yield from _sample_faults(scenario, longest_queue_s(built))
    yield from session_rtt_faults(scenario, built)
    yield from transfer_faults(scenario)


def _queue_faults(hop: Hop) -> Iterator[str]:
    yield from queues.refusals(hop.queue, hop.full, hop.rate_mbit)
    drain_s = hop.drain_s
    if drain_s > MAX_SECONDS:
        yield (
            f"its queue of {hop.full.bytes} B would take {drain_s:.3g} s to drain at "
            f"{_speed(hop)}, and a trial waits for it; at most {MAX_SECONDS:g}"
        )


def _speed(hop: Hop) -> str:
    if hop.direction.trace is not None:
        return trace_summary(hop.direction.trace)
    return f"{min(rate for _, rate in scheduled_rates(hop.rate_changes, hop.rate_mbit)):g} Mbit/s"


def _round_trip_faults(scenario: Scenario, built: Network, flow: Flow, where: str) -> Iterator[str]:
    """Yield a flow whose connection would not be open before its end."""
    if flow.kind in (FlowKind.CBR, FlowKind.CALL):
        return
    rtt_s = built.path_rtt_ms(flow.src, flow.dst) / 1e3
    if rtt_s > LONGEST_RTT_S:
        yield f"{where}: no connection opens over a round trip of {rtt_s:g} s ({LONGEST_RTT_S:g})"
    time_s = scenario.stop_s(flow) - flow.start_s - scenario.start_jitter_ms / 1e3
    if HANDSHAKES * rtt_s > time_s:
        yield (
            f"{where}: {time_s:g} s are too short for a round trip of {rtt_s:g} s: "
            f"at least {HANDSHAKES * rtt_s:g} s"
        )


def _sample_faults(scenario: Scenario, drain_s: float) -> Iterator[str]:
    if not scenario.sample_interval_ms:
        return
    connections = sum(flow.parallel for flow in scenario.flows)
    sampled_s = scenario.duration_s + drain_s
    rows = sampled_s * 1e3 / scenario.sample_interval_ms * connections
    if rows > MOST_SAMPLES:
        yield (
            f"sample_interval_ms: {scenario.sample_interval_ms:g} makes {rows:.3g} rows of "
            f"{connections} connections in {sampled_s:.6g} s, drained queues included; at most "
            f"{MOST_SAMPLES}: take a longer interval"
        )


def warnings(scenario: Scenario, network: Network) -> Iterator[str]:
    """Yield what a user should know of a scenario without faults before it runs."""
    yield from _queue_warnings(network, sum(flow.parallel for flow in scenario.flows))
    yield from _no_round_trip(scenario, network)
    yield from _unmarked(scenario)
    yield from _too_fast(scenario, network)
    yield from _slower_links(scenario, network)
    if exact := exact_delays(scenario):
        yield exact


def _no_round_trip(scenario: Scenario, network: Network) -> Iterator[str]:
    """Yield flows whose path has no delay, and no link that takes time to send a packet.

    In the guest no time passes then between handshake and data: the bucket of an htb has not
    refilled, and the first sample of the round trip is only of what waits there.
    """
    for flow in scenario.flows:
        hops = (*network.path(flow.src, flow.dst), *network.path(flow.dst, flow.src))
        if not any(h.link.both_delays_ms or radio_of(h.link) or h.is_exact for h in hops):
            yield (
                f"{flow.name}: its path has no delay, so its first round trip takes no time in "
                f"the guest: give a link that of a cable (delay_ms, {SHORTEST_MS:g} or more)"
            )


def _unmarked(scenario: Scenario) -> Iterator[str]:
    """Yield flows whose variant needs marks, where no queue sets any."""
    if not marks(scenario):
        for flow, recipe in tcp_flows(scenario):
            if recipe.by_marks:
                yield (
                    f"{flow.name}: {recipe.name} goes by marks, and the bottleneck's queue sets "
                    "none: give it a queue with ecn (codel, fq_codel, red, …)"
                )


def _queue_warnings(network: Network, flows: int) -> Iterator[str]:
    """Yield the warnings about observed queues, each once with all its interfaces."""
    places: dict[str, list[str]] = {}
    for hop in network.shaped:
        if hop.is_observed:
            for warning in (*_short_buffer(hop, flows), *queues.warnings(hop.queue, hop.full)):
                places.setdefault(warning, []).append(hop.out.name)
    for warning, interfaces in places.items():
        yield f"{', '.join(interfaces)}: {warning}"


def _short_buffer(hop: Hop, flows: int) -> Iterator[str]:
    """Yield a warning for one flow behind a short buffer, beyond what whole packets round off."""
    if hop.full.bdp is not None and hop.full.bdp < SHORT_BUFFER_BDP and flows == 1:
        yield f"the buffer is {hop.full.bdp:.2f} BDP: one flow may not fill the link"


def _too_fast(scenario: Scenario, network: Network) -> Iterator[str]:
    """Yield CBR flows that alone are more than a link of their path carries."""
    for flow in scenario.flows:
        observed = [hop for hop in network.path(flow.src, flow.dst) if hop.is_observed]
        slowest = min((hop.rate_mbit for hop in observed), default=math.inf)
        if flow.rate_mbit is not None and flow.rate_mbit > slowest:
            yield (
                f"{flow.name}: {flow.rate_mbit:g} Mbit/s into a bottleneck of "
                f"{slowest:g} Mbit/s: most of the rest is lost"
            )


def _slower_links(scenario: Scenario, network: Network) -> Iterator[str]:
    """Yield unobserved links that are slower than the observed ones of their path."""
    found: dict[str, None] = {}
    for flow in scenario.flows:
        shaped = [hop for hop in network.path(flow.src, flow.dst) if hop.is_shaped]
        observed = min((hop.rate_mbit for hop in shaped if hop.is_observed), default=math.inf)
        found |= {
            hop.out.name: None
            for hop in shaped
            if not hop.is_observed and hop.rate_mbit < observed < math.inf
        }
    for interface in found:
        yield f"{interface} is slower than the bottleneck: the queue forms there instead"
