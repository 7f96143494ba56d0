"""Where a workload's transfers begin and end on the wire, of packets made by hand."""

from __future__ import annotations

import numpy as np
import pandas as pd

from analysis.transfers.connection_streams import NEVER, connection_key, streams
from analysis.transfers.size_classes import by_class, size_class
from analysis.transfers.transfer_reports import Planned, Reported
from analysis.transfers.wire_transfers import on_the_wire
from analysis.trials.packets import FlowPackets
from testbed.scenario.workload import Connections

SERVER, WRAPPING = 8000, (1 << 32) - 1000
Sent = tuple[int, int, int, int]  # time, the client's port, the byte of data it begins at, payload


def packets(*sent: Sent, isn: int = WRAPPING, to_client: bool = True) -> pd.DataFrame:
    """Packets of one direction; the one that begins at byte -1 is the SYN."""
    time, port, begin, payload = (np.array(column) for column in zip(*sent, strict=True))
    client, server = ("dst_port", "src_port") if to_client else ("src_port", "dst_port")
    return pd.DataFrame(
        {
            "time_ns": time,
            client: port,
            server: SERVER,
            "seq": (isn + 1 + begin) % (1 << 32),
            "payload": payload,
            "flags": np.where(begin < 0, 0x12, 0x10),
        }
    )


def array(*values: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.array(values, dtype=np.int64)


def keys(*ports: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return connection_key(SERVER, array(*ports))


def test_bytes_in_order_across_the_end_of_the_numbers() -> None:
    found = streams(packets((1, 7, -1, 0), (2, 7, 0, 1000), (3, 7, 1000, 1000)), to_client=True)
    assert found.whole_ns(keys(7, 7, 7), array(1, 1001, 2001)).tolist() == [2, 3, NEVER]
    assert found.sizes().tolist() == [2000]


def test_a_hole_keeps_what_is_behind_it_waiting() -> None:
    rows = packets((1, 7, -1, 0), (2, 7, 0, 10), (3, 7, 20, 10), (4, 7, 10, 10), (5, 8, -1, 0))
    found = streams(rows, to_client=True)
    assert found.whole_ns(keys(7, 7, 7, 8), array(10, 11, 30, 1)).tolist() == [2, 4, 4, NEVER]


def test_connections_that_alternate_are_told_apart() -> None:
    rows = packets((1, 8, -1, 0), (2, 7, -1, 0), (3, 8, 0, 5), (4, 7, 0, 9))
    found = streams(rows, to_client=True)
    assert found.whole_ns(keys(7, 8, 9), array(5, 5, 5)).tolist() == [4, 3, NEVER]
    assert found.first_ns().tolist() == [2, 1]


def test_what_is_sent_again_is_known_by_its_bytes() -> None:
    rows = packets(
        (1, 7, -1, 0), (2, 7, -1, 0), (3, 7, 0, 10), (4, 7, 10, 10), (5, 7, 0, 10), (6, 8, -1, 0)
    )
    again, first = streams(rows, to_client=True).sent_again()
    assert (again.tolist(), first.tolist()) == (keys(7, 7).tolist(), [0, 0])


def test_nothing_was_captured() -> None:
    none = packets((1, 7, -1, 0)).iloc[:0]
    found = streams(none, to_client=True)
    assert found.whole_ns(keys(7), array(1)).tolist() == [NEVER]
    assert found.sent_again()[0].tolist() == []


def test_kept_connections_are_divided_by_the_sizes_in_their_order() -> None:
    """Two transfers over connection 7, one over 8 between them."""
    planned = Planned(array(0, 0, 0), array(0, 1, 2), array(100, 50, 30))
    none = np.zeros(3, dtype=np.bool_)
    reported = Reported(0, array(7, 8, 7), array(2, 3, 4), array(6, 7, 9), planned.size, none)
    data = packets(
        (1, 7, -1, 0), (1, 8, -1, 0), (6, 7, 0, 100), (7, 8, 0, 50), (8, 7, 100, 20),
        (9, 7, 120, 10),
    )  # fmt: skip
    asked = packets(
        (0, 7, -1, 0), (0, 8, -1, 0), (2, 7, 0, 16), (3, 8, 0, 16), (4, 7, 16, 16), to_client=False
    )
    sent = packets((1, 7, -1, 0), (5, 7, 0, 100), (8, 7, 100, 30), (9, 7, 100, 30))
    found = on_the_wire(
        (SERVER,),
        planned,
        reported,
        Connections.KEPT,
        FlowPackets(data, asked),
        FlowPackets(sent, asked),
    )
    assert found.begun_ns.tolist() == [2, 3, 4]
    assert found.whole_ns.tolist() == [6, 7, 9]
    assert found.retransmissions is not None
    assert found.retransmissions.tolist() == [0, 0, 1]
    assert (found.connections, found.requests) == (2, 3)


def test_new_connections_begin_with_their_syn() -> None:
    planned = Planned(array(0, 0), array(0, 1), array(100, 50))
    none = np.zeros(2, dtype=np.bool_)
    reported = Reported(0, array(7, 0), array(2, -1), array(6, -1), planned.size, none)
    data = packets((4, 7, -1, 0), (6, 7, 0, 100))
    asked = packets((2, 7, -1, 0), (3, 7, -1, 0), (5, 7, 0, 16), to_client=False)
    found = on_the_wire(
        (SERVER,), planned, reported, Connections.NEW, FlowPackets(data, asked), None
    )
    assert found.begun_ns.tolist() == [2, NEVER]
    assert found.whole_ns.tolist() == [6, NEVER]


def test_sessions_are_told_apart_by_the_servers_port() -> None:
    """Both from the client's port 7; the transfer without an end never is complete."""
    planned = Planned(array(0, 1), array(0, 0), array(100, -1))
    none = np.zeros(2, dtype=np.bool_)
    reported = Reported(0, array(7, 7), array(1, 2), array(6, -1), array(100, 300), none)
    data = packets((4, 7, -1, 0), (6, 7, 0, 100)), packets((5, 7, -1, 0), (7, 7, 0, 300))
    asked = (packets((time, 7, -1, 0), to_client=False) for time in (1, 2))
    every = [
        pd.concat([first, second.assign(**{column: SERVER + 1})])
        for (first, second), column in ((data, "src_port"), (asked, "dst_port"))
    ]
    found = on_the_wire(
        (SERVER, SERVER + 1), planned, reported, Connections.NEW, FlowPackets(*every), None
    )
    assert found.begun_ns.tolist() == [1, 2]
    assert found.whole_ns.tolist() == [6, NEVER]
    assert found.connections == 2


def test_classes_have_their_bounds() -> None:
    sizes = array(1, 9_999, 10_000, 1_000_000, 1_000_001)
    classes = size_class(sizes)
    assert classes.tolist() == ["short", "short", "medium", "medium", "long"]
    rows = pd.DataFrame({"size_class": classes, "size_bytes": sizes})
    assert [(name, len(own)) for name, own in by_class(rows)] == [
        ("short", 2), ("medium", 2), ("long", 1),
    ]  # fmt: skip
