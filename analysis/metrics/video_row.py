"""A video flow's own columns of the metrics: what its player saw, and its packets second by second
(analysis/metrics/video_columns.py says what each is)."""

from __future__ import annotations

import numpy as np
import pandas as pd

from analysis.captures.packet_matching import lost_packets
from analysis.captures.tcp import MARKS
from analysis.metrics.spikes import spikes
from analysis.trials.delivery import Integers
from analysis.trials.packets import FlowPackets
from analysis.trials.video import measures, read_server
from testbed.store import FlowRecord, Trial

ERRORS = tuple(mark for mark in MARKS if mark != "window_update")
SECOND_NS = 1_000_000_000
PLAYERS = ("page_s", "startup_s", "loaded_s", "ended_s", "stalls", "stall_s", "switches")

Row = dict[str, object]


def video_columns(
    trial: Trial, flow: FlowRecord, sender: FlowPackets | None, receiver: FlowPackets | None
) -> Row:
    """All that is known of them; the packets are those that count."""
    row = _player(trial, flow.name)
    if (counted := read_server(trial, flow.name)) is not None:
        row["quic_lost_packets"] = counted["lost_packets"]
    begin_ns = _begin_ns(sender, receiver)
    if receiver is not None:
        row |= _at_receiver(receiver, flow.protocol, begin_ns)
    if sender is not None and flow.protocol == "tcp":
        again = sender.data["retransmission"] | sender.data["out_of_order"]
        row["retransmitted_bytes"] = int(sender.data.loc[again, "length"].sum())
    if sender is not None and receiver is not None:
        lost = lost_packets(sender.data, receiver.data)
        row |= _sum_and_peak("lost_packets", lost, begin_ns)
    return row


def _player(trial: Trial, flow: str) -> Row:
    seen = measures(trial, flow)
    if seen is None:
        return {}
    return {**{name: seen[name] for name in PLAYERS}, "video_mbps": seen["mean_mbps"]}


def _at_receiver(found: FlowPackets, protocol: str, begin_ns: int) -> Row:
    """Lengths and spikes of all packets; of TCP also what Wireshark finds wrong with them."""
    both = pd.concat((found.data, found.acks))
    tall = spikes(per_second(both, begin_ns))
    row: Row = {
        "mean_packet_bytes": float(both["length"].mean()),
        "spikes": tall.count,
        "largest_spike_pps": tall.largest,
    }
    if protocol == "tcp":
        bad = both[both[list(ERRORS)].any(axis=1)]
        row |= _sum_and_peak("error_packets", bad, begin_ns)
    return row


def _sum_and_peak(name: str, rows: pd.DataFrame, begin_ns: int) -> Row:
    counts = per_second(rows, begin_ns)
    return {name: len(rows), f"{name}_peak": int(counts.max(initial=0))}


def _begin_ns(*found: FlowPackets | None) -> int:
    """When the first packet came by anywhere: the viewer's own, which opens the connection."""
    every = [rows for each in found if each is not None for rows in (each.data, each.acks)]
    return min((int(rows["time_ns"].min()) for rows in every if len(rows)), default=0)


def per_second(rows: pd.DataFrame, begin_ns: int) -> Integers:
    """How many packets came in each second from then on."""
    seconds = (rows["time_ns"].to_numpy(dtype=np.int64) - begin_ns) // SECOND_NS
    return np.bincount(seconds).astype(np.int64)
