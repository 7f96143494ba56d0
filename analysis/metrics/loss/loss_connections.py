"""A flow's connections: what each of them lost, and how its sender responded."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from analysis.captures.packet_matching import lost_packets
from analysis.metrics.loss.loss_events import LossEvent, loss_events
from analysis.metrics.loss.responses import Responses, Stack, responses
from analysis.trials.packets import FlowPackets, TrialPackets
from analysis.trials.placement import sender_queue
from analysis.trials.segments import Booleans, Integers, Segments
from testbed.store import FlowRecord, Trial

PROMPT_NS = 1_000_000  # in virtual time an answer leaves at once; in real time within this
LEAVES_EARLY = ("reno1990",)  # controls whose recovery the first ACK of new data ends
RACK = "net.ipv4.tcp_recovery"


@dataclass(frozen=True)
class Connection:
    """A connection's segments, which of them were lost, and the sender's responses."""

    segments: Segments
    payload: Integers  # of each segment
    lost: Booleans
    answers: Responses
    events: list[LossEvent]


def connections(
    trial: Trial, packets: TrialPackets, flow: FlowRecord
) -> tuple[Connection, ...] | None:
    """A TCP flow's connections; None if they were not captured whole at their sender.

    A segment is lost if it is not in the receiver's capture. Without one, a segment that was
    retransmitted is taken as lost, unless it had been acknowledged by then.
    """
    sender, every = packets.flow("sender", flow), packets.connections(flow)
    if sender is None or every is None:
        return None
    receiver = packets.flow("receiver", flow)
    gone = None if receiver is None else lost_packets(sender.data, receiver.data).index.to_numpy()
    late_ns = _late_ns(trial, packets, flow, sender)
    found = []
    for segments in every:
        own = sender.data[["payload", "spurious_retransmission"]].loc[segments.row]
        lost = _repaired(segments, own) if gone is None else np.isin(segments.row, gone)
        late = np.asarray(late_ns.reindex(segments.row), dtype=np.int64)
        answers = responses(segments, _stack(trial, flow, late))
        events = loss_events(segments, lost, answers)
        payload = own["payload"].to_numpy(dtype=np.int64)
        found.append(Connection(segments, payload, lost, answers, events))
    return tuple(found)


def _stack(trial: Trial, flow: FlowRecord, late_ns: Integers) -> Stack:
    sysctls = trial.record.sysctls.get(trial.scenario.flow(flow.name).src, {})
    return Stack(
        late_ns=late_ns,
        has_rack=sysctls.get(RACK, "1") != "0",
        leaves_early=flow.variant_seen in LEAVES_EARLY,
    )


def _late_ns(
    trial: Trial, packets: TrialPackets, flow: FlowRecord, sender: FlowPackets
) -> pd.Series[int]:
    """How long before its capture TCP may have sent each packet: since the sender's own queue was
    last seen idle."""
    late_ns = pd.Series(PROMPT_NS, index=sender.data.index)
    queue, capture = sender_queue(trial, flow), packets.capture("sender", flow.name)
    if queue is None or capture is None:
        return late_ns
    out = capture.rows[capture.rows["src"] == flow.src_address]
    times_ns, sizes = out["time_ns"].to_numpy(dtype=np.int64), out["length"].to_numpy()
    waited = pd.Series(busy_ns(times_ns, sizes, queue.rate_mbit), index=out.index)
    return late_ns + waited.reindex(sender.data.index)


def busy_ns(time_ns: Integers, size_bytes: Integers, rate_mbit: float) -> Integers:
    """How long a link had been busy when each packet left it, the packet's own transmission
    included."""
    takes_ns = np.round(size_bytes * 8e3 / rate_mbit).astype(np.int64)
    gap_ns = np.diff(time_ns, prepend=time_ns[:1])
    idle = gap_ns > np.maximum(takes_ns, np.roll(takes_ns, 1)) + PROMPT_NS // 10
    since_ns = np.maximum.accumulate(np.where(idle, time_ns, time_ns[:1]))
    return np.asarray(time_ns - since_ns + takes_ns)


def _repaired(segments: Segments, rows: pd.DataFrame) -> Booleans:
    """A mask of the repaired transmissions: the one before each needed retransmission."""
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
