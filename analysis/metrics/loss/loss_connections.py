"""A flow's connections with what each of them lost and what its sender did about it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from analysis.captures.packet_matching import lost_packets
from analysis.metrics.loss.loss_events import LossEvent, loss_events
from analysis.metrics.loss.responses import Responses, Stack, responses
from analysis.trials.evidence import Evidence
from analysis.trials.packets import FlowPackets
from analysis.trials.segments import Booleans, Integers, Segments
from testbed.store import FlowRecord

PROMPT_NS = 1_000_000  # in the guest an answer leaves at once; a host may take so long
LEAVES_EARLY = ("reno1990",)  # controls whose recovery the first ACK of new data ends
RACK = "net.ipv4.tcp_recovery"


@dataclass(frozen=True)
class Connection:
    """What a connection sent, what of that was lost, and what came of it."""

    segments: Segments
    payload: Integers  # of each segment
    lost: Booleans
    answers: Responses
    events: list[LossEvent]


def connections(evidence: Evidence, flow: FlowRecord) -> tuple[Connection, ...] | None:
    """A TCP flow's connections; None if they were not captured whole at their sender.

    Lost is what did not come by at the receiver. Where that was not captured, what was sent
    again is taken for lost, unless it had been acknowledged by then.
    """
    sender, every = evidence.at("sender", flow), evidence.segments(flow)
    if sender is None or every is None:
        return None
    receiver = evidence.at("receiver", flow)
    gone = None if receiver is None else lost_packets(sender.data, receiver.data).index.to_numpy()
    late_ns = _late_ns(evidence, flow, sender)
    found = []
    for segments in every:
        own = sender.data[["payload", "spurious_retransmission"]].loc[segments.row]
        lost = _repaired(segments, own) if gone is None else np.isin(segments.row, gone)
        late = np.asarray(late_ns.reindex(segments.row), dtype=np.int64)
        answers = responses(segments, _stack(evidence, flow, late))
        events = loss_events(segments, lost, answers)
        payload = own["payload"].to_numpy(dtype=np.int64)
        found.append(Connection(segments, payload, lost, answers, events))
    return tuple(found)


def _stack(evidence: Evidence, flow: FlowRecord, late_ns: Integers) -> Stack:
    sysctls = evidence.trial.record.sysctls.get(evidence.trial.scenario.flow(flow.name).src, {})
    return Stack(
        late_ns=late_ns,
        has_rack=sysctls.get(RACK, "1") != "0",
        leaves_early=flow.variant_seen in LEAVES_EARLY,
    )


def _late_ns(evidence: Evidence, flow: FlowRecord, sender: FlowPackets) -> pd.Series[int]:
    """How long before it was captured each packet may have been sent by TCP: since the sender's
    own queue was last seen idle."""
    late_ns = pd.Series(PROMPT_NS, index=sender.data.index)
    queue, capture = evidence.own_queue(flow), evidence.packets.capture("sender", flow.name)
    if queue is None or capture is None:
        return late_ns
    out = capture.rows[capture.rows["src"] == flow.src_address]
    times_ns, sizes = out["time_ns"].to_numpy(dtype=np.int64), out["length"].to_numpy()
    waited = pd.Series(busy_ns(times_ns, sizes, queue.rate_mbit), index=out.index)
    return late_ns + waited.reindex(sender.data.index)


def busy_ns(time_ns: Integers, size_bytes: Integers, rate_mbit: float) -> Integers:
    """How long a link had been busy when each packet left it, this one's own sending included."""
    takes_ns = np.round(size_bytes * 8e3 / rate_mbit).astype(np.int64)
    gap_ns = np.diff(time_ns, prepend=time_ns[:1])
    idle = gap_ns > np.maximum(takes_ns, np.roll(takes_ns, 1)) + PROMPT_NS // 10
    since_ns = np.maximum.accumulate(np.where(idle, time_ns, time_ns[:1]))
    return np.asarray(time_ns - since_ns + takes_ns)


def _repaired(segments: Segments, rows: pd.DataFrame) -> Booleans:
    """What was sent again before it was acknowledged: the sending before, each time."""
    order = np.argsort(segments.begin, kind="stable")
    follows = np.diff(segments.begin[order], prepend=-1) == 0
    new = np.flatnonzero(~segments.again)
    covering = np.searchsorted(segments.new_end, segments.begin, side="right")
    before = new[np.minimum(covering, len(new) - 1)]
    before[order[follows]] = order[np.flatnonzero(follows) - 1]
    needed = segments.again & ~rows["spurious_retransmission"].to_numpy()
    needed &= rows["payload"].to_numpy() > 0
    lost: Booleans = np.zeros(len(segments.begin), dtype=np.bool_)
    lost[before[needed]] = True
    return lost
