"""A connection's segments, acknowledgements, windows and SACK blocks, in bytes since its SYN."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from analysis.captures.packet_matching import lost_packets
from analysis.captures.tcp import ACK, SYN, UNKNOWN_SCALE
from analysis.figures.timeline.timeline_data import TimeSpan
from analysis.figures.timeline.timeline_events import Kind, classes, seconds
from analysis.trials.packets import FlowTables, TrialPackets, ports_of
from analysis.trials.series import Floats
from analysis.trials.tcp_stream import Integers, unwrap
from testbed.errors import TestbedError
from testbed.store.reading import Trial
from testbed.store.records import FlowRecord

BEFORE_RTTS, AFTER_RTTS = 0.75, 4.5  # of the zoom, around the first loss
REPAIRED_RTTS, MAX_RTTS = 0.5, 8.0  # what it shows beyond the repair, and at most


@dataclass(frozen=True)
class Stretches:
    """Ranges of sequence numbers at instants."""

    time_s: Floats
    start: Integers
    stop: Integers
    packets: pd.DataFrame | None = None  # of each range

    def within(self, span: TimeSpan) -> Stretches:
        """Return the ranges whose time lies in the span."""
        chosen = (self.time_s >= span.start_s) & (self.time_s <= span.stop_s)
        packets = None if self.packets is None else self.packets[chosen]
        return Stretches(self.time_s[chosen], self.start[chosen], self.stop[chosen], packets)

    def __len__(self) -> int:
        return len(self.time_s)


@dataclass(frozen=True)
class Sequence:
    """A connection at its sender's capture."""

    new: Stretches  # data sent for the first time
    again: Mapping[Kind, Stretches]  # by Wireshark's class
    lost: Stretches  # those of all these that the receiver's capture does not have
    sacks: Stretches
    ack_s: Floats
    ack: Integers
    window_edge: Integers | None  # what the receiver lets be sent, at `ack_s`; None: not known
    duplicates: Integers  # places in `ack_s`
    connections: int  # of the flow; this is its first
    ack_packets: pd.DataFrame | None = None
    ack_words: tuple[str, ...] = ()  # in front of Wireshark's Info, of each ACK

    @property
    def first_trouble_s(self) -> float | None:
        """The time of the first lost, retransmitted or reordered segment; None if there is none."""
        times = [each.time_s[0] for each in (self.lost, *self.again.values()) if len(each)]
        return float(min(times)) if times else None


def sequence(trial: Trial, flow: FlowRecord) -> Sequence:
    """Read the flow's first connection."""
    packets = TrialPackets(trial)
    sender_packets = packets.flow("sender", flow)
    if flow.protocol != "tcp" or sender_packets is None:
        why = "no TCP" if flow.protocol != "tcp" else "not captured at its sender"
        raise TestbedError(f"{trial.path}: flow {flow.name} is {why}", "name another with --flow")
    every = ports_of(sender_packets, flow)
    port, other = every[0] if every else (0, 0)
    data = sender_packets.data[
        (sender_packets.data["src_port"] == port) & (sender_packets.data["dst_port"] == other)
    ]
    acks = sender_packets.acks[
        (sender_packets.acks["dst_port"] == port) & (sender_packets.acks["src_port"] == other)
    ]
    acks = acks[(acks["flags"] & ACK > 0)]
    receiver = packets.flow("receiver", flow)
    start = unwrap(data["relative_seq"].to_numpy(dtype=np.int64))
    sent = data.assign(start=start, time_s=seconds(data, trial))
    sent = sent[sent["payload"] > 0]
    kinds = classes(sent)
    again = {kind: _stretches(sent[chosen]) for kind, chosen in kinds.items()}
    is_new = ~np.logical_or.reduce([chosen.to_numpy() for chosen in kinds.values()])
    capture = packets.capture("sender", flow.name)
    assert capture is not None
    ack = unwrap(acks["relative_ack"].to_numpy(dtype=np.int64))
    return Sequence(
        new=_stretches(sent[is_new]),
        again=again,
        lost=_lost(sent, receiver),
        sacks=_sacks(capture.sacks, acks, ack, seconds(acks, trial)),
        ack_s=seconds(acks, trial),
        ack=ack,
        window_edge=_window_edge(acks, ack),
        duplicates=np.flatnonzero(acks["duplicate_ack"].to_numpy()),
        connections=len(every),
        ack_packets=acks,
        ack_words=tuple(
            f"[TCP Dup ACK {of}#{number}]" if repeats else ""
            for of, number, repeats in zip(
                acks["duplicate_ack_frame"],
                acks["duplicate_ack_number"],
                acks["duplicate_ack"],
                strict=True,
            )
        ),
    )


