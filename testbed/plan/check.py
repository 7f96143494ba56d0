"""The check of a scenario: all faults are found before anything is done, each with its field.

What a field can be by itself stands at the field. What the fields of an object must be together
is checked beside its class (queues, losses, workloads, programs, videos), what concerns the network
in `check_network.py`, and flows in `check_flows.py`.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence

from testbed.faults import Fault, of_axes, usage_error, without_consequences
from testbed.plan.check_flows import flows_faults
from testbed.plan.check_network import network_faults
from testbed.plan.control_network import CONTROL
from testbed.plan.delay_links import session_rtt_faults
from testbed.plan.host_settings import marks, tcp_flows
from testbed.plan.network import Hop, Network, build_network, radio_of
from testbed.plan.traffic_control import longest_queue_s
from testbed.scenario import queues
from testbed.scenario.model import Flow, FlowKind, Scenario
from testbed.scenario.network import HEADERS_BYTES, MAX_SECONDS
from testbed.scenario.reading import field_faults
from testbed.scenario.trace import trace_summary
from testbed.scenario.transfers import transfer_faults
from testbed.scenario.variations import exact_delays
from testbed.store.names import DELAY_NODE

MAX_SAMPLES = 300_000  # rows of sockets: kept until the end in the 256 MB that a guest has
MAX_RTT_S = 60.0  # a listener forgets a SYN after 63 s (tcp_synack_retries)
HANDSHAKES = 2  # round trips before a flow can send
SHORT_BUFFER_BDP = 0.9
PACED = ("bbr", "prague")  # beginnings of controls that always pace
TICK_MS = 4  # of the guest's kernel and of Debian's (HZ 250)
MIN_IPV6_SNAPLEN = 14 + 40 + 20
MIN_CABLE_RTT_MS = 0.05  # of a laboratory's cable with the hosts at its ends


def validate(scenario: Scenario) -> None:
    """Raise one error that lists all faults, if there are any."""
    if axis_faults := of_axes(faults(scenario), scenario.axes):
        raise usage_error(axis_faults)


def faults(scenario: Scenario) -> list[Fault]:
    """Return every fault of a scenario, whoever made it."""
    sound, of_fields = field_faults(scenario)
    return [*of_fields, *combined_faults(sound, of_fields)]


def combined_faults(scenario: Scenario | None, of_fields: Sequence[Fault]) -> list[Fault]:
    """Return the faults that several fields have together, where each is sound by itself.

    Without those that may follow from a fault of a single field, which has another value here.
    """
    if scenario is None:
        return []
    of_network = network_faults(scenario, (DELAY_NODE, CONTROL))
    of_flows = [
        *_measured_faults(scenario),
        *_snaplen_faults(scenario),
        *flows_faults(scenario),
    ]
    faults_found = [*of_network, *of_flows]
    if not (of_network or of_fields):
        built = build_network(scenario.network)
        faults_found += _whole_faults(scenario, built)
        if not of_flows:
            faults_found += _traffic_faults(scenario, built)
    return without_consequences(faults_found, of_fields)


def _measured_faults(scenario: Scenario) -> Iterator[Fault]:
    if scenario.measure_from_s >= scenario.duration_s:
        length = f"the trial's {scenario.duration_s:g} s"
        hint = f"measure_from_s takes seconds from 0 to {scenario.duration_s:g}"
        message = f"{scenario.measure_from_s:g} is not within {length}"
        yield Fault(("measure_from_s",), message, hint)


def _snaplen_faults(scenario: Scenario) -> Iterator[Fault]:
    versions = {flow.ip or scenario.network.ip for flow in scenario.flows}
    if 6 in versions and scenario.snaplen_bytes < MIN_IPV6_SNAPLEN:
        hint = f"snaplen_bytes takes bytes from {MIN_IPV6_SNAPLEN} on"
        message = f"{scenario.snaplen_bytes} does not hold IPv6's header and TCP's"
        yield Fault(("snaplen_bytes",), message, hint)


def _whole_faults(scenario: Scenario, built: Network) -> Iterator[Fault]:
    """Yield the faults that only the whole network shows: of limits in bytes, and of samples."""
    for hop in built.shaped:
        yield from (Fault((hop.out.name,), message) for message in _queue_faults(hop))
    yield from _sample_faults(scenario, longest_queue_s(built))


def _traffic_faults(scenario: Scenario, built: Network) -> Iterator[Fault]:
    """Yield the faults that flows have on the whole network: of round trips, and of transfers."""
    for index, flow in enumerate(scenario.flows):
        message = _round_trip_faults(scenario, built, flow)
        yield from (Fault(("flows", index), each) for each in message)
    yield from session_rtt_faults(scenario, built)
    yield from transfer_faults(scenario)


def _queue_faults(hop: Hop) -> Iterator[str]:
    yield from queues.refusals(hop.queue, hop.full, hop.rate_mbit)
    for change, queue, limit in hop.changed_queues:
        for message in queues.refusals(queue, limit, hop.rate_mbit):
            yield f"from {change.at_s:g} s on: {message}"
    drain_s = hop.drain_s
    if drain_s > MAX_SECONDS:
        yield (
            f"its queue of {hop.full.bytes} B would take {drain_s:.3g} s to drain at "
            f"{_speed(hop)}, and a trial waits for it; at most {MAX_SECONDS:g}"
        )


def _speed(hop: Hop) -> str:
    if hop.direction.trace is not None:
        return trace_summary(hop.direction.trace)
    return f"{min(rate for _, rate in hop.rates_mbit):g} Mbit/s"


def _round_trip_faults(scenario: Scenario, built: Network, flow: Flow) -> Iterator[str]:
    """Yield a flow whose connection would not be open before its end."""
    if flow.kind in (FlowKind.CBR, FlowKind.CALL):
        return
    rtt_s = built.path_rtt_ms(flow.src, flow.dst) / 1e3
    if rtt_s > MAX_RTT_S:
        yield f"no connection opens over a round trip of {rtt_s:g} s ({MAX_RTT_S:g})"
    time_s = scenario.stop_s(flow) - flow.start_s - scenario.start_jitter_ms / 1e3
    if HANDSHAKES * rtt_s > time_s:
        yield (
            f"{time_s:g} s are too short for a round trip of {rtt_s:g} s: "
            f"at least {HANDSHAKES * rtt_s:g} s"
        )


def _sample_faults(scenario: Scenario, drain_s: float) -> Iterator[Fault]:
    if not scenario.sample_interval_ms:
        return
    connections = sum(flow.parallel for flow in scenario.flows)
    sampled_s = scenario.duration_s + drain_s
    rows = sampled_s * 1e3 / scenario.sample_interval_ms * connections
    if rows > MAX_SAMPLES:
        message = (
            f"{scenario.sample_interval_ms:g} makes {rows:.3g} rows of {connections} connections "
            f"in {sampled_s:.6g} s, drained queues included; at most {MAX_SAMPLES}: take a longer "
            "interval"
        )
        longer_ms = math.ceil(scenario.sample_interval_ms * rows / MAX_SAMPLES)
        yield Fault(("sample_interval_ms",), message, f"--set sample_interval_ms={longer_ms}")


def warnings(
    scenario: Scenario, network: Network, one_segment: Collection[tuple[str, str]]
) -> Iterator[str]:
    """Yield what a user should know of a scenario without faults before it runs."""
    yield from _queue_warnings(network, sum(flow.parallel for flow in scenario.flows))
    yield from _no_round_trip(scenario, network)
    yield from _unmarked(scenario)
    yield from _too_fast(scenario, network)
    yield from _slower_links(scenario, network)
    yield from _cut_headers(scenario)
    yield from _coarse_timers(scenario)
    yield from _single_segments(scenario, network, one_segment)
    yield from _stale_limits(network)
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
                f"the guest: give a link that of a cable (delay_ms, {MIN_CABLE_RTT_MS:g} or more)"
            )


def _single_segments(
    scenario: Scenario, network: Network, one_segment: Collection[tuple[str, str]]
) -> Iterator[str]:
    """Yield flows that pace into an interface to which TCP may not hand several at once."""
    for flow, recipe in tcp_flows(scenario):
        first = network.path(flow.src, flow.dst)[0].out
        if first.place in one_segment and recipe.control.startswith(PACED):
            yield (
                f"{flow.name}: {first.name} has a rate, so that {recipe.name} paces single "
                "segments, and two or more elsewhere: give the rate to a link behind a router"
            )


def _coarse_timers(scenario: Scenario) -> Iterator[str]:
    """Yield flows whose least timeout the kernel's ticks make more than a tenth longer."""
    for flow in scenario.flows:
        if flow.rto_min_ms is None:
            continue
        least = math.ceil(flow.rto_min_ms / TICK_MS) * TICK_MS
        if least + TICK_MS > 1.1 * flow.rto_min_ms:
            yield (
                f"{flow.name}: rto_min_ms: {flow.rto_min_ms} is {least} ms, and up to {TICK_MS} ms "
                f"more: the kernel's timers count ticks of {TICK_MS} ms"
            )


