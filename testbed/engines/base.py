"""What an engine is."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from testbed.errors import TestbedError
from testbed.machine.journal import Journal
from testbed.plan.requirements import Need
from testbed.plan.task import Task


@dataclass(frozen=True)
class Missing:
    """A feature that an engine's kernel lacks, and what would mend it."""

    need: Need
    mend: str

    def __str__(self) -> str:
        return f"{self.need.kind} {self.need.name}"


def missing_programs(needs: Sequence[Need]) -> list[Missing]:
    """Which programs are not installed: host and guest have the same."""
    return [
        Missing(need, f"apt install {need.name}")
        for need in needs
        if need.kind == "program" and shutil.which(need.name) is None
    ]


def in_want(engine: Engine, missing: Iterable[Missing]) -> str:
    """What lacks it: the engine's kernel, or the engine with all that it has."""
    kernels = all(each.need.symbol for each in missing)
    return f"the {engine.name}'s kernel" if kernels else f"the {engine.name}"


@dataclass(frozen=True)
class Outcome:
    """How the process that ran a trial ended."""

    status: int
    peak_memory_mb: float
    errors: str  # what it printed beside its files
    warnings: tuple[str, ...] = ()  # of the engine, for the trial's record


@dataclass(frozen=True)
class Job:
    """What a trial is given to run with."""

    seed: int
    core: int  # the processor that a guest is pinned to
    journal: Journal  # where changes to the host are noted before they are made
    cancel: threading.Event  # set when the user wants to stop
    pinned: bool = True  # other trials run beside it on other processors


class Cancelled(TestbedError):
    """The user asked to stop."""


class Engine(Protocol):
    """A place to run `python -m testbed.trial`; one line in choice.py for each."""

    name: str
    virtual_time: bool  # computing takes no time there, so delays are exact

    def ready(self) -> str:
        """Empty if trials can run here, else what is wrong and what would mend it."""

    def version(self) -> str:
        """The kernel, to the last change of it."""

    def missing(self, needs: Sequence[Need]) -> list[Missing]:
        """Which of these features the kernel lacks."""

    def controls(self) -> frozenset[str]:
        """The congestion controls that the kernel offers."""

    def try_out(self) -> str:
        """Run as little as possible, and say how that went; raises if it does not work."""

    def jobs(self) -> int:
        """How many trials may run side by side without changing each other's results."""

    def run(self, folder: Path, task: Task, job: Job) -> Outcome:
        """Run the trial in a folder that holds its scenario.json."""
