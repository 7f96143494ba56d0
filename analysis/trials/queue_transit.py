"""The packets of one shaped queue, from the captures before and behind it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from analysis.captures.packet_matching import NOWHERE, pair
from analysis.captures.tcp import PacketArrays
from analysis.trials.packets import (
    BEFORE,
    BEHIND,
    TrialPackets,
    capture_files,
    capture_interface,
    queue_roles,
)
from testbed.store.reading import Trial
from testbed.store.records import FlowRecord, QueueRecord

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class FlowAtQueue:
    """A flow's packets of one direction on both sides of a queue.

    `entered` is None where the flow starts at the queue's own node.
    """

    flow: FlowRecord
    is_data: bool  # or acknowledgements
    entered: PacketArrays | None
    left: PacketArrays


def flows_at_queue(
    trial: Trial, packets: TrialPackets, queue: QueueRecord
) -> Iterator[FlowAtQueue]:
    """Yield the traffic that leaves by a captured interface.

    That is the data of the flows that cross it that way, and the acknowledgements of those that
    cross it the other way.
    """
    path = capture_files(trial)[queue.interface]
    for flow in trial.record.flows:
        seen = packets.part_at(path, flow)
        forward = _role_at(trial, flow, queue.interface) != ""
        left = seen.data if forward else seen.acks
        if forward or len(left):  # of a flow's SYNs it may be that none left
            entered = _entered(trial, packets, queue, flow, forward)
            yield FlowAtQueue(flow, forward, entered, left)


def _entered(
    trial: Trial, packets: TrialPackets, queue: QueueRecord, flow: FlowRecord, forward: bool
) -> PacketArrays | None:
    """Return the same packets at the interface by which they reached the queue's node."""
    if forward:
        found = packets.part(f"{_role_at(trial, flow, queue.interface)}{BEFORE}", flow)
        return None if found is None else found.data
    nodes = {each.interface: each.node for each in trial.record.captures}
    for role in (f"{name}{BEHIND}" for name in queue_roles(trial, flow)):
        seen = packets.part(role, flow)
        if seen is not None and nodes[capture_interface(trial, role, flow)] == queue.node:
            return seen.acks
    return None


def _role_at(trial: Trial, flow: FlowRecord, interface: str) -> str:
    """Which of the flow's queues it leaves by an interface; empty if none."""
    for name in queue_roles(trial, flow):
        if capture_interface(trial, f"{name}{BEHIND}", flow) == interface:
            return name
    return ""


@dataclass(frozen=True)
class QueueTransit:
    """All packets of an interface's queue, those that left it and those that did not."""

    left_ns: Integers  # ascending
    arrived_ns: Integers  # of the same packets; their departure if the arrival was not captured
    length: Integers  # bytes
    lost_ns: Integers  # arrivals of the packets that never left
    lost_length: Integers
    unmatched: int  # packets that left and were not seen to arrive
    complete: bool  # whether every flow's arrivals were captured

    @property
    def bursts(self) -> QueueTransit:
        """The packets that left at one instant as one packet, which arrived when the last did."""
        left_ns, first = np.unique(self.left_ns, return_index=True)
        arrived_ns, length = self.arrived_ns[:0], self.length[:0]
        if len(first):
            arrived_ns = np.maximum.reduceat(self.arrived_ns, first)
            length = np.add.reduceat(self.length, first)
        return replace(self, left_ns=left_ns, arrived_ns=arrived_ns, length=length)

    def lost_before(self, until_ns: float) -> QueueTransit:
        """Return the transit without packets that arrived later and never left the queue."""
        early = self.lost_ns < until_ns
        return replace(self, lost_ns=self.lost_ns[early], lost_length=self.lost_length[early])

    @property
    def entered(self) -> int:
        """The number of packets that arrived."""
        return len(self.left_ns) - self.unmatched + len(self.lost_ns)


def queue_transit(
    parts_of_flows: Iterable[FlowAtQueue], until_ns: float = math.inf
) -> QueueTransit:
    """Match the packets before and behind a queue, in the order of their departure.

    Those before `until_ns` that are only before it count as lost, those that are only behind it as
    unmatched.
    """
    every = tuple(parts_of_flows)
    parts = [_of_flow(each) for each in every]
    left, arrived, length, lost, lost_length = (
        np.concatenate([part[i] for part in parts] or [np.zeros(0, dtype=np.int64)])
        for i in range(5)
    )
    order = np.argsort(left, kind="stable")
    early = lost < until_ns
    return QueueTransit(
        left_ns=left[order],
        arrived_ns=np.where(arrived == NOWHERE, left, arrived)[order],
        length=length[order],
        lost_ns=lost[early],
        lost_length=lost_length[early],
        unmatched=int(((arrived == NOWHERE) & (left < until_ns)).sum()),
        complete=all(each.entered is not None for each in every),
    )


def _of_flow(at_queue: FlowAtQueue) -> tuple[Integers, Integers, Integers, Integers, Integers]:
    left = at_queue.left["time_ns"].astype(np.int64)
    length = at_queue.left["length"].astype(np.int64)
    if at_queue.entered is None:
        nothing = np.zeros(0, dtype=np.int64)
        return left, np.full(len(left), NOWHERE), length, nothing, nothing
    entered = at_queue.entered["time_ns"].astype(np.int64)
    sizes = at_queue.entered["length"].astype(np.int64)
    places = pair(at_queue.entered, at_queue.left)
    arrived = np.where(places == NOWHERE, NOWHERE, entered[places])
    lost = np.ones(len(entered), dtype=np.bool_)
    lost[places[places != NOWHERE]] = False
    return left, arrived, length, entered[lost], sizes[lost]
