"""The times of a flow's events: drops and marks at the queue, and what its sender saw and did."""

from __future__ import annotations

import enum

import numpy as np
import pandas as pd

from analysis.captures.packet_matching import lost_packets
from analysis.captures.tcp import CE
from analysis.trials.packets import FlowTables, TrialPackets, epoch_ns
from analysis.trials.series import Floats
from testbed.store.reading import Trial
from testbed.store.records import FlowRecord


class Kind(enum.StrEnum):
    """Events of a flow, as the figure names them; retransmissions by Wireshark's classes."""

    DROP = "lost"
    MARK = "marked (CE)"
    RETRANSMISSION = "retransmission"
    FAST = "fast retransmission"
    SPURIOUS = "spurious retransmission"
    OUT_OF_ORDER = "out-of-order"
    DUPLICATE_ACK = "duplicate ACK"
    TIMEOUT = "timeout"


# What Wireshark calls out-of-order was sent again too: at its own sender nothing overtakes.
RESENT = (Kind.RETRANSMISSION, Kind.FAST, Kind.SPURIOUS, Kind.OUT_OF_ORDER)


def seconds(rows: pd.DataFrame, trial: Trial) -> Floats:
    """Return the packets' times on the trial's clock."""
    times: Floats = (rows["time_ns"].to_numpy() - epoch_ns(trial)) / 1e9
    return times


def flow_events(
    trial: Trial,
    flow: FlowRecord,
    packets: TrialPackets,
    sockets: pd.DataFrame | None,
    queue: pd.DataFrame | None,
) -> dict[Kind, Floats]:
    """Return the times of all events in seconds; kinds without a source are absent."""
    events: dict[Kind, Floats] = {}
    events |= _at_queue(trial, flow, packets, queue)
    if flow.protocol == "tcp" and (sender := packets.flow("sender", flow)) is not None:
        events |= _at_sender(trial, sender)
    if sockets is not None:
        fired = np.diff(sockets["backoff"].to_numpy(), prepend=0) > 0
        events[Kind.TIMEOUT] = sockets["time_s"].to_numpy()[fired]
    return {kind: events[kind] for kind in Kind if kind in events}


def _at_queue(
    trial: Trial, flow: FlowRecord, packets: TrialPackets, queue: pd.DataFrame | None
) -> dict[Kind, Floats]:
    """Return the queue's drops and marks: from captures on both sides, else from its counters."""
    entered, left = (packets.flow(f"bottleneck-{side}", flow) for side in ("in", "out"))
    events: dict[Kind, Floats] = {}
    if left is not None:
        events[Kind.MARK] = seconds(left.data[left.data["ecn"] == CE], trial)
    if entered is not None and left is not None:
        events[Kind.DROP] = seconds(lost_packets(entered.data, left.data), trial)
    if queue is not None:
        for kind, counter in ((Kind.DROP, "drops"), (Kind.MARK, "marks")):
            rises = np.diff(queue[counter].to_numpy(), prepend=0) > 0
            events.setdefault(kind, queue["time_s"].to_numpy()[rises])
    return events


def classes(data: pd.DataFrame) -> dict[Kind, pd.Series[bool]]:
    """Wireshark's classification of packets; each has at most one class."""
    fast, spurious = data["fast_retransmission"], data["spurious_retransmission"]
    return {
        Kind.RETRANSMISSION: data["retransmission"] & ~fast & ~spurious,
        Kind.FAST: fast & ~spurious,
        Kind.SPURIOUS: spurious,
        Kind.OUT_OF_ORDER: data["out_of_order"],
    }


def _at_sender(trial: Trial, sender: FlowTables) -> dict[Kind, Floats]:
    events = {
        kind: seconds(sender.data[chosen], trial) for kind, chosen in classes(sender.data).items()
    }
    repeated = sender.acks[sender.acks["duplicate_ack"]]
    return events | {Kind.DUPLICATE_ACK: seconds(repeated, trial)}
