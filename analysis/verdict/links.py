"""Checks of links: delays, losses, packets that overtake, and radio links as configured."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from analysis.captures.packet_matching import differences, overtakers
from analysis.captures.tcp import PacketArrays
from analysis.trials.documents import Counters, read_trial_document
from analysis.trials.injected import Injected
from analysis.trials.packets import BEFORE, BEHIND, capture_interface, queue_roles
from analysis.trials.samples import frames_lost, read_medium, read_samples
from analysis.verdict.checks import (
    NOT_CAPTURED,
    NOT_RECORDED,
    NOT_SAMPLED,
    Check,
    make_check,
    same,
    unknown,
    unverified,
)
from analysis.verdict.evidence import Evidence
from testbed.scenario.network import Direction
from testbed.scenario.queues import polices
from testbed.store.names import COUNTERS_FILE, IDLE_RTTS
from testbed.store.records import FlowRecord

IDLE_ECHO_BYTES = 98  # of the requests of a trial's idle path
BY_CHANCE = "losses by chance"
Frames = TypeVar("Frames", float, npt.NDArray[np.float64])
NO_MEDIUM_REPORT = "the medium left no report"


def idle(evidence: Evidence) -> Iterator[Check]:
    """Check the paths' delays before the flows, by the echo of each flow that is furthest off.

    In real time the first of a flow's may have no reply: the kernel takes a link that is up into
    service when it comes to that (linkwatch).
    """
    table = read_samples(evidence.trial, IDLE_RTTS)
    if table is None:
        yield unverified("idle RTT", "paths", NOT_RECORDED)
        return
    if not evidence.virtual_time:
        table = table[table["rtt_ms"].notna() | table["flow"].duplicated()]
    for flow, rows in table.groupby("flow", sort=False):
        answered = rows.dropna(subset=["rtt_ms"])
        lossy = "lossy" in rows and bool(rows["lossy"].any())
        if lossy and not len(answered):
            yield unknown("idle RTT", str(flow), "the channel lost every echo request")
            continue
        if len(answered) < len(rows) and not lossy:
            expected = float(rows["expected_ms"].iloc[0])
            note = f"{len(rows) - len(answered)} of {len(rows)} echo requests had no reply"
            yield make_check(
                "idle RTT", str(flow), evidence.virtual_time, math.inf, expected, note=note
            )
            continue
        rtts, expected_ms = (answered[name].to_numpy() for name in ("rtt_ms", "expected_ms"))
        jitter_ms = answered["jitter_ms"].to_numpy()
        if evidence.virtual_time and str(flow) in {each.name for each in evidence.flows}:
            echo_ms, most_ms = _echo_ms(evidence, str(flow))
            expected_ms, jitter_ms = np.full(len(rtts), echo_ms), np.minimum(jitter_ms, most_ms)
        off = np.maximum(0.0, np.abs(rtts - expected_ms) - jitter_ms)
        worst = int(off.argmax())
        rtt, expected = float(rtts[worst]), float(expected_ms[worst])
        yield make_check(
            "idle RTT", str(flow), evidence.virtual_time, rtt, expected, deviation=float(off[worst])
        )


def _echo_ms(evidence: Evidence, name: str) -> tuple[float, float]:
    """Return what an echo takes over a flow's idle path and back, and how much it may vary.

    By the scenario alone, which does not say it of a radio.
    """
    network, flow = evidence.scenario.network, evidence.scenario.flow(name)
    total_ms = jitter_ms = 0.0
    for src, dst in ((flow.src, flow.dst), (flow.dst, flow.src)):
        for number, end in network.steps_from(src)[dst]:
            each = network.links[number].directions[end]
            total_ms += each.delay_ms + (each.hold_us + each.cost_us + each.wake_us) / 1e3
            total_ms += sending_ms(each, IDLE_ECHO_BYTES)
            jitter_ms += each.delay_ms if each.reorder else each.jitter_ms
            jitter_ms += math.inf if each.radio else (each.cost_us + each.wake_us) / 1e3
    return total_ms, jitter_ms


def sending_ms(direction: Direction, frame_bytes: Frames) -> Frames | float:
    """Return how long an exact link sends a frame, or each of several; 0 for any other link."""
    is_policed = direction.queue is not None and polices(direction.queue.discipline)
    if direction.rate_mbit is None or not direction.is_exact or is_policed:
        return 0.0
    return frame_bytes * 8e-3 / direction.rate_mbit


def has_sessions(evidence: Evidence, flow: FlowRecord) -> bool:
    """Return whether a flow is sessions, whose delays are drawn one by one."""
    workload = evidence.trial.scenario.flow(flow.name).workload
    return workload is not None and workload.arrivals.sessions is not None


@dataclass(frozen=True)
class CapturePair:
    """A flow's packets of one direction at two consecutive captures."""

    flow: FlowRecord
    first: str  # interfaces
    second: str
    before: PacketArrays
    after: PacketArrays
    is_queue: bool  # a shaped queue lies between them, which may drop
    to_receiver: bool
    is_data: bool  # of the flow, not what comes back


