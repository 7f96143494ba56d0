"""Checks of links that change: when they did, and what they let through."""

from __future__ import annotations

import bisect
import math
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pandas as pd

from analysis.captures.packet_matching import NOWHERE, pairs
from analysis.captures.tcp import PacketArrays
from analysis.trials.capacity import (
    FRAME_LESS_BYTES,
    Capacity,
    capacity_of,
    largest_bucket_bytes,
)
from analysis.trials.packets import FlowPackets, epoch_ns
from analysis.trials.queue_transit import FlowAtQueue, QueueTransit, flows_at_queue
from analysis.trials.samples import read_samples
from analysis.verdict.checks import Check, make_check, unknown
from analysis.verdict.evidence import Evidence
from testbed.scenario.network import FRAME_BYTES
from testbed.scenario.trace import OPPORTUNITY_BYTES
from testbed.store.names import LINK_CHANGES
from testbed.store.records import QueueRecord

Integers = npt.NDArray[np.int64]
CAPACITY_WINDOW_S = 0.1
DEPARTURE_TOLERANCE_NS = 1000  # of a clock that is read to the nanosecond


def changes(evidence: Evidence) -> Iterator[Check]:
    """Check that scheduled changes were made on time, by the one that was furthest off.

    Where all flows ended early, those of later times are not made.
    """
    table = read_samples(evidence.trial, LINK_CHANGES)
    if table is None:
        return
    stopped_s = max((flow.stopped_s for flow in evidence.flows), default=0.0)
    due = table[table["time_s"].notna() | (table["planned_s"] < stopped_s)]
    for interface, rows in due.groupby("interface", sort=False):
        off = (rows["time_s"] - rows["planned_s"]).abs().fillna(math.inf)
        worst = int(off.to_numpy().argmax())
        changed_s, planned_s = (float(rows[name].iloc[worst]) for name in ("time_s", "planned_s"))
        yield make_check(
            "link changes",
            str(interface),
            evidence.virtual_time,
            math.inf if math.isnan(changed_s) else changed_s,
            planned_s,
            deviation=float(off.max()) * 1e3,
            note=str(rows["change"].iloc[worst]) if off.max() > 0 else "",
        )


def followed(evidence: Evidence, queue: QueueRecord, transit: QueueTransit) -> Iterator[Check]:
    """Check that what left a queue fits its changing link, and each packet its trace."""
    capacity = capacity_of(evidence.trial, queue)
    if not capacity.changes:
        return
    since_ns = transit.left_ns - epoch_ns(evidence.trial)
    yield _within(evidence, queue, capacity, (since_ns, transit.length))
    if capacity.trace is None:
        return
    if not transit.complete or transit.unmatched:
        yield unknown("trace", queue.interface, "not all arrivals were captured")
        return
    arrived_ns = transit.arrived_ns - epoch_ns(evidence.trial)
    opportunities = capacity.opportunities_ns(float(since_ns[-1]) / 1e9 + 1e-3)
    due_ns = departures(arrived_ns, transit.length, opportunities)
    off = np.abs(since_ns - due_ns) > DEPARTURE_TOLERANCE_NS
    off &= ~np.logical_or.accumulate(transit.is_guess)  # when it arrived decides what follows
    note = ""
    if off.any():
        first = int(off.argmax())
        note = f"one left at {since_ns[first] / 1e9:.6f} s, not at {due_ns[first] / 1e9:.6f} s"
    yield make_check("trace", queue.interface, evidence.virtual_time, int(off.sum()), 0, note=note)


