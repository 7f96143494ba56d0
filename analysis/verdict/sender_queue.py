"""The sender's own shaped queue: TCP counts its packets as sent before a capture can see them."""

from __future__ import annotations

import math

from analysis.trials.capacity import Capacity, capacity_of
from analysis.trials.packets import capture_interface, epoch_ns, sender_queue
from analysis.trials.samples import read_counters
from analysis.verdict.evidence import Evidence
from testbed.scenario.network import FRAME_BYTES
from testbed.store.records import FlowRecord, QueueRecord

REFUSED_COUNTER = "TcpExtTCPRetransFail"


def longest_wait_ns(queue: QueueRecord, capacity: Capacity) -> float:
    """Return the time a packet waits in a full queue, its own serialisation included."""
    size = queue.limit * (1 if queue.unit == "bytes" else FRAME_BYTES) + FRAME_BYTES
    return capacity.longest_wait_ns(size)


def own_queue_ns(evidence: Evidence, flow: FlowRecord, role: str = "sender") -> int:
    """Return the longest wait in a host's own queue, the sender's unless said; 0 without one."""
    queue = sender_queue(evidence.trial, flow, role)
    if queue is None:
        return 0
    return round(longest_wait_ns(queue, capacity_of(evidence.trial, queue)))


def refused_again(evidence: Evidence, node: str) -> tuple[int, int]:
    """Return how many retransmissions, at least and at most, a host's own queue had no room for.

    TCP counts them and tries again; they are on no link. Of a buffer that is cut into segments
    before the queue, some may be refused: TCP is not told, and the queue's drops are the most.
    """
    least = read_counters(evidence.trial, node).get(REFUSED_COUNTER, 0)
    drops = evidence.disciplines.drops().items()
    return least, max(least, sum(n for name, n in drops if name.startswith(f"{node}-")))


def refused_new(evidence: Evidence, flow: FlowRecord) -> int:
    """Return how many segments of new data, at most, the sender's own queue had no room for.

    TCP takes them to be in flight.
    """
    interface = capture_interface(evidence.trial, "sender", flow)
    drops = evidence.disciplines.drops().get(interface, 0)
    again, _ = refused_again(evidence, evidence.trial.scenario.flow(flow.name).src)
    return max(0, drops - again)


def refused_syns(evidence: Evidence, flow: FlowRecord) -> int:
    """Return how many SYNs, at most, the sender's own queue had no room for.

    TCP sends them again after 1, 3, 7, … seconds: the time of the first one captured tells.
    """
    connections = evidence.packets.connections(flow)
    if not own_queue_ns(evidence, flow) or not connections:
        return 0
    begun_ns = epoch_ns(evidence.trial) + round(flow.started_s * 1e9)
    late_s = [max(0, int(segments.time_ns[0]) - begun_ns) / 1e9 for segments in connections]
    return sum(int(math.log2(1 + seconds)) for seconds in late_s)
