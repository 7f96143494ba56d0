"""The host engine: this machine's kernel, in real time, as root."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator, Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

from testbed.engine import (
    Cancelled,
    Job,
    Missing,
    ProcessOutcome,
    missing_programs,
    why_tools_are_missing,
)
from testbed.errors import TestbedError
from testbed.host.kernel_trace import record
from testbed.machine import safe_files
from testbed.machine.journal import JOURNAL
from testbed.machine.locks import lock
from testbed.machine.process import end, how_to_install, run, start
from testbed.machine.sysctl_guard import ALLOWED, AVAILABLE, temporarily
from testbed.plan.host_settings import Parameter
from testbed.plan.plan import Task
from testbed.plan.requirements import (
    EXACT_LINK,
    GUESSED_ACCURATE_ECN,
    OTHER_KERNELS,
    REALISM,
    TOKEN_BUCKET,
    Need,
)
from testbed.scenario import queues
from testbed.scenario.network import Queue
from testbed.store.names import ANSWERS, HOST_ERRORS, PROGRAMME, RECORD
from testbed.trial.make import RUNNER, TrialProgramme

# an environment for Debian's packages, too, as setup.sh makes it
SEEN_BY = "python3 -m venv --system-site-packages FOLDER, and the testbed in that"
LOCK = Path("/run/tcp-testbed")  # whoever holds it may change the kernel's settings
HOST_POLL_S = 0.05
GUEST_ONLY = {  # kinds of needs that only a guest meets, with the remedy
    "kernel": "the host engine runs on this machine's own kernel: --engine guest",
    GUESSED_ACCURATE_ECN.kind: OTHER_KERNELS[GUESSED_ACCURATE_ECN.symbol],
    REALISM: "this machine's own interrupts and costs are real: --engine guest",
    "radio": "a radio's medium answers in virtual time: --engine guest",
}


class HostEngine:
    """Runs trials directly on this machine and restores the settings that they change."""

    name = "host"
    virtual_time = False
    remote = False

    def ready(self) -> str:
        """Return that root is needed, or nothing."""
        if os.geteuid():
            return "the host engine runs with sudo only"
        if find_spec("mininet"):
            return why_tools_are_missing(self.name)
        return f"mininet is not among this Python's packages: {how_to_install('mnexec')}; {SEEN_BY}"

    def with_kernel(self, _name: str) -> HostEngine:
        """Return itself; a trial that needs another kernel than this machine's lacks it."""
        return self

    def version(self) -> str:
        """Return the kernel's release and build."""
        return f"{os.uname().release} {os.uname().version}"

    def missing(self, needs: Sequence[Need]) -> list[Missing]:
        """Return the features that this kernel lacks and cannot load as modules."""
        needs = [TOKEN_BUCKET if need == EXACT_LINK else need for need in needs]
        lacks = [need for need in needs if need.kind != "program" and not self._has(need)]
        modules = ", ".join(need.module for need in lacks if need.symbol not in OTHER_KERNELS)
        remedy = f"kernel {os.uname().release} has no module {modules}; --engine guest needs none"
        remedies = GUEST_ONLY | OTHER_KERNELS
        features = [
            Missing(need, remedies.get(need.symbol) or remedies.get(need.kind, remedy))
            for need in lacks
        ]
        return [*features, *missing_programs(needs)]

    def _has(self, need: Need) -> bool:
        if need.kind == "congestion control":
            return need.name in self.controls() or (
                _load(need.module) and need.name in self.controls()
            )
        if need.kind in GUEST_ONLY:
            return False
        if need.kind == "switch":
            return _load(need.module)
        if need.kind == "classifier":
            return _works(CLASSIFIER)
        if need.kind == "action":
            return _works(SMALL_POLICER)
        return _has_discipline(need.name)

    def controls(self) -> frozenset[str]:
        """Return the congestion controls that the kernel offers now."""
        return frozenset(AVAILABLE.read_text().split())

    def try_out(self) -> str:
        """Return that the engine runs: this machine is running."""
        return "runs"

    def jobs(self, _tasks: Sequence[Task]) -> int:
        """Return one, since trials in real time would compete for the cores."""
        return 1

    def run(self, folder: Path, task: Task, job: Job) -> ProcessOutcome:
        """Let the runner obey the trial's programme, and restore the settings that it changed."""
        # only here: a fifth of the time in which `testbed` starts
        from testbed.host.nodes import mininet_nodes

        with (
            _lock_machine(job),
            _all_controls_allowed(),
            _parameters(task.plan.parameters),
            mininet_nodes(task.plan) as namespaces,
        ):
            programme = TrialProgramme(task, folder, virtual_time=False, namespaces=namespaces)
            programme.store()
            recorder = record(task.plan)
            try:
                outcome = _obey(folder, job)
                if recorder:
                    recorder.stop()
                result = programme.finish(outcome)
                if recorder:
                    cookies = frozenset(programme.trial.cookies)
                    warnings = recorder.write(folder, programme.clock, cookies)
                    result = replace(result, warnings=(*result.warnings, *warnings))
                (folder / RECORD).write_text(result.to_json())
                return outcome
            finally:
                programme.clean_up()
                if recorder:
                    recorder.close()