def _stretches(sent: pd.DataFrame) -> Stretches:
    start = sent["start"].to_numpy()
    stop = start + sent["payload"].to_numpy()
    return Stretches(sent["time_s"].to_numpy(), start, stop, sent)


def _lost(sent: pd.DataFrame, receiver: FlowTables | None) -> Stretches:
    if receiver is None or sent.empty:
        return _stretches(sent[:0])
    return _stretches(sent.loc[lost_packets(sent, receiver.data).index])


def _window_edge(acks: pd.DataFrame, ack: Integers) -> Integers | None:
    """Return the edge of the receiver's window; a SYN's window is never scaled."""
    later = (acks["flags"] & SYN == 0).to_numpy()
    if (acks["window_scale"].to_numpy()[later] == UNKNOWN_SCALE).any():
        return None
    edge: Integers = ack + acks["window"].to_numpy(dtype=np.int64)
    return edge


def _sacks(sacks: pd.DataFrame, acks: pd.DataFrame, ack: Integers, time_s: Floats) -> Stretches:
    """Return the blocks of the acknowledgements; edges are near the acknowledged number."""
    place = pd.Series(np.arange(len(acks)), index=acks["frame"].to_numpy())
    of_place = sacks[sacks["frame"].isin(place.index)]
    at = place.loc[of_place["frame"]].to_numpy(dtype=np.int64)
    left, right = (
        ack[at] + _signed(of_place[edge].to_numpy(dtype=np.int64) - ack[at])
        for edge in ("left", "right")
    )
    return Stretches(time_s[at], left, right)


def _signed(steps: Integers) -> Integers:
    """Differences of sequence numbers, the shorter way round."""
    half = 1 << 31
    return (steps + half) % (2 * half) - half


def zoom(steps: Sequence, span: TimeSpan) -> TimeSpan:
    """From before the first loss to its repair; the first round trips of a flow without any."""
    start_s = steps.first_trouble_s
    if start_s is None:
        start_s = float(steps.new.time_s[0]) if len(steps.new) else span.start_s
    rtt_s = _rtt_s(steps, start_s)
    stop_s = start_s + AFTER_RTTS * rtt_s
    if repaired_s := _repaired_s(steps, start_s):
        stop_s = min(repaired_s + REPAIRED_RTTS * rtt_s, start_s + MAX_RTTS * rtt_s)
    return TimeSpan(
        max(span.start_s, start_s - BEFORE_RTTS * rtt_s),
        min(span.stop_s, stop_s),
    )


def _repaired_s(steps: Sequence, lost_s: float) -> float | None:
    """Return when all data outstanding at the first retransmission was acknowledged."""
    times = [t for each in steps.again.values() for t in each.time_s[each.time_s >= lost_s][:1]]
    if not times:
        return None
    sent = steps.new.stop[steps.new.time_s <= min(times)]
    later = steps.ack_s[steps.ack >= max(sent, default=0)]
    return float(later[0]) if len(later) else None


def _rtt_s(steps: Sequence, at_s: float) -> float:
    """Return the ACK delay of the last data before this instant, or else of the first data."""
    if not len(steps.new):
        return 1.0
    place = max(0, int(np.searchsorted(steps.new.time_s, at_s)) - 1)
    later = steps.ack_s[steps.ack >= steps.new.stop[place]]
    return float(later[0] - steps.new.time_s[place]) if len(later) else 1.0


def table(steps: Sequence) -> pd.DataFrame:
    """All of it in rows of `time_s`, `what`, `start` and `stop`, in the order of time."""
    parts = [_rows("segment", steps.new), _rows("sack", steps.sacks), _rows("lost", steps.lost)]
    parts += [_rows(str(kind), each) for kind, each in steps.again.items()]
    parts.append(_rows("ack", Stretches(steps.ack_s, steps.ack, steps.ack)))
    if steps.window_edge is not None:
        parts.append(_rows("window", Stretches(steps.ack_s, steps.ack, steps.window_edge)))
    return pd.concat(parts, ignore_index=True).sort_values("time_s", kind="stable")


def _rows(what: str, each: Stretches) -> pd.DataFrame:
    columns = {"time_s": each.time_s, "what": what, "start": each.start, "stop": each.stop}
    return pd.DataFrame(columns)
