"""Was the network the one that was asked for: delays, rates, buffers, and no other losses?"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from analysis.trials.evidence import Evidence
from analysis.trials.pairing import differences
from analysis.trials.samples import read_samples
from analysis.verdict.checks import NOT_CAPTURED, NOT_SAMPLED, OLDER, Check, compare, unknown
from analysis.verdict.shaping import Passage, backlog_at_losses, backlogged, too_soon
from testbed.store import FlowRecord, QueueRecord

OFF = 0.1  # of the serialisation time
LEAST_GAPS = 100  # fewer say little of a rate
ROLES = ("sender", "bottleneck-in", "bottleneck-out", "receiver")
TAIL_DROP = ("bfifo", "pfifo")


def idle(evidence: Evidence) -> Iterator[Check]:
    """The paths' delays before anything ran: the echo that is furthest off, a flow."""
    table = read_samples(evidence.trial, "idle.csv")
    if table is None:
        yield unknown("idle RTT", "paths", OLDER)
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
            yield compare("idle RTT", str(flow), evidence.engine, math.inf, expected, note=note)
            continue
        rtts, wanted = (answered[name].to_numpy() for name in ("rtt_ms", "expected_ms"))
        jitter_ms = answered["jitter_ms"].to_numpy() if "jitter_ms" in answered else 0.0
        off = np.maximum(0.0, np.abs(rtts - wanted) - jitter_ms)
        worst = int(off.argmax())
        rtt, expected = float(rtts[worst]), float(wanted[worst])
        yield compare(
            "idle RTT", str(flow), evidence.engine, rtt, expected, deviation=float(off[worst])
        )


def shaping(evidence: Evidence, queue: QueueRecord, found: Passage) -> Iterator[Check]:
    """The rate while packets waited, and how even the gaps were."""
    name = queue.interface
    gaps = backlogged(found, queue.burst_bytes)
    if len(gaps.bits) < LEAST_GAPS:
        why = "never backlogged for long"
        yield unknown("rate", name, why)
        yield unknown("gaps", name, why)
        return
    rate = gaps.rate_mbit()
    share = gaps.share_off(queue.rate_mbit, OFF)
    yield compare("rate", name, evidence.engine, rate, queue.rate_mbit)
    yield compare("gaps", name, evidence.engine, share, 0)


def senders(evidence: Evidence) -> Iterator[Check]:
    """A sender's own shaped queue lets packets out one by one, also what TCP hands down as one."""
    for queue in evidence.trial.record.queues:
        parts = [
            found.data[["time_ns", "length"]]
            for flow in evidence.flows
            if evidence.interface("sender", flow) == queue.interface
            and (found := evidence.at("sender", flow)) is not None
        ]
        if not parts or queue.interface in {each.interface for each in evidence.bottlenecks}:
            continue
        rows = pd.concat(parts).sort_values("time_ns", kind="stable")
        share = too_soon(
            rows["time_ns"].to_numpy(dtype=np.int64),
            rows["length"].to_numpy(dtype=np.int64),
            queue.rate_mbit,
            queue.burst_bytes,
            OFF,
        )
        note = "packets that left sooner than the rate lets them" if share else ""
        yield compare("gaps", queue.interface, evidence.engine, share, 0, note=note)


def buffer(evidence: Evidence, queue: QueueRecord, found: Passage) -> Iterator[Check]:
    """The queue never held more than its limit, and a FIFO dropped only at it."""
    in_bytes = queue.unit == "bytes"
    samples = evidence.queues
    own = None if samples is None else samples[samples["interface"] == queue.interface]
    if own is None or own.empty:
        if queue.sampled:
            yield unknown("buffer", queue.interface, NOT_SAMPLED)
    else:
        peak = int(own["backlog_bytes" if in_bytes else "backlog_packets"].max())
        over = max(0, peak - queue.limit)
        yield compare("buffer", queue.interface, evidence.engine, peak, queue.limit, deviation=over)
    if queue.discipline not in TAIL_DROP or not len(found.lost_ns):
        return
    if not found.complete or evidence.injected(queue):
        yield unknown("tail drop", queue.interface, "other losses, or arrivals not captured")
        return
    packets, sizes = backlog_at_losses(found)
    least = int((sizes if in_bytes else packets).min())
    limit = queue.limit + 1  # what does not fit any more
    short = max(0, limit - least)
    yield compare("tail drop", queue.interface, evidence.engine, least, limit, deviation=short)


@dataclass(frozen=True)
class _Link:
    """A flow's packets of one direction between two captures of theirs, one after the other."""

    flow: str
    first: str  # interfaces
    second: str
    lost: int  # seen at the first, not at the second
    stray: int  # seen at the second, not at the first
    is_queue: bool  # there is one of ours between them, which may drop


def loss(evidence: Evidence, passages: Mapping[str, Passage]) -> Iterator[Check]:
    """Nothing is lost where there is no queue, or as much as the queues have dropped of what
    was not seen to enter them, and as the channels of lossy links have lost."""
    links = [link for flow in evidence.flows for link in _links(evidence, flow)]
    if not links:
        yield unknown("loss", "links", NOT_CAPTURED)
        yield unknown("capture gaps", "links", NOT_CAPTURED)
        return
    yield from _strays(evidence, links)
    links = [link for link in links if not link.is_queue]
    seen = {
        queue.interface: len(passages[queue.interface].lost_ns) - evidence.injected(queue)
        for queue in evidence.bottlenecks
    }
    counts = {name: int(leaf["drops"]) for name, leaf in evidence.leaves.items()}
    others = sum(max(0, count - seen.get(name, 0)) for name, count in counts.items())
    others += evidence.lost_by_channels
    lost = sum(link.lost for link in links)
    if lost <= others:
        note = f"{lost} lost at queues whose entrance is not captured, or by channels"
        note = note if lost else ""
        yield compare("loss", "links", evidence.engine, lost, lost, note=note)
        return
    for link in links:
        if link.lost:
            name = f"{link.flow} {link.first} to {link.second}"
            yield compare("loss", name, evidence.engine, link.lost, 0)


def _strays(evidence: Evidence, links: list[_Link]) -> Iterator[Check]:
    """Packets that a capture must have missed, as one further on has them."""
    found = [link for link in links if link.stray]
    for link in found:
        note = f"{link.flow}: seen at {link.second}"
        yield compare("capture gaps", link.first, evidence.engine, link.stray, 0, note=note)
    if not found:
        yield compare("capture gaps", "links", evidence.engine, 0, 0)


def _links(evidence: Evidence, flow: FlowRecord) -> Iterator[_Link]:
    """The flow's way there and back, capture by capture."""
    shaped = {queue.interface for queue in evidence.bottlenecks}
    # a flow that starts at the bottleneck has two roles at one capture: the later one counts
    roles = {evidence.interface(role, flow): role for role in ROLES}
    roles.pop("", None)
    for (first, here), (second, there) in itertools.pairwise(roles.items()):
        one, other = evidence.at(here, flow), evidence.at(there, flow)
        if (here, there) not in itertools.pairwise(ROLES) or one is None or other is None:
            continue
        inside = here == "bottleneck-in"
        queues = [inside and (evidence.is_older or each in shaped) for each in (second, first)]
        lost, stray = differences(one.data, other.data)
        if there == "receiver":
            # the check of the droppers' own counts has told if those are not right
            lost = max(0, lost - evidence.injected_behind(flow))
        yield _Link(flow.name, first, second, lost, stray, queues[0])
        lost, stray = differences(other.acks, one.acks)
        yield _Link(flow.name, second, first, lost, stray, queues[1])
