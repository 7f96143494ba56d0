"""Links that change: traces are loaded and begun, schedules carried out.

A change is one message to the kernel at its time: what the kernel reported of the discipline or
class, with the planned numbers in it, or tc's own. It is read back at once. When all flows have
ended everything is set back, so that the kernel's configuration is as it was before them.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path

from testbed.errors import TestbedError
from testbed.machine.netlink import TCA_KIND, TCA_OPTIONS, attribute, attributes
from testbed.plan.commands import LEAF, SHAPER, Command
from testbed.plan.traffic_control import (
    TRACE,
    TRACE_START,
    TRACE_TIMES,
    ChangePlan,
    QueuePlan,
    TcObject,
)
from testbed.runner.programme import Answers
from testbed.runner.recorded_netlink import netlink_of, send_command
from testbed.scenario.discipline import Setting
from testbed.scenario.trace import parse_trace
from testbed.store.names import CAPACITY_FILE, LINK_CHANGES
from testbed.store.writing import write_json, write_table
from testbed.trial.parts.host_changes import HostChanges, change_row
from testbed.trial.parts.part import Part, PlannedTrial, TrialTimeline
from testbed.trial.parts.snapshot import differences

NEW_DISCIPLINE, GET_DISCIPLINE = 36, 38  # linux/rtnetlink.h
NEW_CLASS, GET_CLASS = 40, 42
TC_ROOT = 0xFFFFFFFF
CHUNK_BYTES = 32_000  # of a trace: an attribute holds less than 64 KB
TC_MESSAGE = struct.Struct("=B3xiIII")  # family, interface, handle, parent, info


class LinkChanges(Part):
    """The traces and schedules of all links."""

    def __init__(self, trial: PlannedTrial) -> None:
        super().__init__(trial)
        self._made: dict[ChangePlan, int] = {}  # the instruction that makes a change
        self._read_back: list[tuple[TcObject, int]] = []  # what is then asked for
        self._hosts = HostChanges(trial)

    @classmethod
    def wanted(cls, trial: PlannedTrial) -> bool:
        """Return whether a link follows a trace, or anything a schedule."""
        return trial.plan.has_changing_links or any(True for _ in trial.scenario.host_changes)

    @property
    def _traced(self) -> list[QueuePlan]:
        return [each for each in self._trial.plan.queues if each.hop.direction.trace is not None]

    def _changing(self, *, by_command: bool) -> Iterator[tuple[TcObject, Command | None]]:
        """Yield the objects that will change, as they are at the start, and what sets them back."""
        changed = {
            _key(each.target): each.undoing
            for each in self._trial.plan.changes
            if (each.command is not None) == by_command
        }
        for each in self._trial.plan.tc_objects:
            if _key(each) in changed:
                yield each, changed[_key(each)]

    def join(self) -> None:
        """Load the traces; the verification reads back what the kernel made of them."""
        for queue in self._traced:
            times = parse_trace(queue.hop.direction.trace or "").packed
            for start in range(0, len(times), CHUNK_BYTES):
                self._tell_trace(queue, TRACE_TIMES, times[start : start + CHUNK_BYTES])

    def _tell_trace(self, queue: QueuePlan, kind: int, data: bytes, *more: tuple[int, str]) -> None:
        head = TC_MESSAGE.pack(0, 0, SHAPER.number, TC_ROOT, 0)
        head += attribute(TCA_KIND, f"{TRACE}\0".encode())
        message = head + attribute(TCA_OPTIONS, attribute(kind, data))
        places = [("index", 4, queue.interface)]
        # behind the heads of the options and of the number
        places += [(what, len(head) + 8 + offset, "") for offset, what in more]
        fault = f"{queue.node}: {queue.interface}: cannot load its trace"
        self._programme.send(queue.node, NEW_DISCIPLINE, 0, message, *places, fault=fault)

    def wait_until_ready(self) -> None:
        """Have all objects that will change described as they are."""
        for target, _ in self._changing(by_command=False):
            self._keep(target)

    def _keep(self, target: TcObject) -> int:
        message = TC_MESSAGE.pack(0, 0, target.handle.number, 0, 0)
        kind = GET_CLASS if target.is_class else GET_DISCIPLINE
        words = (_name(target), target.node, kind, message.hex(), "index", 4, target.interface)
        return self._programme.add("keep", *words, fault=_where(target))

    def schedule(self, timeline: TrialTimeline) -> None:
        """Start traces at second 0, and make every change at its time."""
        for queue in self._traced:
            self._tell_trace(queue, TRACE_START, bytes(8), (0, "zero"))
        for change in sorted(self._trial.plan.changes, key=lambda each: each.at_s):
            timeline.at(change.at_s, functools.partial(self._change, change))
        self._hosts.schedule(timeline)

    def _change(self, change: ChangePlan, at: int) -> None:
        if change.command is not None:
            self._made[change] = at
            self._command(change.target, change.command)
            return
        self._made[change] = self._turn(change.target, change.target.settings)

    def _command(self, target: TcObject, command: Command) -> None:
        """Have tc's message sent, and read the discipline back."""
        (message,) = netlink_of("tc", (" ".join(command.argv[1:]),))
        send_command(self._programme, command.node, command.argv, message)
        self._ask(target)

    def _turn(self, target: TcObject, settings: Sequence[Setting]) -> int:
        """Put these numbers into what was kept, and read them back; return the change's number."""
        words = [word for each in settings for word in _numbers(each)]
        kind = NEW_CLASS if target.is_class else NEW_DISCIPLINE
        made = self._programme.add("change", _name(target), kind, *words, fault=_where(target))
        self._ask(target)
        return made

    def _ask(self, target: TcObject) -> None:
        message = TC_MESSAGE.pack(0, 0, target.handle.number, 0, 0)
        asked = GET_CLASS if target.is_class else GET_DISCIPLINE
        place = (target.node, asked, message.hex(), "index", 4, target.interface)
        self._read_back.append((target, self._programme.add("ask", *place)))

    def collect(self) -> None:
        """Set everything back to what the kernel reported, which rounds some of what tc says."""
        for target, _ in self._changing(by_command=False):
            self._turn(target, ())
        for target, undoing in self._changing(by_command=True):
            assert undoing
            self._command(target, undoing)
        if any(True for _ in self._trial.scenario.host_changes):
            self._hosts.set_back()

    def check(self, answers: Answers) -> None:
        """Compare everything with its plan as it was read back after each change."""
        self._hosts.check(answers)
        for target, number in self._read_back:
            if number in answers:
                options = attributes(answers.of(number), TC_MESSAGE.size).get(TCA_OPTIONS, b"")
                for wrong in differences(target.settings, options):
                    raise TestbedError(f"{_where(target)}'s {wrong}")

    def write(self, folder: Path, answers: Answers) -> None:
        """Write when each change was made, and what each queue's link could carry."""
        rows = [self._row(each, answers) for each in self._trial.plan.changes]
        rows += self._hosts.rows(answers)
        if rows:
            write_table(folder, LINK_CHANGES, rows)
        if self._trial.plan.changing_queues:
            write_json(
                folder, CAPACITY_FILE, dict(map(_capacity, self._trial.plan.changing_queues))
            )

    def _row(self, change: ChangePlan, answers: Answers) -> tuple[str, ...]:
        """Return a change's row: without a time if the trial ended before."""
        made_s = answers.time_s(self._made[change])
        return change_row(made_s, change.at_s, change.interface, change.words)


def _key(target: TcObject) -> tuple[str, str]:
    return target.node, _name(target)


def _name(target: TcObject) -> str:
    kind = "class" if target.is_class else "queue" if target.handle == LEAF else "discipline"
    return f"{kind} of {target.interface}"


def _where(target: TcObject) -> str:
    return f"{target.node}: {target.interface}: after a change of the link {target.kind}"


def _capacity(queue: QueuePlan) -> tuple[str, dict[str, object]]:
    hop = queue.hop
    if hop.direction.trace is not None:
        return queue.interface, {"trace": hop.direction.trace}
    return queue.interface, {"rates": hop.rates_mbit}


def _numbers(setting: Setting) -> Iterator[object]:
    """Yield where the kernel reports a number, every time: path, head, offset, size, number."""
    if setting.value is not None:
        number = setting.stored(setting.value * setting.per_unit)
        for at in setting.at:
            path = ",".join(map(str, at.path))
            yield from (path, at.head, at.offset, struct.calcsize(f"={at.form}"), number)
