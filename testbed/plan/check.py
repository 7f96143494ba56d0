"""The check of a scenario: all faults are found before anything is done, each with its field.

What concerns one table's rows is checked beside the table (queues, losses, workloads, programs,
videos), what concerns the network in `check_network.py`, and flows in `check_flows.py`.
"""

from __future__ import annotations

from collections.abc import Iterator

from testbed.errors import UsageError, listed
from testbed.plan.check_flows import MAX_SECONDS, flows_faults, in_range
from testbed.plan.check_network import network_faults
from testbed.plan.control_network import CONTROL
from testbed.plan.delay_links import session_rtt_faults
from testbed.plan.network import Hop, Network, build_network
from testbed.plan.traffic_control import longest_queue_s
from testbed.scenario import queues
from testbed.scenario.model import Flow, FlowKind, Scenario
from testbed.scenario.names import scenario_faults
from testbed.scenario.network import scheduled_rates
from testbed.scenario.trace import trace_summary
from testbed.scenario.transfers import transfer_faults
from testbed.scenario.variations import MAX_NETWORK_JITTER
from testbed.store import WIRES

MAX_SEED = (1 << 32) - 1  # pace.c reads a thousand times it as a double
SNAPLENS = (54, 262_144)  # Ethernet, IP and TCP without options; MAXIMUM_SNAPLEN in tcpdump
LEAST_INTERVAL_MS = 0.1
MOST_SAMPLES = 300_000  # rows of sockets: kept until the end in the 256 MB that a guest has
LONGEST_RTT_S = 60.0  # a listener forgets a SYN after 63 s (tcp_synack_retries)
HANDSHAKES = 2  # round trips before a flow can send


def validate(scenario: Scenario) -> None:
    """Raise one error that lists all faults, if there are any."""
    if found := listed(faults(scenario)):
        raise UsageError(found, "correct these fields of the scenario")


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
    if unsound := listed(network_faults(scenario, (WIRES, CONTROL))):
        yield unsound
        return  # what follows needs the nodes
    yield from _trial_faults(scenario)
    yield from flows_faults(scenario)


def _trial_faults(scenario: Scenario) -> Iterator[str]:
    """Yield what is wrong with the numbers of the whole trial."""
    if not 0 <= scenario.seed <= MAX_SEED:
        yield f"seed: {scenario.seed} is not between 0 and {MAX_SEED}"
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
    if not 0 <= scenario.start_jitter_ms <= 60_000:
        yield f"start_jitter_ms: {scenario.start_jitter_ms:g} is not between 0 and 60000"
    if not 0 <= scenario.network_jitter <= MAX_NETWORK_JITTER:
        yield (
            f"network_jitter: {scenario.network_jitter:g} is not between 0 and {MAX_NETWORK_JITTER}"
        )
    if not 0 <= scenario.measure_from_s < scenario.duration_s:
        yield (
            f"measure_from_s: {scenario.measure_from_s:g} is not within the trial's "
            f"{scenario.duration_s:g} s"
        )


def _whole_faults(scenario: Scenario) -> Iterator[str]:
    """Yield what only the whole network shows: limits in bytes, drain times, round trips, rows of
    samples."""
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
    if flow.kind is FlowKind.CBR:
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
