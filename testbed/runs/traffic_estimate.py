"""Rough estimates of the packets that a trial's flows send, and of the disk that they take."""

from __future__ import annotations

import itertools
import math
from collections import Counter

from testbed.plan.flows import cbr_gap_ns
from testbed.plan.network import Hop
from testbed.plan.plan import Plan, TrafficPlan
from testbed.scenario.losses import Loss
from testbed.scenario.model import Flow, Scenario
from testbed.scenario.network import FRAME_BYTES, scheduled_rates
from testbed.scenario.transfers import SEGMENT_BYTES
from testbed.scenario.video import LADDER, PLAYER_RULES, Viewing

PAGE_BITS = 8e6  # loaded by a viewer before the video
ACKS_PER_PACKET = 0.5
ACK_BYTES = 66
CAPTURE_BLOCK_BYTES = 32  # around each packet in pcapng
SOCKET_SAMPLE_BYTES = 130
QUEUE_SAMPLE_BYTES = 70


def data_packets(plan: Plan | TrafficPlan, scenario: Scenario) -> list[float]:
    """Estimate each flow's data packets: all that it has to send, or its fair share of the links.

    Flows with little to send leave the rest of their shares to the others (max-min fairness).
    """
    paths = [_shaped(plan, flow) for flow in scenario.flows]
    most = [_most_packets(plan, scenario, flow) for flow in scenario.flows]
    stop_s = max(each.stop_s for each in plan.flows)
    left = {place: _link_packets(hop, 0, stop_s) for path in paths for place, hop in path.items()}
    sent = [0.0] * len(paths)
    waiting = set(range(len(paths)))
    while waiting:
        users = Counter(place for flow in waiting for place in paths[flow])
        shares = {place: left[place] / count for place, count in users.items()}
        share = min(shares.values(), default=math.inf)
        settled = {flow for flow in waiting if most[flow] <= share}
        if not settled:
            full = {place for place, each in shares.items() if each <= share}
            settled = {flow for flow in waiting if not full.isdisjoint(paths[flow])}
        for flow in settled:
            sent[flow] = min(most[flow], share)
            for place in paths[flow]:
                left[place] -= sent[flow]
        waiting -= settled
    return sent


def _shaped(plan: Plan | TrafficPlan, flow: Flow) -> dict[tuple[str, str], Hop]:
    """Return the hops of a flow's path that have a rate, by their interfaces."""
    path = plan.network.path(flow.src, flow.dst)
    return {hop.out.place: hop for hop in path if hop.is_shaped}


def _link_packets(hop: Hop, start_s: float, stop_s: float) -> float:
    """Return the full frames that a link can send between two times."""
    rates = [*scheduled_rates(hop.rate_changes, hop.rate_mbit), (math.inf, 0.0)]
    megabits = sum(
        rate * max(0.0, min(next_s, stop_s) - max(at_s, start_s))
        for (at_s, rate), (next_s, _) in itertools.pairwise(rates)
    )
    return megabits * 1e6 / (8 * FRAME_BYTES)


def _most_packets(plan: Plan | TrafficPlan, scenario: Scenario, flow: Flow) -> float:
    """Bound a flow's data packets by its path, its time, its losses and what it has to send."""
    planned = plan.flow(flow.name)
    hops = _shaped(plan, flow).values()
    # where no link of the path has a rate, the flow is taken to be as fast as the bottleneck
    bottleneck = 1e6 * scenario.network.bottleneck_mbit / (8 * FRAME_BYTES)
    start_s, stop_s = planned.start_s, planned.stop_s
    bounds = [_link_packets(hop, start_s, stop_s) for hop in hops]
    bounds = bounds or [bottleneck * (stop_s - start_s)]
    rtt_ms = plan.network.path_rtt_ms(flow.src, flow.dst)
    if flow.loss and rtt_ms and (rate := _event_rate(flow.loss)):
        # the square-root law (Mathis and others, 1997)
        bounds.append((stop_s - start_s) / (rtt_ms / 1e3) * math.sqrt(1.5 / rate))
    if flow.bytes is not None:
        bounds.append(flow.bytes / SEGMENT_BYTES)
    if flow.rate_mbit is not None:
        bounds.append(_cbr_packets(flow, stop_s - start_s))
    if flow.video is not None:
        bounds.append(_video_bits(flow.video) / (8 * FRAME_BYTES))
    if planned.datagrams:
        bounds.append(len(planned.datagrams))
    if flow.workload is not None and flow.workload.arrivals.sessions is None:
        bounds.append(sum(math.ceil(each.size / SEGMENT_BYTES) for each in planned.transfers))
    return min(bounds)


def _event_rate(loss: Loss) -> float:
    """Return the approximate rate of loss events per packet."""
    if loss.events is not None:
        return loss.events.rate
    assert loss.gilbert_elliott is not None
    return loss.gilbert_elliott.loss_rate


def _cbr_packets(flow: Flow, seconds: float) -> float:
    """Return the packets that a flow of constant bit rate sends, its pauses left out."""
    busy = flow.on_s / (flow.on_s + flow.off_s) if flow.on_s and flow.off_s else 1.0
    return busy * seconds * 1e9 / cbr_gap_ns(flow)


def _video_bits(video: Viewing) -> float:
    """Return the bits of a video and its page, at the highest bitrate that may be chosen."""
    rates = [rung.bit_per_s for rung in LADDER if video.rule in (*PLAYER_RULES, rung.name)]
    return PAGE_BITS + max(rates) * video.length_s


def disk_mb(plan: Plan, scenario: Scenario) -> float:
    """Estimate the size of a trial's captures and samples in MB."""
    data_bytes = min(scenario.snaplen_bytes, FRAME_BYTES) + CAPTURE_BLOCK_BYTES
    packet_bytes = data_bytes + ACKS_PER_PACKET * (ACK_BYTES + CAPTURE_BLOCK_BYTES)
    captured = {(each.node, each.interface) for each in plan.captures}
    size = 0.0
    for flow, packets in zip(scenario.flows, data_packets(plan, scenario), strict=True):
        path = plan.network.path(flow.src, flow.dst)
        crossed = {end.place for hop in path for end in (hop.out, hop.into)}
        size += packets * packet_bytes * len(captured & crossed)
    lasting = sum(flow.bytes is None for flow in scenario.flows)  # others' sockets close early
    queues = sum(each.sampled for each in plan.queues)
    sampled = lasting * SOCKET_SAMPLE_BYTES + queues * QUEUE_SAMPLE_BYTES
    return (size + sample_count(plan, scenario) * sampled) / 1e6


def sample_count(plan: Plan | TrafficPlan, scenario: Scenario) -> float:
    """Return how many times each socket and each queue is sampled."""
    interval_s = scenario.sample_interval_ms / 1e3
    return plan.end_s / interval_s if interval_s else 0
