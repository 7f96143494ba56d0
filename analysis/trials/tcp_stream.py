"""TCP connections: what was delivered in order, and the segments of one at its sender's capture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pandas as pd

from analysis.captures.tcp import (
    ACK,
    FIN,
    HALF_SEQUENCE_SPACE,
    SYN,
    TIMED,
    UNKNOWN_SCALE,
    Rows,
    contiguous,
    rows_at,
)
from analysis.trials.samples import read_counters
from testbed.store.reading import Trial

# older than a segment that was sent again and has overtaken them
OLD_TIMESTAMPS = "TcpExtPAWSEstab"
# for want of room: those that waited for a lost one, by the times that this happened, and those
# that were not taken in
PRUNED = ("TcpExtOfoPruned", "TcpExtRcvPruned", "TcpExtTCPOFODrop", "TcpExtTCPRcvQDrop")
_PORTS = ["src_port", "dst_port"]

Integers = npt.NDArray[np.int64]


def unwrap(seq: Integers) -> Integers:
    """Sequence numbers that continue past 2³²: neighbours are less than half the space apart."""
    steps = np.diff(seq, prepend=seq[:1])
    steps = (steps + HALF_SEQUENCE_SPACE) % (2 * HALF_SEQUENCE_SPACE) - HALF_SEQUENCE_SPACE
    return np.asarray(seq[:1].sum() + np.cumsum(steps), dtype=np.int64)


def delivered_bytes(rows: Rows, *, over_gaps: bool = False) -> Integers:
    """Bytes delivered in order after each packet, or those behind gaps, too, each once.

    `rows` are one connection's packets from the sender of the data, in the order of
    their arrival. The first byte is the one after the SYN; where the capture began
    later, the first byte of the first packet.
    """
    if not len(rows):
        return np.zeros(0, dtype=np.int64)
    seq = unwrap(np.asarray(rows["seq"], dtype=np.int64))
    syn = np.flatnonzero(np.asarray(rows["flags"]) & SYN)
    start = int(seq[syn[0]]) + 1 if len(syn) else int(seq[0])
    ends = seq + np.asarray(rows["payload"], dtype=np.int64)
    if over_gaps:
        before = np.maximum.accumulate(np.concatenate(([start], ends)))[:-1]
        return np.cumsum(np.maximum(0, ends - np.maximum(seq, before)))
    return np.asarray(contiguous(seq, ends, start) - start)


def round_trips(acks: Rows) -> pd.DataFrame:
    """Return round-trip times (`rtt_ms`) by the time of the acknowledgement (`time_ns`).

    From the sending of the segment that is acknowledged last, by Karn's rule; handshakes, and what
    else acknowledges no data, do not count.
    """
    rtt_ms = np.asarray(acks["ack_rtt_ms"])
    known = np.asarray(acks[TIMED]) & ~np.isnan(rtt_ms)
    time_ns = np.asarray(acks["time_ns"])[known]
    return pd.DataFrame({"time_ns": time_ns, "rtt_ms": rtt_ms[known]})


def recovery_latencies(data: Rows, acks: Rows) -> pd.DataFrame:
    """Return the time from each segment's first transmission to the ACK that covers it.

    Columns `sent_ns` and `recovery_ms`; segments that were never acknowledged are left out.
    """
    answers = by_ports(acks, _PORTS[::-1])
    latencies: list[tuple[Integers, Integers]] = [
        _until_covered(rows, answers[ports])
        for ports, rows in by_ports(data, _PORTS).items()
        if ports in answers
    ]
    sent = np.concatenate([np.zeros(0, np.int64), *(sent for sent, _ in latencies)])
    covered = np.concatenate([np.zeros(0, np.int64), *(covered for _, covered in latencies)])
    return pd.DataFrame({"sent_ns": sent, "recovery_ms": (covered - sent) / 1e6})


def by_ports(rows: Rows, columns: Sequence[str]) -> dict[tuple[int, int], Rows]:
    """Return the packets of each connection by its ports, in the ports' order."""
    first, second = (np.asarray(rows[name]).astype(np.int64) for name in columns)
    both = first << 16 | second
    order = np.argsort(both, kind="stable")
    ports, starts = np.unique(both[order], return_index=True)
    groups = np.split(order, starts[1:])
    return {
        (each >> 16, each & 0xFFFF): rows_at(rows, group)
        for each, group in zip(ports.tolist(), groups, strict=False)  # of no packets one, empty
    }


