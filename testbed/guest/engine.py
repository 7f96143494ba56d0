"""The guest engine: the project's User-Mode Linux kernel, in virtual time, for any user."""

from __future__ import annotations

import compileall
import functools
import math
import os
import re
import threading
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from testbed.engine import Job, Missing, ProcessOutcome, missing_programs, why_tools_are_missing
from testbed.errors import UsageError
from testbed.guest import boot, kernels
from testbed.guest.boot import (
    LEFT_BY_GUESTS,
    MAX_GUEST_OUTPUT_BYTES,
    PROJECT_FOLDER,
    Boot,
    GuestEnd,
    guest_options,
    run_in_guest,
)
from testbed.guest.debug_kernel import looks_for_errors, reports_raised, with_log
from testbed.machine import safe_files
from testbed.machine.atomic import workplace
from testbed.machine.safe_files import MAX_DOCUMENT_BYTES
from testbed.machine.trees import Rule
from testbed.plan.control_network import controlled
from testbed.plan.host_settings import browsers
from testbed.plan.plan import Task
from testbed.plan.requirements import OTHER_KERNELS, Need
from testbed.plan.video_commands import SERVER_REPORT
from testbed.scenario.model import FlowKind, Scenario
from testbed.store.names import (
    ANSWERS,
    CAPTURES_FOLDER,
    COVERAGE_FOLDER,
    FLOWS_FOLDER,
    GUEST_CONSOLE,
    GUEST_OUTPUT,
    KERNEL_LOG,
    NETWORK_UP,
    PROGRAMME,
    RAW_SAMPLES,
    RECORD,
)
from testbed.trial.make import RUNNER, TrialProgramme
from testbed.trial.parts.radio import RADIO_FOLDER

MEMORY_MB = 256
LARGE_MB = 1024  # Chromium does not start with less, and touches about 300 MB
# What a trial needs, as measured; with less, the guest reads its programs again and again.
BASE_MB = 75.0
NODE_MB = 0.6  # its network namespace, its links and their queues
CAPTURE_MB = 2.0  # its buffer
MANY_MB = 3072  # TCP may use a sixteenth of it before it prunes; a thousand flows do use 100 MB
FLOW_MB = 2.5  # iperf3's two processes
COPY_MB = 0.75  # the same where the processes are copies of one
REPORTS_MB_PER_S = 0.01  # of one connection, in both: a row a second
CONNECTION_MB = 0.6  # of one flow, in parallel
PROGRAM_MB = 20.0  # a user's program: an interpreter with some modules
OVERHEAD_MB = 64  # of a guest's processes on the host, in addition to its memory
TRY_S = 60.0  # wall time limit of an empty guest
TAKES_TURNS = "skas, turns"  # in the guest's /proc/cpuinfo (kernel/*/patches/0027)
DEBUG_FACTOR = 10  # by how much a kernel that looks for its own errors is slower, at most
LEFT_BY_TRIALS = (  # what the guest of a trial may leave
    *LEFT_BY_GUESTS,
    Rule(ANSWERS, 1 << 30),
    Rule(RAW_SAMPLES, 1 << 33),
    Rule(NETWORK_UP, 0),
    Rule(KERNEL_LOG, MAX_DOCUMENT_BYTES),
    Rule(f"{COVERAGE_FOLDER}/*", MAX_DOCUMENT_BYTES, 10_000),
    Rule(f"{CAPTURES_FOLDER}/*.pcapng", MAX_GUEST_OUTPUT_BYTES, 10_000),
    Rule(f"{FLOWS_FOLDER}/*.out", MAX_GUEST_OUTPUT_BYTES, 100_000),
    Rule(f"{FLOWS_FOLDER}/*.err", MAX_GUEST_OUTPUT_BYTES, 100_000),
    Rule(f"{FLOWS_FOLDER}/*", MAX_DOCUMENT_BYTES, 100_000),
    Rule(f"{FLOWS_FOLDER}/*.video/{SERVER_REPORT}", MAX_DOCUMENT_BYTES, 100_000),
    Rule(f"{RADIO_FOLDER}/*", MAX_DOCUMENT_BYTES, 10),
)
HANG_S = 600  # wall time after which a guest counts as hung …
HANG_FACTOR = 20  # … or this many times the trial's own duration