def _obey(folder: Path, job: Job) -> ProcessOutcome:
    errors = folder / HOST_ERRORS
    process = start(
        [
            *(("taskset", "-c", str(job.core)) if job.pinned else ()),
            *(str(RUNNER), PROGRAMME, ANSWERS),
        ],
        cwd=folder,
        stderr=errors,
        env={**os.environ, **JOURNAL.marker},
    )
    try:
        while process.poll() is None:
            if job.cancel.wait(HOST_POLL_S):
                raise Cancelled("cancelled")
    finally:
        end(process, signal.SIGTERM, patience_s=15)
        text = safe_files.tail(errors).strip()
        errors.unlink()
    return ProcessOutcome(process.returncode, 0.0, text.splitlines()[-1] if text else "")


def _load(module: str) -> bool:
    """Load a kernel module and return whether there is one."""
    return run(("modprobe", "-q", module), check=False).status == 0


def _has_discipline(name: str) -> bool:
    """Return whether a discipline works, as tried on the loopback interface of a namespace."""
    arguments: tuple[str, ...] = (name,)
    if name in queues.DISCIPLINES:
        queue = Queue(name, limit_bytes=60_000)
        arguments = queues.arguments(queue, queues.resolve(queue, 1, 0), 1)
    where = () if name == "clsact" else ("root",)
    argv = ("unshare", "--net", "tc", "qdisc", "add", "dev", "lo", *where, *arguments)
    return run(argv, check=False).status == 0


# a classifier of one instruction, and a policer, on a namespace's loopback interface
CLASSIFIER = ("qdisc add dev lo clsact", 'filter add dev lo ingress bpf bytecode "1,6 0 0 0,"')
SMALL_POLICER = (
    "qdisc add dev lo root handle 1: prio",
    "filter add dev lo parent 1: matchall action police rate 1mbit burst 60000",
)


def _works(lines: Sequence[str]) -> bool:
    """Return whether the kernel carries out these commands of tc in a new namespace."""
    done = run(
        ("unshare", "--net", "tc", "-batch", "-"), stdin="\n".join(lines) + "\n", check=False
    )
    return done.status == 0


@contextlib.contextmanager
def _lock_machine(job: Job) -> Iterator[None]:
    """Allow one trial at a time, since all runs share this machine's settings."""
    LOCK.mkdir(mode=0o700, exist_ok=True)
    if why := safe_files.changed_by_others(LOCK):
        raise TestbedError(f"{LOCK} is not root's alone: {why}", f"remove {LOCK}")
    with safe_files.folder(LOCK) as folder:
        lock(folder, "the host engine", job.tell, job.cancel)
        if job.cancel.is_set():
            raise Cancelled("cancelled")
        yield


@contextlib.contextmanager
def _parameters(parameters: Sequence[Parameter]) -> Iterator[None]:
    """Set the congestion controls' parameters for the duration of a trial."""
    with contextlib.ExitStack() as stack:
        for each in parameters:
            stack.enter_context(temporarily(Path(each.file), str(each.value)))
        yield


@contextlib.contextmanager
def _all_controls_allowed() -> Iterator[None]:
    """Allow all congestion controls: namespaces may set only those allowed here."""
    names = [*ALLOWED.read_text().split(), *AVAILABLE.read_text().split()]
    with temporarily(ALLOWED, " ".join(dict.fromkeys(names))):
        yield