def _until_covered(data: Rows, acks: Rows) -> tuple[Integers, Integers]:
    """Return the times at which one connection's segments were first sent, and covered."""
    data = data[data["payload"] > 0]
    acks = acks[(acks["flags"] & ACK) > 0]
    if not len(data) or not len(acks):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    seq, payload, ack = (
        np.asarray(column, dtype=np.int64) for column in (data["seq"], data["payload"], acks["ack"])
    )
    reached = np.maximum.accumulate(unwrap(np.concatenate((seq[:1], ack)))[1:])
    ends = unwrap(seq) + payload
    highest = np.maximum.accumulate(ends)
    first = np.diff(highest, prepend=highest[:1] - 1) > 0  # a retransmission reaches no further
    place = np.searchsorted(reached, ends[first])
    known = place < len(reached)
    sent, covered = np.asarray(data["time_ns"])[first], np.asarray(acks["time_ns"])
    return sent[known], covered[place[known]]


def why_discarded(trial: Trial, receiver: str) -> str:
    """Return why the host's captures have segments that its TCP had not; empty if none have."""
    if older := read_counters(trial, receiver).get(OLD_TIMESTAMPS, 0):
        return f"{receiver} discarded {older} segments for their timestamps: older than others'"
    if pruned(trial, receiver):
        return f"{receiver} threw away segments that had arrived: its buffer was full"
    return ""


def pruned(trial: Trial, receiver: str) -> int:
    """Count the segments that the host threw away since a receive buffer was full."""
    counters = read_counters(trial, receiver)
    return sum(counters.get(name, 0) for name in PRUNED)


Floats = npt.NDArray[np.float64]
Booleans = npt.NDArray[np.bool_]

SRTT_WEIGHT = 1 / 8  # RFC 6298
SRTT_MEMORY = 64  # acknowledgements: earlier ones weigh 0.02 % in the smoothed value


