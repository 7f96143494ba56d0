"""Statistics of one queue, as `tc -s qdisc` shows them: the question, and its answer as a row."""

from __future__ import annotations

import socket
import struct

from testbed.machine.netlink import NLMSG_ERROR, Netlink, attribute_places, question
from testbed.machine.netlink_batch import ANSWER_BYTES, Question
from testbed.machine.netns import inside
from testbed.plan.commands import LEAF
from testbed.scenario.queues import DISCIPLINES
from testbed.store import QUEUE_COUNTERS, csv_text

NETLINK_ROUTE = 0
RTM_GETQDISC = 38
TCA_STATS2 = 7
TCA_STATS_BASIC = 1
TCA_STATS_QUEUE = 3
TCA_STATS_APP = 4
_HEAD = struct.Struct("=IH")  # of a netlink message: its length and type
_ATTRIBUTES_AT = 16 + 20
_BASIC = struct.Struct("=QI")  # bytes, packets
_QUEUE = struct.Struct("=III4xI")  # packets and bytes waiting, drops, overlimits
_MARK = struct.Struct("=I")


class QueueProbe:
    """Reads the statistics of the queue below an interface's htb."""

    def __init__(self, node: str, interface: str, discipline: str, pid: int | None) -> None:
        self._key = (node, interface)
        marking = DISCIPLINES[discipline].marking
        places = (marking.counted_at, marking.step_counted_at) if marking else ()
        self._marks = [place for place in places if place is not None]
        self._netlink = Netlink(NETLINK_ROUTE, pid)
        with inside(pid):
            index = socket.if_nametoindex(interface)
        request = struct.pack("=B3xiIII", 0, index, LEAF.number, 0, 0)
        self.question = Question(self._netlink, question(RTM_GETQDISC, request))
        self._before = (0,) * len(QUEUE_COUNTERS)
        self._shape: tuple[int, int] = (0, 0)  # the length and type that the places are of
        self._places = (0, 0)
        self._mark_places: list[int] = []
        self._seen: tuple[int, ...] = ()
        self._row = ""

    def begin(self, answers: bytearray, place: int) -> None:
        """Take the counters' present values as zero."""
        if found := self._read(answers, place):
            self._before = found[2:]
            self._seen = ()

    def row(self, answers: bytearray, place: int) -> str:
        """The columns after the time as a line of CSV; empty if the queue is gone.

        `place` is where in `answers` the answer begins.
        """
        found = self._read(answers, place)
        if found is None:
            return ""
        if found != self._seen:
            self._seen = found
            since = (now - before for now, before in zip(found[2:], self._before, strict=True))
            self._row = csv_text((*self._key, *found[:2], *since))
        return self._row

    def _read(self, answers: bytearray, place: int) -> tuple[int, ...] | None:
        """Read the backlog in bytes and packets, and the counters."""
        shape = _HEAD.unpack_from(answers, place)
        if shape[1] == NLMSG_ERROR:
            return None
        if shape != self._shape:
            self._learn(bytes(answers[place : place + min(shape[0], ANSWER_BYTES)]))
            self._shape = shape
        basic, queue = self._places
        sent_bytes, sent_packets = _BASIC.unpack_from(answers, place + basic)
        packets, backlog, drops, over = _QUEUE.unpack_from(answers, place + queue)
        marks = sum(_MARK.unpack_from(answers, place + mark)[0] for mark in self._mark_places)
        return backlog, packets, drops, marks, over, sent_bytes, sent_packets

    def _learn(self, answer: bytes) -> None:
        """Find the counters in an answer of another length."""
        begin, size = attribute_places(answer, _ATTRIBUTES_AT)[TCA_STATS2]
        stats = attribute_places(answer[: begin + size], begin)
        self._places = (stats[TCA_STATS_BASIC][0], stats[TCA_STATS_QUEUE][0])
        own, size = stats.get(TCA_STATS_APP, (0, 0))
        self._mark_places = [own + place for place in self._marks if size >= place + _MARK.size]

    def close(self) -> None:
        """Close the netlink socket."""
        self._netlink.close()
