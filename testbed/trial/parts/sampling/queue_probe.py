"""Statistics of one queue, as `tc -s qdisc` shows them: the question."""

from __future__ import annotations

import socket
import struct

from testbed.machine.netlink import Netlink, request_message
from testbed.machine.netlink_batch import Request
from testbed.machine.netns import inside
from testbed.plan.commands import LEAF
from testbed.scenario.queues import DISCIPLINES
from testbed.trial.parts.sampling.rows import QueueRow

NETLINK_ROUTE = 0
RTM_GETQDISC = 38


class QueueProbe:
    """Asks for the statistics of the queue below an interface's htb."""

    def __init__(self, node: str, interface: str, discipline: str, pid: int | None) -> None:
        marking = DISCIPLINES[discipline].marking
        places = (marking.counted_at, marking.step_counted_at) if marking else ()
        self.row = QueueRow(node, interface, tuple(at for at in places if at is not None))
        self._netlink = Netlink(NETLINK_ROUTE, pid)
        with inside(pid):
            index = socket.if_nametoindex(interface)
        request = struct.pack("=B3xiIII", 0, index, LEAF.number, 0, 0)
        self.request = Request(self._netlink, request_message(RTM_GETQDISC, request))

    def close(self) -> None:
        """Close the netlink socket."""
        self._netlink.close()
