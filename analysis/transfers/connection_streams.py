"""The bytes of many connections at one capture: what had arrived of each, and when.

Connections come and go, so all are computed at once: a place is a connection's number times a
stretch that no connection fills, and the byte within it. Places of one table ascend.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from analysis.trials.tcp_stream import contiguous

Integers = npt.NDArray[np.int64]
Booleans = npt.NDArray[np.bool_]

STRETCH = 1 << 44
FIN, SYN = 0x01, 0x02
NEVER = -1
_HALF = 1 << 31


@dataclass(frozen=True)
class Streams:
    """One direction's packets that open a connection or carry data, by connection, then by time."""

    ports: Integers  # the client's, of each connection, ascending
    connection: Integers  # its number, of each packet
    time_ns: Integers
    begin: Integers  # bytes of data before the packet's; a SYN's is -1
    end: Integers

    def first_ns(self) -> Integers:
        """When each connection's first packet came by."""
        starts = np.searchsorted(self.connection, np.arange(len(self.ports)))
        return self.time_ns[starts]

    def whole_ns(self, port: Integers, size: Integers) -> Integers:
        """When so many of a connection's bytes had come by in order; NEVER if they did not."""
        return self._first(self._arrived, port, size)

    def reached_ns(self, port: Integers, size: Integers) -> Integers:
        """When so many of them had been sent, whether in order or not."""
        return self._first(self._highest, port, size)

    def _first(self, edge: Integers, port: Integers, size: Integers) -> Integers:
        number = np.searchsorted(self.ports, port)
        known = number < len(self.ports)
        known[known] = self.ports[number[known]] == port[known]
        place = np.searchsorted(edge, number * STRETCH + size)
        known &= place < len(edge)
        known[known] = self.connection[place[known]] == number[known]
        found = np.full(len(port), NEVER, dtype=np.int64)
        found[known] = self.time_ns[place[known]]
        return found

    @property
    def _highest(self) -> Integers:
        """The place of the last byte that was sent, after each packet."""
        return np.asarray(np.maximum.accumulate(self.connection * STRETCH + self.end))

    @property
    def _before(self) -> Integers:
        """The same before each packet; nothing of its connection before its first."""
        found = np.concatenate(([0], self._highest[:-1])) if len(self.end) else self._highest
        return np.asarray(np.maximum(found, self.connection * STRETCH - 1))

    @property
    def _arrived(self) -> Integers:
        """The place of the last byte of the part without holes, after each packet."""
        edge = self._highest.copy()
        holes = self.connection * STRETCH + self.begin > np.maximum(
            self._before, self.connection * STRETCH
        )
        for number in np.unique(self.connection[holes]):
            own = slice(*np.searchsorted(self.connection, [number, number + 1]))
            begins, ends = self.begin[own].tolist(), self.end[own].tolist()
            edge[own] = number * STRETCH + contiguous(begins, ends, 0)
        return edge

    def sent_again(self) -> tuple[Integers, Integers]:
        """The client's port, and the first byte, of every packet whose bytes (or SYN) had been
        sent before."""
        seen = np.concatenate(([False], self.connection[1:] == self.connection[:-1]))
        again = self.connection * STRETCH + self.begin < self._before
        syn = (self.begin < 0) & seen[: len(self.begin)]
        again = (again & (self.begin >= 0)) | syn
        return self.ports[self.connection[again]], np.maximum(0, self.begin[again])

    def sizes(self) -> Integers:
        """The bytes of each connection that came by in order."""
        last = np.searchsorted(self.connection, np.arange(len(self.ports)), side="right") - 1
        return np.asarray(self._arrived[last] - np.arange(len(self.ports)) * STRETCH)


def streams(rows: pd.DataFrame, port: str) -> Streams:
    """One direction of all connections at a capture; `port` is the column of the client's."""
    flags = rows["flags"].to_numpy()
    used = rows[(rows["payload"].to_numpy() > 0) | ((flags & SYN) > 0)]
    order = np.argsort(used[port].to_numpy(), kind="stable")
    used = used.iloc[order]
    ports, connection = np.unique(used[port].to_numpy(dtype=np.int64), return_inverse=True)
    syn = (used["flags"].to_numpy() & SYN) > 0
    begin = _offsets(used["seq"].to_numpy(dtype=np.int64), syn, connection)
    return Streams(
        ports=ports,
        connection=connection.astype(np.int64),
        time_ns=used["time_ns"].to_numpy(dtype=np.int64),
        begin=begin,
        end=np.maximum(0, begin) + used["payload"].to_numpy(dtype=np.int64),
    )


def _offsets(seq: Integers, syn: Booleans, connection: Integers) -> Integers:
    """Sequence numbers from each connection's first byte of data on, continued past 2³²."""
    if not len(seq):
        return seq
    first = np.concatenate(([True], connection[1:] != connection[:-1]))
    steps = (np.diff(seq, prepend=seq[:1]) + _HALF) % (2 * _HALF) - _HALF
    steps[first] = -syn[first].astype(np.int64)  # the SYN takes the number before the data
    total = np.cumsum(steps)
    base = np.maximum.accumulate(np.where(first, np.arange(len(seq)), 0))
    return np.asarray(total - total[base] + steps[base], dtype=np.int64)