def capture_pairs(evidence: Evidence, flow: FlowRecord) -> Iterator[CapturePair]:
    """Yield a flow's path in both directions, capture by capture."""
    shaped = {queue.interface for queue in evidence.bottlenecks}
    # where no queue is captured, the hosts' captures are not neighbours
    queues = queue_roles(evidence.trial, flow) or ("bottleneck",)
    path = (
        "sender",
        *(f"{name}{side}" for name in queues for side in (BEFORE, BEHIND)),
        "receiver",
    )
    other_way_back = bool(evidence.trial.scenario.network.routes)  # past none of these captures
    # a flow that starts at the bottleneck has two roles at one capture: the later role counts
    roles = {capture_interface(evidence.trial, role, flow): role for role in path}
    roles.pop("", None)
    for (first, role), (second, next_role) in itertools.pairwise(roles.items()):
        one, other = evidence.packets.part(role, flow), evidence.packets.part(next_role, flow)
        if (role, next_role) not in itertools.pairwise(path) or one is None or other is None:
            continue
        around_queue = role.endswith(BEFORE)
        forward, reverse = (around_queue and name in shaped for name in (second, first))
        last = next_role == "receiver"
        yield CapturePair(flow, first, second, one.data, other.data, forward, last, True)
        if not other_way_back:
            yield CapturePair(flow, second, first, other.acks, one.acks, reverse, False, False)
    sender, receiver = (evidence.packets.part(role, flow) for role in ("sender", "receiver"))
    if other_way_back and sender is not None and receiver is not None:
        first, second = (
            capture_interface(evidence.trial, role, flow) for role in ("receiver", "sender")
        )
        yield CapturePair(flow, first, second, receiver.acks, sender.acks, True, False, False)


def loss(evidence: Evidence) -> Iterator[Check]:
    """Check that links without a queue lose nothing, and that no capture has gaps.

    Packets that queues dropped unseen by any capture at their entrance, and packets that lossy
    channels are configured to lose, are allowed for.
    """
    pairs = []
    for flow in evidence.flows:
        for pair in capture_pairs(evidence, flow):
            lost, stray = differences(pair.before, pair.after, evidence.sure_ns)
            if pair.to_receiver:
                # whether the droppers' own counts are right is another check
                lost = max(0, lost - evidence.injected.behind_queues(pair.flow))
            pairs.append((pair, lost, stray))
    if not pairs:
        yield unknown("loss", "links", NOT_CAPTURED)
        yield unknown("capture gaps", "links", NOT_CAPTURED)
        return
    # a packet that a capture further along has was missed by the first
    strays = [(pair, stray) for pair, _, stray in pairs if stray]
    for pair, stray in strays:
        note = f"{pair.flow.name}: seen at {pair.second}"
        yield make_check("capture gaps", pair.first, evidence.virtual_time, stray, 0, note=note)
    if not strays:
        yield make_check("capture gaps", "links", evidence.virtual_time, 0, 0)
    captured = {
        queue.interface: len(evidence.transits[queue.interface].lost_ns)
        - evidence.injected.at_queue(queue)
        for queue in evidence.bottlenecks
    }
    drops = evidence.disciplines.drops()
    elsewhere = sum(max(0, count - captured.get(name, 0)) for name, count in drops.items())
    elsewhere += evidence.disciplines.lost_by_netem() + frames_lost(evidence.trial)
    links = [(pair, lost) for pair, lost, _ in pairs if not pair.is_queue]
    total = sum(lost for _, lost in links)
    if total <= elsewhere:
        note = f"{total} lost at queues whose entrance is not captured, or by channels"
        note = note if total else ""
        yield make_check("loss", "links", evidence.virtual_time, total, total, note=note)
        return
    for pair, lost in links:
        if lost:
            name = f"{pair.flow.name} {pair.first} to {pair.second}"
            yield make_check("loss", name, evidence.virtual_time, lost, 0)


def damage(evidence: Evidence) -> Iterator[Check]:
    """Check that no host refused a packet for its checksum."""
    counters = read_trial_document(evidence.trial, COUNTERS_FILE, Counters)
    if not counters:
        yield unknown("checksums", "hosts", NOT_SAMPLED)
        return
    counts = {
        node: sum(each.get(f"{protocol}InCsumErrors", 0) for protocol in ("IpExt", "Tcp", "Udp"))
        for node, each in counters.items()
    }
    worst = max(counts, key=counts.__getitem__)
    yield make_check("checksums", worst, evidence.virtual_time, counts[worst], 0)


