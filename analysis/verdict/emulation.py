"""Checks of the network: delays, rates and buffers as asked for, and no other losses."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd

from analysis.trials.capacity import capacity_of
from analysis.trials.packets import epoch_ns
from analysis.trials.pairing import differences, overtakers
from analysis.trials.passage import Passage
from analysis.trials.placement import BEFORE, BEHIND, capture_interface, queue_roles
from analysis.trials.radio import frames_lost
from analysis.trials.samples import read_samples
from analysis.verdict.checks import (
    NO_ROW,
    NOT_CAPTURED,
    NOT_RECORDED,
    NOT_SAMPLED,
    Check,
    compare,
    unknown,
)
from analysis.verdict.evidence import Evidence
from analysis.verdict.shaping import backlog_at_losses, backlogged, too_soon
from testbed.scenario.queues import DISCIPLINES
from testbed.store import IDLE, FlowRecord, QueueRecord

OFF = 0.1  # of the serialisation time
LEAST_GAPS = 100  # fewer say little about a rate


def idle(evidence: Evidence) -> Iterator[Check]:
    """The paths' delays before the flows: for each flow the echo that is furthest off."""
    table = read_samples(evidence.trial, IDLE)
    if table is None:
        yield unknown("idle RTT", "paths", NOT_RECORDED)
        return
    for flow, rows in table.groupby("flow", sort=False):
        answered = rows.dropna(subset=["rtt_ms"])
        lossy = "lossy" in rows and bool(rows["lossy"].any())
        if lossy and not len(answered):
            yield unknown("idle RTT", str(flow), "the channel lost every echo request")
            continue
        if len(answered) < len(rows) and not lossy:
            expected = float(rows["expected_ms"].iloc[0])
            note = f"{len(rows) - len(answered)} of {len(rows)} echo requests had no reply"
            yield compare(
                "idle RTT", str(flow), evidence.virtual_time, math.inf, expected, note=note
            )
            continue
        rtts, wanted = (answered[name].to_numpy() for name in ("rtt_ms", "expected_ms"))
        jitter_ms = answered["jitter_ms"].to_numpy() if "jitter_ms" in answered else 0.0
        off = np.maximum(0.0, np.abs(rtts - wanted) - jitter_ms)
        worst = int(off.argmax())
        rtt, expected = float(rtts[worst]), float(wanted[worst])
        yield compare(
            "idle RTT", str(flow), evidence.virtual_time, rtt, expected, deviation=float(off[worst])
        )


def shaping(evidence: Evidence, queue: QueueRecord, found: Passage) -> Iterator[Check]:
    """The rate while the queue was backlogged, and how even the gaps were."""
    name = queue.interface
    capacity = capacity_of(evidence.trial, queue)
    if capacity.trace is not None:
        return  # changing_links.followed
    gaps = backlogged(found, queue.burst_bytes)
    if len(gaps.bits) < LEAST_GAPS:
        why = "never backlogged for long"
        yield unknown("rate", name, why)
        yield unknown("gaps", name, why)
        return
    rate = gaps.rate_mbit()
    expected = capacity.rates_at((gaps.since_ns - epoch_ns(evidence.trial)) / 1e9)
    share = gaps.share_off(expected, OFF)
    mean = queue.rate_mbit
    if capacity.changes:
        mean = float(gaps.bits.sum() / (gaps.bits / expected).sum())
    yield compare("rate", name, evidence.virtual_time, rate, mean)
    yield compare("gaps", name, evidence.virtual_time, share, 0)


def senders(evidence: Evidence) -> Iterator[Check]:
    """A sender's own shaped queue sends packets one by one, even those that TCP handed down as
    one."""
    for queue in evidence.trial.record.queues:
        parts = [
            found.data[["time_ns", "length"]]
            for flow in evidence.flows
            if capture_interface(evidence.trial, "sender", flow) == queue.interface
            and (found := evidence.packets.flow("sender", flow)) is not None
        ]
        if not parts or queue.interface in {each.interface for each in evidence.bottlenecks}:
            continue
        rows = pd.concat(parts).sort_values("time_ns", kind="stable")
        capacity = capacity_of(evidence.trial, queue)
        if capacity.trace is not None:
            continue
        share = too_soon(
            rows["time_ns"].to_numpy(dtype=np.int64),
            rows["length"].to_numpy(dtype=np.int64),
            max(capacity.rate_mbit),
            queue.burst_bytes,
            OFF,
        )
        note = "packets that left sooner than the rate lets them" if share else ""
        yield compare("gaps", queue.interface, evidence.virtual_time, share, 0, note=note)


def buffer(evidence: Evidence, queue: QueueRecord, found: Passage) -> Iterator[Check]:
    """The backlog never exceeded the limit, and a FIFO dropped packets only when it was full."""
    in_bytes = queue.unit == "bytes"
    own = evidence.samples.queue(queue.interface)
    if own is None:
        if queue.sampled:
            yield unknown("buffer", queue.interface, NOT_SAMPLED)
    else:
        peak = int(own["backlog_bytes" if in_bytes else "backlog_packets"].max())
        over = max(0, peak - queue.limit)
        yield compare(
            "buffer", queue.interface, evidence.virtual_time, peak, queue.limit, deviation=over
        )
    row = DISCIPLINES.get(queue.discipline)
    if row is None:
        yield unknown("tail drop", queue.interface, NO_ROW)
        return
    if not row.tail_drop or not len(found.lost_ns):
        return
    if not found.complete or evidence.injected.at_queue(queue):
        yield unknown("tail drop", queue.interface, "other losses, or arrivals not captured")
        return
    packets, sizes = backlog_at_losses(found)
    least = int((sizes if in_bytes else packets).min())
    limit = queue.limit + 1  # the first that does not fit
    short = max(0, limit - least)
    yield compare(
        "tail drop", queue.interface, evidence.virtual_time, least, limit, deviation=short
    )


