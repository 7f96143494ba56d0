"""Packet captures: one tcpdump per interface, whose drops are counted."""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from testbed.errors import TestbedError
from testbed.machine.compiled import LIBRARIES, as_started, require_built
from testbed.machine.process import Place, Process, end, start
from testbed.plan.plan import CapturePlan
from testbed.store import RAW_CAPTURE, TCPDUMP_ERRORS, CaptureRecord, Record, capture_file
from testbed.trial.parts.part import Part, RunningTrial

TCPDUMP_PRELOAD = LIBRARIES / "testbed-tcpdump.so"  # built from preload/
BUFFER_KIB = 8192  # one second of 64 Mbit/s in small packets; tcpdump reads far more often
TCPDUMP_READY_S = 10.0


class Capture:
    """A running tcpdump."""

    def __init__(self, plan: CapturePlan, place: Place, folder: Path, snaplen_bytes: int) -> None:
        self.plan = plan
        self._place = place
        self._snaplen = snaplen_bytes
        file = folder / capture_file(plan.interface)
        file.parent.mkdir(exist_ok=True)
        self._messages = file.with_suffix(TCPDUMP_ERRORS)
        require_built(TCPDUMP_PRELOAD)
        # "-w -": tcpdump would chown a file that it opens itself, which an ordinary user's
        # guest may not do; -Z root: there is no other user to become
        argv: tuple[str, ...] = ("tcpdump", "-i", plan.interface, "-n", "-Z", "root")
        argv += ("-s", str(snaplen_bytes), "-B", str(BUFFER_KIB))
        argv += ("--time-stamp-precision=nano", "-w", "-")
        self._argv = argv
        self._process: Process = start(
            argv,
            place=place,
            stdout=file.with_suffix(RAW_CAPTURE),
            stderr=self._messages,
            env={**os.environ, "LD_PRELOAD": as_started(TCPDUMP_PRELOAD)},
        )

    def wait_until_ready(self) -> None:
        """Return once tcpdump reports that it is listening."""
        deadline = time.monotonic() + TCPDUMP_READY_S
        while "listening on" not in self._said():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise TestbedError(
                    f"{self.plan.node}: tcpdump did not start: {self._said().strip()}"
                )
            time.sleep(0.001)

    @property
    def pid(self) -> int:
        """The process id of tcpdump."""
        return self._process.pid

    def _said(self) -> str:
        return self._messages.read_text(errors="replace")

    def stop(self) -> CaptureRecord:
        """End tcpdump and describe the capture, under its final file name."""
        status = end(self._process, signal.SIGINT)
        said = self._said()
        self._place.note(self._argv, "", f"ended {status}", said)
        counts = {
            name: int(number)
            for number, name in re.findall(r"(\d+) packets? (captured|dropped by kernel)", said)
        }
        if "captured" not in counts:
            raise TestbedError(f"{self.plan.node}: tcpdump died: {said.strip()}")
        self._messages.unlink()
        return CaptureRecord(
            file=capture_file(self.plan.interface),
            node=self.plan.node,
            interface=self.plan.interface,
            roles=self.plan.roles,
            snaplen_bytes=self._snaplen,
            packets=counts["captured"],
            dropped=counts.get("dropped by kernel", 0),
        )

    def kill(self) -> None:
        """Kill tcpdump after a failed trial."""
        end(self._process, signal.SIGKILL)


class Captures(Part):
    """All captures of a trial."""

    def __init__(self, trial: RunningTrial) -> None:
        super().__init__(trial)
        self._captures: list[Capture] = []
        self._records: tuple[CaptureRecord, ...] = ()

    def open(self) -> None:
        """Start all captures."""
        for plan in self._trial.plan.captures:
            place, snaplen = self._trial.places[plan.node], self._trial.scenario.snaplen_bytes
            self._captures.append(Capture(plan, place, self._trial.folder, snaplen))

    def wait_until_ready(self) -> None:
        """Return once every tcpdump is listening."""
        for capture in self._captures:
            capture.wait_until_ready()
        for capture in self._captures:
            name = f"tcpdump {capture.plan.interface}"
            self._trial.process_started(name, capture.plan.node, capture.pid)

    def collect(self) -> None:
        """End all captures."""
        self._records = tuple(capture.stop() for capture in self._captures)

    def describe(self, record: Record) -> Record:
        """Add the captures, with warnings about packets that tcpdump lost."""
        warnings = (*record.warnings, *self._losses())
        return replace(record, captures=self._records, warnings=warnings)

    def _losses(self) -> Iterator[str]:
        for each in self._records:
            if each.dropped:
                yield f"{each.interface}: tcpdump lost {each.dropped} packets"

    def close(self) -> None:
        """Kill all captures."""
        for capture in self._captures:
            capture.kill()
