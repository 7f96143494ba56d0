"""Processor load of the machine, and the time a trial's processes waited for a processor.

Meaningful only in real time. In a guest's virtual time nothing is ever busy: its /proc/stat has
counted only idle time since boot, and then nothing is written.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from testbed.store import CPU_LOAD, PROCESS_TIMES, write_table
from testbed.trial.parts.part import Part, RunningTrial
from testbed.trial.parts.scheduler import ActionQueue

STAT = Path("/proc/stat")
INTERVAL_S = 1.0
IDLE_TICKS, IOWAIT, SOFTIRQ, STEAL, GUEST = 3, 4, 6, 7, 8  # column numbers in a line of /proc/stat

Times = dict[str, tuple[int, ...]]  # "cpu" (all) and "cpuN" → ticks by kind


def read_stat(text: str) -> Times:
    """Parse the processors' lines of /proc/stat; user time already includes guest time."""
    lines = (line.split() for line in text.splitlines() if line.startswith("cpu"))
    return {name: tuple(map(int, ticks[:GUEST])) for name, *ticks in lines}


def counts_time(times: Times) -> bool:
    """Return whether any processor has counted busy time."""
    everything = times["cpu"]
    return sum(everything) > everything[IDLE_TICKS] + everything[IOWAIT]


def shares(before: Times, after: Times) -> tuple[float, float, float] | None:
    """Return the columns busiest, softirq and steal of two readings; None if no tick passed."""
    passed = {
        name: tuple(b - a for a, b in zip(before[name], ticks, strict=True))
        for name, ticks in after.items()
        if name in before
    }
    whole = sum(passed["cpu"])
    if whole <= 0:
        return None
    busiest = max(
        1 - (ticks[IDLE_TICKS] + ticks[IOWAIT]) / sum(ticks)
        for name, ticks in passed.items()
        if name != "cpu" and sum(ticks) > 0
    )
    return busiest, passed["cpu"][SOFTIRQ] / whole, passed["cpu"][STEAL] / whole


@dataclass(frozen=True)
class Scheduled:
    """The scheduler's counts for a process: time run, time runnable but waiting, slices."""

    run_ns: int = 0
    wait_ns: int = 0
    slices: int = 0

    def __sub__(self, earlier: Scheduled) -> Scheduled:
        return Scheduled(
            self.run_ns - earlier.run_ns,
            self.wait_ns - earlier.wait_ns,
            self.slices - earlier.slices,
        )


def read_schedstats(texts: Iterable[str]) -> Scheduled:
    """Sum the schedstat texts of a process's threads."""
    threads = [tuple(map(int, text.split())) for text in texts]
    return Scheduled(*map(sum, zip(*threads, strict=True))) if threads else Scheduled()


def scheduled(pid: int) -> Scheduled | None:
    """Read a process's counts; None if it has ended or the kernel has no schedstat."""
    try:
        paths = sorted(Path(f"/proc/{pid}/task").iterdir())
        return read_schedstats([(path / "schedstat").read_text() for path in paths])
    except (OSError, ValueError):
        return None


class Watched:
    """A process of the trial with its first and latest scheduler counts."""

    def __init__(self, name: str, node: str, pid: int) -> None:
        self.name, self._node, self._pid = name, node, pid
        self._first = self._last = scheduled(pid)

    def look(self) -> None:
        """Read the counts again; those of an ended process stay as they are."""
        self._last = scheduled(self._pid) or self._last

    def row(self) -> tuple[object, ...] | None:
        """Return the row of processes.csv."""
        if self._first is None or self._last is None:
            return None
        spent = self._last - self._first
        times = (f"{spent.run_ns / 1e9:.6f}", f"{spent.wait_ns / 1e9:.6f}")
        return (self.name, self._node, *times, spent.slices)


class CpuLoad(Part):
    """The load of the machine and of a trial's processes while the trial runs."""

    def __init__(self, trial: RunningTrial) -> None:
        super().__init__(trial)
        self._enabled = counts_time(read_stat(STAT.read_text()))
        self._before: Times = {}
        self._rows: list[tuple[object, ...]] = []
        self._watched: list[Watched] = []
        self.process_started("trial", "", os.getpid())

    def process_started(self, name: str, node: str, pid: int) -> None:
        """Watch a process from now on."""
        if self._enabled:
            self._watched.append(Watched(name, node, pid))

    def schedule(self, timeline: ActionQueue) -> None:
        """Schedule samples of the processors, if they count time."""
        if self._enabled:
            timeline.every(INTERVAL_S, self._trial.plan.end_s, self.sample)

    def flow_ends(self, _time_s: float, *processes: str) -> None:
        """Read these processes a last time before they end."""
        for each in self._watched:
            if each.name in processes:
                each.look()

    def stop(self) -> None:
        """Read all processes once more."""
        for each in self._watched:
            each.look()

    def sample(self, time_s: float) -> None:
        """Append one row of load.csv, covering the time since the previous call."""
        now = read_stat(STAT.read_text())
        if self._before and (found := shares(self._before, now)):
            self._rows.append((f"{time_s:.6f}", *(f"{share:.4f}" for share in found)))
        self._before = now

    def write(self, folder: Path) -> None:
        """Write the tables that are not empty."""
        rows = [row for each in self._watched if (row := each.row())]
        for table, found in ((CPU_LOAD, self._rows), (PROCESS_TIMES, rows)):
            if found:
                write_table(folder, table, found)
