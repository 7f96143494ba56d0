"""Checks that a trial's network and flows are those of its scenario: records, delays, packets."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Iterator, Mapping

import numpy as np
import numpy.typing as npt

from analysis.captures.packet_matching import NOWHERE, pairs
from analysis.captures.tcp import PacketArrays
from analysis.trials.packets import BEFORE, epoch_ns, queue_roles, sender_queue
from analysis.trials.samples import read_samples
from analysis.verdict.checks import NOT_CAPTURED, Check, make_check, same, unknown
from analysis.verdict.evidence import Evidence
from analysis.verdict.iperf3 import COOKIE_BYTES, is_iperf3
from analysis.verdict.links import CapturePair, capture_pairs, has_sessions, sending_ms
from analysis.verdict.sender_queue import own_queue_ns
from testbed.scenario.losses import GilbertElliott
from testbed.scenario.model import Flow, FlowKind, Scenario
from testbed.scenario.network import (
    FRAME_OVERHEAD_BYTES,
    PLAIN_QUEUE,
    Direction,
    Graph,
    Step,
    wire_changes,
)
from testbed.scenario.profiles import PROFILE_SETTINGS
from testbed.scenario.queues import DISCIPLINES, in_own_unit, resolve
from testbed.scenario.variants import variant
from testbed.store.names import LINK_CHANGES
from testbed.store.records import FlowRecord, QueueRecord

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

REQUESTED_EDGE_S = 1e-6  # of a change of delay: which packets it holds for
REQUESTED_OPTION_TOLERANCE = 0.1  # of a queue's option: what tc and the kernel round
REQUESTED_MIN_SEGMENTS = 20  # of a flow before its longest says how long they may be
REQUESTED_OPTION_BYTES = 12  # of TCP's timestamps in each segment, and of accurate ECN's counters
REQUESTED_MIN_DATAGRAMS = 50
REQUESTED_BLOCK_BYTES = 131_072  # of iperf3's over TCP, of which it sends whole ones
REQUESTED_ROUNDED = 1e-6  # seconds or a probability, of what tc shows of netem
REQUESTED_OF_NETEM = {  # where tc shows what, and what that is in a scenario's units
    ("delay", "delay"): 1e3,
    ("delay", "jitter"): 1e3,
    ("reorder", "reorder"): 1,
    **{("loss-gemodel", name): 1 for name in ("p", "r", "1-h", "1-k")},
}
REQUESTED_LONGEST_GAP = 2.5  # even gaps: a longer one is a pause, or a packet that left none


def interfaces(network: Graph) -> Mapping[str, Step]:
    """Return which direction of which link each interface sends to."""
    numbers = network.interface_numbers
    return {
        f"{node}-eth{numbers[number, end]}": (number, end)
        for number, link in enumerate(network.links)
        for end, node in enumerate(link.ends)
    }


# What was set up


def records(evidence: Evidence) -> Iterator[Check]:
    """Check that what the record says was set up is what the scenario says."""
    scenario = evidence.scenario
    sending = interfaces(scenario.network)
    for queue in evidence.trial.record.queues:
        number, end = sending.get(queue.interface, (-1, 0))
        direction = scenario.network.links[number].directions[end] if number >= 0 else Direction()
        expected = _queue_words(scenario.network, direction)
        yield same("scenario", queue.interface, _recorded_words(queue, direction), expected)
        yield from _options(evidence, queue, direction)
    for flow in evidence.flows:
        expected = _flow_words(scenario, flow)
        yield same("scenario", flow.name, _recorded_flow(evidence, flow), expected)
    yield from _settings(evidence, scenario)
    yield from _wires(evidence, scenario.network)
    yield from _changes(evidence, scenario.network)


def _queue_words(network: Graph, direction: Direction) -> str:
    if direction.rate_mbit is None:
        return "no queue"
    queue = direction.queue or PLAIN_QUEUE
    limit = resolve(queue, direction.rate_mbit, network.longest_rtt_ms)
    parts = [f"{direction.rate_mbit:.9g} Mbit/s"] if direction.trace is None else []
    parts += [
        queue.discipline,
        f"{in_own_unit(queue, limit)} {DISCIPLINES[queue.discipline].counts}",
    ]
    parts += ["ECN"] if queue.ecn else []
    parts += [f"{direction.aggregate_packets} at once"] if direction.aggregates else []
    return ", ".join(parts)


def _recorded_words(queue: QueueRecord, direction: Direction) -> str:
    parts = [f"{queue.rate_mbit:.9g} Mbit/s"] if direction.trace is None else []
    parts += [queue.discipline, f"{queue.limit} {queue.unit}"]
    parts += ["ECN"] if queue.ecn else []
    parts += [f"{queue.most_at_once} at once"] if queue.most_at_once > 1 else []
    return ", ".join(parts)


def _options(evidence: Evidence, queue: QueueRecord, direction: Direction) -> Iterator[Check]:
    """Check the options of a queue's discipline that tc shows."""
    leaf = evidence.disciplines.leaves.get(queue.interface)
    shown: Mapping[str, object] = dict(leaf.get("options", {})) if leaf else {}
    row = DISCIPLINES.get(queue.discipline)
    for name, wanted in (direction.queue.options if direction.queue and row else {}).items():
        option = row.options[name] if row else None
        number = shown.get(option.keyword) if option else None
        if option is None or not isinstance(number, int | float):
            continue
        value = number / (1000 if option.unit == "ms" else 1)
        subject = f"{queue.interface} {name}"
        if abs(value - wanted) > REQUESTED_OPTION_TOLERANCE * abs(wanted):
            yield same("scenario", subject, f"{value:g}", f"{wanted:g}")


