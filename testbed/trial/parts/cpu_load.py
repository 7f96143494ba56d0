"""Processor load of the machine, and the time a trial's processes waited for a processor.

Meaningful only in real time.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from testbed.runner.programme import HOME, Answers
from testbed.store.names import CPU_LOAD, PROCESS_TIMES
from testbed.store.writing import write_table
from testbed.trial.parts.part import Part, PlannedTrial, TrialTimeline

STAT = Path("/proc/stat")
INTERVAL_S = 1.0
IDLE_TICKS, IOWAIT, SOFTIRQ, STEAL, GUEST = 3, 4, 6, 7, 8  # column numbers in a line of /proc/stat

Times = dict[str, tuple[int, ...]]  # "cpu" (all) and "cpuN" → ticks by kind


def read_stat(text: str) -> Times:
    """Parse the processors' lines of /proc/stat; user time already includes guest time."""
    lines = (line.split() for line in text.splitlines() if line.startswith("cpu"))
    return {name: tuple(map(int, ticks[:GUEST])) for name, *ticks in lines}


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


class CpuLoad(Part):
    """The load of the machine and of a trial's processes while the trial runs."""

    def __init__(self, trial: PlannedTrial) -> None:
        super().__init__(trial)
        self._looks: list[tuple[int, int]] = []  # of the processors: when, and the reading
        self._first: dict[str, tuple[str, str, int]] = {}  # program → name, node, reading
        self._last: dict[str, list[int]] = {}

    @classmethod
    def wanted(cls, trial: PlannedTrial) -> bool:
        """Return whether the trial runs in real time: in virtual time nothing is ever busy."""
        return not trial.virtual_time

    def _read(self, program: str) -> int:
        return self._programme.add("read", HOME, f"/proc/{{pid:{program}}}/task/*/schedstat")

    def process_started(self, name: str, node: str, program: str) -> None:
        """Watch a process from now on."""
        self._first[program] = (name, node, self._read(program))

    def schedule(self, timeline: TrialTimeline) -> None:
        """Schedule samples of the processors; the runner is watched, too."""
        self.process_started("runner", "", "runner")
        for second in range(math.ceil(self._trial.plan.end_s)):
            timeline.at(second * INTERVAL_S, self._look)

    def _look(self, at: int) -> None:
        self._looks.append((at, self._programme.add("read", HOME, str(STAT))))

    def flow_ends(self, *programs: str) -> None:
        """Read these processes a last time before they end."""
        for program in programs:
            self._last.setdefault(program, []).append(self._read(program))

    def schedule_end(self, timeline: TrialTimeline, end_s: float) -> None:
        """Read all processes once more."""
        timeline.at(end_s, lambda _at: self.flow_ends(*self._first))

    def write(self, folder: Path, answers: Answers) -> None:
        """Write the tables that are not empty."""
        rows = [row for each in self._first if (row := self._row(each, answers))]
        for table, content in ((CPU_LOAD, list(self._loads(answers))), (PROCESS_TIMES, rows)):
            if content:
                write_table(folder, table, content)

    def _loads(self, answers: Answers) -> Iterator[tuple[object, ...]]:
        """Yield the rows of load.csv, each covering the time since the look before."""
        before: Times = {}
        for at, number in self._looks:
            for text in answers.files(number).values():
                now = read_stat(text)
                time_s = answers.time_s(at)
                if before and time_s is not None and (parts := shares(before, now)):
                    yield (f"{time_s:.6f}", *(f"{share:.4f}" for share in parts))
                before = now

    def _row(self, program: str, answers: Answers) -> tuple[object, ...] | None:
        """Return the row of processes.csv; None for a process that was never seen."""
        name, node, number = self._first[program]
        first = list(answers.files(number).values())
        lasts = (list(answers.files(each).values()) for each in self._last.get(program, ()))
        last = next((texts for texts in reversed(list(lasts)) if texts), None)
        if not first or last is None:
            return None
        spent = read_schedstats(last) - read_schedstats(first)
        times = (f"{spent.run_ns / 1e9:.6f}", f"{spent.wait_ns / 1e9:.6f}")
        return (name, node, *times, spent.slices)