class GuestEngine:
    """Boots a guest for every trial; idle time is skipped, and computing takes no time."""

    name = "guest"
    virtual_time = True
    remote = False

    def __init__(self, kernel_name: str = "") -> None:
        self.kernel_name = kernel_name or kernels.default_kernel()
        self._others: dict[str, GuestEngine] = {}
        self._found: Path | None = None

    def with_kernel(self, name: str) -> GuestEngine:
        """Return the engine whose guests have this kernel."""
        if name == self.kernel_name:
            return self
        if name not in self._others:
            self._others[name] = self._of_kernel(name)
        return self._others[name]

    def _of_kernel(self, name: str) -> GuestEngine:
        return GuestEngine(name)

    @property
    def kernel(self) -> Path | None:
        """The folder of the kernel, or None if it is not built: a run builds what it lacks."""
        self._found = self._found or kernels.built_folder(self.kernel_name)
        return self._found

    @functools.cached_property
    def _config(self) -> frozenset[str]:
        assert self.kernel is not None
        lines = (self.kernel / "config").read_text().splitlines()
        return frozenset(line.removesuffix("=y") for line in lines if line.endswith("=y"))

    def ready(self) -> str:
        """Return why guests cannot run, or nothing."""
        if problem := kernels.why_unusable(self.kernel_name, self.kernel):
            return problem
        if problem := why_tools_are_missing(self.name):
            return problem
        for package in ("testbed", "topologies"):  # the guest cannot store bytecode
            compileall.compile_dir(PROJECT_FOLDER / package, quiet=2)
        return ""

    def version(self) -> str:
        """Return the kernel's version, and for one of the user's own the hash of what it is.

        What Debian's are made of is in a trial's identity by itself (`runs/sources.py`).
        """
        assert self.kernel is not None
        names = ("version",) if self.kernel_name in kernels.versions() else ("version", "base")
        return " ".join((self.kernel / name).read_text().strip() for name in names)

    def missing(self, needs: Sequence[Need]) -> list[Missing]:
        """Return the features that the kernel lacks and the programs that are not installed."""
        remedy = "add it to kernel/guest.config and run ./setup.sh"
        return [
            *(
                Missing(need, OTHER_KERNELS.get(need.symbol, remedy))
                for need in needs
                if need.symbol and need.symbol not in self._config
            ),
            *missing_programs(needs),
        ]

    def controls(self) -> frozenset[str]:
        """Return the congestion controls that are built into the kernel."""
        if self.kernel is None:
            return frozenset()
        prefix = "CONFIG_TCP_CONG_"
        named = {s.removeprefix(prefix).lower() for s in self._config if s.startswith(prefix)}
        aliases = {"highspeed"} if "hstcp" in named else set()
        return frozenset({"reno"} | aliases | named) - {"advanced", "hstcp"}

    def try_out(self) -> str:
        """Boot a guest and describe it: the time that takes, its confinement, its system calls."""
        begun = time.monotonic()
        with workplace("check") as folder:
            job = Job(1, min(os.sched_getaffinity(0)), threading.Event())
            argv = ["/bin/cat", "/proc/cpuinfo"]
            self.boot(folder, argv, job, patience_s=TRY_S, kept=[GUEST_OUTPUT])
            takes_turns = TAKES_TURNS in safe_files.tail(folder / GUEST_OUTPUT)
        why_not = boot.why_not_confined()
        alone = f"programs run with {boot.UNCONFINED} only"
        confined = f"not confined ({why_not}; {alone})" if why_not else "confined"
        traced = "processes are traced: a quarter slower (kernel/README.md says why)"
        way = "processes take turns" if takes_turns else traced
        return f"boots in {time.monotonic() - begun:.1f} s, {confined}, {way}"

    def jobs(self, tasks: Sequence[Task]) -> int:
        """Return one per core, since virtual time isolates guests, as far as memory allows."""
        check_memory(tasks)
        fitting = _available_mb() // (max(map(memory_mb, tasks), default=MEMORY_MB) + OVERHEAD_MB)
        return max(1, min(len(os.sched_getaffinity(0)), fitting))

    def run(self, folder: Path, task: Task, job: Job) -> ProcessOutcome:
        """Boot a guest, in which the runner obeys the trial's programme, and wait for its end."""
        programme = TrialProgramme(
            task, folder, virtual_time=True, controls=sorted(self.controls())
        )
        programme.store()
        try:
            command = (str(RUNNER), PROGRAMME, ANSWERS)
            outcome = self.boot(folder, command, job, _patience_s(task.scenario), memory_mb(task))
            (folder / RECORD).write_text(programme.finish(outcome).to_json())
            return outcome
        finally:
            programme.clean_up()

    def boot(
        self,
        folder: Path,
        argv: Sequence[str],
        job: Job,
        patience_s: float,
        memory_mb: int = MEMORY_MB,
        kept: Sequence[str] = (ANSWERS, RAW_SAMPLES),
    ) -> ProcessOutcome:
        """Run one command in a guest that finds in its working directory what is in the folder.

        Of the guest's own files, those that are to be kept stay.
        """
        if not looks_for_errors(self._config):
            end = functools.partial(self._boot, folder, job, patience_s, memory_mb)
            return run_in_guest(folder, argv, end, kept)
        memory_mb = max(memory_mb, LARGE_MB)
        end = functools.partial(self._boot, folder, job, patience_s * DEBUG_FACTOR, memory_mb)
        with reports_raised(folder):
            argv = with_log(folder, argv)
            return run_in_guest(folder, argv, end, (*kept, GUEST_CONSOLE))

    def _boot(self, folder: Path, job: Job, patience_s: float, memory_mb: int) -> GuestEnd:
        """Run a guest on this machine, until it ends."""
        return boot.boot(self._guest(job, patience_s, memory_mb), folder, LEFT_BY_TRIALS)

    def _guest(self, job: Job, patience_s: float, memory_mb: int) -> Boot:
        assert self.kernel is not None
        options = guest_options(job.seed, memory_mb)
        cancelled, programs = job.cancel.is_set, job.runs_programs
        return Boot(self.kernel, job.core, options, patience_s, cancelled, runs_programs=programs)


