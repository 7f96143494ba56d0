"""The sender's own shaped queue: TCP counts its packets as sent before a capture can see them."""

from __future__ import annotations

from analysis.trials.placement import capture_interface, sender_queue
from analysis.trials.samples import read_counters
from analysis.verdict.evidence import Evidence
from testbed.scenario.model import FRAME_OVERHEAD_BYTES
from testbed.store import FlowRecord, QueueRecord

FRAME_BYTES = 1500 + FRAME_OVERHEAD_BYTES
REFUSED = "TcpExtTCPRetransFail"


def longest_wait_ns(queue: QueueRecord) -> float:
    """The time a packet waits in a full queue, its own serialisation included."""
    size = queue.limit * (1 if queue.unit == "bytes" else FRAME_BYTES) + FRAME_BYTES
    return size * 8e3 / queue.rate_mbit


def own_queue_ns(evidence: Evidence, flow: FlowRecord) -> int:
    """The longest time a packet can wait in the sender's own queue."""
    queue = sender_queue(evidence.trial, flow)
    return 0 if queue is None else round(longest_wait_ns(queue))


def refused_again(evidence: Evidence, node: str) -> int:
    """Retransmissions counted by a host's TCP for which its own queue had no room: they are on no
    link, and TCP tries again."""
    return read_counters(evidence.trial, node).get(REFUSED, 0)


def refused_new(evidence: Evidence, flow: FlowRecord) -> int:
    """An upper bound on segments of new data for which the sender's own queue had no room: TCP
    takes them to be in flight."""
    interface = capture_interface(evidence.trial, "sender", flow)
    drops = evidence.disciplines.drops().get(interface, 0)
    again = refused_again(evidence, evidence.trial.scenario.flow(flow.name).src)
    return max(0, drops - again)