def _flow_words(scenario: Scenario, record: FlowRecord) -> str:
    flow = scenario.flow(record.name)
    late_s = record.planned_start_s - flow.start_s
    in_time = -REQUESTED_EDGE_S <= late_s <= scenario.start_jitter_ms / 1e3 + REQUESTED_EDGE_S
    start_s = record.planned_start_s if in_time else flow.start_s
    control = variant(flow.variant).control if flow.variant else ""
    parts = [f"{flow.src} to {flow.dst}", f"{start_s:g} to {scenario.stop_s(flow):g} s", control]
    parts += [f"{flow.parallel} connections"] if flow.kind is FlowKind.TCP else []
    parts += ["drops"] if flow.drops else []
    parts += ["losses by chance"] if flow.loss else []
    return ", ".join(filter(None, parts))


def _recorded_flow(evidence: Evidence, record: FlowRecord) -> str:
    flow = evidence.trial.scenario.flow(record.name)
    nodes = {role: _node(evidence, role, record) for role in ("sender", "receiver")}
    ends = f"{nodes['sender'] or flow.src} to {nodes['receiver'] or flow.dst}"
    times = f"{record.planned_start_s:g} to {record.planned_stop_s:g} s"
    parts = [ends, times, record.control]
    parts += [f"{len(record.src_ports)} connections"] if flow.kind is FlowKind.TCP else []
    if dropper := evidence.injected.droppers.get(record.name):
        parts += ["losses by chance" if dropper.interface else "drops"]
    return ", ".join(filter(None, parts))


def _node(evidence: Evidence, role: str, flow: FlowRecord) -> str:
    for capture in evidence.trial.record.captures:
        if f"{role}:{flow.name}" in capture.roles:
            return capture.node
    return ""


def _settings(evidence: Evidence, scenario: Scenario) -> Iterator[Check]:
    """Check the profile's settings of TCP, of hosts that a variant gives no others."""
    wanted = PROFILE_SETTINGS[scenario.profile].sysctls
    for flow in evidence.tcp:
        asked = scenario.flow(flow.name)
        told = variant(asked.variant).sysctls if asked.variant else {}
        for node in dict.fromkeys((asked.src, asked.dst)):
            given = evidence.trial.record.sysctls.get(node, {})
            for name, value in wanted.items():
                if name not in told and given.get(name, value).split() != value.split():
                    yield same("scenario", f"{node} {name}", given[name], value)


