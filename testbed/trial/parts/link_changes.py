"""Links that change: traces are loaded and begun, schedules carried out.

A change is one message to the kernel, made in advance, at its time: what the kernel reported of
the discipline or class, with the planned numbers in it. It is read back at once. When all flows
have ended everything is set back, so that the kernel's configuration is as it was before them.
"""

from __future__ import annotations

import functools
import socket
import struct
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from testbed.errors import TestbedError
from testbed.machine.netlink import NETLINK_ROUTE, Netlink, attribute, attributes, request_message
from testbed.machine.netlink_batch import Request
from testbed.machine.netns import inside
from testbed.plan.commands import SHAPER
from testbed.plan.traffic_control import (
    TRACE,
    TRACE_START,
    TRACE_TIMES,
    ChangePlan,
    QueuePlan,
    TcObject,
)
from testbed.scenario.discipline import Field, Setting
from testbed.scenario.network import scheduled_rates
from testbed.scenario.trace import parse_trace
from testbed.store import CAPACITY_FILE, LINK_CHANGES, write_json, write_table
from testbed.trial.parts.part import Part, RunningTrial
from testbed.trial.parts.scheduler import ActionQueue
from testbed.trial.parts.snapshot import (
    TCA_KIND,
    TCA_OPTIONS,
    TcReport,
    differences,
    interface_reports,
)

NEW_DISCIPLINE, GET_DISCIPLINE = 36, 38  # linux/rtnetlink.h
NEW_CLASS, GET_CLASS = 40, 42
TC_ROOT = 0xFFFFFFFF
CHUNK_BYTES = 32_000  # of a trace: an attribute holds less than 64 KB
TC_MESSAGE = struct.Struct("=B3xiIII")  # family, interface, handle, parent, info


class LinkChanges(Part):
    """The traces and schedules of all links."""

    def __init__(self, trial: RunningTrial) -> None:
        super().__init__(trial)
        self._sockets: dict[str, Netlink] = {}
        self._knobs: dict[tuple[str, str, bool], _Knob] = {}
        self._timeline: ActionQueue | None = None
        self._made_s: dict[ChangePlan, float] = {}

    @property
    def _traced(self) -> list[QueuePlan]:
        return [each for each in self._trial.plan.queues if each.hop.direction.trace is not None]

    def join(self) -> None:
        """Load the traces; the verification reads back what the kernel made of them."""
        for queue in self._traced:
            times = parse_trace(queue.hop.direction.trace or "").packed
            for start in range(0, len(times), CHUNK_BYTES):
                self._tell_trace(queue, TRACE_TIMES, times[start : start + CHUNK_BYTES])

    def _tell_trace(self, queue: QueuePlan, kind: int, data: bytes) -> None:
        head = TC_MESSAGE.pack(
            0, self._index(queue.node, queue.interface), SHAPER.number, TC_ROOT, 0
        )
        options = attribute(TCA_OPTIONS, attribute(kind, data))
        name = attribute(TCA_KIND, f"{TRACE}\0".encode())
        self._socket(queue.node).change(NEW_DISCIPLINE, head + name + options)

    def _socket(self, node: str) -> Netlink:
        if node not in self._sockets:
            self._sockets[node] = Netlink(NETLINK_ROUTE, self._trial.places[node].pid)
        return self._sockets[node]

    def _index(self, node: str, interface: str) -> int:
        with inside(self._trial.places[node].pid):
            return socket.if_nametoindex(interface)

    def wait_until_ready(self) -> None:
        """Prepare all changes from the present settings."""
        plan = self._trial.plan
        now = {_key(each): each for each in plan.tc_objects}
        for key in dict.fromkeys(_key(change.target) for change in plan.changes):
            found = interface_reports(self._trial.places[now[key].node].pid)[now[key].interface]
            index = self._index(now[key].node, now[key].interface)
            reports = found.classes if now[key].is_class else found.disciplines
            report = next(each for each in reports if each.handle == now[key].handle.number)
            self._knobs[key] = _Knob(self._socket(now[key].node), index, now[key], report)

    def schedule(self, timeline: ActionQueue) -> None:
        """Start traces at second 0, and make every change at its time."""
        self._timeline = timeline
        for queue in self._traced:
            self._tell_trace(queue, TRACE_START, struct.pack("=Q", timeline.zero_ns))
        for change in sorted(self._trial.plan.changes, key=lambda each: each.at_s):
            message = self._knobs[_key(change.target)].message(change.target.settings)
            timeline.at(change.at_s, functools.partial(self._change, change, message))

    def _change(self, change: ChangePlan, message: bytes, _time_s: float) -> None:
        assert self._timeline is not None
        target = change.target
        knob = self._knobs[_key(target)]
        knob.turn(message)
        done_s = self._timeline.time_s(time.monotonic_ns())
        knob.verify(target.settings)
        self._made_s[change] = done_s

    def collect(self) -> None:
        """Set everything back to what the kernel reported, which rounds some of what tc says."""
        for knob in self._knobs.values():
            knob.turn(knob.message(()))
            knob.verify(knob.begin.settings)

    def write(self, folder: Path) -> None:
        """Write when each change was made, and what each queue's link could carry."""
        if self._knobs:
            write_table(folder, LINK_CHANGES, map(self._row, self._trial.plan.changes))
        if self._trial.plan.changing_queues:
            write_json(
                folder, CAPACITY_FILE, dict(map(_capacity, self._trial.plan.changing_queues))
            )

    def _row(self, change: ChangePlan) -> tuple[str, ...]:
        """Without a time if the trial ended before."""
        made_s = self._made_s.get(change)
        made = "" if made_s is None else f"{made_s:.9f}"
        return made, f"{change.at_s:.9f}", change.interface, change.words

    def close(self) -> None:
        """Close the sockets."""
        for netlink in self._sockets.values():
            netlink.close()


