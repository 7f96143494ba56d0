"""A workload's transfers on the wire: when each began and was whole, and what was sent again.

Which connection carries which transfer, the client says; where one ends and the next begins, the
sizes that were planned say, in their order on the connection. When that was, the captures say.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from analysis.transfers.connection_streams import NEVER, STRETCH, Streams, streams
from analysis.transfers.transfer_reports import Planned, Reported
from analysis.trials.packets import FlowPackets
from testbed.scenario.workload.workload import Connections

Integers = npt.NDArray[np.int64]

REQUEST_BYTES = 16  # of common.h


@dataclass(frozen=True)
class OnTheWire:
    """The transfers by the captures; NEVER for a time that did not come."""

    begun_ns: Integers  # new connections: the SYN's; kept ones: the request's, at the client
    whole_ns: Integers  # the last byte's, at the client
    retransmissions: Integers | None  # None where the sender was not captured
    connections: int  # on the wire, whoever knows of them
    requests: int


def on_the_wire(
    planned: Planned,
    reported: Reported,
    connections: Connections,
    receiver: FlowPackets,
    sender: FlowPackets | None,
) -> OnTheWire:
    """The transfers that are planned and reported, at the client's capture, and what the server's
    shows sent again."""
    data, asked = streams(receiver.data, "dst_port"), streams(receiver.acks, "src_port")
    known = min(len(planned.size), len(reported.port))
    port, size = reported.port[:known], planned.size[:known]
    before, place = _on_connection(port, size)
    if connections is Connections.NEW:
        begun = _opened_ns(asked, port)
    else:
        begun = asked.reached_ns(port, place * REQUEST_BYTES + 1)
    return OnTheWire(
        begun_ns=begun,
        whole_ns=data.whole_ns(port, before + size),
        retransmissions=_retransmissions(sender, port, before) if sender else None,
        connections=len(asked.ports),
        requests=int(asked.sizes().sum()) // REQUEST_BYTES,
    )


def _on_connection(port: Integers, size: Integers) -> tuple[Integers, Integers]:
    """The bytes of the transfers before each on its connection, and their number."""
    order = np.argsort(port, kind="stable")
    total = np.cumsum(size[order]) - size[order]
    first = np.searchsorted(port[order], port[order])
    before, place = np.empty_like(size), np.empty_like(size)
    before[order] = total - total[first] if len(order) else total
    place[order] = np.arange(len(order)) - first
    return before, place


def _opened_ns(asked: Streams, port: Integers) -> Integers:
    """When each connection's first packet left."""
    number = np.searchsorted(asked.ports, port)
    known = number < len(asked.ports)
    known[known] = asked.ports[number[known]] == port[known]
    found = np.full(len(port), NEVER, dtype=np.int64)
    found[known] = asked.first_ns()[number[known]]
    return found


def _retransmissions(sender: FlowPackets, port: Integers, before: Integers) -> Integers:
    """The packets of each transfer that were sent again, its connection's SYN-ACK included."""
    ports, first_byte = streams(sender.data, "dst_port").sent_again()
    order = np.argsort(port * STRETCH + before, kind="stable")
    places = (port * STRETCH + before)[order]
    at = np.searchsorted(places, ports * STRETCH + first_byte, side="right") - 1
    known = at >= 0
    known[known] = port[order[at[known]]] == ports[known]
    found: Integers = np.bincount(order[at[known]], minlength=len(port)).astype(np.int64)
    return found
