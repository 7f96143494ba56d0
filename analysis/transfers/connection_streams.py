"""The bytes of many connections at one capture: what had arrived of each, and when.

Connections come and go, so all are computed at once: a place is a connection's number times a
stretch that no connection fills, and the byte within it. Places of one table ascend. A connection
is identified by its key, which joins the server's port and the client's.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from analysis.captures.tcp import HALF_SEQUENCE_SPACE, SYN, contiguous

Integers = npt.NDArray[np.int64]
Booleans = npt.NDArray[np.bool_]

STRETCH = 1 << 44
NEVER = -1


@dataclass(frozen=True)
class Streams:
    """One direction's packets that open a connection or carry data, by connection, then by time."""

    keys: Integers  # of the connections, ascending
    connection: Integers  # its number, of each packet
    time_ns: Integers
    begin: Integers  # bytes of data before the packet's; a SYN's is -1
    end: Integers

    def first_ns(self) -> Integers:
        """Return when each connection's first packet was captured."""
        starts = np.searchsorted(self.connection, np.arange(len(self.keys)))
        return self.time_ns[starts]

    def numbers(self, key: Integers) -> tuple[Integers, Booleans]:
        """Return the connections with these keys, and which of them were captured."""
        number = np.searchsorted(self.keys, key)
        known = number < len(self.keys)
        known[known] = self.keys[number[known]] == key[known]
        return number, known

    def whole_ns(self, key: Integers, size: Integers) -> Integers:
        """Return when this many bytes of each connection had arrived in order, else NEVER."""
        return self._first(self._arrived, key, size)

    def reached_ns(self, key: Integers, size: Integers) -> Integers:
        """Return when this many bytes of each connection had been sent, in any order."""
        return self._first(self._highest, key, size)

    def _first(self, edge: Integers, key: Integers, size: Integers) -> Integers:
        number, known = self.numbers(key)
        place = np.searchsorted(edge, number * STRETCH + size)
        known &= place < len(edge)
        known[known] = self.connection[place[known]] == number[known]
        first = np.full(len(key), NEVER, dtype=np.int64)
        first[known] = self.time_ns[place[known]]
        return first

    @property
    def _highest(self) -> Integers:
        """Return the place of the last byte sent, after each packet."""
        return np.asarray(np.maximum.accumulate(self.connection * STRETCH + self.end))

    @property
    def _before(self) -> Integers:
        """Return the place of the last byte sent before each packet of its connection."""
        before = np.concatenate(([0], self._highest[:-1])) if len(self.end) else self._highest
        return np.asarray(np.maximum(before, self.connection * STRETCH - 1))

    @property
    def _arrived(self) -> Integers:
        """Return the place of the last byte before the first hole, after each packet."""
        edge = self._highest.copy()
        holes = self.connection * STRETCH + self.begin > np.maximum(
            self._before, self.connection * STRETCH
        )
        for number in np.unique(self.connection[holes]):
            arrived = slice(*np.searchsorted(self.connection, [number, number + 1]))
            edge[arrived] = number * STRETCH + contiguous(self.begin[arrived], self.end[arrived], 0)
        return edge

    def sent_again(self) -> tuple[Integers, Integers]:
        """Return key and first byte of every packet whose bytes, or SYN, had been sent before."""
        seen = np.concatenate(([False], self.connection[1:] == self.connection[:-1]))
        again = self.connection * STRETCH + self.begin < self._before
        syn = (self.begin < 0) & seen[: len(self.begin)]
        again = (again & (self.begin >= 0)) | syn
        return self.keys[self.connection[again]], np.maximum(0, self.begin[again])

    def sizes(self) -> Integers:
        """Return the bytes of each connection that arrived in order."""
        last = np.searchsorted(self.connection, np.arange(len(self.keys)), side="right") - 1
        return np.asarray(self._arrived[last] - np.arange(len(self.keys)) * STRETCH)


def connection_key(server_port: Integers | int, client_port: Integers) -> Integers:
    """Join both ports of connections between the same two hosts."""
    return np.asarray((server_port << 16) | client_port, dtype=np.int64)


def streams(rows: pd.DataFrame, *, to_client: bool) -> Streams:
    """Sort one direction of all connections at a capture."""
    flags = rows["flags"].to_numpy()
    used = rows[(rows["payload"].to_numpy() > 0) | ((flags & SYN) > 0)]
    ends = (used[name].to_numpy(dtype=np.int64) for name in ("src_port", "dst_port"))
    server, client = ends if to_client else reversed(list(ends))
    key = connection_key(server, client)
    order = np.argsort(key, kind="stable")
    used = used.iloc[order]
    keys, connection = np.unique(key[order], return_inverse=True)
    syn = (used["flags"].to_numpy() & SYN) > 0
    begin = _offsets(used["seq"].to_numpy(dtype=np.int64), syn, connection)
    return Streams(
        keys=keys,
        connection=connection.astype(np.int64),
        time_ns=used["time_ns"].to_numpy(dtype=np.int64),
        begin=begin,
        end=np.maximum(0, begin) + used["payload"].to_numpy(dtype=np.int64),
    )


def _offsets(seq: Integers, syn: Booleans, connection: Integers) -> Integers:
    """Count sequence numbers from each connection's first byte of data on, past 2³² too."""
    if not len(seq):
        return seq
    first = np.concatenate(([True], connection[1:] != connection[:-1]))
    steps = np.diff(seq, prepend=seq[:1]) + HALF_SEQUENCE_SPACE
    steps = steps % (2 * HALF_SEQUENCE_SPACE) - HALF_SEQUENCE_SPACE
    steps[first] = -syn[first].astype(np.int64)  # the SYN takes the number before the data
    total = np.cumsum(steps)
    base = np.maximum.accumulate(np.where(first, np.arange(len(seq)), 0))
    return np.asarray(total - total[base] + steps[base], dtype=np.int64)