def _wires(evidence: Evidence, network: Graph) -> Iterator[Check]:
    """Check the delay, the losses and the overtaking of each link, which netem shows."""
    netems = dict(evidence.disciplines.wires())
    for number, link in enumerate(network.links):
        for end, direction in enumerate(link.directions):
            netem = netems.get((number, end))
            is_shown = netem is not None or bool(direction.loss or direction.reorder)
            if not (is_shown and evidence.disciplines.leaves) or wire_changes(direction.schedule):
                continue
            channel = direction.loss or GilbertElliott(0.0, 0.0, 0.0, 0.0)
            delays_ms = (direction.delay_ms, direction.jitter_ms)
            wanted = (*delays_ms, direction.reorder, *dataclasses.astuple(channel))
            options = netem.get("options") if netem else None
            units = np.array(list(REQUESTED_OF_NETEM.values()))
            shown = units * [_number(options, *path) for path in REQUESTED_OF_NETEM]
            if not np.allclose(shown, wanted, rtol=1e-3, atol=REQUESTED_ROUNDED * units):
                subject = f"{link.name} from {link.ends[end]}"
                yield same("scenario", subject, _netem_words(shown), _netem_words(wanted))


def _number(shown: object, *path: str) -> float:
    """Return the number at a path in what tc shows; 0 if tc does not show it."""
    for name in path:
        shown = shown.get(name) if isinstance(shown, Mapping) else None
    return float(shown) if isinstance(shown, int | float) else 0.0


def _netem_words(values: Iterable[float]) -> str:
    delay_ms, jitter_ms, reorder, *channel = (f"{value:.4g}" for value in values)
    return f"{delay_ms} ± {jitter_ms} ms, overtaking {reorder}, losses {'/'.join(channel)}"


def _changes(evidence: Evidence, network: Graph) -> Iterator[Check]:
    """Check that the changes of links that were planned are those of the scenario."""
    wanted = {
        f"{name} at {each.at_s:g} s"
        for name, (number, end) in interfaces(network).items()
        for each in network.links[number].directions[end].schedule
    }
    wanted |= {f"{name} at {each.at_s:g} s" for name, each in evidence.scenario.host_changes}
    table = read_samples(evidence.trial, LINK_CHANGES)
    rows = [] if table is None else zip(table["interface"], table["planned_s"], strict=True)
    planned = {f"{name} at {at_s:g} s" for name, at_s in rows}
    if planned != wanted:
        first, other = (min(each, default="none") for each in (planned - wanted, wanted - planned))
        yield same("scenario", "changes of links", first, other)


# How long packets take


def delays(evidence: Evidence) -> Iterator[Check]:
    """Check the time of every packet between two captures without a queue in between.

    By the one that is furthest off, for each flow.
    """
    scenario = evidence.scenario
    for flow in evidence.flows:
        if has_sessions(evidence, flow):
            continue
        worst: tuple[float, float, float, str] | None = None
        for pair in capture_pairs(evidence, flow):
            furthest = None if pair.is_queue else _furthest(evidence, scenario, pair)
            if furthest and (worst is None or furthest[0] > worst[0]):
                worst = furthest
        if worst is None:
            yield unknown("delay", flow.name, NOT_CAPTURED)
            continue
        off, measured, expected, where = worst
        yield make_check(
            "delay",
            flow.name,
            evidence.virtual_time,
            measured,
            expected,
            deviation=off,
            note=where if off else "",
        )