def memory_mb(task: Task) -> int:
    """Return the guest's memory: the same for most trials, as TCP's limits depend on it."""
    needed_mb = _needed_mb(task)
    if task.scenario.memory_mb:
        return task.scenario.memory_mb
    if any(flow.copied for flow in task.plan.flows):
        return max(MANY_MB, math.ceil(needed_mb / MEMORY_MB) * MEMORY_MB)
    if needed_mb > LARGE_MB:
        return math.ceil(needed_mb / MEMORY_MB) * MEMORY_MB
    return LARGE_MB if needed_mb > MEMORY_MB or browsers(task.scenario) else MEMORY_MB


def _needed_mb(task: Task) -> float:
    """Return the memory that a trial is estimated to use."""
    flows = controlled(task.scenario)
    many = any(flow.copied for flow in task.plan.flows)
    connections = sum(flow.parallel for flow in flows)
    rows = (connections + len(flows)) / 2  # one for each connection, and one for their sum
    programs = sum(flow.kind is FlowKind.COMMAND for flow in task.scenario.flows)
    return (
        BASE_MB
        + PROGRAM_MB * programs
        + NODE_MB * len(task.plan.nodes)
        + CAPTURE_MB * len(task.plan.captures)
        + (COPY_MB if many else FLOW_MB) * len(flows)
        + CONNECTION_MB * (connections - len(flows))
        + REPORTS_MB_PER_S * task.scenario.duration_s * rows
    )


def check_memory(tasks: Iterable[Task]) -> None:
    """Raise an error if a trial needs more memory than this machine has."""
    has_mb = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") >> 20
    needed_mb = max((each.scenario.memory_mb or _needed_mb(each) for each in tasks), default=0.0)
    needed_mb += OVERHEAD_MB
    if needed_mb > has_mb:
        raise UsageError(
            f"a trial needs {needed_mb:.0f} MB of memory, and this machine has {has_mb}",
            "give it fewer flows, or a shorter duration: iperf3 keeps a row a second",
        )


def _patience_s(scenario: Scenario) -> float:
    return max(HANG_S, HANG_FACTOR * scenario.duration_s)


def _available_mb() -> int:
    match = re.search(r"MemAvailable:\s+(\d+)", Path("/proc/meminfo").read_text())
    return int(match[1]) // 1024 if match else MEMORY_MB
