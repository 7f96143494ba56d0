"""The guest engine: the project's User-Mode Linux kernel, in virtual time, for any user."""

from __future__ import annotations

import compileall
import functools
import math
import os
import re
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from testbed.engine import Cancelled, Job, Missing, ProcessOutcome, missing_programs
from testbed.errors import TestbedError
from testbed.guest import kernels
from testbed.guest.worker import GUEST_PATH, HIDDEN, guest_command, wait_for_guest
from testbed.machine import safe_files
from testbed.machine.atomic import workplace
from testbed.machine.compiled import LIBRARIES, require_built
from testbed.machine.journal import JOURNAL
from testbed.machine.process import Process, run, start, sudo_user
from testbed.plan.control_network import controlled
from testbed.plan.host_settings import browsers
from testbed.plan.plan import Task
from testbed.plan.requirements import Need
from testbed.runner.programme import BOOT_NS
from testbed.scenario.model import Scenario
from testbed.store import (
    ANSWERS,
    GUEST_COMMAND,
    GUEST_CONSOLE,
    GUEST_ERRORS,
    GUEST_FILES,
    GUEST_MEMORY,
    GUEST_PATHS,
    GUEST_STATUS,
    PROGRAMME,
    RAW_SAMPLES,
    RECORD,
)
from testbed.trial.make import RUNNER, Programmed

PROJECT_FOLDER = Path(__file__).resolve().parents[2]
CONFINE = LIBRARIES / "testbed-confine"  # built from confine.c, which says what a guest may do
MEMORY_MB = 256
LARGE_MB = 1024  # Chromium does not start with less, and touches about 300 MB
# What a trial needs, as measured; with less, the guest reads its programs again and again.
BASE_MB = 75.0
CAPTURE_MB = 2.0  # its buffer, and a part of the nodes
FLOW_MB = 2.5  # iperf3's two processes
COPY_MB = 0.75  # the same where the processes are copies of one
COPY_MB_PER_S = 0.01  # their reports, a row a second
CONNECTION_MB = 0.6  # of one flow, in parallel
OVERHEAD_MB = 64  # of a guest's processes on the host, in addition to its memory
TRY_S = 60.0  # wall time limit of an empty guest
TAKES_TURNS = "skas, turns"  # in the guest's /proc/cpuinfo (kernel/*/patches/0027)
HANG_S = 600  # wall time after which a guest counts as hung …
HANG_FACTOR = 20  # … or this many times the trial's own duration


@dataclass(frozen=True)
class GuestEnd:
    """How a guest ended, before its folder is looked at."""

    status: int
    peak_mb: float
    special: Sequence[str]  # what it left that is no plain file
    warnings: tuple[str, ...] = ()
    waited_s: float = 0.0  # for a worker, and for files to go there and back