def overtaking(evidence: Evidence) -> Iterator[Check]:
    """Check that reordering stayed within what netem was configured to do."""
    configured = evidence.disciplines.put_ahead()
    if not configured:
        return
    pairs = [
        pair
        for flow in evidence.flows
        if not has_sessions(evidence, flow)  # each may have another delay
        for pair in capture_pairs(evidence, flow)
        if not pair.is_queue
    ]
    overtook = sum(overtakers(pair.before, pair.after) for pair in pairs)
    ahead = sum(count for _, count, _ in configured)
    over = max(0, overtook - ahead)
    yield make_check("overtaking", "links", evidence.virtual_time, overtook, ahead, deviation=over)
    expected = sum(chance * crossed for chance, _, crossed in configured)
    spread = math.sqrt(sum(chance * (1 - chance) * crossed for chance, _, crossed in configured))
    off = abs(ahead - expected) / spread if spread else abs(ahead - expected)
    note = f"{ahead} of {sum(crossed for *_, crossed in configured)} packets"
    yield make_check("share ahead", "links", evidence.virtual_time, off, 0, note=note)


def losses_by_chance(evidence: Evidence) -> Iterator[Check]:
    """Check that the segments missing behind each dropper are those that it counted.

    Drops by queues in between are allowed for; no segment may come after the dropper's random
    numbers have run out.
    """
    for flow in evidence.flows:
        dropper = evidence.injected.droppers.get(flow.name)
        if dropper is None or not dropper.interface:
            continue
        passed = dropper.undecided
        if passed:
            note = f"{passed} segments passed when the runs had run out"
            name = f"{flow.name} behind its last run"
            yield make_check(BY_CHANCE, name, evidence.virtual_time, passed, 0, note=note)
        yield _missing_segments(evidence, flow, dropper)


def _missing_segments(evidence: Evidence, flow: FlowRecord, dropper: Injected) -> Check:
    before, behind = _roles_around(evidence, flow, dropper)
    one = evidence.packets.part(before, flow) if before else None
    other = evidence.packets.part(behind, flow) if before else None
    if one is None or other is None:
        return unknown(BY_CHANCE, flow.name, NOT_CAPTURED)
    missing, _ = differences(one.data, other.data)
    drops = evidence.disciplines.drops()
    # behind the bottleneck only the access link's own queue drops, of any flow
    by_queues = drops.get(dropper.interface, 0) if before.endswith(BEHIND) else sum(drops.values())
    by_queues += evidence.disciplines.lost_by_netem()
    off = max(0, dropper.dropped - missing, missing - dropper.dropped - by_queues)
    note = f"between {before} and {behind}, where queues and channels dropped {by_queues}"
    return make_check(
        BY_CHANCE,
        flow.name,
        evidence.virtual_time,
        missing,
        dropper.dropped,
        deviation=off,
        note=note if off or by_queues else "",
    )


def _roles_around(evidence: Evidence, flow: FlowRecord, dropper: Injected) -> tuple[str, str]:
    """Return the roles of the captures nearest to a flow's dropper; empty if one is missing.

    A capture on the way out of the dropper's interface comes behind the dropper.
    """
    roles = queue_roles(evidence.trial, flow)
    entered, left = (f"{roles[-1]}{side}" if roles else "" for side in (BEFORE, BEHIND))
    leaving = capture_interface(evidence.trial, left, flow) == dropper.interface
    behind = left if leaving else "receiver"
    for before in (*(() if leaving else (left,)), entered, "sender"):
        name = capture_interface(evidence.trial, before, flow)
        if name and capture_interface(evidence.trial, behind, flow):
            return before, behind
    return "", ""


def radio(evidence: Evidence) -> Iterator[Check]:
    """Check the station's signal, and the other stations' share of the air, of every radio link."""
    for link in evidence.trial.scenario.network.links:
        name, planned = link.name, link.forward.radio
        if planned is None:
            continue
        report = read_medium(evidence.trial)
        if report is None:
            for check in ("radio", "radio share"):
                yield unverified(check, name, NO_MEDIUM_REPORT)
            continue
        state = [f"{report['signal_dbm']} dBm", *([] if report["joined"] else ["left"])]
        yield same("radio", name, ", ".join(state), f"{planned.signal_dbm} dBm")
        share = report["others"]["air_s"] / report["seconds"]
        yield make_check("radio share", name, evidence.virtual_time, share, planned.busy)
