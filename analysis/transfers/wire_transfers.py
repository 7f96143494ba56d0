"""A workload's transfers on the wire: when each began and was complete, and its retransmissions.

The client's log says which connection carries which transfer; the planned sizes, in their order on
the connection, say where one ends and the next begins; the captures say when that was.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from analysis.transfers.connection_streams import NEVER, STRETCH, Streams, connection_key, streams
from analysis.transfers.transfer_reports import Planned, Reported
from analysis.trials.packets import FlowTables
from testbed.scenario.workload import Connections

Integers = npt.NDArray[np.int64]

REQUEST_BYTES = 16  # of common.h


@dataclass(frozen=True)
class OnTheWire:
    """The transfers by the captures; NEVER for a time that did not come."""

    begun_ns: Integers  # new connections: the SYN's; kept ones: the request's, at the client
    whole_ns: Integers  # the last byte's, at the client
    retransmissions: Integers | None  # None where the sender was not captured
    connections: int  # on the wire, logged or not
    requests: int


def keys_of(server_ports: Sequence[int], planned: Planned, reported: Reported) -> Integers:
    """Return the key of each logged transfer's connection; 0 for one that did not begin."""
    known = min(len(planned.size), len(reported.port))
    ports = np.asarray(server_ports, dtype=np.int64)
    server = ports[np.clip(planned.session[:known], 0, len(ports) - 1)]
    port = reported.port[:known]
    return np.where(port > 0, connection_key(server, port), 0)


def on_the_wire(
    server_ports: Sequence[int],
    planned: Planned,
    reported: Reported,
    connections: Connections,
    receiver: FlowTables,
    sender: FlowTables | None,
) -> OnTheWire:
    """Find the logged transfers in the client's capture, retransmissions in the server's."""
    data = streams(receiver.data, to_client=True)
    requests = streams(receiver.acks, to_client=False)
    key = keys_of(server_ports, planned, reported)
    size = np.where(planned.size < 0, STRETCH // 2, planned.size)[: len(key)]
    before, place = _on_connection(key, size)
    if connections is Connections.NEW:
        begun = _opened_ns(requests, key)
    else:
        begun = requests.reached_ns(key, place * REQUEST_BYTES + 1)
    return OnTheWire(
        begun_ns=begun,
        whole_ns=data.whole_ns(key, before + size),
        retransmissions=_retransmissions(sender, key, before) if sender else None,
        connections=len(requests.keys),
        requests=int(requests.sizes().sum()) // REQUEST_BYTES,
    )


def _on_connection(key: Integers, size: Integers) -> tuple[Integers, Integers]:
    """Return the bytes of the transfers before each on its connection, and their number."""
    order = np.argsort(key, kind="stable")
    total = np.cumsum(size[order]) - size[order]
    first = np.searchsorted(key[order], key[order])
    before, place = np.empty_like(size), np.empty_like(size)
    before[order] = total - total[first] if len(order) else total
    place[order] = np.arange(len(order)) - first
    return before, place


def _opened_ns(requests: Streams, key: Integers) -> Integers:
    """Return when each connection's first packet left."""
    number, known = requests.numbers(key)
    opened = np.full(len(key), NEVER, dtype=np.int64)
    opened[known] = requests.first_ns()[number[known]]
    return opened


def _retransmissions(sender: FlowTables, key: Integers, before: Integers) -> Integers:
    """Count each transfer's retransmitted packets, its connection's SYN-ACK included."""
    sent = streams(sender.data, to_client=True)
    again, first_byte = sent.sent_again()
    number, captured = sent.numbers(key)
    place = np.where(captured, number * STRETCH + before, NEVER)
    order = np.argsort(place, kind="stable")
    again_number, _ = sent.numbers(again)
    at = np.searchsorted(place[order], again_number * STRETCH + first_byte, side="right") - 1
    known = at >= 0
    known[known] = key[order[at[known]]] == again[known]
    counts: Integers = np.bincount(order[at[known]], minlength=len(key)).astype(np.int64)
    return counts