def _key(target: TcObject) -> tuple[str, str, bool]:
    return target.node, target.interface, target.is_class


def _capacity(queue: QueuePlan) -> tuple[str, dict[str, object]]:
    hop = queue.hop
    if hop.direction.trace is not None:
        return queue.interface, {"trace": hop.direction.trace}
    return queue.interface, {"rates": scheduled_rates(hop.rate_changes, hop.rate_mbit)}


@dataclass(frozen=True)
class _Knob:
    """A discipline or class that changes: as it begins, and as the kernel reported it then."""

    netlink: Netlink
    index: int
    begin: TcObject
    report: TcReport

    @property
    def _head(self) -> bytes:
        return TC_MESSAGE.pack(0, self.index, self.report.handle, self.report.parent, 0)

    def message(self, settings: Sequence[Setting]) -> bytes:
        """Return the kernel's options with these numbers in their places."""
        options = bytearray(self.report.options)
        for setting in settings:
            _put(options, setting)
        name = attribute(TCA_KIND, f"{self.report.kind}\0".encode())
        return self._head + name + attribute(TCA_OPTIONS, bytes(options))

    def turn(self, message: bytes) -> None:
        """Make the change."""
        self.netlink.change(NEW_CLASS if self.begin.is_class else NEW_DISCIPLINE, message)

    def verify(self, settings: Sequence[Setting]) -> None:
        """Read the numbers back; one that is not as it should be ends the trial."""
        kind = GET_CLASS if self.begin.is_class else GET_DISCIPLINE
        answer = Request(self.netlink, request_message(kind, self._head)).ask() or b""
        options = attributes(answer, TC_MESSAGE.size).get(TCA_OPTIONS, b"")
        for wrong in differences(settings, options):
            where = f"{self.begin.node}: {self.begin.interface}"
            raise TestbedError(f"{where}: after a change of the link {self.begin.kind}'s {wrong}")


def _put(options: bytearray, setting: Setting) -> None:
    """Write a number to every place where the kernel reports it."""
    if setting.value is None:
        return
    number = setting.stored(setting.value * setting.per_unit)
    for field in setting.at:
        start = _place(bytes(options), field)
        if start is not None:
            struct.pack_into(f"={field.form}", options, start + field.offset, number)


def _place(options: bytes, field: Field) -> int | None:
    """Where the attribute with a field begins; None if it is not there."""
    start, end = field.head if field.path else 0, len(options)
    for wanted in field.path:
        for kind, begin, stop in _walk(options, start, end):
            if kind == wanted:
                start, end = begin, stop
                break
        else:
            return None
    return start


def _walk(data: bytes, start: int, end: int) -> Iterator[tuple[int, int, int]]:
    """Yield the attributes of a stretch: type, begin and end of their data."""
    while start + 4 <= end:
        length, kind = struct.unpack_from("=HH", data, start)
        if length < 4:
            return
        yield kind & 0x3FFF, start + 4, start + length
        start += (length + 3) & ~3