@dataclass(frozen=True)
class _Way:
    """A flow's packets of one direction at two consecutive captures."""

    flow: FlowRecord
    first: str  # interfaces
    second: str
    before: pd.DataFrame
    after: pd.DataFrame
    is_queue: bool  # a shaped queue lies between them, which may drop
    to_receiver: bool


@dataclass(frozen=True)
class _Link:
    """What became of them."""

    way: _Way
    lost: int  # seen at the first, not at the second
    stray: int  # seen at the second, not at the first


def loss(evidence: Evidence) -> Iterator[Check]:
    """Links without a queue lose nothing, except for packets that queues dropped unseen by any
    capture at their entrance, and packets that lossy channels were asked to lose."""
    links = [_link(evidence, way) for flow in evidence.flows for way in _ways(evidence, flow)]
    if not links:
        yield unknown("loss", "links", NOT_CAPTURED)
        yield unknown("capture gaps", "links", NOT_CAPTURED)
        return
    yield from _strays(evidence, links)
    links = [link for link in links if not link.way.is_queue]
    seen = {
        queue.interface: len(evidence.passages[queue.interface].lost_ns)
        - evidence.injected.at_queue(queue)
        for queue in evidence.bottlenecks
    }
    counts = evidence.disciplines.drops()
    others = sum(max(0, count - seen.get(name, 0)) for name, count in counts.items())
    others += evidence.disciplines.lost_by_netem() + frames_lost(evidence.trial)
    lost = sum(link.lost for link in links)
    if lost <= others:
        note = f"{lost} lost at queues whose entrance is not captured, or by channels"
        note = note if lost else ""
        yield compare("loss", "links", evidence.virtual_time, lost, lost, note=note)
        return
    for link in links:
        if link.lost:
            name = f"{link.way.flow.name} {link.way.first} to {link.way.second}"
            yield compare("loss", name, evidence.virtual_time, link.lost, 0)


def _strays(evidence: Evidence, links: list[_Link]) -> Iterator[Check]:
    """Packets that a capture must have missed, since one further along has them."""
    found = [link for link in links if link.stray]
    for link in found:
        note = f"{link.way.flow.name}: seen at {link.way.second}"
        first = link.way.first
        yield compare("capture gaps", first, evidence.virtual_time, link.stray, 0, note=note)
    if not found:
        yield compare("capture gaps", "links", evidence.virtual_time, 0, 0)


def overtaking(evidence: Evidence) -> Iterator[Check]:
    """Where links let packets overtake: no more did than were sent ahead, and those by chance."""
    asked = evidence.disciplines.put_ahead()
    if not asked:
        return
    ways = [way for flow in evidence.flows for way in _ways(evidence, flow) if not way.is_queue]
    seen = sum(overtakers(way.before, way.after) for way in ways)
    ahead = sum(count for _, count, _ in asked)
    over = max(0, seen - ahead)
    yield compare("overtaking", "links", evidence.virtual_time, seen, ahead, deviation=over)
    expected = sum(chance * crossed for chance, _, crossed in asked)
    spread = math.sqrt(sum(chance * (1 - chance) * crossed for chance, _, crossed in asked))
    off = abs(ahead - expected) / spread if spread else abs(ahead - expected)
    note = f"{ahead} of {sum(crossed for *_, crossed in asked)} packets"
    yield compare("share ahead", "links", evidence.virtual_time, off, 0, note=note)


def _link(evidence: Evidence, way: _Way) -> _Link:
    lost, stray = differences(way.before, way.after, evidence.sure_ns)
    if way.to_receiver:
        # whether the droppers' own counts are right is another check
        lost = max(0, lost - evidence.injected.behind_queues(way.flow))
    return _Link(way, lost, stray)


def _ways(evidence: Evidence, flow: FlowRecord) -> Iterator[_Way]:
    """The flow's path in both directions, capture by capture."""
    shaped = {queue.interface for queue in evidence.bottlenecks}
    # where no queue is captured, the hosts' captures are not neighbours
    queues = queue_roles(evidence.trial, flow) or ("bottleneck",)
    every = (
        "sender",
        *(f"{name}{side}" for name in queues for side in (BEFORE, BEHIND)),
        "receiver",
    )
    # a flow that starts at the bottleneck has two roles at one capture: the later role counts
    roles = {capture_interface(evidence.trial, role, flow): role for role in every}
    roles.pop("", None)
    for (first, here), (second, there) in itertools.pairwise(roles.items()):
        one, other = evidence.packets.flow(here, flow), evidence.packets.flow(there, flow)
        if (here, there) not in itertools.pairwise(every) or one is None or other is None:
            continue
        inside = here.endswith(BEFORE)
        is_queue = [inside and each in shaped for each in (second, first)]
        last = there == "receiver"
        yield _Way(flow, first, second, one.data, other.data, is_queue[0], last)
        yield _Way(flow, second, first, other.acks, one.acks, is_queue[1], False)
