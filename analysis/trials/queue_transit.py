"""The packets of one shaped queue, from the captures before and behind it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from analysis.captures.packet_matching import NOWHERE, pairs
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

Booleans = npt.NDArray[np.bool_]
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
        captured = packets.part(f"{_role_at(trial, flow, queue.interface)}{BEFORE}", flow)
        return None if captured is None else captured.data
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
    """All packets of an interface's queue, those that left it and those that did not.

    Of packets that look alike, some of which were lost, it is not known which: those that left are
    taken to have arrived as early as they can, and each that was or was not lost `is_guess`.
    """

    left_ns: Integers  # ascending
    arrived_ns: Integers  # of the same packets; their departure if the arrival was not captured
    is_guess: Booleans
    length: Integers  # bytes
    lost_ns: Integers  # arrivals of the packets that never left
    lost_length: Integers
    lost_is_guess: Booleans
    unmatched: int  # packets that left and were not seen to arrive
    complete: bool  # whether every flow's arrivals were captured

    @property
    def bursts(self) -> QueueTransit:
        """The packets that left at one instant as one packet, which arrived when the last did."""
        left_ns, first = np.unique(self.left_ns, return_index=True)
        arrived_ns, length, is_guess = self.arrived_ns[:0], self.length[:0], self.is_guess[:0]
        if len(first):
            arrived_ns = np.maximum.reduceat(self.arrived_ns, first)
            length = np.add.reduceat(self.length, first)
            is_guess = np.logical_or.reduceat(self.is_guess, first)
        return replace(
            self, left_ns=left_ns, arrived_ns=arrived_ns, length=length, is_guess=is_guess
        )

    def lost_before(self, until_ns: float) -> QueueTransit:
        """Return the transit without packets that arrived later and never left the queue."""
        return self._with_lost(self.lost_ns < until_ns)

    @property
    def surely_lost(self) -> QueueTransit:
        """The transit without losses that may be of another packet that looks alike."""
        return self._with_lost(~self.lost_is_guess)

    def _with_lost(self, chosen: Booleans) -> QueueTransit:
        return replace(
            self,
            lost_ns=self.lost_ns[chosen],
            lost_length=self.lost_length[chosen],
            lost_is_guess=self.lost_is_guess[chosen],
        )

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
    parts = [_of_flow(each) for each in every] or [_of_nothing()]
    left, arrived, is_guess, length, lost, lost_length, lost_is_guess = (
        np.concatenate(columns) for columns in zip(*parts, strict=True)
    )
    order = np.argsort(left, kind="stable")
    return QueueTransit(
        left_ns=left[order],
        arrived_ns=np.where(arrived == NOWHERE, left, arrived)[order],
        is_guess=is_guess[order],
        length=length[order],
        lost_ns=lost,
        lost_length=lost_length,
        lost_is_guess=lost_is_guess,
        unmatched=int(((arrived == NOWHERE) & (left < until_ns)).sum()),
        complete=all(each.entered is not None for each in every),
    ).lost_before(until_ns)


Columns = tuple[Integers, Integers, Booleans, Integers, Integers, Integers, Booleans]


def _of_nothing(left_ns: Integers | None = None, length: Integers | None = None) -> Columns:
    """Return the columns of packets whose arrivals were not captured."""
    nothing, none = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.bool_)
    if left_ns is None or length is None:
        left_ns = length = nothing
    unknown, sure = np.full(len(left_ns), NOWHERE), np.zeros(len(left_ns), dtype=np.bool_)
    return left_ns, unknown, sure, length, nothing, nothing, none


def _of_flow(at_queue: FlowAtQueue) -> Columns:
    left = at_queue.left["time_ns"].astype(np.int64)
    length = at_queue.left["length"].astype(np.int64)
    if at_queue.entered is None:
        return _of_nothing(left, length)
    entered = at_queue.entered["time_ns"].astype(np.int64)
    sizes = at_queue.entered["length"].astype(np.int64)
    matches = pairs(at_queue.entered, at_queue.left)
    arrived = np.where(matches.earliest == NOWHERE, NOWHERE, entered[matches.earliest])
    lost = np.ones(len(entered), dtype=np.bool_)
    lost[matches.latest[matches.latest != NOWHERE]] = False
    unsure = matches.may_have_passed[lost]
    return left, arrived, matches.is_guess, length, entered[lost], sizes[lost], unsure