@dataclass(frozen=True)
class Segments:
    """The segments of a connection, by sequence numbers relative to its first packet's.

    A segment here is a packet that takes room in the sequence space: data, SYN or FIN.
    """

    row: Integers  # of the flow's packets
    time_ns: Integers
    begin: Integers
    end: Integers
    ack_ns: Integers  # of the acknowledgements
    acked: Integers  # everything below is acknowledged, after each of them
    allowed: Integers | None = None  # what the receiver's window lets be sent; None: not captured

    @cached_property
    def again(self) -> Booleans:
        """A mask of the segments that begin with data sent before: retransmissions."""
        highest = np.maximum.accumulate(self.end)
        is_repeated: Booleans = np.zeros(len(self.end), dtype=np.bool_)
        is_repeated[1:] = self.begin[1:] < highest[:-1]
        return is_repeated

    @cached_property
    def new_end(self) -> Integers:
        """The ends of the segments of new data, ascending."""
        return self.end[~self.again]

    @cached_property
    def new_ns(self) -> Integers:
        """The times at which the segments of new data were sent."""
        return self.time_ns[~self.again]

    def edges(self, at_ns: Integers) -> Integers:
        """Return the sequence numbers below which everything was acknowledged by then."""
        place = np.searchsorted(self.ack_ns, at_ns, side="right")
        return np.asarray(np.concatenate(([0], self.acked))[place])

    def outstanding(self, at_ns: Integers, late_ns: int = 0) -> Integers:
        """Count the segments sent and not acknowledged: TCP_INFO's `unacked`.

        Segments that pass the capture up to `late_ns` later count as sent.
        """
        sent = np.searchsorted(self.new_ns, at_ns + late_ns, side="right")
        acked = np.searchsorted(self.new_end, self.edges(at_ns), side="right")
        return np.asarray(np.maximum(0, sent - acked))

    def retransmissions(self, until_ns: Integers, late_ns: int = 0) -> Integers:
        """Count the retransmissions that pass the capture by `until_ns + late_ns`."""
        return np.searchsorted(self.time_ns[self.again], until_ns + late_ns, side="right")

    def joined(self, until_ns: Integers) -> Integers:
        """Count the segments merged into others by then.

        A retransmission of short segments may join them (tcp_retrans_try_collapse), and the kernel
        counts one where two were sent.
        """
        begin, end = self.begin[self.again], self.end[self.again]
        inside = np.searchsorted(self.new_end, end, side="left") - np.searchsorted(
            self.new_end, begin, side="right"
        )
        so_far = np.concatenate(([0], np.cumsum(np.maximum(0, inside))))
        return np.asarray(so_far[self.retransmissions(until_ns)])

    def held_by_window_ns(self, begin_ns: int, stop_ns: int) -> tuple[int, int] | None:
        """Return for how long the receiver's window had no room for a whole segment, and of what.

        From one acknowledgement to the next, while there was more to send; None if not known.
        """
        if self.allowed is None or not len(self.new_end):
            return None
        times_ns = np.clip(np.append(self.ack_ns, self.ack_ns[-1:]), begin_ns, stop_ns)
        lasted_ns = np.diff(times_ns)
        sent = np.searchsorted(self.new_ns, np.append(self.ack_ns[1:], stop_ns), side="left")
        sent_end = np.concatenate(([0], self.new_end))[sent]
        whole = int((self.end - self.begin).max())
        held = (self.allowed - sent_end < whole) & (sent_end < self.new_end[-1])
        return int(lasted_ns[held].sum()), int(lasted_ns.sum())

    def smoothed_rtt(self) -> tuple[Integers, Floats, Booleans]:
        """Return the smoothed RTT after each acknowledgement, as Linux computes it.

        Three arrays: the times, the RTTs in ms, and whether this acknowledgement and those before
        it were all of the kind that is reproduced here.

        tcp_clean_rtx_queue takes the oldest segment that an acknowledgement covers, and measures
        nothing if one of them had been retransmitted (Karn's rule). With SACK it also measures at
        duplicates, and leaves out SACKed segments: that is not reproduced, hence the last value.
        """
        before = np.concatenate(([0], self.acked[:-1]))
        first = np.searchsorted(self.new_end, before, side="right")
        last = np.searchsorted(self.new_end, self.acked, side="right")
        places = np.searchsorted(self.new_end, self.begin[self.again], side="right")
        times = np.bincount(places, minlength=len(self.new_end))[: len(self.new_end)]
        repeated = np.concatenate(([0], np.cumsum(times)))
        good = (last > first) & (repeated[last] == repeated[first])
        rtt_ms = (self.ack_ns[good] - self.new_ns[first[good]]) / 1e6
        smooth = pd.Series(rtt_ms).ewm(alpha=SRTT_WEIGHT, adjust=False).mean()
        odd = np.cumsum(~good)
        calm = odd - np.concatenate((np.zeros(SRTT_MEMORY, dtype=np.int64), odd))[: len(odd)] == 0
        so_far = np.cumsum(good)
        known = np.concatenate(([np.nan], smooth.to_numpy()))[so_far]
        return self.ack_ns, known, calm & (so_far > 0)


def connection(data: Rows, acks: Rows, ports: tuple[int, int]) -> Segments | None:
    """Return one of a flow's connections, by its sender's and its receiver's port.

    None if its first packet was not captured.
    """
    sent = data[(data["src_port"] == ports[0]) & (data["dst_port"] == ports[1])]
    flags = np.asarray(sent["flags"])
    if not len(sent) or not flags[0] & SYN:
        return None
    seq = unwrap(np.asarray(sent["seq"], dtype=np.int64))
    room = np.asarray(sent["payload"], dtype=np.int64)
    room = room + ((flags & SYN) > 0) + ((flags & FIN) > 0)
    takes = room > 0
    begin = (seq - seq[0])[takes]
    is_of_connection = (acks["dst_port"] == ports[0]) & (acks["src_port"] == ports[1])
    heard = acks[is_of_connection & ((acks["flags"] & ACK) > 0)]
    edges = unwrap(np.concatenate((seq[:1], np.asarray(heard["ack"], dtype=np.int64)))) - seq[0]
    acked = np.maximum.accumulate(edges)[1:]
    return Segments(
        row=np.asarray(sent.index)[takes],
        time_ns=np.asarray(sent["time_ns"], dtype=np.int64)[takes],
        begin=begin,
        end=begin + room[takes],
        ack_ns=np.asarray(heard["time_ns"], dtype=np.int64),
        acked=acked,
        allowed=_allowed(heard, edges[1:]),
    )


def _allowed(heard: Rows, edges: Integers) -> Integers | None:
    """Return the sequence numbers below which each acknowledgement lets its sender send."""
    if (np.asarray(heard["window_scale"]) == UNKNOWN_SCALE).any():
        return None
    window = np.asarray(heard["window"], dtype=np.int64)
    allowed: Integers = np.maximum.accumulate(edges + window)
    return allowed
