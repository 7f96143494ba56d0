"""Packet captures: the guest's kernel writes its own, and tcpdump those of this machine."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from testbed.errors import TestbedError
from testbed.machine import safe_files
from testbed.plan.plan import CapturePlan
from testbed.runner.programme import Answers
from testbed.store.names import CAPTURES_FOLDER, RAW_CAPTURE, TCPDUMP_ERRORS, capture_file
from testbed.store.records import CaptureRecord, Record
from testbed.trial.parts.part import Part, PlannedTrial
from testbed.trial.parts.pcapng import Source, beginning

GUEST_KERNEL = "the testbed's guest kernel"  # as the program that wrote a file
BUFFER_KIB = 8192  # one second of 64 Mbit/s in small packets; tcpdump reads far more often
CAPTURE_READY_S = 10.0
CAPTURE_PATIENCE_S = 10.0


def _program(plan: CapturePlan) -> str:
    return f"tcpdump {plan.interface}"


class Captures(Part):
    """The captures of a trial."""

    def __init__(self, trial: PlannedTrial) -> None:
        super().__init__(trial)
        self._ended: dict[CapturePlan, int] = {}  # and the instruction that ended each
        self._records: list[CaptureRecord] = []

    def watch(self) -> None:
        """Make the folder of the captures."""
        (self._trial.folder / CAPTURES_FOLDER).mkdir(exist_ok=True)

    def _add(self, plan: CapturePlan, packets: int, dropped: int) -> None:
        record = CaptureRecord(
            file=capture_file(plan.interface),
            node=plan.node,
            interface=plan.interface,
            roles=plan.roles,
            snaplen_bytes=self._trial.scenario.snaplen_bytes,
            packets=packets,
            dropped=dropped,
        )
        self._records.append(record)

    def describe(self, record: Record, _answers: Answers) -> Record:
        """Add the captures, with warnings about packets that they lack."""
        warnings = (*record.warnings, *self._losses())
        return replace(record, captures=tuple(self._records), warnings=warnings)

    def _losses(self) -> Iterator[str]:
        for record in self._records:
            if record.dropped:
                yield f"{record.interface}: the capture lost {record.dropped} packets"


class GuestCaptures(Captures):
    """Captures that the guest's kernel writes."""

    @classmethod
    def wanted(cls, trial: PlannedTrial) -> bool:
        """Return whether the trial runs in the guest."""
        return trial.virtual_time

    def watch(self) -> None:
        """Start all captures."""
        super().watch()
        snaplen = self._trial.scenario.snaplen_bytes
        for plan in self._trial.plan.captures:
            file = capture_file(plan.interface)
            start = beginning(Source(plan.interface, plan.node, GUEST_KERNEL), snaplen)
            words = (plan.node, plan.interface, snaplen, file, start.hex())
            self._programme.add("capture", *words, fault=f"{plan.node}: no capture")

    def collect(self) -> None:
        """End all captures."""
        for plan in self._trial.plan.captures:
            ended = self._programme.add("captured", capture_file(plan.interface))
            self._ended[plan] = ended

    def write(self, _folder: Path, answers: Answers) -> None:
        """Read how many packets each file holds."""
        for plan, ended in self._ended.items():
            written, lost, error = map(int, answers.of(ended).split())
            if error:
                raise TestbedError(f"{capture_file(plan.interface)}: {os.strerror(error)}")
            self._add(plan, written, lost)


class HostCaptures(Captures):
    """Captures by tcpdump, one for each interface, whose drops are counted."""

    @classmethod
    def wanted(cls, trial: PlannedTrial) -> bool:
        """Return whether the trial runs on this machine's own kernel."""
        return not trial.virtual_time

    def _file(self, plan: CapturePlan, suffix: str) -> str:
        return str(Path(capture_file(plan.interface)).with_suffix(suffix))

    def watch(self) -> None:
        """Start all captures, and wait until every tcpdump reports that it is listening."""
        super().watch()
        for plan in self._trial.plan.captures:
            # "-w -": tcpdump would give away a file that it opens itself; -Z root: it would become
            # another user
            argv: tuple[str, ...] = ("tcpdump", "-i", plan.interface, "-n", "-Z", "root")
            argv += ("-s", str(self._trial.scenario.snaplen_bytes), "-B", str(BUFFER_KIB))
            argv += ("--time-stamp-precision=nano", "-w", "-")
            self._programme.start(
                _program(plan),
                plan.node,
                argv,
                self._file(plan, RAW_CAPTURE),
                self._file(plan, TCPDUMP_ERRORS),
            )
        for plan in self._trial.plan.captures:
            errors_name = self._file(plan, TCPDUMP_ERRORS)
            fault = f"{plan.node}: tcpdump did not start"
            condition = ("says", errors_name, "listening on")
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
        for plan in self._ended:
            self._add(plan, *self._counts(plan, folder))

    def _counts(self, plan: CapturePlan, folder: Path) -> tuple[int, int]:
        messages = folder / self._file(plan, TCPDUMP_ERRORS)
        text = safe_files.tail(messages)
        counts = {
            name: int(number)
            for number, name in re.findall(r"(\d+) packets? (captured|dropped by kernel)", text)
        }
        if "captured" not in counts:
            raise TestbedError(f"{plan.node}: tcpdump died: {text.strip()}")
        messages.unlink()
        return counts["captured"], counts.get("dropped by kernel", 0)
