"""Background traffic sent and received, counted at its two interfaces every second.

The two hosts carry nothing else, so comparing what one sent with what the other received gives
the load and the losses of all sessions without a capture.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Mapping
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

from testbed.machine.netlink import Netlink, attributes
from testbed.machine.netns import inside
from testbed.machine.process import Place
from testbed.plan.background import BackgroundPlan, Session
from testbed.store import BACKGROUND_COUNTS, write_table

NETLINK_ROUTE = 0
RTM_GETLINK = 18
IFLA_STATS64 = 23
_LINK_MESSAGE_BYTES = 16

Report = Mapping[str, Any]


class Interface:
    """An interface's counters: packets, and bytes of Ethernet frames, in both directions."""

    def __init__(self, name: str, pid: int | None) -> None:
        self._netlink = Netlink(NETLINK_ROUTE, pid)
        with inside(pid):
            self._request = struct.pack("=B3xiII", 0, socket.if_nametoindex(name), 0, 0)

    def read(self) -> tuple[int, int, int, int]:
        """Return packets received and sent, then bytes received and sent."""
        answer = self._netlink.ask(RTM_GETLINK, self._request)
        assert answer is not None
        found = attributes(answer, _LINK_MESSAGE_BYTES)[IFLA_STATS64]
        received, sent, received_bytes, sent_bytes = struct.unpack_from("=4Q", found)
        return received, sent, received_bytes, sent_bytes

    def close(self) -> None:
        """Close the netlink socket."""
        self._netlink.close()


@dataclass(frozen=True)
class Count:
    """Totals sent by one host and delivered to the other since the traffic began."""

    time_s: float
    sent_packets: int
    sent_bytes: int
    delivered_packets: int
    delivered_bytes: int


class Tally:
    """The counts of a trial."""

    def __init__(self, plan: BackgroundPlan, server: Place, client: Place) -> None:
        self._from = Interface(plan.src_interface, server.pid)
        self._to = Interface(plan.dst_interface, client.pid)
        self._zero = (0, 0, 0, 0)
        self.rows: list[Count] = []

    def begin(self, time_s: float) -> None:
        """Take the counters' present values as zero."""
        self._zero = self._read()
        self.count(time_s)

    def _read(self) -> tuple[int, int, int, int]:
        _, sent, _, sent_bytes = self._from.read()
        delivered, _, delivered_bytes, _ = self._to.read()
        return sent, sent_bytes, delivered, delivered_bytes

    def count(self, time_s: float) -> None:
        """Append one row of counts."""
        since = [now - zero for now, zero in zip(self._read(), self._zero, strict=True)]
        self.rows.append(Count(time_s, *since))

    def write(self, folder: Path) -> None:
        """Write the table of counts."""
        rows = ((f"{row.time_s:.6f}", *astuple(row)[1:]) for row in self.rows)
        write_table(folder, BACKGROUND_COUNTS, rows)

    def totals(self, stopped_s: float, rate_mbit: float) -> dict[str, float]:
        """The load until the stop, and the losses once all packets have arrived."""
        begun, last = self.rows[0], self.rows[-1]
        until = max((row for row in self.rows if row.time_s <= stopped_s), key=lambda r: r.time_s)
        load_mbit = until.delivered_bytes * 8e-6 / (until.time_s - begun.time_s)
        lost = last.sent_packets - last.delivered_packets
        return {
            "load_mbit": load_mbit,
            "share_of_link": load_mbit / rate_mbit,
            "sent_packets": last.sent_packets,
            "lost_packets": lost,
            "loss_rate": lost / last.sent_packets if last.sent_packets else 0.0,
        }

    def close(self) -> None:
        """Close the netlink sockets."""
        self._from.close()
        self._to.close()


def session_rows(plan: BackgroundPlan, client: Report, server: Report) -> list[dict[str, object]]:
    """Merge the plan's and both programs' data into one entry per session."""
    ends = zip(plan.sessions, client["sessions"], server["sessions"], strict=True)
    return [_session(*each) for each in ends]


def _session(wanted: Session, client: Report, server: Report) -> dict[str, object]:
    return {
        "kind": client["kind"],
        "start_s": wanted.start_s,
        "rtt_ms": wanted.rtt_ms,
        "rtt_min_ms": server["min_rtt_us"] / 1e3 or None,
        "control": server["control"],
        "window_bytes": server["window_bytes"],
        "connections": client["connections"],
        "failures": client["failures"],
        "resets": server["resets"],
        "files": len(client["files"]),
        "file_bytes": sum(size for _, _, size in client["files"]),
        "transfer_s": sum(took for _, took, _ in client["files"]) / 1e9,
        "bytes": client["bytes"],
        **{
            name: server[name]
            for name in ("sent_bytes", "retransmitted_bytes", "segments", "retransmissions")
        },
    }
