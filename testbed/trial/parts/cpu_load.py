"""How busy the machine was, and how long a trial's processes waited for a processor.

Of meaning where time is real. In a guest's virtual time nothing is ever busy: its
/proc/stat has counted idle time alone since it booted, and then nothing is written.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from testbed.store import LOAD, PROCESSES, write_table
from testbed.trial.parts.part import Part, RunningTrial
from testbed.trial.parts.scheduler import Timeline

STAT = Path("/proc/stat")
INTERVAL_S = 1.0
IDLE, IOWAIT, SOFTIRQ, STEAL, GUEST = 3, 4, 6, 7, 8  # places in a line of /proc/stat

Times = dict[str, tuple[int, ...]]  # "cpu" (all) and "cpuN" → ticks by kind


def read_stat(text: str) -> Times:
    """The processors' lines of /proc/stat; guests' time is counted as the user's already."""
    lines = (line.split() for line in text.splitlines() if line.startswith("cpu"))
    return {name: tuple(map(int, ticks[:GUEST])) for name, *ticks in lines}


def counts_time(times: Times) -> bool:
    """Whether any processor has ever done anything."""
    everything = times["cpu"]
    return sum(everything) > everything[IDLE] + everything[IOWAIT]


def shares(before: Times, after: Times) -> tuple[float, float, float] | None:
    """busiest, softirq, steal between two looks; None if no tick passed."""
    passed = {
        name: tuple(b - a for a, b in zip(before[name], ticks, strict=True))
        for name, ticks in after.items()
        if name in before
    }
    whole = sum(passed["cpu"])
    if whole <= 0:
        return None
    busiest = max(
        1 - (ticks[IDLE] + ticks[IOWAIT]) / sum(ticks)
        for name, ticks in passed.items()
        if name != "cpu" and sum(ticks) > 0
    )
    return busiest, passed["cpu"][SOFTIRQ] / whole, passed["cpu"][STEAL] / whole


@dataclass(frozen=True)
class Scheduled:
    """What the scheduler counted of a process: ran, waited though it could run, slices."""

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
    """The sum over a process's threads; each text is one's schedstat."""
    threads = [tuple(map(int, text.split())) for text in texts]
    return Scheduled(*map(sum, zip(*threads, strict=True))) if threads else Scheduled()


def scheduled(pid: int) -> Scheduled | None:
    """Of a process that runs; None if it has ended, or this kernel does not count."""
    try:
        paths = sorted(Path(f"/proc/{pid}/task").iterdir())
        return read_schedstats([(path / "schedstat").read_text() for path in paths])
    except (OSError, ValueError):
        return None


class Watched:
    """A process of the trial, between its first look and its last."""

    def __init__(self, name: str, node: str, pid: int) -> None:
        self.name, self._node, self._pid = name, node, pid
        self._first = self._last = scheduled(pid)

    def look(self) -> None:
        """Read it again; of one that is gone, what was read before stays."""
        self._last = scheduled(self._pid) or self._last

    def row(self) -> tuple[object, ...] | None:
        """As processes.csv has it."""
        if self._first is None or self._last is None:
            return None
        spent = self._last - self._first
        times = (f"{spent.run_ns / 1e9:.6f}", f"{spent.wait_ns / 1e9:.6f}")
        return (self.name, self._node, *times, spent.slices)


class CpuLoad(Part):
    """The load of the machine and of a trial's processes, while it runs."""

    def __init__(self, trial: RunningTrial) -> None:
        super().__init__(trial)
        self._enabled = counts_time(read_stat(STAT.read_text()))
        self._before: Times = {}
        self._rows: list[tuple[object, ...]] = []
        self._watched: list[Watched] = []
        self.process_started("trial", "", os.getpid())

    def process_started(self, name: str, node: str, pid: int) -> None:
        """Count a process from now on."""
        if self._enabled:
            self._watched.append(Watched(name, node, pid))

    def schedule(self, timeline: Timeline) -> None:
        """Sample the processors, where they count time."""
        if self._enabled:
            timeline.every(INTERVAL_S, self._trial.plan.end_s, self.sample)

    def flow_ends(self, _time_s: float, *processes: str) -> None:
        """Read these processes once more: they are about to end."""
        for each in self._watched:
            if each.name in processes:
                each.look()

    def stop(self) -> None:
        """Read all processes once more."""
        for each in self._watched:
            each.look()

    def sample(self, time_s: float) -> None:
        """One row of load.csv: since the call before."""
        now = read_stat(STAT.read_text())
        if self._before and (found := shares(self._before, now)):
            self._rows.append((f"{time_s:.6f}", *(f"{share:.4f}" for share in found)))
        self._before = now

    def write(self, folder: Path) -> None:
        """Write the tables that have rows."""
        rows = [row for each in self._watched if (row := each.row())]
        for table, found in ((LOAD, self._rows), (PROCESSES, rows)):
            if found:
                write_table(folder, table, found)
