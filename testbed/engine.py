"""The interface of an engine, and the values that it exchanges with a sweep."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from testbed.errors import TestbedError
from testbed.machine.locks import Tell
from testbed.machine.process import PACKAGES, TOOLS, how_to_install
from testbed.machine.trees import Taken
from testbed.plan.plan import Task
from testbed.plan.requirements import Need
from testbed.scenario.programs import PROGRAM_PATH


@dataclass(frozen=True)
class Missing:
    """A feature that an engine lacks, and how to provide it."""

    need: Need
    remedy: str

    def __str__(self) -> str:
        return f"{self.need.kind} {self.need.name}"


def missing_programs(needs: Sequence[Need]) -> list[Missing]:
    """Return the programs that are not installed; host and guest share one installation."""
    return [
        Missing(need, _remedy(need.name))
        for need in needs
        if need.kind == "program" and shutil.which(need.name, path=PROGRAM_PATH) is None
    ]


def _remedy(program: str) -> str:
    if "/" in program:
        return f"is {program} there, and may it be executed?"
    if program in PACKAGES:
        return how_to_install(program)
    if program == "python":
        return "Debian has no program of this name: type python3"
    return f"correct the name; or, if {program} is also its package: {how_to_install(program)}"


def why_tools_are_missing(engine: str) -> str:
    """Return which programs an engine lacks on this machine, and how to install them."""
    missing = [tool for tool in TOOLS[engine] if shutil.which(tool, path=PROGRAM_PATH) is None]
    remedies = dict.fromkeys(map(how_to_install, missing))
    return f"{', '.join(missing)} not installed: {'; '.join(remedies)}" if missing else ""


def what_lacks(engine: Engine, missing: Iterable[Missing]) -> str:
    """Return the name of what lacks these features: the engine's kernel or the engine itself."""
    in_kernel = all(each.need.symbol for each in missing)
    return f"the {engine.name}'s kernel" if in_kernel else f"the {engine.name}"


@dataclass(frozen=True)
class ProcessOutcome:
    """The end of the process that ran a trial."""

    status: int
    peak_memory_mb: float
    errors: str  # its error output
    warnings: tuple[str, ...] = ()  # from the engine, for the trial's record
    waited_s: float = 0.0  # for a cluster's worker
    taken: Taken = field(default_factory=Taken)  # of what its guest left

    def death(self) -> TestbedError:
        """Return the error of a trial that ended without results."""
        errors = f": {self.errors}" if self.errors else ""
        return TestbedError(f"the trial died (exit status {self.status}){errors}")


@dataclass(frozen=True)
class Job:
    """The resources and settings that a trial runs with."""

    seed: int
    core: int  # the processor to which a guest is pinned
    cancel: threading.Event  # set when the user cancels
    trial: str = ""  # its name
    runs_programs: bool = False  # of the user's
    pinned: bool = True  # true if other trials run at the same time on other processors
    tell: Tell = lambda _text: None  # says why a trial has to wait

    def check(self) -> None:
        """Raise an error if the user has cancelled."""
        if self.cancel.is_set():
            raise Cancelled("cancelled")


class Cancelled(TestbedError):
    """The user asked to stop."""


class Engine(Protocol):
    """A place where a trial's programme is obeyed; ENGINES in runs/engine_choice.py lists them."""

    name: str
    virtual_time: bool  # computing takes no time, so delays are exact
    remote: bool  # trials run on other machines, and the engine tells when each starts

    def ready(self) -> str:
        """Return the reason why trials cannot run here, with its remedy, or nothing."""

    def with_kernel(self, name: str) -> Engine:
        """Return the engine whose guests have this kernel, or itself if it has no guests."""

    def version(self) -> str:
        """Identify the kernel exactly, including its configuration."""

    def missing(self, needs: Sequence[Need]) -> list[Missing]:
        """Return the features among `needs` that are not available."""

    def controls(self) -> frozenset[str]:
        """Return the congestion controls that the kernel offers."""

    def try_out(self) -> str:
        """Run a minimal test and describe the result; raise if the engine does not work."""

    def jobs(self, tasks: Sequence[Task]) -> int:
        """Return how many of these trials can run in parallel without influencing each other."""

    def run(self, folder: Path, task: Task, job: Job) -> ProcessOutcome:
        """Run the trial in a folder, which holds its results afterwards."""
