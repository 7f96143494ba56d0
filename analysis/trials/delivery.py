"""The bytes that TCP delivered to a receiver's application: in order, each once; and what it threw
away of those that the captures have."""

from __future__ import annotations

import heapq

import numpy as np
import numpy.typing as npt
import pandas as pd

from analysis.trials.samples import read_counters
from testbed.store import Trial

SYN = 0x02
# older than a segment that was sent again and has overtaken them
OLD_TIMESTAMPS = "TcpExtPAWSEstab"
# for want of room: those that waited for a lost one, by the times that this happened, and those
# that were not taken in
PRUNED = ("TcpExtOfoPruned", "TcpExtRcvPruned", "TcpExtTCPOFODrop", "TcpExtTCPRcvQDrop")
_HALF = 1 << 31

Integers = npt.NDArray[np.int64]


def unwrap(seq: Integers) -> Integers:
    """Sequence numbers that continue past 2³²: neighbours are less than half the space apart."""
    steps = np.diff(seq, prepend=seq[:1])
    steps = (steps + _HALF) % (2 * _HALF) - _HALF
    return np.asarray(seq[:1].sum() + np.cumsum(steps), dtype=np.int64)


def delivered_bytes(rows: pd.DataFrame) -> Integers:
    """Bytes delivered in order after each packet.

    `rows` are one connection's packets from the sender of the data, in the order of
    their arrival. The first byte is the one after the SYN; where the capture began
    later, the first byte of the first packet.
    """
    if rows.empty:
        return np.zeros(0, dtype=np.int64)
    seq = unwrap(rows["seq"].to_numpy(dtype=np.int64))
    syn = np.flatnonzero(rows["flags"].to_numpy() & SYN)
    start = int(seq[syn[0]]) + 1 if len(syn) else int(seq[0])
    ends = seq + rows["payload"].to_numpy(dtype=np.int64)
    return contiguous(seq.tolist(), ends.tolist(), start) - start


def contiguous(begins: list[int], ends: list[int], edge: int) -> Integers:
    """The end of the contiguous part after each packet; data beyond a hole waits."""
    beyond: list[tuple[int, int]] = []
    edges = []
    for begin, end in zip(begins, ends, strict=True):
        if begin > edge:
            heapq.heappush(beyond, (begin, end))
        elif end > edge:
            edge = end
            while beyond and beyond[0][0] <= edge:
                edge = max(edge, heapq.heappop(beyond)[1])
        edges.append(edge)
    return np.array(edges, dtype=np.int64)


def why_discarded(trial: Trial, receiver: str) -> str:
    """Why the host's captures have segments that its TCP had not; empty if they have none."""
    if older := read_counters(trial, receiver).get(OLD_TIMESTAMPS, 0):
        return f"{receiver} discarded {older} segments for their timestamps: older than others'"
    if pruned(trial, receiver):
        return f"{receiver} threw away segments that had arrived: its buffer was full"
    return ""


def pruned(trial: Trial, receiver: str) -> int:
    """How often the host threw segments away since a receive buffer was full."""
    counters = read_counters(trial, receiver)
    return sum(counters.get(name, 0) for name in PRUNED)