def _within(
    evidence: Evidence,
    queue: QueueRecord,
    capacity: Capacity,
    left: tuple[Integers, Integers],
) -> Check:
    """Check the tenth of a second in which most left beyond what the link could carry.

    Of htb a full bucket and the frame that overdraws it are allowed, of a trace a packet begun
    before, and for each change of the rate what was being sent, which leaves at the rate before.
    """
    since_ns, length = left
    frames_bytes = queue.most_at_once * FRAME_BYTES
    spare = largest_bucket_bytes(queue, capacity) + frames_bytes
    if capacity.trace:
        spare = OPPORTUNITY_BYTES
    size = length - FRAME_LESS_BYTES if capacity.trace else length
    edges_s = np.arange(0, float(since_ns[-1]) / 1e9 + 2 * CAPACITY_WINDOW_S, CAPACITY_WINDOW_S)
    # an opportunity at the very edge belongs to the window that it ends
    counted, _ = np.histogram(
        since_ns, bins=np.round(edges_s * 1e9) + DEPARTURE_TOLERANCE_NS, weights=size
    )
    allowed = np.diff(capacity.sent_bytes(edges_s))
    changed, _ = np.histogram([] if capacity.trace else capacity.since_s[1:], bins=edges_s)
    over = counted - allowed - spare - changed * frames_bytes
    worst = int(over.argmax())
    return make_check(
        "capacity",
        queue.interface,
        evidence.virtual_time,
        float(counted[worst]),
        float(allowed[worst]),
        deviation=max(0.0, float(over[worst])),
        note=f"in the 0.1 s from {edges_s[worst]:.1f} s on" if over[worst] > 0 else "",
    )


def departures(
    arrived_ns: Sequence[int] | Integers, length: Sequence[int] | Integers, opportunities: Integers
) -> Integers:
    """Compute when packets leave a link that follows a trace, from their arrivals alone.

    These are Mahimahi's rules (kernel/queues/sch_trace.c). Packets are given in the order in which
    they left.
    """
    opportunity_ns = [int(time_ns) for time_ns in opportunities]
    due = np.full(len(arrived_ns), -1, dtype=np.int64)
    following, left, now_ns = 0, 0, -1
    for number, (arrival, size) in enumerate(zip(arrived_ns, length, strict=True)):
        owed = int(size) - FRAME_LESS_BYTES
        if arrival >= now_ns:
            following = max(following, bisect.bisect_right(opportunity_ns, int(arrival)))
            left = 0
        while owed > left and following < len(opportunity_ns):
            owed -= left
            left, now_ns = OPPORTUNITY_BYTES, opportunity_ns[following]
            following += 1
        if owed > left:
            break  # the trace has no more: what left nevertheless is off
        left -= owed
        due[number] = now_ns
    return due


def down(evidence: Evidence, queue: QueueRecord, _transit: QueueTransit) -> Iterator[Check]:
    """Check that nothing arrived that left the queue while its link was down."""
    table = read_samples(evidence.trial, LINK_CHANGES)
    if table is None:
        return
    changes_made = table[(table["interface"] == queue.interface) & table["time_s"].notna()]
    stretches = list(down_stretches(changes_made))
    if not stretches:
        return
    arrived = 0
    for at_queue in flows_at_queue(evidence.trial, evidence.packets, queue):
        received = evidence.packets.part(
            "receiver" if at_queue.is_data else "sender", at_queue.flow
        )
        if received is not None:
            times_ns = _left_ns(at_queue, received) - epoch_ns(evidence.trial)
            for begin_s, end_s in stretches:
                arrived += int(((times_ns > begin_s * 1e9) & (times_ns < end_s * 1e9)).sum())
    yield make_check("down", queue.interface, evidence.virtual_time, arrived, 0)


def _left_ns(at_queue: FlowAtQueue, received: FlowPackets[PacketArrays]) -> Integers:
    """Return when the packets that were received had left the queue."""
    rows = received.data if at_queue.is_data else received.acks
    matches = pairs(at_queue.left, rows)
    times: Integers = at_queue.left["time_ns"].astype(np.int64)
    return np.asarray(times[matches.latest[(matches.latest != NOWHERE) & ~matches.is_guess]])


def down_stretches(rows: pd.DataFrame) -> Iterator[tuple[float, float]]:
    """Yield the stretches of time in which a link was down."""
    begin_s: float | None = None
    for row in rows.itertuples():
        changes = str(row.change).split(", ")
        if "down" in changes and begin_s is None:
            begin_s = float(row.time_s)  # type: ignore[arg-type]
        elif "up" in changes and begin_s is not None:
            yield begin_s, float(row.planned_s)  # type: ignore[arg-type]
            begin_s = None
    if begin_s is not None:
        yield begin_s, math.inf
