"""Columns of a video flow: what its player saw, and its packets second by second."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from analysis.captures.flow_tables import Metric
from analysis.captures.packet_matching import lost_packets
from analysis.captures.tcp import WIRESHARK_MARKS
from analysis.metrics.metric import ColumnGroup, MeasuredFlow, Row
from analysis.trials.packets import FlowTables
from analysis.trials.tcp_stream import Integers
from analysis.trials.video import measures, read_server
from testbed.scenario.model import FlowKind
from testbed.store.reading import Trial
from testbed.store.records import FlowRecord


@dataclass(frozen=True)
class Spikes:
    """The spikes of a series."""

    count: int
    largest: float  # excess over the higher neighbour; 0 without a spike


def spikes(values: npt.ArrayLike, threshold: float = 50) -> Spikes:
    """Intervals that exceed both neighbours by at least the threshold.

    The values are rates in equal intervals (packets per second, as in the paper), with nothing
    sent before the first and after the last.
    """
    rates = np.asarray(values, dtype=np.float64)
    around = np.concatenate(([0.0], rates, [0.0]))
    above = rates - np.maximum(around[:-2], around[2:])
    high = above[above >= threshold]
    return Spikes(len(high), float(high.max(initial=0.0)))


ERRORS = tuple(mark for mark in WIRESHARK_MARKS if mark != "window_update")
SECOND_NS = 1_000_000_000
PLAYER_METRICS = ("page_s", "startup_s", "loaded_s", "ended_s", "stalls", "stall_s", "switches")
PLAYER_COLUMNS = (
    Metric(
        "page_s",
        "s",
        "for video flows, as are all columns from here on: time from the viewer's click until the "
        "page and everything on it had been received; not known if that never happened",
    ),
    Metric("startup_s", "s", "time from the click until the picture moved, if it did"),
    Metric(
        "loaded_s", "s", "time from the click until all of the video had been received, if it was"
    ),
    Metric("ended_s", "s", "time from the click until all of the video had been shown, if it was"),
    Metric(
        "stalls",
        "",
        "how often the picture, once it had begun to move, stopped for lack of video: the paper's "
        "re-buffering",
        count=True,
    ),
    Metric("stall_s", "s", "total time for which it had stopped, to the end of the playback"),
    Metric(
        "video_mbps",
        "Mbit/s",
        "mean of the bitrates that the player chose, over the length of the video received",
    ),
    Metric(
        "switches",
        "",
        "segments whose bitrate differs from that of the segment before",
        count=True,
    ),
)
VIDEO_PACKET_COLUMNS = (
    Metric(
        "mean_packet_bytes",
        "B",
        "mean length of the flow's frames in both directions at the receiver's capture. This "
        "column and those below are of the whole capture from measure_from_s on, like what "
        "Wireshark shows of it",
    ),
    Metric(
        "error_packets",
        "packets",
        "the flow's packets in both directions at the receiver's capture that Wireshark marks with "
        "one of tcp.analysis.flags other than window_update (which its graph of TCP errors counts "
        "too); a packet with several marks counts once. Not known over QUIC, whose captures are "
        "encrypted",
        count=True,
        reads_options=True,
    ),
    Metric(
        "error_packets_peak",
        "packets/s",
        "the maximum of these in any second; seconds are counted from the first packet, as in "
        "Wireshark's I/O graph",
        count=True,
        reads_options=True,
    ),
    Metric(
        "lost_packets",
        "packets",
        "packets with data in the video's direction that are in the sender's capture but not in "
        "the receiver's: TCP segments and QUIC datagrams alike, whichever queue or radio lost "
        "them; packets that may still be in flight when the captures end are not lost",
        count=True,
    ),
    Metric(
        "lost_packets_peak",
        "packets/s",
        "the maximum of these in any second, by the time they were sent; seconds as above",
        count=True,
    ),
    Metric(
        "quic_lost_packets",
        "packets",
        "packets that the QUIC server declared lost, by its own count: three packets sent later "
        "were acknowledged, or 9/8 of a round trip had passed (RFC 9002). Excludes packets that "
        "only acknowledge, and those that a probe timeout sends again. The counterpart over TCP "
        "is retransmitted",
        count=True,
    ),
    Metric(
        "retransmitted_bytes",
        "B",
        "bytes of the frames in the data's direction at the sender's capture that repeat data sent "
        "before: Wireshark's tcp.analysis.retransmission, including fast and spurious ones, and "
        "out_of_order, which there is its name for a repair between new segments. Like the "
        "paper's, that capture is taken before the line's queue and includes the packets that the "
        "queue dropped",
        count=True,
        reads_options=True,
    ),
    Metric(
        "spikes",
        "",
        "seconds in which the flow has at least 50 packets more, in both directions together, "
        "than in either neighbouring second, at the receiver's capture; seconds as above",
        count=True,
    ),
    Metric(
        "largest_spike_pps",
        "packets/s",
        "by how much the largest spike exceeds the higher of its neighbours; 0 without a spike",
        count=True,
    ),
)


def _measure_video(flow: MeasuredFlow) -> Row:
    if flow.scenario_flow.kind is not FlowKind.VIDEO:
        return {}
    ends = (flow.settled_tables(role) for role in ("sender", "receiver"))
    return video_columns(flow.trial, flow.record, *ends)


def video_columns(
    trial: Trial,
    flow: FlowRecord,
    sender: FlowTables | None,
    receiver: FlowTables | None,
) -> Row:
    """Every video column that is known; the packets are those that count."""
    row = _player(trial, flow.name)
    if (server := read_server(trial, flow.name)) is not None:
        row["quic_lost_packets"] = server["lost_packets"]
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
    return {**{name: seen[name] for name in PLAYER_METRICS}, "video_mbps": seen["mean_mbps"]}


def _at_receiver(received: FlowTables, protocol: str, begin_ns: int) -> Row:
    """Lengths and spikes of all packets, and for TCP those that Wireshark marks as errors."""
    both = pd.concat((received.data, received.acks))
    tall = spikes(packets_per_second(both, begin_ns))
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
    counts = packets_per_second(rows, begin_ns)
    return {name: len(rows), f"{name}_peak": int(counts.max(initial=0))}


def _begin_ns(*received: FlowTables | None) -> int:
    """Return the time of the first packet anywhere: the viewer's, which opens the connection."""
    every = [rows for each in received if each is not None for rows in (each.data, each.acks)]
    return min((int(rows["time_ns"].min()) for rows in every if len(rows)), default=0)


def packets_per_second(rows: pd.DataFrame, begin_ns: int) -> Integers:
    """Count the packets in each second from then on."""
    seconds = (rows["time_ns"].to_numpy(dtype=np.int64) - begin_ns) // SECOND_NS
    return np.bincount(seconds).astype(np.int64)


VIDEO_GROUP = ColumnGroup((*PLAYER_COLUMNS, *VIDEO_PACKET_COLUMNS), _measure_video)
