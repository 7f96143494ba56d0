"""Rough estimates of a trial: its wall time in the guest, the packets of its flows, and its disk.

The time is corrected by earlier trials' times on this machine.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import json
import math
import re
import statistics
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from testbed.errors import UsageError
from testbed.machine.atomic import replace
from testbed.machine.journal import state_folder
from testbed.plan.flows import cbr_gap_ns
from testbed.plan.host_settings import browsers
from testbed.plan.network import Hop
from testbed.plan.plan import Plan, TrafficPlan, plan_traffic
from testbed.scenario.losses import Loss
from testbed.scenario.model import Flow, FlowKind, Scenario
from testbed.scenario.network import FRAME_BYTES
from testbed.scenario.transfers import SEGMENT_BYTES
from testbed.scenario.video import LADDER, PLAYER_RULES, Viewing
from testbed.video_site import Transport

TIME_UNITS = {"s": 1.0, "min": 60.0, "h": 3600.0}
SPENT_PART = 0.8  # of the time that is left: what the next trials may be expected to take


def budget_s(text: str) -> float:
    """Read `30min`."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)(s|min|h)", text)
    if not match or not float(match[1]):
        raise UsageError(f"--budget {text}: not a time", "e.g. --budget 30min; also s and h")
    return float(match[1]) * TIME_UNITS[match[2]]


BOOT_S = 1.0
PACKET_S = 80e-6  # wall time per data packet and its ACK, including captures
SAMPLE_S = 80e-6
IPERF3_S = 0.1  # to start and end a flow's iperf3
PROGRAMS_S = 1.5  # to start a video's server and player; aioquic takes the same again
QUIC_COST = 3  # cost of a packet relative to TCP, as two programs process it instead of the kernel
BROWSER_S = 12.0  # to start a browser
SHOWN_S = 0.4  # per second of video in a browser
PAGE_BITS = 8e6  # loaded by a viewer before the video
ACKS_PER_PACKET = 0.5
ACK_BYTES = 66
CAPTURE_BLOCK_BYTES = 32  # around each packet in pcapng
SOCKET_SAMPLE_BYTES = 130
QUEUE_SAMPLE_BYTES = 70


def _history() -> Path:
    return state_folder() / "speed.json"


def pace() -> float:
    """Return actual over estimated time of earlier trials on this machine; 1 if none has run."""
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        return float(json.loads(_history().read_text())["guest"])
    return 1.0


def learn(trials: Iterable[tuple[Plan, Scenario, float]]) -> None:
    """Update the correction from finished guest trials and their wall times in seconds."""
    ratios = [wall_s / _seconds(plan, scenario) for plan, scenario, wall_s in trials]
    if ratios:
        _history().parent.mkdir(parents=True, exist_ok=True)
        # a moving average, since the machine may have been busy
        known = pace() if _history().exists() else statistics.median(ratios)
        text = json.dumps({"guest": (known + statistics.median(ratios)) / 2})
        replace(_history(), lambda path: path.write_text(text), private=True)


def guest_seconds(plan: Plan, scenario: Scenario) -> float:
    """Estimate a trial's wall time on one core."""
    return all_guest_seconds([(plan, scenario)])


def all_guest_seconds(trials: Iterable[tuple[Plan | TrafficPlan, Scenario]]) -> float:
    """Estimate the wall time of several trials one after the other."""
    return pace() * sum(_seconds(plan, scenario) for plan, scenario in trials)


def guest_seconds_of(scenarios: Iterable[Scenario]) -> float:
    """Estimate the wall time of several scenarios; those that differ in variants share a plan."""
    plans: dict[str, TrafficPlan] = {}
    trials = []
    for each in scenarios:
        flows = tuple(dataclasses.replace(flow, variant=None) for flow in each.flows)
        cell = repr(dataclasses.replace(each, flows=flows, label="", axes={}))
        if cell not in plans:
            plans[cell] = plan_traffic(each)
        trials.append((plans[cell], each))
    return all_guest_seconds(trials)


def _seconds(plan: Plan | TrafficPlan, scenario: Scenario) -> float:
    videos = [flow.video for flow in scenario.flows if flow.video]
    quic = sum(video.transport is Transport.QUIC for video in videos)
    shown = [flow.video for flow in browsers(scenario) if flow.video]
    iperf3 = sum(flow.kind in (FlowKind.TCP, FlowKind.CBR) for flow in scenario.flows)
    return (
        BOOT_S
        + PROGRAMS_S * (len(videos) + quic)
        + sum(BROWSER_S + SHOWN_S * video.length_s for video in shown)
        + IPERF3_S * iperf3
        + PACKET_S * (QUIC_COST if quic else 1) * sum(data_packets(plan, scenario))
        + SAMPLE_S * _sample_count(plan, scenario)
    )


def data_packets(plan: Plan | TrafficPlan, scenario: Scenario) -> list[float]:
    """Estimate each flow's data packets: all that it has to send, or its fair share of the links.

    Flows with little to send come first, and leave the rest of their shares to the others.
    """
    paths = [_shaped(plan, flow) for flow in scenario.flows]
    most = [_most_packets(plan, scenario, flow) for flow in scenario.flows]
    stop_s = max(each.stop_s for each in plan.flows)
    left = {place: _link_packets(hop, 0, stop_s) for path in paths for place, hop in path.items()}
    users = Counter(place for path in paths for place in path)
    sent = dict[int, float]()
    for flow in sorted(range(len(paths)), key=most.__getitem__):
        sent[flow] = min([most[flow], *(left[place] / users[place] for place in paths[flow])])
        for place in paths[flow]:
            left[place] -= sent[flow]
            users[place] -= 1
    return [sent[flow] for flow in range(len(paths))]


def _shaped(plan: Plan | TrafficPlan, flow: Flow) -> dict[tuple[str, str], Hop]:
    """Return the hops of a flow's path that have a rate, by their interfaces."""
    path = plan.network.path(flow.src, flow.dst)
    return {hop.out.place: hop for hop in path if hop.is_shaped}


def _link_packets(hop: Hop, start_s: float, stop_s: float) -> float:
    """Return the full frames that a link can send between two times."""
    rates = [*hop.rates_mbit, (math.inf, 0.0)]
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
    return (size + _sample_count(plan, scenario) * sampled) / 1e6


def _sample_count(plan: Plan | TrafficPlan, scenario: Scenario) -> float:
    """Return how many times each socket and each queue is sampled."""
    interval_s = scenario.sample_interval_ms / 1e3
    return plan.end_s / interval_s if interval_s else 0
