"""Packet captures: one tcpdump per interface, whose drops are counted."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from testbed.errors import TestbedError
from testbed.machine.compiled import LIBRARIES
from testbed.plan.plan import CapturePlan
from testbed.runner.programme import Answers
from testbed.store import RAW_CAPTURE, TCPDUMP_ERRORS, CaptureRecord, Record, capture_file
from testbed.trial.parts.part import Part, PlannedTrial

TCPDUMP_PRELOAD = LIBRARIES / "testbed-tcpdump.so"  # built from preload/
BUFFER_KIB = 8192  # one second of 64 Mbit/s in small packets; tcpdump reads far more often
CAPTURE_READY_S = 10.0
CAPTURE_PATIENCE_S = 10.0


def _program(plan: CapturePlan) -> str:
    return f"tcpdump {plan.interface}"


class Captures(Part):
    """All captures of a trial."""

    def __init__(self, trial: PlannedTrial) -> None:
        super().__init__(trial)
        self._ended: dict[CapturePlan, int] = {}
        self._records: tuple[CaptureRecord, ...] = ()

    def _file(self, plan: CapturePlan, suffix: str) -> str:
        return str(Path(capture_file(plan.interface)).with_suffix(suffix))

    def watch(self) -> None:
        """Start all captures, and wait until every tcpdump reports that it is listening."""
        for plan in self._trial.plan.captures:
            (self._trial.folder / capture_file(plan.interface)).parent.mkdir(exist_ok=True)
            # "-w -": tcpdump would chown a file that it opens itself, which an ordinary user's
            # guest may not do; -Z root: there is no other user to become
            argv: tuple[str, ...] = ("tcpdump", "-i", plan.interface, "-n", "-Z", "root")
            argv += ("-s", str(self._trial.scenario.snaplen_bytes), "-B", str(BUFFER_KIB))
            argv += ("--time-stamp-precision=nano", "-w", "-")
            self._programme.start(
                _program(plan),
                plan.node,
                argv,
                self._file(plan, RAW_CAPTURE),
                self._file(plan, TCPDUMP_ERRORS),
                environment={"LD_PRELOAD": str(TCPDUMP_PRELOAD)},
            )
        for plan in self._trial.plan.captures:
            said = self._file(plan, TCPDUMP_ERRORS)
            fault = f"{plan.node}: tcpdump did not start"
            condition = ("says", said, "listening on")
            self._programme.await_program(_program(plan), CAPTURE_READY_S, *condition, fault=fault)

    def open(self) -> None:
        """Tell the other parts about the processes."""
        for plan in self._trial.plan.captures:
            self._trial.process_started(_program(plan), plan.node, _program(plan))

    def collect(self) -> None:
        """End all captures."""
        for plan in self._trial.plan.captures:
            self._ended[plan] = self._programme.end(
                _program(plan), signal.SIGINT, CAPTURE_PATIENCE_S
            )

    def write(self, folder: Path, answers: Answers) -> None:
        """Read what every tcpdump said at its end."""
        self._records = tuple(self._record(plan, folder) for plan in self._ended)

    def _record(self, plan: CapturePlan, folder: Path) -> CaptureRecord:
        messages = folder / self._file(plan, TCPDUMP_ERRORS)
        said = messages.read_text(errors="replace")
        counts = {
            name: int(number)
            for number, name in re.findall(r"(\d+) packets? (captured|dropped by kernel)", said)
        }
        if "captured" not in counts:
            raise TestbedError(f"{plan.node}: tcpdump died: {said.strip()}")
        messages.unlink()
        return CaptureRecord(
            file=capture_file(plan.interface),
            node=plan.node,
            interface=plan.interface,
            roles=plan.roles,
            snaplen_bytes=self._trial.scenario.snaplen_bytes,
            packets=counts["captured"],
            dropped=counts.get("dropped by kernel", 0),
        )

    def describe(self, record: Record, _answers: Answers) -> Record:
        """Add the captures, with warnings about packets that tcpdump lost."""
        warnings = (*record.warnings, *self._losses())
        return replace(record, captures=self._records, warnings=warnings)

    def _losses(self) -> Iterator[str]:
        for each in self._records:
            if each.dropped:
                yield f"{each.interface}: tcpdump lost {each.dropped} packets"
