"""The guest engine: the project's User-Mode Linux kernel, in virtual time, for any user."""

from __future__ import annotations

import compileall
import functools
import os
import re
import signal
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from testbed.engine import Cancelled, Job, Missing, ProcessOutcome, missing_programs
from testbed.errors import TestbedError
from testbed.guest import kernels
from testbed.machine import safe_files
from testbed.machine.atomic import workplace
from testbed.machine.compiled import LIBRARIES, require_built
from testbed.machine.journal import JOURNAL
from testbed.machine.process import Process, end, has_ended, run, start, sudo_user
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
CAPTURE_MB = 9.0  # tcpdump and its ring, and a part of the nodes
FLOW_MB = 2.5  # iperf3's two processes
CONNECTION_MB = 0.6  # of one flow, in parallel
OVERHEAD_MB = 64  # of a guest's processes on the host, in addition to its memory
GUEST_POLL_S = 0.02
TRY_S = 60.0  # wall time limit of an empty guest
TAKES_TURNS = "skas, turns"  # in the guest's /proc/cpuinfo (kernel/*/patches/0027)
GUEST_PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
HANG_S = 600  # wall time after which a guest counts as hung …
HANG_FACTOR = 20  # … or this many times the trial's own duration
# where the guest mounts its own file systems; required host folders there are bind-mounted
HIDDEN = ("/tmp", "/run", "/dev/shm")


class GuestEngine:
    """Boots a guest for every trial; idle time is skipped, and computing takes no time."""

    name = "guest"
    virtual_time = True

    def __init__(self, kernel_name: str = "") -> None:
        self.kernel_name = kernel_name or kernels.default_kernel()
        self._others: dict[str, GuestEngine] = {}

    def with_kernel(self, name: str) -> GuestEngine:
        """Return the engine whose guests have this kernel."""
        if name == self.kernel_name:
            return self
        other = self._others.setdefault(name, GuestEngine(name))
        return other

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
            return f"kernel {self.kernel_name} is not built: ./setup.sh builds the guest's kernel"
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
        assert self.kernel is not None
        (folder / GUEST_COMMAND).write_text("".join(f"{word}\n" for word in argv))
        (folder / GUEST_PATHS).write_text("".join(f"{path}\n" for path in _hidden_paths()))
        (folder / GUEST_MEMORY).mkdir()
        why_not = why_not_confined()
        confined = not why_not
        process = start(
            [
                *((str(CONFINE), GUEST_MEMORY) if confined else ()),
                *_command(self.kernel, job.seed, job.core, memory_mb, confined=confined),
            ],
            stderr=folder / GUEST_CONSOLE,
            env={"PATH": GUEST_PATH, "TMPDIR": GUEST_MEMORY, **JOURNAL.marker},
            cwd=folder,
        )
        try:
            peak_mb = _wait(process, confined, patience_s, job.cancel)
        finally:
            special = _remove_special_files(folder)
        if special:
            raise TestbedError(
                f"the guest left something that is no plain file: {', '.join(special)}",
                "it was removed; is there a program in the trial that you do not trust?",
            )
        status, errors = _status(folder), _last_error_line(folder)
        (folder / GUEST_MEMORY).rmdir()
        for file in folder.glob(GUEST_FILES):
            if file.name not in (ANSWERS, RAW_SAMPLES):
                file.unlink()
        if status is None:
            why = errors or f"it ended with status {process.returncode} and no message"
            raise TestbedError(f"the guest died: {why}", "`testbed check` boots a test guest")
        return ProcessOutcome(status, peak_mb, errors, _warnings(why_not))


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


def _warnings(why_not: str) -> tuple[str, ...]:
    unconfined = (f"the guest was not confined: {why_not}",) if why_not else ()
    # at a random distance from the program, its heap takes room that the guest's memory then lacks
    random = "the guest had up to 32 MB less memory, by chance: setarch -R is refused (seccomp)"
    return unconfined if keeps_addresses_fixed() else (*unconfined, random)


def _command(kernel: Path, seed: int, core: int, memory_mb: int, *, confined: bool) -> list[str]:
    """Return the guest's command line.

    A process that takes turns with the kernel can reach its memory, so processes are traced where
    the guest as a whole is not confined.
    """
    return [
        *(("setarch", "-R") if keeps_addresses_fixed() else ()),
        *("taskset", "-c", str(core), str(kernel / "linux")),
        *(f"mem={memory_mb}M", f"um_seed={seed}"),
        *("time-travel=inf-cpu", f"time-travel-start={BOOT_NS}", "stderr=1", "quiet"),
        *(() if confined else ("stubs=ptrace",)),
    ]


def _hidden_paths() -> list[Path]:
    """Return the project's folders that the guest's own mounts would hide."""
    needed = {PROJECT_FOLDER, Path(sys.prefix).resolve()}
    return sorted(path for path in needed if any(path.is_relative_to(hidden) for hidden in HIDDEN))


def _memory_mb(task: Task) -> int:
    """Return the guest's memory: the same for most trials, as TCP's limits depend on it."""
    flows = controlled(task.scenario)
    needed_mb = BASE_MB + CAPTURE_MB * len(task.plan.captures) + FLOW_MB * len(flows)
    needed_mb += CONNECTION_MB * sum(flow.parallel - 1 for flow in flows)
    return LARGE_MB if needed_mb > MEMORY_MB or browsers(task.scenario) else MEMORY_MB


def _patience_s(scenario: Scenario) -> float:
    return max(HANG_S, HANG_FACTOR * scenario.duration_s)


def _wait(process: Process, confined: bool, patience_s: float, cancel: threading.Event) -> float:
    """Wait for the guest to end and return its peak memory in MB.

    A confined guest is a child of the started process.
    """
    peak_kb = 0
    pid = 0 if confined else process.pid
    deadline = time.monotonic() + patience_s
    while not has_ended(process, GUEST_POLL_S):
        pid = pid or _child(process.pid)
        peak_kb = max(peak_kb, _resident_kb(pid))
        if cancel.is_set():
            end(process, signal.SIGTERM)
            raise Cancelled("cancelled")
        if time.monotonic() > deadline:
            end(process, signal.SIGTERM)
            raise TestbedError(f"the guest hung: no end after {patience_s:.0f} s of wall time")
    return peak_kb / 1024


def _available_mb() -> int:
    found = re.search(r"MemAvailable:\s+(\d+)", Path("/proc/meminfo").read_text())
    return int(found[1]) // 1024 if found else MEMORY_MB


def _child(pid: int) -> int:
    """Return the id of a process's only child, or 0 while it has none."""
    try:
        return int(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])
    except (OSError, IndexError):
        return 0


def _resident_kb(pid: int) -> int:
    """Return the peak resident memory of the guest's main process, which maps all of its memory.

    It is read fifty times a second, so the bytes are not decoded.
    """
    try:
        with Path(f"/proc/{pid}/status").open("rb", buffering=0) as file:
            status = file.read()
    except OSError:
        return 0
    found = re.search(rb"VmHWM:\s+(\d+)", status)
    return int(found[1]) if found else 0


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