def _stale_limits(network: Network) -> Iterator[str]:
    """Yield limits in BDP that are of another one once the rate has changed."""
    for hop in network.shaped:
        if hop.queue.limit_bdp is None:
            continue
        rates = {rate for _, rate in hop.rates_mbit}
        for rate in sorted(rates - {hop.rate_mbit}):
            yield (
                f"{hop.out.name}: its limit of {hop.queue.limit_bdp:g} BDP is that of "
                f"{hop.rate_mbit:g} Mbit/s, and {hop.queue.limit_bdp * hop.rate_mbit / rate:.2g} "
                f"BDP at {rate:g} Mbit/s"
            )


def _cut_headers(scenario: Scenario) -> Iterator[str]:
    """Yield that captures may cut the options of TCP, without which columns are empty."""
    versions = {f.ip or scenario.network.ip for f in scenario.flows if f.protocol == "tcp"}
    least = max((HEADERS_BYTES[each] for each in versions), default=0)
    if scenario.captures and scenario.snaplen_bytes < least:
        yield (
            f"snaplen_bytes: {scenario.snaplen_bytes} may cut options of TCP, so that round trips, "
            f"duplicate ACKs and what else Wireshark tells are not known: {least} cuts none"
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
    slower: dict[str, None] = {}
    for flow in scenario.flows:
        shaped = [hop for hop in network.path(flow.src, flow.dst) if hop.is_shaped]
        observed = min((hop.rate_mbit for hop in shaped if hop.is_observed), default=math.inf)
        slower |= {
            hop.out.name: None
            for hop in shaped
            if not hop.is_observed and hop.rate_mbit < observed < math.inf
        }
    for interface in slower:
        yield f"{interface} is slower than the bottleneck: the queue forms there instead"