def _furthest(
    evidence: Evidence, scenario: Scenario, pair: CapturePair
) -> tuple[float, float, float, str] | None:
    """Return how far off the packet is that is furthest off, its time, the delay, and where."""
    matched = pairs(pair.before, pair.after)
    use = (matched.latest != NOWHERE) & ~matched.is_guess
    if not use.any():
        return None
    sent_ns, came_ns = (
        np.asarray(rows["time_ns"], dtype=np.int64) - epoch_ns(evidence.trial)
        for rows in (pair.before[matched.latest[use]], pair.after[use])
    )
    lengths = np.asarray(pair.after["length"][use], dtype=np.float64)
    bounds = _bounds_ms(scenario, pair, (sent_ns / 1e9, came_ns / 1e9), lengths)
    if bounds is None:
        return None
    took_ms, (low_ms, high_ms) = (came_ns - sent_ns) / 1e6, bounds
    off = np.maximum(np.maximum(low_ms - took_ms, took_ms - high_ms), 0)
    if not evidence.virtual_time:
        off = np.full(1, np.median(off))
        worst = int(np.argsort(took_ms)[len(took_ms) // 2])
    else:
        worst = int(off.argmax())
    expected = (
        low_ms[worst]
        if took_ms[worst] < low_ms[worst]
        else min(high_ms[worst], max(low_ms[worst], took_ms[worst]))
    )
    where = f"from {pair.first} to {pair.second}"
    return float(off.max()), float(took_ms[worst]), float(expected), where


def _bounds_ms(
    scenario: Scenario, pair: CapturePair, stretch_s: tuple[Floats, Floats], lengths: Floats
) -> tuple[Floats, Floats] | None:
    """Return the least and the most that each packet may take; None where that is not known."""
    between = _between(scenario, pair)
    if between is None:
        return None
    low, high = np.zeros(len(lengths)), np.zeros(len(lengths))
    for direction, is_behind_queue in between:
        if direction.radio is not None:
            return None
        least, most = _delays_ms(direction, *stretch_s)
        low += 0 if direction.reorder else np.maximum(0, least - direction.jitter_ms)
        high += most + direction.jitter_ms
        waits = direction.rate_mbit is not None and not is_behind_queue
        if waits and not direction.schedule:
            low += sending_ms(direction, lengths)
        if waits or direction.takes_time_to_receive:
            high += math.inf
    return low, high


def _between(scenario: Scenario, pair: CapturePair) -> list[tuple[Direction, bool]] | None:
    """Return the directions that packets cross from one capture to the other.

    With each, whether the first capture is behind its queue; None of interfaces that are no link's
    on the way, such as a radio's.
    """
    network, flow = scenario.network, scenario.flow(pair.flow.name)
    ends = (flow.src, flow.dst) if pair.is_data else (flow.dst, flow.src)
    sending = interfaces(network)
    steps = network.steps_from(ends[0])[ends[1]]
    position: dict[Step | None, int] = {}
    for place, (number, end) in enumerate(steps):
        position[number, end] = 2 * place
        position[number, 1 - end] = 2 * place + 1
    first, second = (position.get(sending.get(each), -1) for each in (pair.first, pair.second))
    if min(first, second) < 0:
        return None
    return [
        (network.links[number].directions[end], first == 2 * place)
        for place, (number, end) in enumerate(steps)
        if first <= 2 * place and 2 * place + 1 <= second
    ]


def _delays_ms(direction: Direction, sent_s: Floats, came_s: Floats) -> tuple[Floats, Floats]:
    """Return the least and the most delay that holds while each packet is on its way."""
    changes = [each for each in direction.schedule if each.delay_ms is not None]
    times = np.array([each.at_s for each in changes])
    first = np.searchsorted(times, sent_s - REQUESTED_EDGE_S, side="right")
    last = np.searchsorted(times, came_s + REQUESTED_EDGE_S, side="right")
    least, most = np.full(len(first), math.inf), np.zeros(len(first))
    for place, value in enumerate([direction.delay_ms, *(each.delay_ms or 0 for each in changes)]):
        holds = (first <= place) & (place <= last)
        least, most = (
            np.where(holds, np.minimum(least, value), least),
            np.where(holds, np.maximum(most, value), most),
        )
    return least, most


# What flows send


def sizes(evidence: Evidence) -> Iterator[Check]:
    """Check that flows' packets have the sizes and the gaps that the scenario gives them."""
    scenario = evidence.scenario
    for record in evidence.flows:
        flow = scenario.flow(record.name)
        if not is_iperf3(evidence, record):
            continue
        roles = ["sender"]
        if flow.kind is not FlowKind.CBR:  # whose gaps are others behind a queue
            roles += [f"{name}{BEFORE}" for name in queue_roles(evidence.trial, record)]
        parts = (evidence.packets.part(role, record) for role in roles)
        packets = next(filter(None, parts), None)
        if packets is None:
            yield unknown("packets", record.name, NOT_CAPTURED)
        elif flow.kind is FlowKind.CBR:
            yield from _datagrams(evidence, record, flow, packets.data)
        else:
            yield from _segments(evidence, record, scenario, packets.data)
            if flow.bytes is not None:
                yield _amount(evidence, record, flow.bytes)


def _amount(evidence: Evidence, record: FlowRecord, wanted: int) -> Check:
    """Check how much a flow of a number of bytes sent, each of them counted once."""
    connections = evidence.packets.connections(record)
    if connections is None:
        return unknown("bytes", record.name, NOT_CAPTURED)
    sent = sum(int(each.end.max(initial=0)) - 1 - COOKIE_BYTES for each in connections)
    short = wanted - sent if record.stopped_s < record.planned_stop_s else 0
    over = sent - wanted - len(connections) * REQUESTED_BLOCK_BYTES
    off = max(0, short, over)
    return make_check("bytes", record.name, evidence.virtual_time, sent, wanted, deviation=off)


def _segments(
    evidence: Evidence, record: FlowRecord, scenario: Scenario, data: PacketArrays
) -> Iterator[Check]:
    """Check the longest segment of a flow that has sent enough of them."""
    flow = scenario.flow(record.name)
    payloads = np.asarray(data["payload"], dtype=np.int64)
    if (payloads > 0).sum() < REQUESTED_MIN_SEGMENTS:
        yield unknown("packets", record.name, "it sent hardly any")
        return
    headers = 60 if ":" in record.dst_address else 40
    most = flow.mss or PROFILE_SETTINGS[scenario.profile].mss or 1500 - headers
    longest = int(payloads.max())
    is_accurate = flow.variant is not None and variant(flow.variant).needs_accurate_ecn
    least = most - REQUESTED_OPTION_BYTES * (1 + is_accurate)
    off = max(0, longest - most, least - longest)
    yield make_check("packets", record.name, evidence.virtual_time, longest, most, deviation=off)


def _datagrams(
    evidence: Evidence, record: FlowRecord, flow: Flow, data: PacketArrays
) -> Iterator[Check]:
    """Check the size of datagrams, and the mean of the gaps between them."""
    assert flow.packet_bytes is not None and flow.rate_mbit is not None
    if len(data) < REQUESTED_MIN_DATAGRAMS:
        yield unknown("packets", record.name, "it sent hardly any")
        return
    lengths = np.asarray(data["length"], dtype=np.int64)
    frame = flow.packet_bytes + FRAME_OVERHEAD_BYTES + 20 * (":" in record.dst_address)
    other = lengths[lengths != frame]
    size = int(other[0]) if len(other) else frame
    yield make_check("packets", record.name, evidence.virtual_time, size, frame)
    even_ns = (flow.packet_bytes + FRAME_OVERHEAD_BYTES) * 8e3 / flow.rate_mbit
    gaps = np.diff(np.asarray(data["time_ns"], dtype=np.int64)).astype(np.float64)
    own_queue = sender_queue(evidence.trial, record)
    if flow.on_s:
        gaps = gaps[gaps <= REQUESTED_LONGEST_GAP * even_ns]
    if len(gaps) < REQUESTED_MIN_DATAGRAMS:
        yield unknown("pace", record.name, "its gaps are not those of its rate")
        return
    mean = float(gaps.mean() / even_ns)
    spread = flow.jitter / math.sqrt(3 * len(gaps))
    late = own_queue_ns(evidence, record) / even_ns / len(gaps)
    # its own queue may have dropped some before they were captured
    lost = evidence.disciplines.drops().get(own_queue.interface, 0) if own_queue else 0
    off = max(0.0, 1 - mean - late, mean - 1 - lost / len(gaps) - late) / max(spread, 1e-3)
    note = f"{mean:.4f} of the gap of its rate"
    yield make_check(
        "pace", record.name, evidence.virtual_time, off, 0, note=note if off > 4 else ""
    )