class GuestEngine:
    """Boots a guest for every trial; idle time is skipped, and computing takes no time."""

    name = "guest"
    virtual_time = True
    remote = False

    def __init__(self, kernel_name: str = "") -> None:
        self.kernel_name = kernel_name or kernels.default_kernel()
        self._others: dict[str, GuestEngine] = {}

    def with_kernel(self, name: str) -> GuestEngine:
        """Return the engine whose guests have this kernel."""
        if name == self.kernel_name:
            return self
        if name not in self._others:
            self._others[name] = self._of_kernel(name)
        return self._others[name]

    def _of_kernel(self, name: str) -> GuestEngine:
        return GuestEngine(name)

    @functools.cached_property
    def kernel(self) -> Path | None:
        """The folder of the kernel, or None if it is not built."""
        return kernels.built_folder(self.kernel_name)

    @functools.cached_property
    def _config(self) -> frozenset[str]:
        assert self.kernel is not None
        lines = (self.kernel / "config").read_text().splitlines()
        return frozenset(line.removesuffix("=y") for line in lines if line.endswith("=y"))

    def ready(self) -> str:
        """Return why guests cannot run, or nothing."""
        if self.kernel is None:
            default = self.kernel_name == kernels.default_kernel()
            how = "./setup.sh builds the guest's kernel" if default else "testbed kernel list"
            why = kernels.why_not_found(self.kernel_name)
            return f"kernel {self.kernel_name} is not built{f' ({why})' if why else ''}: {how}"
        if not kernels.is_whole(self.kernel):
            return f"kernel {self.kernel_name} is damaged: ./setup.sh builds it again"
        if os.geteuid() == 0 and (
            why := safe_files.changed_by_others(self.kernel / "linux", sudo_user())
        ):
            return f"root does not run this guest kernel: {why}; ./setup.sh as root builds another"
        for package in ("testbed", "topologies"):  # the guest cannot store bytecode
            compileall.compile_dir(PROJECT_FOLDER / package, quiet=2)
        return ""

    def version(self) -> str:
        """Return the kernel's version and the hash of all that its base was built from.

        Queue disciplines that are added to the base are in the identity of those trials only that
        use them (`runs/sources.py`).
        """
        assert self.kernel is not None
        version, base = ((self.kernel / name).read_text().strip() for name in ("version", "base"))
        return f"{version} {base}"

    def missing(self, needs: Sequence[Need]) -> list[Missing]:
        """Return the features that the kernel lacks and the programs that are not installed."""
        remedy = "add it to kernel/guest.config and run ./setup.sh"
        return [
            *(Missing(n, remedy) for n in needs if n.symbol and n.symbol not in self._config),
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
            self.boot(folder, ["/bin/cp", "/proc/cpuinfo", "."], job, patience_s=TRY_S)
            takes_turns = TAKES_TURNS in (folder / "cpuinfo").read_text()
        why_not = why_not_confined()
        confined = f"not confined: {why_not}" if why_not else "confined"
        traced = "processes are traced: a quarter slower (kernel/README.md says why)"
        way = "processes take turns" if takes_turns else traced
        return f"boots in {time.monotonic() - begun:.1f} s, {confined}, {way}"

    def jobs(self) -> int:
        """Return one per core, since virtual time isolates guests, as far as memory allows."""
        fitting = _available_mb() // (MEMORY_MB + OVERHEAD_MB)
        return max(1, min(len(os.sched_getaffinity(0)), fitting))

    def run(self, folder: Path, task: Task, job: Job) -> ProcessOutcome:
        """Boot a guest, in which the runner obeys the trial's programme, and wait for its end."""
        programmed = Programmed(task, folder, virtual_time=True, controls=sorted(self.controls()))
        programmed.store()
        try:
            command = (str(RUNNER), PROGRAMME, ANSWERS)
            outcome = self.boot(folder, command, job, _patience_s(task.scenario), _memory_mb(task))
            (folder / RECORD).write_text(programmed.finish(outcome).to_json())
            return outcome
        finally:
            programmed.clean_up()

    def boot(
        self,
        folder: Path,
        argv: Sequence[str],
        job: Job,
        patience_s: float,
        memory_mb: int = MEMORY_MB,
    ) -> ProcessOutcome:
        """Run one command in a guest that sees the folder as its working directory."""
        (folder / GUEST_COMMAND).write_text("".join(f"{word}\n" for word in argv))
        ended = self._boot(folder, job, patience_s, memory_mb)
        if ended.special:
            raise TestbedError(
                f"the guest left something that is no plain file: {', '.join(ended.special)}",
                "it was removed; is there a program in the trial that you do not trust?",
            )
        status, errors = _status(folder), _last_error_line(folder)
        for file in folder.glob(GUEST_FILES):
            if file.name not in (ANSWERS, RAW_SAMPLES):
                file.unlink()
        if status is None:
            why = errors or f"it ended with status {ended.status} and no message"
            raise TestbedError(f"the guest died: {why}", "`testbed check` boots a test guest")
        return ProcessOutcome(status, ended.peak_mb, errors, ended.warnings, ended.waited_s)

    def _boot(self, folder: Path, job: Job, patience_s: float, memory_mb: int) -> GuestEnd:
        """Run a guest on this machine, until it ends."""
        assert self.kernel is not None
        (folder / GUEST_PATHS).write_text("".join(f"{path}\n" for path in _hidden_paths()))
        (folder / GUEST_MEMORY).mkdir()
        why_not = why_not_confined()
        confine = () if why_not else (str(CONFINE), GUEST_MEMORY)
        fixed = keeps_addresses_fixed()
        options = guest_options(job.seed, memory_mb)
        process = start(
            guest_command(self.kernel, job.core, options, confine, fixed),
            stderr=folder / GUEST_CONSOLE,
            env={"PATH": GUEST_PATH, "TMPDIR": GUEST_MEMORY, **JOURNAL.marker},
            cwd=folder,
        )
        try:
            peak_mb = _wait(process, not why_not, patience_s, job.cancel)
        finally:
            special = _remove_special_files(folder)
        (folder / GUEST_MEMORY).rmdir()
        return GuestEnd(process.returncode, peak_mb, special, guest_warnings(why_not, fixed))


@functools.cache
def why_not_confined() -> str:
    """Return why this host does not let us confine a guest, or nothing if it does.

    The guest's kernel is an ordinary program: what is read-only in its mount table is read-only
    only as long as that kernel is intact.
    """
    require_built(CONFINE)
    with workplace("confine") as folder:
        (folder / GUEST_MEMORY).mkdir()
        done = run([str(CONFINE), GUEST_MEMORY, "true"], check=False, cwd=folder)
    return done.stderr.strip().removeprefix("testbed-confine: ") if done.status else ""


@functools.cache
def keeps_addresses_fixed() -> bool:
    """Return whether address randomisation can be switched off; containers' seccomp forbids it."""
    return not run(["setarch", "-R", "true"], check=False).status


def _remove_special_files(folder: Path) -> list[str]:
    """Remove links and the like, which would lead whoever reads them out of the folder."""
    with safe_files.folder(folder) as directory:
        return safe_files.only_plain_files(directory)


def guest_warnings(why_not: str, fixed: bool) -> tuple[str, ...]:
    """Return what a machine's limits mean for its guests."""
    unconfined = (f"the guest was not confined: {why_not}",) if why_not else ()
    # at a random distance from the program, its heap takes room that the guest's memory then lacks
    random = "the guest had up to 32 MB less memory, by chance: setarch -R is refused (seccomp)"
    return unconfined if fixed else (*unconfined, random)


def guest_options(seed: int, memory_mb: int) -> list[str]:
    """Return the options of the guest's kernel."""
    return [
        *(f"mem={memory_mb}M", f"um_seed={seed}"),
        *("time-travel=inf-cpu", f"time-travel-start={BOOT_NS}", "stderr=1", "quiet"),
    ]


def _hidden_paths() -> list[Path]:
    """Return the project's folders that the guest's own mounts would hide."""
    needed = {PROJECT_FOLDER, Path(sys.prefix).resolve()}
    return sorted(path for path in needed if any(path.is_relative_to(hidden) for hidden in HIDDEN))


def _memory_mb(task: Task) -> int:
    """Return the guest's memory: the same for most trials, as TCP's limits depend on it."""
    scenario, flows = task.scenario, controlled(task.scenario)
    many = any(flow.copied for flow in task.plan.flows)
    flow_mb = COPY_MB + COPY_MB_PER_S * scenario.duration_s if many else FLOW_MB
    needed_mb = BASE_MB + CAPTURE_MB * len(task.plan.captures) + flow_mb * len(flows)
    needed_mb += CONNECTION_MB * sum(flow.parallel - 1 for flow in flows)
    if needed_mb > LARGE_MB:
        return math.ceil(needed_mb / MEMORY_MB) * MEMORY_MB
    return LARGE_MB if many or needed_mb > MEMORY_MB or browsers(scenario) else MEMORY_MB


def _patience_s(scenario: Scenario) -> float:
    return max(HANG_S, HANG_FACTOR * scenario.duration_s)


def _wait(process: Process, confined: bool, patience_s: float, cancel: threading.Event) -> float:
    """Wait for the guest to end and return its peak memory in MB."""
    peak_mb, reason = wait_for_guest(process, confined, patience_s, cancel.is_set)
    if reason:
        raise Cancelled(reason) if cancel.is_set() else guest_hung(patience_s)
    return peak_mb


def guest_hung(patience_s: float) -> TestbedError:
    """Return the error of a guest that did not end."""
    return TestbedError(f"the guest hung: no end after {patience_s:.0f} s of wall time")


def _available_mb() -> int:
    found = re.search(r"MemAvailable:\s+(\d+)", Path("/proc/meminfo").read_text())
    return int(found[1]) // 1024 if found else MEMORY_MB


def _status(folder: Path) -> int | None:
    try:
        return int((folder / GUEST_STATUS).read_text())
    except (OSError, ValueError):
        return None


def _last_error_line(folder: Path) -> str:
    """Return the last line of the guest's console or, without one, of the trial's errors."""
    for name in (GUEST_CONSOLE, GUEST_ERRORS):
        path = folder / name
        lines = path.read_text(errors="replace").splitlines() if path.exists() else []
        if any(line.strip() for line in lines):
            return next(line.strip() for line in reversed(lines) if line.strip())
    return ""
